//! Command files of tools that are not on the machines that test Holdfast, against stand-ins: scripts that keep a state in a file
//! and know the words of systemctl(1), virsh(1) and the clouds' own programs that the files use. This shows that the commands fit
//! together, not that systemd, libvirt or a cloud does what its manual says.

use std::fs;
use std::path::Path;
use std::time::Duration;

use history::Verdict;
use remote::strike::Patience;
use remote::{Journal, Reach, Receipt};

use crate::striking::{put_program, shipped, struck};

const PATIENCE: Patience = Patience { stands: Duration::from_secs(5), gone: Duration::from_secs(60) };

/// `$restarts` is whether the unit has Restart=.
const SYSTEMCTL: &str = r#"#!/bin/sh
state=@FOLDER@/unit
read -r word pid began < "$state"
word_of_unit() { for last; do :; done; [ "$last" = db.service ] || { echo "Unit $last could not be found."; exit 5; }; }
put() { echo "$*" > "$state.new"; mv "$state.new" "$state"; }
case $1 in
  --version) echo 'systemd 252 (a stand-in)'; exit 0 ;;
esac
word_of_unit "$@"
case "$*" in
  'stop db.service') put inactive 0 "$began" ;;
  'start db.service') [ "$word" = active ] || put active $((began + 7)) $((began + 1)) ;;
  'kill --kill-whom=all --signal=SIGKILL db.service')
    if @RESTARTS@; then put active $((pid + 1)) $((began + 1)); else put failed 0 "$began"; fi ;;
  'reset-failed db.service') [ "$word" != failed ] || put inactive 0 "$began" ;;
  'is-active db.service') echo "$word"; [ "$word" = active ] || exit 3 ;;
  'show --property=MainPID db.service') echo "MainPID=$pid" ;;
  'show --property=MainPID --property=ExecMainStartTimestampMonotonic db.service')
    echo "MainPID=$pid"; echo "ExecMainStartTimestampMonotonic=$began" ;;
  *) echo "Unknown command: $*"; exit 1 ;;
esac
"#;

const VIRSH: &str = r#"#!/bin/sh
state=@FOLDER@/unit
read -r word < "$state"
case "$*" in
  --version) echo 9.0.0 ;;
  'destroy db1') echo 'shut off (destroyed)' > "$state"; echo "Domain 'db1' destroyed" ;;
  'start db1') [ "$word" != running ] || { echo 'error: Domain is already active'; exit 1; }; echo running > "$state" ;;
  'domstate db1') echo "${word% (*}" ;;
  'domstate --reason db1') case $word in running) echo 'running (booted)' ;; *) echo "$word" ;; esac ;;
  *) echo "error: unknown command: $*"; exit 1 ;;
esac
"#;

const GOVC: &str = r#"#!/bin/sh
state=@FOLDER@/unit
read -r word < "$state"
case "$*" in
  version) echo 'govc 0.18.0' ;;
  'vm.power -off /DC0/vm/db1') [ "$word" = running ] || { echo 'govc: *types.InvalidPowerState'; exit 1; }; echo off > "$state" ;;
  'vm.power -on /DC0/vm/db1') [ "$word" != running ] || { echo 'govc: *types.InvalidPowerState'; exit 1; }; echo running > "$state" ;;
  'vm.info /DC0/vm/db1') case $word in running) echo '  Power state:  poweredOn' ;; *) echo '  Power state:  poweredOff' ;; esac ;;
  *) echo "Unknown command: $*"; exit 2 ;;
esac
"#;

/// It goes on stopping until somebody waits for its end.
const AWS: &str = r#"#!/bin/sh
state=@FOLDER@/unit
read -r word < "$state"
of='--instance-ids i-1'
case "$*" in
  --version) echo 'aws-cli/2.31.0 (a stand-in)' ;;
  "ec2 stop-instances $of --skip-os-shutdown --output text") echo stopping > "$state" ;;
  "ec2 wait instance-stopped $of") [ "$word" != running ] || exit 255; echo stopped > "$state" ;;
  "ec2 start-instances $of --output text") [ "$word" = stopped ] || { echo IncorrectInstanceState; exit 254; }; echo running > "$state" ;;
  "ec2 wait instance-running $of") [ "$word" = running ] || exit 255 ;;
  "ec2 describe-instances $of --query Reservations[0].Instances[0].State.Name --output text") echo "$word" ;;
  *) echo "Unknown command: $*"; exit 252 ;;
esac
"#;

const AZ: &str = r#"#!/bin/sh
state=@FOLDER@/unit
read -r word < "$state"
of='--resource-group databases --name db1'
case "$*" in
  --version) echo 'azure-cli 2.60.0 (a stand-in)' ;;
  "vm stop $of --skip-shutdown") echo stopped > "$state" ;;
  "vm start $of") echo running > "$state" ;;
  "vm get-instance-view $of --query instanceView.statuses[].code --output tsv")
    echo ProvisioningState/succeeded; echo "PowerState/$word" ;;
  *) echo "Unknown command: $*"; exit 2 ;;
esac
"#;

const GCLOUD: &str = r#"#!/bin/sh
state=@FOLDER@/unit
read -r word < "$state"
case "$*" in
  --version) echo 'Google Cloud SDK 480.0.0 (a stand-in)' ;;
  'compute instances stop db1 --zone=europe-west1-b --discard-local-ssd=true --quiet') echo off > "$state" ;;
  'compute instances start db1 --zone=europe-west1-b --quiet') echo running > "$state" ;;
  'compute instances describe db1 --zone=europe-west1-b --format=value(status)')
    if [ "$word" = running ]; then echo RUNNING; else echo TERMINATED; fi ;;
  *) echo "Unknown command: $*"; exit 2 ;;
esac
"#;

const TC: &str = r#"#!/bin/sh
state=@FOLDER@/unit
read -r word < "$state"
case "$*" in
  -V) echo 'tc utility, iproute2-6.1.0' ;;
  'qdisc add dev eth0 root handle 6864: netem delay 50000us loss 0%') echo netem > "$state" ;;
  'qdisc del dev eth0 root handle 6864:') echo plain > "$state" ;;
  'qdisc show dev eth0' | '-s qdisc show dev eth0')
    if [ "$word" = netem ]; then echo 'qdisc netem 6864: root refcnt 2 limit 1000 delay 50ms'; else echo 'qdisc noqueue 0: root refcnt 2'; fi
    [ "$1" != -s ] || echo ' Sent @SENT@ pkt (dropped 0, overlimits 0 requeues 0)' ;;
  *) echo "unknown command: $*"; exit 1 ;;
esac
"#;

/// A guest that answers while it runs.
const PING: &str = "#!/bin/sh\nread -r word < @FOLDER@/unit\n[ \"$word\" = running ]\n";

/// A machine with stand-ins for these programs, and what they find at first.
pub(crate) fn machine(folder: &Path, programs: &[(&str, &str)], state: &str) -> Reach {
    for (name, script) in programs {
        put_program(&folder.join(name), &script.replace("@FOLDER@", &folder.display().to_string()));
    }
    fs::write(folder.join("unit"), format!("{state}\n")).expect("the state");
    let path = std::env::var("PATH").expect("a PATH");
    Reach::Local { through: vec!["env".to_owned(), format!("PATH={}:{path}", folder.display())] }
}

fn receipt_of_unit(name: &str, restarts: bool) -> (Receipt, String) {
    let systemctl = SYSTEMCTL.replace("@RESTARTS@", &restarts.to_string());
    receipt(name, &[("unit", "db.service")], &[("systemctl", &systemctl)], "active 4711 100")
}

/// What becomes of a fault, and the state while it stands.
pub(crate) fn receipt(
    name: &str,
    given: &[(&str, &str)],
    programs: &[(&str, &str)],
    state: &str,
) -> (Receipt, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let reach = machine(folder.path(), programs, state);
    let journal = Journal::open(folder.path()).expect("a journal");
    let standing = struck(shipped(name, given), &reach, &journal, PATIENCE);
    let stood = fs::read_to_string(folder.path().join("unit")).expect("the state");
    (standing.undo(&reach, &journal, PATIENCE), stood)
}

#[test]
fn a_unit_is_stopped_and_started_again() {
    let (receipt, stood) = receipt_of_unit("systemd-stop", false);
    assert!(stood.starts_with("inactive"), "{stood}");
    assert_eq!((receipt.verdict(), &receipt.doubts[..]), (Verdict::Pass, &[][..]));
}

#[test]
fn a_unit_is_killed_and_started_by_us_where_systemd_does_not() {
    let (receipt, stood) = receipt_of_unit("systemd-kill", false);
    assert!(stood.starts_with("failed"), "{stood}");
    assert_eq!((receipt.verdict(), &receipt.doubts[..]), (Verdict::Pass, &[][..]));
}

#[test]
fn a_unit_that_is_back_at_once_was_killed_all_the_same() {
    let (receipt, stood) = receipt_of_unit("systemd-kill", true);
    assert!(stood.starts_with("active 4712"), "{stood}");
    assert_eq!((receipt.verdict(), &receipt.doubts[..]), (Verdict::Pass, &[][..]));
}

/// A machine whose power one of these programs takes and gives back.
fn loses_power_and_gets_it_back(name: &str, given: &[(&str, &str)], program: (&str, &str), stands_as: &str) {
    let given = [given, &[("address", "10.0.0.2")]].concat();
    let (receipt, stood) = receipt(name, &given, &[program, ("ping", PING)], "running");
    assert_eq!(stood.trim(), stands_as);
    assert_eq!((receipt.verdict(), &receipt.doubts[..]), (Verdict::Pass, &[][..]));
}

#[test]
fn a_virtual_machine_of_libvirt_loses_power_and_is_started_again() {
    let given = [("domain", "db1")];
    loses_power_and_gets_it_back("libvirt-power-off", &given, ("virsh", VIRSH), "shut off (destroyed)");
}

#[test]
fn a_virtual_machine_of_vsphere_loses_power_and_is_started_again() {
    loses_power_and_gets_it_back("vsphere-power-off", &[("vm", "/DC0/vm/db1")], ("govc", GOVC), "off");
}

#[test]
fn a_delay_on_an_interface_that_carries_packets_is_shown_and_one_on_an_idle_interface_is_not() {
    let of = |sent: &str| {
        let given = [("interface", "eth0"), ("delay", "50ms")];
        receipt("netem", &given, &[("tc", &TC.replace("@SENT@", sent))], "plain").0
    };
    let busy = of("4711 bytes 12");
    assert_eq!((busy.verdict(), &busy.doubts[..]), (Verdict::Pass, &[][..]));
    assert_ne!(of("0 bytes 0").verdict(), Verdict::Pass);
}

#[test]
fn an_instance_of_ec2_is_started_only_once_it_has_stopped() {
    loses_power_and_gets_it_back("aws-ec2-power-off", &[("instance", "i-1")], ("aws", AWS), "stopping");
}

#[test]
fn a_virtual_machine_of_azure_loses_power_and_is_started_again() {
    let given = [("group", "databases"), ("vm", "db1")];
    loses_power_and_gets_it_back("azure-vm-power-off", &given, ("az", AZ), "stopped");
}

#[test]
fn an_instance_of_compute_engine_is_stopped_and_started_again() {
    let given = [("instance", "db1"), ("zone", "europe-west1-b")];
    loses_power_and_gets_it_back("gcloud-vm-stop", &given, ("gcloud", GCLOUD), "off");
}

//! The command files of systemd against a stand-in for `systemctl`: a script that keeps one unit's state in a file and knows the
//! words of systemctl(1) that the files use. It shows that the commands fit together, not that systemd does what it says.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use history::Verdict;
use remote::strike::{Patience, strike, token};
use remote::{Journal, Permit, Reach, Receipt};

const PATIENCE: Patience = Patience { stands: Duration::from_secs(20), gone: Duration::from_secs(60) };

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

fn unit(folder: &Path, restarts: bool) -> Reach {
    let script = SYSTEMCTL.replace("@FOLDER@", &folder.display().to_string());
    let program = folder.join("systemctl");
    fs::write(&program, script.replace("@RESTARTS@", &restarts.to_string())).expect("the stand-in");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).expect("executable");
    fs::write(folder.join("unit"), "active 4711 100\n").expect("the unit");
    let path = std::env::var("PATH").expect("a PATH");
    Reach::Local { through: vec!["env".to_owned(), format!("PATH={}:{path}", folder.display())] }
}

fn receipt(name: &str, restarts: bool) -> (Receipt, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let reach = unit(folder.path(), restarts);
    let values = BTreeMap::from([("unit".to_owned(), "db.service".to_owned())]);
    let id = token().expect("randomness")[..8].to_owned();
    let fault = remote::named(name).expect("it ships").filled(&values, &id).expect("sound values");
    let hosts = BTreeSet::from(["localhost".to_owned()]);
    let permit = Permit::ask(&hosts, &hosts, "test", Some("test")).expect("leave");
    let mut journal = Journal::open(folder.path()).expect("a journal");
    let late = Duration::from_secs(600);
    let standing = strike(("n1", fault), &reach, &permit, &mut journal, (late, PATIENCE)).expect("struck");
    let stood = fs::read_to_string(folder.path().join("unit")).expect("the unit");
    (standing.undo(&reach, &mut journal, PATIENCE), stood)
}

#[test]
fn a_unit_is_stopped_and_started_again() {
    let (receipt, stood) = receipt("systemd-stop", false);
    assert!(stood.starts_with("inactive"), "{stood}");
    assert_eq!((receipt.verdict(), &receipt.doubts[..]), (Verdict::Pass, &[][..]));
}

#[test]
fn a_unit_is_killed_and_started_by_us_where_systemd_does_not() {
    let (receipt, stood) = receipt("systemd-kill", false);
    assert!(stood.starts_with("failed"), "{stood}");
    assert_eq!((receipt.verdict(), &receipt.doubts[..]), (Verdict::Pass, &[][..]));
}

#[test]
fn a_unit_that_is_back_at_once_was_killed_all_the_same() {
    let (receipt, stood) = receipt("systemd-kill", true);
    assert!(stood.starts_with("active 4712"), "{stood}");
    assert_eq!((receipt.verdict(), &receipt.doubts[..]), (Verdict::Pass, &[][..]));
}

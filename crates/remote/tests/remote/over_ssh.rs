//! The way by ssh, with the real `ssh` and `sshd` between two network namespaces. Needs root, for namespaces without a user
//! namespace, in which sshd refuses to work; skipped, loudly, where something is missing.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use history::Verdict;
use nix::sched::{CloneFlags, unshare};
use remote::heal::{Outcome, heal};
use remote::receipt::Doubt;
use remote::strike::{Patience, strike};
use remote::timer::TimerEnd;
use remote::transport::TransportError;
use remote::{Journal, Reach, Transport, journal};

use crate::striking::{LATE, PATIENCE, lacks, permit, shipped};

/// The client's end of the cable, and the machine's.
const OURS: &str = "10.9.1.1";
const THEIRS: &str = "10.9.1.2";
/// The machine as the configuration of ssh names it.
const HOST: &str = "db1";

/// A process that is ended with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A machine with sshd in a network namespace of its own; this thread, and all that it starts, is in another.
struct Machine {
    folder: tempfile::TempDir,
    _server: Ended,
}

fn said(program: &str, arguments: &[&str]) -> String {
    let output =
        Command::new(program).args(arguments).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).expect("text");
    assert!(output.status.success(), "{program} {arguments:?}: {text}");
    text
}

impl Machine {
    fn new(test: &str, more: &[&str]) -> Option<Machine> {
        if !nix::unistd::geteuid().is_root() {
            eprintln!("skipped: {test}: sshd in a namespace needs root");
            return None;
        }
        let always = ["ssh", "sshd", "ssh-keygen", "ip", "unshare", "setsid", "timeout"];
        if lacks(test, &always) || lacks(test, more) {
            return None;
        }
        if let Err(error) = unshare(CloneFlags::CLONE_NEWNET) {
            eprintln!("skipped: {test}: no network namespace: {error}");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        configure(folder.path());
        let machine = Machine { _server: serve(folder.path()), folder };
        // Until sshd answers.
        let wait = (0..600).find(|_| {
            std::thread::sleep(Duration::from_millis(100));
            machine.reach().run("true\n", Duration::from_secs(10)).is_ok()
        });
        wait.unwrap_or_else(|| {
            panic!("sshd does not answer: {:?}", machine.reach().run("true\n", Duration::from_secs(10)))
        });
        Some(machine)
    }

    fn reach(&self) -> Reach {
        Reach::Ssh { host: HOST.to_owned(), port: None, config: Some(self.folder.path().join("ssh_config")) }
    }
}

/// Keys and configurations of both sides.
fn configure(folder: &Path) {
    let path = |name: &str| folder.join(name).display().to_string();
    for key in ["host_key", "key"] {
        said("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &path(key)]);
    }
    fs::copy(folder.join("key.pub"), folder.join("authorized")).expect("copied");
    let host_key = fs::read_to_string(folder.join("host_key.pub")).expect("the host's key");
    fs::write(folder.join("known"), format!("{THEIRS} {host_key}")).expect("written");
    let server = format!(
        "Port 22\nListenAddress {THEIRS}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n\
         PasswordAuthentication no\nPidFile none\nLogLevel ERROR\n",
        path("host_key"),
        path("authorized")
    );
    fs::write(folder.join("sshd_config"), server).expect("written");
    let client = format!(
        "Host {HOST}\n  HostName {THEIRS}\n  User root\n  IdentityFile {}\n  IdentitiesOnly yes\n  UserKnownHostsFile {}\n  \
         StrictHostKeyChecking yes\n",
        path("key"),
        path("known")
    );
    fs::write(folder.join("ssh_config"), client).expect("written");
}

/// Starts sshd in its namespace, and lays a cable to it.
fn serve(folder: &Path) -> Ended {
    let ready = folder.join("cable").display().to_string();
    let config = folder.join("sshd_config").display().to_string();
    // A /run of its own, in which sshd wants a folder.
    let script = "mount -t tmpfs none /run && mkdir -p /run/sshd && while [ ! -e \"$1\" ]; do sleep 0.05; done && \
                  exec \"$(PATH=$PATH:/usr/sbin:/sbin command -v sshd)\" -D -e -f \"$2\"";
    let child = Command::new("unshare")
        .args(["--net", "--mount", "sh", "-c", script, "sh", &ready, &config])
        .stdin(Stdio::null())
        .spawn()
        .expect("unshare");
    let server = Ended(child);
    let pid = server.0.id().to_string();
    let own = fs::read_link("/proc/thread-self/ns/net").expect("a namespace");
    let its = format!("/proc/{pid}/ns/net");
    while fs::read_link(&its).is_ok_and(|its| its == own) {
        std::thread::sleep(Duration::from_millis(10));
    }
    said("ip", &["link", "add", "left", "type", "veth", "peer", "name", "right", "netns", &pid]);
    said("ip", &["addr", "add", &format!("{OURS}/24"), "dev", "left"]);
    said("ip", &["link", "set", "left", "up"]);
    let there = ["-t", &pid, "--net", "ip"];
    said("nsenter", &[&there[..], &["addr", "add", &format!("{THEIRS}/24"), "dev", "right"]].concat());
    said("nsenter", &[&there[..], &["link", "set", "right", "up"]].concat());
    fs::write(folder.join("cable"), "").expect("written");
    server
}

/// On a thread of its own, whose network namespace is no other test's.
fn apart(test: impl FnOnce() + Send + 'static) {
    std::thread::spawn(test).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

#[test]
fn scripts_and_exit_codes_come_through_and_a_machine_that_is_not_there_is_unreachable() {
    apart(|| {
        let test = "scripts_and_exit_codes_come_through_and_a_machine_that_is_not_there_is_unreachable";
        let Some(machine) = Machine::new(test, &[]) else { return };
        let words = ["a b", "it's", "$HOME", "`id`", "", "x\ny", "*", "\\"];
        let line = format!("printf '<%s>' {}; exit 7\n", remote::quoting::joined(&words));
        let output = machine.reach().run(&line, Duration::from_secs(60)).expect("it ran");
        assert_eq!((output.exit, output.text.as_str()), (7, "<a b><it's><$HOME><`id`><><x\ny><*><\\>"));
        let hangs = machine.reach().run("sleep 100\n", Duration::from_secs(2)).expect_err("it hangs");
        assert!(matches!(hangs, TransportError::TimedOut { .. }), "{hangs}");
        let config = Some(machine.folder.path().join("ssh_config"));
        let closed = Reach::Ssh { host: HOST.to_owned(), port: Some(23), config };
        let error = closed.run("true\n", Duration::from_secs(60)).expect_err("nobody listens");
        assert!(
            matches!(&error, TransportError::Unreachable { words, .. } if words.contains("refused")),
            "{error}"
        );
        let option = Reach::Ssh { host: "-oProxyCommand=touch".to_owned(), port: None, config: None };
        let error = option.run("true\n", Duration::from_secs(60)).expect_err("an option");
        assert!(matches!(error, TransportError::NotAHost { .. }), "{error}");
    });
}

#[test]
fn a_process_there_is_stopped_and_healed_from_the_journal() {
    apart(|| {
        let Some(machine) =
            Machine::new("a_process_there_is_stopped_and_healed_from_the_journal", &["pkill"])
        else {
            return;
        };
        let victim = Ended(Command::new("sleep").arg("1000").spawn().expect("sleep"));
        let pid_file = machine.folder.path().join("pid");
        fs::write(&pid_file, format!("{}\n", victim.0.id())).expect("the PID file");
        let fault = shipped("pid-file-stop", &[("pid-file", &pid_file.display().to_string())]);
        let run = tempfile::tempdir().expect("a folder");
        let journal = Journal::open(run.path()).expect("a journal");
        let leave = permit(HOST);
        let standing =
            strike(("n1", fault), &machine.reach(), &leave, &journal, (LATE, PATIENCE)).expect("struck");
        assert_eq!(standing.doubts(), &[]);
        // The run dies here; the timer was left by a session that is over.
        drop((standing, journal));
        let entry = journal::read(run.path()).expect("readable").expect("there").entries.remove(0);
        assert!(Path::new(&entry.intent.timer.folder).join("armed").exists());
        let healing = heal(run.path(), PATIENCE, |entry| entry.intent.reach.clone())
            .expect("healed")
            .expect("a journal");
        let healed = &healing.faults[0];
        assert_eq!(
            (healed.outcome, &healed.timer),
            (Outcome::Undone, &Some(TimerEnd::Disarmed)),
            "{healed:?}"
        );
        assert!(healed.doubts.is_empty(), "{:?}", healed.doubts);
    });
}

#[test]
#[ignore = "second tier: waits for connections to time out, more than half a minute"]
fn a_partition_that_cuts_our_own_connection_is_undone_by_the_timer() {
    apart(|| {
        let test = "a_partition_that_cuts_our_own_connection_is_undone_by_the_timer";
        let Some(machine) = Machine::new(test, &["nft", "ping"]) else { return };
        let run = tempfile::tempdir().expect("a folder");
        let journal = Journal::open(run.path()).expect("a journal");
        let fault = shipped("nftables-partition", &[("peers", OURS), ("probe", OURS)]);
        let patience = Patience { stands: Duration::ZERO, ..PATIENCE };
        let after = Duration::from_secs(20);
        let leave = permit(HOST);
        let standing =
            strike(("n1", fault), &machine.reach(), &leave, &journal, (after, patience)).expect("struck");
        assert!(
            matches!(standing.doubts().first(), Some(Doubt::StrikeFailed(claim)) if claim.output.is_none()),
            "the strike's own answer was cut off: {:?}",
            standing.doubts()
        );
        let receipt = standing.undo(&machine.reach(), &journal, patience);
        assert_eq!(receipt.verdict(), Verdict::Unknown, "{:?}", receipt.doubts);
        assert!(matches!(receipt.timer, Some(TimerEnd::Fired { exit: 0, .. })), "{receipt:?}");
        let rules = machine
            .reach()
            .run("/usr/sbin/nft list ruleset\n", Duration::from_secs(60))
            .expect("it answers again");
        assert_eq!((rules.exit, rules.text.as_str()), (0, ""));
    });
}

//! Faults of processes that the tests start, on this machine through a shell: receipts, the journal, the timer, healing after
//! a crash; and for each of them a planted defect.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use history::Verdict;
use remote::heal::{Healing, Outcome, heal};
use remote::receipt::Doubt;
use remote::strike::{Patience, StrikeError, strike, token};
use remote::timer::{Timer, TimerEnd};
use remote::transport::{Output, TransportError};
use remote::{CommandFile, Filled, Journal, Reach, Receipt, Transport, journal};

use crate::striking::{
    LATE, PATIENCE, SHORT, came_too_late, filled, here, lacks, marker, permit, put_program, shipped, struck,
    timer_folders, tried, wait_until,
};

/// A process of the test's own with its PID file; ended when the test ends.
struct Victim {
    folder: tempfile::TempDir,
    child: Child,
}

impl Victim {
    fn new() -> Victim {
        let folder = tempfile::tempdir().expect("a folder");
        let child = Command::new("sleep").arg("1000").process_group(0).spawn().expect("sleep");
        fs::write(folder.path().join("pid"), format!("{}\n", child.id())).expect("the PID file");
        Victim { folder, child }
    }

    fn pid_file(&self) -> PathBuf {
        self.folder.path().join("pid")
    }

    fn run_directory(&self) -> &Path {
        self.folder.path()
    }

    fn state(&self) -> char {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("it is there");
        stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next()).expect("a state")
    }

    fn stop(&self) -> Filled {
        shipped("pid-file-stop", &[("pid-file", &self.pid_file().display().to_string())])
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn whole(file: &CommandFile, patience: Patience) -> Receipt {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = Journal::open(folder.path()).expect("a journal");
    let standing = struck(filled(file), &here(), &journal, patience);
    let receipt = standing.undo(&here(), &journal, patience);
    take_timers_away(folder.path());
    receipt
}

/// What a test leaves armed on purpose goes with it.
fn take_timers_away(run_directory: &Path) {
    for entry in journal::read(run_directory).expect("readable").expect("there").entries {
        entry.intent.timer.disarm(&here(), &[]).expect("disarmed");
    }
}

fn healed(run_directory: &Path) -> Healing {
    heal(run_directory, PATIENCE, |entry| entry.intent.reach.clone()).expect("healed").expect("a journal")
}

#[test]
fn a_stopped_process_is_seen_to_stand_still_and_to_go_on() {
    if lacks("a_stopped_process_is_seen_to_stand_still_and_to_go_on", &["pkill", "setsid", "timeout"]) {
        return;
    }
    let victim = Victim::new();
    let journal = Journal::open(victim.run_directory()).expect("a journal");
    let standing = struck(victim.stop(), &here(), &journal, PATIENCE);
    assert_eq!(victim.state(), 'T');
    let folders = timer_folders(victim.run_directory());
    assert!(folders[0].join("armed").exists(), "the timer waits while the fault stands");
    let receipt = standing.undo(&here(), &journal, PATIENCE);
    assert_eq!((receipt.verdict(), &receipt.doubts[..]), (Verdict::Pass, &[][..]));
    assert_eq!(receipt.timer, Some(TimerEnd::Disarmed));
    assert!(receipt.version.contains("procps"), "{}", receipt.version);
    assert_ne!(victim.state(), 'T');
    assert!(!folders[0].exists(), "nothing is left on the machine");
}

#[test]
fn a_killed_process_is_seen_to_be_gone_and_to_be_back() {
    if lacks("a_killed_process_is_seen_to_be_gone_and_to_be_back", &["pkill", "setsid", "timeout"]) {
        return;
    }
    let mut victim = Victim::new();
    let start = victim.folder.path().join("start");
    let pid = victim.pid_file().display().to_string();
    put_program(&start, &format!("#!/bin/sh\nsleep 1000 >/dev/null 2>&1 </dev/null &\necho $! > {pid}\n"));
    let fault = shipped("pid-file-kill", &[("pid-file", &pid), ("start", &start.display().to_string())]);
    let journal = Journal::open(victim.run_directory()).expect("a journal");
    // The test is the process's parent, so that it stays a zombie until it is waited for, as under no service manager.
    let reaper = std::thread::spawn({
        let mut child = std::mem::replace(&mut victim.child, Command::new("true").spawn().expect("true"));
        move || child.wait()
    });
    let standing = struck(fault, &here(), &journal, PATIENCE);
    let receipt = standing.undo(&here(), &journal, PATIENCE);
    let ended = reaper.join().expect("no panic").expect("waited for");
    let started: i32 =
        fs::read_to_string(victim.pid_file()).expect("the PID file").trim().parse().expect("a PID");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(started), nix::sys::signal::Signal::SIGKILL)
        .expect("it runs");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended), Some(9));
    assert_eq!((receipt.verdict(), &receipt.doubts[..]), (Verdict::Pass, &[][..]));
}

#[test]
fn a_strike_that_claims_success_and_does_nothing_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    let receipt = whole(&marker(folder.path(), &[("do", "[{ run: [\"true\"] }]")]), SHORT);
    assert!(receipt.strike[0].is_success(), "the claim is kept: {:?}", receipt.strike);
    assert_eq!(receipt.verdict(), Verdict::Fail);
    assert!(matches!(receipt.doubts[0], Doubt::DoesNotStand(_)), "{:?}", receipt.doubts);
}

#[test]
fn a_strike_that_fails_and_yet_stands_does_not_pass() {
    let folder = tempfile::tempdir().expect("a folder");
    let mark = folder.path().join("mark");
    let failing = format!("[{{ run: [touch, {}] }}, {{ run: [\"false\"] }}]", mark.display());
    let receipt = whole(&marker(folder.path(), &[("do", &failing)]), SHORT);
    assert_eq!(receipt.verdict(), Verdict::Unknown);
    assert!(matches!(&receipt.doubts[..], [Doubt::StrikeFailed(claim)] if claim.command == "false"));
    assert!(!mark.exists());
}

#[test]
fn an_undoing_that_fails_is_named_and_what_still_stands_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    let receipt = whole(&marker(folder.path(), &[("undo", "[{ run: [\"false\"] }]")]), SHORT);
    assert_eq!(receipt.verdict(), Verdict::Fail);
    let told: Vec<String> = receipt.doubts.iter().map(ToString::to_string).collect();
    assert_eq!(told[0], "the undoing failed: `false` ended with 1");
    assert!(told[1].starts_with("the fault still stands: `test -e"), "{told:?}");
    assert_eq!(receipt.timer, None, "the timer stays armed while the fault stands");
}

#[test]
fn looks_that_show_nothing_keep_the_fault_from_being_struck() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = Journal::open(folder.path()).expect("a journal");
    for (key, look, because) in [
        ("stands", "[{ run: [\"true\"] }]", "check already passes"),
        ("stands", "[{ run: [no-such-program] }]", "check did not run"),
        ("gone", "[{ run: [\"false\"] }]", "is not in its normal state"),
        ("gone", "[{ run: [no-such-program], exit: 1 }]", "is not in its normal state"),
    ] {
        let fault = filled(&marker(folder.path(), &[(key, look)]));
        let error = tried(fault, &here(), &journal, (LATE, SHORT)).expect_err(look);
        assert!(
            matches!(&error, StrikeError::NoBaseline { when, .. } if when.contains(because)),
            "{look}: {error}"
        );
        assert!(!folder.path().join("mark").exists());
    }
    let always = filled(&marker(folder.path(), &[("gone", "[{ run: [\"true\"] }]")]));
    let receipt = struck(always, &here(), &journal, SHORT).undo(&here(), &journal, SHORT);
    assert!(receipt.doubts.contains(&Doubt::GoneWhileStanding), "{:?}", receipt.doubts);
    assert_ne!(receipt.verdict(), Verdict::Pass);
}

/// A machine that arms the timer, and whose answer does not come back.
struct SilentArming(Reach);

impl Transport for SilentArming {
    fn reach(&self) -> &Reach {
        &self.0
    }

    fn run(&self, script: &str, within: Duration) -> Result<Output, TransportError> {
        let output = self.0.run(script, within);
        match script.contains("/armed") {
            true => Err(TransportError::TimedOut { host: "localhost".to_owned(), within }),
            false => output,
        }
    }
}

#[test]
fn a_timer_that_is_not_known_to_be_armed_is_taken_away_and_nothing_is_struck() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = Journal::open(folder.path()).expect("a journal");
    let fault = filled(&marker(folder.path(), &[]));
    let silent = SilentArming(here());
    let error = tried(fault, &silent, &journal, (LATE, SHORT)).expect_err("not armed");
    assert!(matches!(error, StrikeError::Timer(_)), "{error}");
    assert!(!folder.path().join("mark").exists());
    assert!(!timer_folders(folder.path())[0].exists(), "the timer would undo what was never done");
    drop(journal);
    assert_eq!((healed(folder.path()).faults.len(), healed(folder.path()).closed), (0, 1));
}

/// How a timer ends that a login with a variable armed and a service without an environment carries out, and what its undo saw of
/// that variable. `spoils` is done to the timer's folder in between.
fn undone_by_a_service(spoils: impl FnOnce(&Path)) -> (TimerEnd, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let seen = folder.path().join("seen");
    let script = format!("printf %s \"$HOLDFAST_TEST_CONFIGURATION\" > {}", seen.display());
    let undo = [remote::command_file::Command {
        run: ["sh", "-c", &script].map(str::to_owned).into(),
        within: SHORT.gone * 10,
    }];
    // Beside it one that has a name of the timer's own.
    let variables = ["HOLDFAST_TEST_CONFIGURATION=it's \"there\"", "folder=/nowhere"];
    let login = ["env"].into_iter().chain(variables).map(str::to_owned).collect();
    let reach = Reach::Local { through: login };
    let timer = Timer::new(&token().expect("randomness"), LATE);
    timer.arm(&reach, &undo).expect("armed");
    spoils(Path::new(&timer.folder));
    let script = format!("{}/timer", timer.folder);
    let path = "PATH=/usr/bin:/bin";
    let service =
        std::process::Command::new("env").args(["-i", path, "sh", &script, &timer.folder, "0"]).status();
    assert!(service.is_ok_and(|status| status.success()));
    let end = timer.disarm(&reach, &undo).expect("an answer");
    (end, fs::read_to_string(seen).expect("written"))
}

#[test]
fn the_timer_undoes_with_the_environment_of_the_login_also_where_a_service_without_one_carries_it_out() {
    let (end, seen) = undone_by_a_service(|_| {});
    assert_eq!(end, TimerEnd::Fired { exit: 0, output: String::new() });
    assert_eq!(seen, "it's \"there\"");
}

#[test]
fn an_environment_that_cannot_be_read_does_not_keep_the_timer_from_undoing() {
    let unreadable =
        |folder: &Path| fs::write(folder.join("environment"), "export 'cut off").expect("spoilt");
    let (end, seen) = undone_by_a_service(unreadable);
    assert!(matches!(end, TimerEnd::Fired { exit: 0, .. }), "{end:?}");
    assert_eq!(seen, "", "it was undone, without the variable");
}

#[test]
fn a_machine_that_nobody_confirmed_is_not_struck() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = Journal::open(folder.path()).expect("a journal");
    let fault = filled(&marker(folder.path(), &[]));
    let other = permit("db1");
    let error = strike(("n1", fault), &here(), &other, &journal, (LATE, SHORT)).expect_err("no leave");
    assert!(matches!(error, StrikeError::NotPermitted { host } if host == "localhost"));
    assert!(!folder.path().join("mark").exists());
}

/// A machine that cannot be reached while the fault stands: what a partition does to its own connection.
struct CutBy {
    mark: PathBuf,
    reach: Reach,
}

impl Transport for CutBy {
    fn reach(&self) -> &Reach {
        &self.reach
    }

    fn run(&self, script: &str, within: Duration) -> Result<Output, TransportError> {
        if self.mark.exists() {
            return Err(TransportError::Unreachable {
                host: "localhost".to_owned(),
                words: "cut".to_owned(),
            });
        }
        self.reach.run(script, within)
    }
}

#[test]
fn a_fault_that_cuts_our_own_connection_is_undone_by_the_timer_and_does_not_pass() {
    // A machine that stands still for longer than the timer gives strikes too late; then once more.
    let receipt = (0..5).map(|_| cut_off()).find(|receipt| !came_too_late(receipt)).expect("one in time");
    assert_eq!(receipt.verdict(), Verdict::Unknown, "nobody saw it stand: {:?}", receipt.doubts);
    assert!(matches!(receipt.timer, Some(TimerEnd::Fired { exit: 0, .. })), "{:?}", receipt.timer);
}

fn cut_off() -> Receipt {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = Journal::open(folder.path()).expect("a journal");
    let cut = CutBy { mark: folder.path().join("mark"), reach: here() };
    let fault = filled(&marker(folder.path(), &[]));
    let after = Duration::from_secs(4);
    let standing = tried(fault, &cut, &journal, (after, SHORT)).expect("struck");
    let receipt = standing.undo(&cut, &journal, PATIENCE);
    assert!(!cut.mark.exists());
    assert!(!timer_folders(folder.path())[0].exists());
    receipt
}

#[test]
fn a_strike_after_its_timer_is_not_carried_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = Journal::open(folder.path()).expect("a journal");
    // The machine is held up between the arming and the strike.
    let late = LateStrike { reach: here(), mark: folder.path().join("mark").display().to_string() };
    let fault = filled(&marker(folder.path(), &[]));
    let after = Duration::from_secs(1);
    let standing = tried(fault, &late, &journal, (after, SHORT)).expect("armed");
    assert!(!folder.path().join("mark").exists(), "nothing was struck");
    let receipt = standing.undo(&here(), &journal, SHORT);
    assert!(came_too_late(&receipt), "{:?}", receipt.strike);
    assert_ne!(receipt.verdict(), Verdict::Pass);
}

/// A machine that does what strikes only once the timer has fired.
struct LateStrike {
    reach: Reach,
    mark: String,
}

impl Transport for LateStrike {
    fn reach(&self) -> &Reach {
        &self.reach
    }

    fn run(&self, script: &str, within: Duration) -> Result<Output, TransportError> {
        if script.contains(&format!("touch {}", self.mark)) {
            let folder =
                script.split_once("[ -d ").and_then(|(_, rest)| rest.split_once(' ')).expect("a guard").0;
            let fired = Path::new(folder).join("fired");
            wait_until("the timer fired", || fired.exists());
        }
        self.reach.run(script, within)
    }
}

#[test]
fn healing_undoes_what_stands_once_and_twice_is_nothing_more() {
    if lacks("healing_undoes_what_stands_once_and_twice_is_nothing_more", &["pkill", "setsid", "timeout"]) {
        return;
    }
    let victim = Victim::new();
    let journal = Journal::open(victim.run_directory()).expect("a journal");
    let standing = struck(victim.stop(), &here(), &journal, PATIENCE);
    let busy =
        heal(victim.run_directory(), SHORT, |entry| entry.intent.reach.clone()).expect_err("the run goes on");
    assert!(busy.to_string().contains("still at work"), "{busy}");
    drop((standing, journal));
    assert_eq!(victim.state(), 'T');
    let healing = healed(victim.run_directory());
    assert_eq!((healing.faults[0].outcome, healing.closed), (Outcome::Undone, 0));
    assert_eq!(healing.faults[0].timer, Some(TimerEnd::Disarmed));
    assert!(healing.faults[0].doubts.is_empty(), "{:?}", healing.faults[0].doubts);
    assert_ne!(victim.state(), 'T');
    let again = healed(victim.run_directory());
    assert_eq!((again.faults.len(), again.closed), (0, 1));
}

#[test]
fn healing_says_what_it_could_not_undo() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = Journal::open(folder.path()).expect("a journal");
    let fault = filled(&marker(folder.path(), &[("undo", "[{ run: [\"false\"] }]")]));
    drop((struck(fault, &here(), &journal, SHORT), journal));
    let open = |entry: &remote::journal::Entry| entry.intent.reach.clone();
    let healing = heal(folder.path(), SHORT, open).expect("healed").expect("a journal");
    assert_eq!(healing.faults[0].outcome, Outcome::Stands);
    assert!(matches!(&healing.faults[0].doubts[..], [Doubt::UndoFailed(_), Doubt::StillStands(_)]));
    // The person does it by hand, and heals again.
    fs::remove_file(folder.path().join("mark")).expect("the mark");
    let again = heal(folder.path(), SHORT, open).expect("healed").expect("a journal");
    assert_eq!(again.faults[0].outcome, Outcome::WasGone);
    assert_eq!(again.faults[0].timer, Some(TimerEnd::Disarmed));
    assert!(!timer_folders(folder.path())[0].exists());
}

#[test]
fn what_the_journal_has_as_gone_is_not_undone_though_something_like_it_stands() {
    for step in [journal::Step::NotStruck, journal::Step::Gone { seen: Vec::new() }] {
        let folder = tempfile::tempdir().expect("a folder");
        let journal = Journal::open(folder.path()).expect("a journal");
        let standing = struck(filled(&marker(folder.path(), &[])), &here(), &journal, PATIENCE);
        let known = journal::read(folder.path()).expect("readable").expect("there");
        journal.write(&known.entries[0].fault, step).expect("written");
        drop((standing, journal));
        let healing = healed(folder.path());
        assert_eq!(healing.faults[0].outcome, Outcome::WasGone);
        assert_eq!(healing.faults[0].timer, Some(TimerEnd::Disarmed));
        assert!(folder.path().join("mark").exists(), "somebody else put it there since");
        let again = healed(folder.path());
        assert_eq!((again.faults.len(), again.closed), (0, 1));
    }
}

#[test]
fn a_journal_that_a_crash_cut_short_is_read_and_one_that_is_damaged_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = Journal::open(folder.path()).expect("a journal");
    let fault = filled(&marker(folder.path(), &[]));
    drop((struck(fault, &here(), &journal, PATIENCE), journal));
    let path = folder.path().join(journal::FILE);
    let whole = fs::read_to_string(&path).expect("the journal");
    fs::write(&path, format!("{whole}{{\"fault\": \"0a1b")).expect("cut short");
    let read = journal::read(folder.path()).expect("readable").expect("there");
    assert_eq!((read.entries.len(), read.damaged.len()), (1, 0));
    drop(Journal::open(folder.path()).expect("opened again"));
    assert_eq!(fs::read_to_string(&path).expect("the journal"), whole);
    fs::write(&path, format!("nonsense\n{whole}")).expect("damaged");
    let healing = healed(folder.path());
    assert_eq!((healing.faults[0].outcome, healing.damaged.len()), (Outcome::Undone, 1));
    assert!(healing.damaged[0].to_string().contains("line 1"), "{}", healing.damaged[0]);
}

#[test]
fn a_journal_that_others_may_write_is_not_carried_out() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(Journal::open(folder.path()).expect("a journal"));
    let path = folder.path().join(journal::FILE);
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o666)).expect("for all");
    let error = heal(folder.path(), SHORT, |entry| entry.intent.reach.clone()).expect_err("refused");
    assert!(error.to_string().contains("others may write"), "{error}");
}

#[test]
fn the_timer_undoes_a_fault_after_whoever_struck_was_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut striker = striker(folder.path(), 3);
    let mark = folder.path().join("mark");
    wait_until("the fault stands", || has_struck(&mut striker, &mark));
    striker.kill();
    wait_until("the timer undid it", || !mark.exists());
    let healing = healed(folder.path());
    assert_eq!(healing.faults[0].outcome, Outcome::WasGone);
    assert!(
        matches!(healing.faults[0].timer, Some(TimerEnd::Fired { exit: 0, .. })),
        "{:?}",
        healing.faults[0].timer
    );
    assert!(!timer_folders(folder.path())[0].exists());
}

#[test]
fn healing_undoes_a_fault_after_whoever_struck_was_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut striker = striker(folder.path(), 600);
    let mark = folder.path().join("mark");
    wait_until("the fault stands", || has_struck(&mut striker, &mark));
    striker.kill();
    assert!(mark.exists(), "nobody undid it yet");
    let healing = healed(folder.path());
    assert_eq!(healing.faults[0].outcome, Outcome::Undone);
    assert_eq!(healing.faults[0].timer, Some(TimerEnd::Disarmed));
    assert!(!mark.exists() && !timer_folders(folder.path())[0].exists());
}

const STRIKER: &str = "REMOTE_TEST_STRIKES_IN";

/// This very program as another process, which strikes and never undoes.
fn striker(folder: &Path, seconds: u64) -> Striker {
    let child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "on_this_machine::strikes_and_hangs_when_another_test_asks", "--nocapture"])
        .env(STRIKER, folder)
        .env("REMOTE_TEST_SECONDS", seconds.to_string())
        .stdout(Stdio::null())
        .spawn()
        .expect("this program again");
    Striker { child }
}

/// The process that strikes; killed when the test ends, or before.
struct Striker {
    child: Child,
}

impl Striker {
    fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("waited for");
    }
}

impl Drop for Striker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn strikes_and_hangs_when_another_test_asks() {
    let Some(folder) = std::env::var_os(STRIKER).map(PathBuf::from) else { return };
    let seconds =
        std::env::var("REMOTE_TEST_SECONDS").ok().and_then(|text| text.parse().ok()).expect("seconds");
    let journal = Journal::open(&folder).expect("a journal");
    let fault = filled(&marker(&folder, &[]));
    let after = Duration::from_secs(seconds);
    let _standing = tried(fault, &here(), &journal, (after, SHORT)).expect("struck");
    loop {
        std::thread::park();
    }
}

/// Whether the strike was seen; a striker that ended by itself has failed.
fn has_struck(striker: &mut Striker, mark: &Path) -> bool {
    assert!(striker.child.try_wait().expect("asked").is_none(), "the striker ended by itself");
    // The timer may have undone it already where the machine is busy: then the journal says that it was struck.
    mark.exists() || journal_says_struck(mark.parent().expect("a folder"))
}

fn journal_says_struck(folder: &Path) -> bool {
    fs::read_to_string(folder.join(journal::FILE)).is_ok_and(|text| text.contains("\"struck\""))
}

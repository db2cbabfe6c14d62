//! Faults on machines whose timers are killed, or whose undoing takes long, and a run directory that is moved away: what is not
//! known to be as it should passes nowhere, and nothing else is doubted.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use history::Verdict;
use remote::strike::Patience;
use remote::timer::TimerEnd;
use remote::transport::{Output, TransportError};
use remote::{Journal, Reach, Receipt, Transport};

use crate::striking::{
    PATIENCE, SHORT, came_too_late, filled, here, marker, struck, timer_folders, wait_until,
};

/// A machine whose timers are killed just before a script with these words runs, as with the login that armed them.
struct KillsTimers {
    reach: Reach,
    before: String,
    run_directory: PathBuf,
}

impl Transport for KillsTimers {
    fn reach(&self) -> &Reach {
        &self.reach
    }

    fn run(&self, script: &str, within: Duration) -> Result<Output, TransportError> {
        if script.contains("exec ") && script.contains(&self.before) {
            for folder in timer_folders(&self.run_directory) {
                let process = fs::read_to_string(folder.join("pid")).expect("the timer's process");
                let killed = Command::new("kill").args(["-KILL", process.trim()]).status();
                assert!(killed.is_ok_and(|status| status.success()), "{process}");
                let table = PathBuf::from("/proc").join(process.trim());
                wait_until("the timer was gone", || !table.exists());
            }
        }
        self.reach.run(script, within)
    }
}

fn without_timer(before: &str) -> (Receipt, bool) {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = Journal::open(folder.path()).expect("a journal");
    let mark = folder.path().join("mark");
    let before = format!("{before} {}", mark.display());
    let machine = KillsTimers { reach: here(), before, run_directory: folder.path().to_owned() };
    let standing = struck(filled(&marker(folder.path(), &[])), &machine, &journal, SHORT);
    let has_struck = mark.exists();
    (standing.undo(&machine, &journal, SHORT), has_struck)
}

#[test]
fn nothing_is_struck_once_the_timer_is_gone() {
    let (receipt, has_struck) = without_timer("touch");
    assert!(!has_struck && came_too_late(&receipt), "{:?}", receipt.strike);
    assert_ne!(receipt.verdict(), Verdict::Pass);
}

#[test]
fn a_timer_that_was_gone_before_it_was_disarmed_leaves_doubt() {
    let (receipt, has_struck) = without_timer("rm -f");
    assert!(has_struck);
    assert_eq!((receipt.verdict(), receipt.timer), (Verdict::Unknown, Some(TimerEnd::Absent)));
}

/// A machine whose undoing takes long, and that looks as without the fault only at the second look after it.
struct BootsSlowly {
    reach: Reach,
    mark: PathBuf,
    is_undone: std::cell::Cell<bool>,
}

/// As long as the undoing takes.
const BOOTS: Patience = Patience { stands: Duration::from_secs(20), gone: Duration::from_secs(3) };

impl Transport for BootsSlowly {
    fn reach(&self) -> &Reach {
        &self.reach
    }

    fn run(&self, script: &str, within: Duration) -> Result<Output, TransportError> {
        if script.contains("exec ") && script.contains("rm -f ") {
            std::thread::sleep(BOOTS.gone);
            self.is_undone.set(true);
            return Ok(Output { exit: 0, text: String::new(), answer_bytes: 0, is_cut: false });
        }
        let output = self.reach.run(script, within);
        if self.is_undone.get() && script.contains("test -e ") {
            let _ = fs::remove_file(&self.mark);
        }
        output
    }
}

#[test]
fn the_time_that_an_undoing_takes_is_not_taken_from_the_looks_after_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = Journal::open(folder.path()).expect("a journal");
    let mark = folder.path().join("mark");
    let machine = BootsSlowly { reach: here(), mark, is_undone: false.into() };
    let standing = struck(filled(&marker(folder.path(), &[])), &machine, &journal, BOOTS);
    let receipt = standing.undo(&machine, &journal, BOOTS);
    assert_eq!((receipt.verdict(), &receipt.doubts[..]), (Verdict::Pass, &[][..]));
}

#[test]
fn an_open_journal_is_read_from_its_own_file_wherever_its_path_leads() {
    let folder = tempfile::tempdir().expect("a folder");
    let (run, aside) = (folder.path().join("run"), folder.path().join("aside"));
    fs::create_dir(&run).expect("a run directory");
    let journal = Journal::open(&run).expect("a journal");
    let standing = struck(filled(&marker(folder.path(), &[])), &here(), &journal, PATIENCE);
    fs::rename(&run, &aside).expect("renamed");
    fs::create_dir(&run).expect("another");
    fs::write(run.join("remote.jsonl"), "").expect("what somebody else put there");
    let read = journal.read().expect("readable");
    assert_eq!((read.entries.len(), read.damaged.len()), (1, 0));
    assert_eq!(standing.undo(&here(), &journal, PATIENCE).verdict(), Verdict::Pass);
}

#[test]
fn a_record_behind_one_that_a_full_disk_cut_short_is_read_as_a_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = Journal::open(folder.path()).expect("a journal");
    let path = folder.path().join("remote.jsonl");
    let mut file = fs::OpenOptions::new().append(true).open(path).expect("the journal's file");
    file.write_all(b"{\"fault\":\"a1b2").expect("cut short");
    let standing = struck(filled(&marker(folder.path(), &[])), &here(), &journal, PATIENCE);
    let read = journal.read().expect("readable");
    assert_eq!((read.entries.len(), read.damaged.len()), (1, 1), "{:?}", read.damaged);
    assert_eq!(standing.undo(&here(), &journal, PATIENCE).verdict(), Verdict::Pass);
}

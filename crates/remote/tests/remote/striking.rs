//! What tests of faults on machines that exist have in common: the leave to strike, how long is waited, faults to strike with,
//! and what is left of a timer. The machines, and what must come of a fault, are each test's own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use remote::strike::{Patience, Standing, StrikeError, strike, token};
use remote::timer::TOO_LATE;
use remote::{CommandFile, Filled, Journal, Permit, Reach, Receipt, Transport, journal};

/// Longer than a busy machine takes; nothing waits for so long where all is well.
pub const PATIENCE: Patience = Patience { stands: Duration::from_secs(20), gone: Duration::from_secs(60) };
/// Where what is waited for never comes.
pub const SHORT: Patience = Patience { stands: Duration::from_millis(300), gone: Duration::from_millis(300) };
/// A timer that fires in no test unless it is waited for.
pub const LATE: Duration = Duration::from_secs(600);

pub fn here() -> Reach {
    Reach::Local { through: Vec::new() }
}

/// Leave to strike this host and no other.
pub fn permit(host: &str) -> Permit {
    let hosts = BTreeSet::from([host.to_owned()]);
    Permit::ask(&hosts, &hosts, "test", Some("test")).expect("leave")
}

fn id() -> String {
    token().expect("randomness")[..8].to_owned()
}

/// The fault of a file that ships.
pub fn shipped(name: &str, given: &[(&str, &str)]) -> Filled {
    let values: BTreeMap<String, String> =
        given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    remote::named(name).expect("it ships").filled(&values, &id()).expect("sound values")
}

/// A fault whose commands are a marker file, with some of them replaced.
pub fn marker(folder: &Path, replaced: &[(&str, &str)]) -> CommandFile {
    let mark = folder.join("mark").display().to_string();
    let mut parts = vec![
        ("do", format!("do: [{{ run: [touch, {mark}], within: 5s }}]\n")),
        ("undo", format!("undo: [{{ run: [rm, -f, {mark}] }}]\n")),
        ("stands", format!("stands: [{{ run: [test, -e, {mark}] }}]\n")),
        ("gone", format!("gone: [{{ run: [test, -e, {mark}], exit: 1 }}]\n")),
    ];
    for (key, text) in replaced {
        let part = parts.iter_mut().find(|(known, _)| known == key).expect("a part");
        part.1 = format!("{key}: {text}\n");
    }
    let text: String = parts.into_iter().map(|(_, text)| text).collect();
    let text = format!(
        "fault: marker\nsummary: a file is there\nwritten-for: {{ tool: coreutils, version: \"9\", asked-by: {{ run: [touch, \
         --version] }} }}\n{text}tested: {{ here: false, from: this test }}\n"
    );
    remote::read("marker.yaml", &text).unwrap_or_else(|rejection| panic!("{:?}", rejection.problems()))
}

pub fn filled(file: &CommandFile) -> Filled {
    file.filled(&BTreeMap::new(), &id()).expect("no values")
}

/// Strikes a machine that counts as this one, with a timer that fires after so long.
pub fn tried(
    fault: Filled,
    reach: &dyn Transport,
    journal: &Journal,
    times: (Duration, Patience),
) -> Result<Standing, StrikeError> {
    strike(("n1", fault), reach, &permit("localhost"), journal, times)
}

pub fn struck(fault: Filled, reach: &dyn Transport, journal: &Journal, patience: Patience) -> Standing {
    tried(fault, reach, journal, (LATE, patience)).expect("struck")
}

pub fn timer_folders(run_directory: &Path) -> Vec<PathBuf> {
    let read = journal::read(run_directory).expect("readable").expect("there");
    read.entries.iter().map(|entry| PathBuf::from(&entry.intent.timer.folder)).collect()
}

pub fn came_too_late(receipt: &Receipt) -> bool {
    receipt.strike[0].output.as_ref().is_some_and(|output| output.exit == TOO_LATE)
}

/// Whether what a test needs is missing on this machine; said loudly where it is.
pub fn lacks(test: &str, programs: &[&str]) -> bool {
    let is_there = |program: &str| {
        let script = format!("PATH=$PATH:/usr/sbin:/sbin command -v {program} >/dev/null");
        Command::new("sh").args(["-c", &script]).status().is_ok_and(|status| status.success())
    };
    let missing = programs.iter().find(|program| !is_there(program));
    if let Some(program) = missing {
        eprintln!("skipped: {test}: no `{program}` on this machine");
    }
    missing.is_some()
}

/// Puts a program there. Another process writes it: what a thread beside us forks cannot hold it open for writing.
pub fn put_program(program: &Path, script: &str) {
    let text = program.with_extension("text");
    fs::write(&text, script).expect("the program's text");
    let installed = Command::new("install").args(["-m", "700"]).arg(&text).arg(program).status();
    assert!(installed.is_ok_and(|status| status.success()), "{}", program.display());
}

pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..1200 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("after a minute it is not so that {what}");
}

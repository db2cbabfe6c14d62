//! SIGKILL at any moment: nothing is left on the machine, and the run directory tells all up to the last second.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::holdfast::{Desk, RESTART_SOON, Running, SHORT, SMALL, arguments};
use crate::traces::{Before, processes, run_directories};
use crate::turns::{beside_others, machine};

/// What a run says on its way, how long after it a kill may strike, and how many do of the twenty of the second
/// tier, so that each part of a run has its share however fast the machine is. In the first tier one does of each.
const STAGES: [(&str, u64, usize); 6] = [
    ("", 200, 3),
    ("run directory", 3_000, 6),
    ("phase warm-up", 3_500, 4),
    ("FAULT", 2_500, 4),
    ("healed", 1_500, 1),
    ("reading back what", 400, 2),
];

/// xorshift64*: enough for picking moments, and nothing to depend on.
struct Moments(u64);

impl Moments {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }
}

/// The seed: from `HOLDFAST_TEST_SEED`, or the clock. Printed, so that a failure can be tried again.
fn seed() -> u64 {
    let told = std::env::var("HOLDFAST_TEST_SEED").ok().and_then(|text| text.parse().ok());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock").as_nanos()
        as u64;
    let seed = told.unwrap_or(now >> 8) | 1;
    eprintln!("kills: HOLDFAST_TEST_SEED={seed}");
    seed
}

/// Kills a run's outer process `after` it said `stage`; returns what it had said.
fn killed(running: Running, stage: &str, after: Duration) -> String {
    running.says(stage);
    std::thread::sleep(after);
    running.signal(libc::SIGKILL);
    running.wait().stdout
}

/// What becomes of `count` of each stage: the stage and how long after it.
fn moments(count: impl Fn(usize) -> usize) -> Vec<(&'static str, Duration)> {
    let mut moments = Moments(seed());
    let each = STAGES.iter().flat_map(|(stage, within_ms, all)| {
        std::iter::repeat_n((*stage, *within_ms), count(*all)).collect::<Vec<_>>()
    });
    each.map(|(stage, within_ms)| (stage, Duration::from_millis(moments.below(within_ms)))).collect()
}

#[test]
fn a_kill_in_each_part_of_a_run_leaves_nothing_but_a_readable_run_directory() {
    let _turn = beside_others();
    if !Desk::new().can_have_a_lab("a_kill_in_each_part_of_a_run") {
        return;
    }
    let plan = moments(|_| 1);
    assert_eq!(plan.len(), STAGES.len());
    for (stage, after) in plan {
        kill(&SMALL, stage, after);
    }
}

#[test]
#[ignore = "second tier: twenty kills of the whole scenario take two minutes"]
fn twenty_kills_at_random_moments_leave_nothing_but_a_readable_run_directory() {
    let _turn = machine();
    if !Desk::new().can_have_a_lab("twenty_kills_at_random_moments") {
        return;
    }
    let plan = moments(|all| all);
    assert_eq!(plan.len(), 20);
    let whole = arguments(&[&["run", "scenarios/host-failure.yaml"], &SHORT, &RESTART_SOON]);
    // Two at a time, one early and one late, so that the pairs take about as long as each other.
    let (early, late) = plan.split_at(10);
    for (early, late) in early.iter().zip(late.iter().rev()) {
        std::thread::scope(|scope| {
            for (stage, after) in [early, late] {
                scope.spawn(|| kill(&whole, stage, *after));
            }
        });
    }
}

/// Kills a run some time after it said `stage`: nothing is left, and what was recorded is readable.
fn kill(arguments: &[&str], stage: &str, after: Duration) {
    let desk = Desk::new();
    let before = Before::look(&desk);
    let running = desk.start(arguments);
    let pid = running.pid();
    let said = killed(running, stage, after);
    eprintln!("killed {} ms after `{stage}`", after.as_millis());
    before.nothing_is_left(&[pid]);
    tells_all(&desk, &said);
}

/// The run directory, where the run came to make one, is readable up to what the run had said last.
fn tells_all(desk: &Desk, said: &str) {
    let directories = run_directories(desk.path());
    assert!(directories.len() <= 1, "{directories:?}");
    let Some(directory) = directories.first() else {
        assert!(!said.contains("run directory"), "{said}");
        return;
    };
    let events = whole_lines(&directory.join("events.jsonl"));
    for event in &events {
        serde_json::from_str::<serde_json::Value>(event).unwrap_or_else(|error| panic!("{error}: {event}"));
    }
    let rows = whole_lines(&directory.join("timeline.csv"));
    assert!(rows.iter().all(|row| row.split(',').count() == 9), "{rows:#?}");
    let told_s = last_second_told(said);
    let recorded_s = rows.last().and_then(|row| row.split(',').next()?.parse::<u64>().ok());
    assert!(told_s <= recorded_s, "told of second {told_s:?}, recorded {recorded_s:?}");
    history_is_readable(directory);
    let report = desk.run(&["report".as_ref(), directory.as_os_str()]);
    // A warning about this machine may come before the event that tells what the run is.
    let tells_what_it_was = events.iter().any(|event| event.contains("\"event\":\"run-started\""));
    if !tells_what_it_was {
        report.ends_with(254);
        let why = if events.is_empty() { "is not a run directory" } else { "before its lab was built" };
        assert!(report.stderr.contains(why), "{}", report.stderr);
    } else {
        report.ends_with(0);
        assert!(directory.join("report.html").is_file());
    }
}

/// The lines of a file that have an end; none when it is not there.
fn whole_lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .map(|line| line.trim_end().to_owned())
        .collect()
}

/// The last second whose figures were printed: `   5.0 s 5/13 s fault | ...`.
fn last_second_told(said: &str) -> Option<u64> {
    said.lines()
        .filter_map(|line| line.trim_start().split_once(" s ")?.1.split_once('/')?.0.parse().ok())
        .next_back()
}

/// Killed in the middle of a frame, it ends there; what comes before is whole.
fn history_is_readable(directory: &Path) {
    let path: PathBuf = directory.join("history.jsonl.zst");
    let Ok(file) = std::fs::File::open(&path) else { return };
    if file.metadata().expect("metadata").len() == 0 {
        return;
    }
    let reader = history::HistoryReader::new(std::io::BufReader::new(file)).expect("a history");
    let mut operations = reader.peekable();
    while let Some(operation) = operations.next() {
        assert!(operation.is_ok() || operations.peek().is_none(), "an error in the middle: {operation:?}");
    }
}

#[test]
fn a_supervisor_that_is_killed_takes_the_lab_along_and_is_reported() {
    let _turn = beside_others();
    let test = "a_supervisor_that_is_killed_takes_the_lab_along_and_is_reported";
    let Some(desk) = Desk::with_a_lab(test) else { return };
    let before = Before::look(&desk);
    let running = desk.start(&SMALL);
    let pid = running.pid();
    assert!(running.says("phase baseline"));
    assert!(before.left(&[pid]).len() > 5, "the search for what is left finds a lab that is up");
    let supervisors: Vec<i32> = processes(&desk.mark())
        .iter()
        .filter(|process| process.contains("lab-supervisor"))
        .filter_map(|process| process.split(' ').nth(1)?.parse().ok())
        .collect();
    // The one outside, which waits, and PID 1 inside.
    assert_eq!(supervisors.len(), 2, "{supervisors:?}");
    let innermost = supervisors.into_iter().max().expect("two");
    // SAFETY: kill(2) takes no pointers; the process is this run's supervisor, found a moment ago.
    unsafe { libc::kill(innermost, libc::SIGKILL) };
    let finished = running.wait();
    finished.ends_with(255);
    assert!(finished.stderr.contains("the supervisor ended"), "{}", finished.stderr);
    before.nothing_is_left(&[pid]);
    tells_all(&desk, &finished.stdout);
}

/// The processes of a desk's runs that were started with this word.
fn processes_of(desk: &Desk, word: &str) -> Vec<i32> {
    let all = processes(&desk.mark());
    let named = all.iter().filter(|process| process.contains(word));
    named.filter_map(|process| process.split(' ').nth(1)?.parse().ok()).collect()
}

#[test]
fn what_a_killed_janitor_leaves_the_next_run_removes_and_nothing_of_one_that_lives() {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab("what_a_killed_janitor_leaves_the_next_run_removes") else { return };
    let before = Before::look(&desk);
    let start = |time: &str| {
        let time = format!("schedule.0.for={time}");
        desk.start(&["run", "scenarios/rawio.yaml", "--set", "database.cpus=1", "--set", &time])
    };
    let killed = start("600s");
    assert!(killed.says("the lab is ready"));
    let (pid, janitors) = (killed.pid(), processes_of(&desk, " lab-janitor "));
    assert_eq!(janitors.len(), 1, "{janitors:?}");
    // SAFETY: kill(2) takes no pointers; the process is this run's janitor, found a moment ago.
    unsafe { libc::kill(janitors[0], libc::SIGKILL) };
    killed.signal(libc::SIGKILL);
    killed.wait();
    let living = start("600s");
    assert!(living.says("the lab is ready"));
    assert!(
        !before.left(&[pid]).iter().any(|left| left.starts_with("control group")),
        "removed by the next run"
    );
    let with_volumes = || {
        let runs = run_directories(desk.path()).into_iter();
        runs.filter(|run| run.join("volumes").exists()).collect::<Vec<_>>()
    };
    let lives = desk.path().join("runs/latest").canonicalize().expect("a run directory");
    assert_eq!(with_volumes().len(), 1, "those of the killed run are removed");
    assert_eq!(with_volumes()[0].canonicalize().expect("it"), lives);
    let third = start("1s");
    assert!(third.says("the lab is ready"));
    assert!(lives.join("volumes/n1").exists(), "those of a run that lives stay");
    third.signal(libc::SIGINT);
    third.wait();
    living.signal(libc::SIGINT);
    living.wait().ends_with(2);
    before.nothing_is_left(&[pid]);
}

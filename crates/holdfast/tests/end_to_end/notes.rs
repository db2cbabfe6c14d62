//! What is to be seen before all tests have ended, which may be hours later: why one failed, and what each took of the machine.
//!
//! Files in cargo's folder for the files of tests, to which lines are added as tests end. What the test program tells stays.

use std::fs::OpenOptions;
use std::io::Write;
use std::panic::{set_hook, take_hook};
use std::path::Path;
use std::sync::Once;
use std::time::Instant;

use watch::{busy_since, busy_ticks};

static HOOK: Once = Once::new();

/// From now on each panic is added to `failures.txt`.
pub fn keep_failures() {
    HOOK.call_once(|| {
        let tell = take_hook();
        set_hook(Box::new(move |panic| {
            add("failures.txt", &format!("{}: {panic}\n", test()));
            tell(panic);
        }));
    });
}

/// How long a test waited for its places and when it had them, and the machine's busy and total ticks then.
pub struct Stretch {
    waited_s: f64,
    began: Instant,
    ticks: Option<(u64, u64)>,
}

impl Stretch {
    /// Begins now, after a wait that began at this time.
    pub fn after(wait: Instant) -> Stretch {
        Stretch { waited_s: wait.elapsed().as_secs_f64(), began: Instant::now(), ticks: busy_ticks() }
    }

    /// Adds to `turns.txt` how long the calling test waited and ran with so many places, and which share of the machine was busy
    /// meanwhile.
    pub fn ends(&self, places: usize) {
        let (test, waited_s, ran_s) = (test(), self.waited_s, self.began.elapsed().as_secs_f64());
        let busy = busy_since(self.ticks)
            .map_or_else(String::new, |share| format!("; the machine was {:.0} % busy", share * 100.0));
        add("turns.txt", &format!("{test}: waited {waited_s:.1} s, ran {ran_s:.1} s, {places} places{busy}"));
    }
}

/// The test that calls.
fn test() -> String {
    std::thread::current().name().unwrap_or("a thread").to_owned()
}

// A file that cannot be written must not hide what is to be noted.
fn add(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file);
    if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(path) {
        let _ = writeln!(file, "{text}");
    }
}

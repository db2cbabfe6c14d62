//! What is to be seen before all tests have ended, which may be hours later: why one failed, and what each took of the machine.
//!
//! Files in cargo's folder for the files of tests, to which lines are added as tests end. What the test program tells stays.

use std::fs::OpenOptions;
use std::io::Write;
use std::panic::{set_hook, take_hook};
use std::path::Path;
use std::sync::Once;
use std::time::Instant;

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

/// When a test began to wait for its places and when it had them, and the processors' time of the machine then.
pub struct Stretch {
    waited_s: f64,
    began: Instant,
    busy_s: Option<f64>,
}

impl Stretch {
    /// Begins now, after a wait that began at this time.
    pub fn after(wait: Instant) -> Stretch {
        Stretch { waited_s: wait.elapsed().as_secs_f64(), began: Instant::now(), busy_s: busy_s() }
    }

    /// Adds to `turns.txt` how long the calling test waited and ran with so many places, and how many processors the whole
    /// machine was busy with meanwhile.
    pub fn ends(&self, places: usize) {
        let ran_s = self.began.elapsed().as_secs_f64();
        let busy = self.busy_s.zip(busy_s()).map_or_else(String::new, |(before, after)| {
            format!("; {:.2} processors were busy", (after - before) / ran_s)
        });
        let waited_s = self.waited_s;
        add(
            "turns.txt",
            &format!("{}: waited {waited_s:.1} s, ran {ran_s:.1} s, {places} places{busy}", test()),
        );
    }
}

/// Seconds that all processors were not idle since the machine's start.
fn busy_s() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let fields = text.lines().next()?.split_ascii_whitespace().skip(1);
    // user, nice, system, idle, iowait, irq, softirq, steal: proc_stat(5); guest time is part of user's.
    let ticks: Vec<u64> = fields.take(8).map_while(|field| field.parse().ok()).collect();
    let idle: u64 = ticks.iter().skip(3).take(2).sum();
    let of_a_second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok()??;
    #[expect(clippy::cast_precision_loss, reason = "counts of hundredths of seconds are far below 2^52")]
    Some((ticks.iter().sum::<u64>() - idle) as f64 / of_a_second as f64)
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

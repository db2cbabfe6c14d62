//! A clock in a folder of its own, for programs that tests run by it. What they run, each test says.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use clock::Clock;

pub const SECOND_NS: i64 = 1_000_000_000;
pub const TEN_DAYS_NS: i64 = 864_000 * SECOND_NS;

pub struct Lab {
    pub folder: tempfile::TempDir,
    pub clock: Arc<Clock>,
}

impl Lab {
    /// `None`, said loudly, where this machine allows no clocks.
    pub fn with_a_clock() -> Option<Lab> {
        if let Err(why) = clock::trial() {
            eprintln!("skipped: clocks: {why}");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("clock");
        Some(Lab { clock: Arc::new(Clock::in_file(&file, &file).expect("a clock")), folder })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The machine's clock.
pub fn true_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    i64::try_from(since.as_nanos()).expect("before 2262")
}

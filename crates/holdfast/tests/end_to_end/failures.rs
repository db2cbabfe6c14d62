//! What went wrong with a test, in a file at once: the test program tells it when all tests have ended, which may be hours later.

use std::fs::OpenOptions;
use std::io::Write;
use std::panic::{set_hook, take_hook};
use std::path::Path;
use std::sync::Once;

static HOOK: Once = Once::new();

/// From now on each panic is added to `failures.txt` in cargo's folder for the files of tests. What the test program makes of it stays.
pub fn keep() {
    HOOK.call_once(|| {
        let tell = take_hook();
        set_hook(Box::new(move |panic| {
            let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("failures.txt");
            // A file that cannot be written must not hide what went wrong.
            if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(path) {
                let name = std::thread::current().name().unwrap_or("a thread").to_owned();
                let _ = writeln!(file, "{name}: {panic}\n");
            }
            tell(panic);
        }));
    });
}

//! The library that lets a program wait until a time of day by the node's clock.
//!
//! Owns how programs come to load it. What it does stands in `waits/waits.c`.

use std::path::Path;

/// The environment variable by which dynamic linkers load libraries before all others (ld.so(8)).
pub const PRELOAD: &str = "LD_PRELOAD";

/// The library, for a file that programs of the node can read.
#[must_use]
pub fn library() -> &'static [u8] {
    include_bytes!(concat!(env!("OUT_DIR"), "/waits.so"))
}

/// The variable's value by which a program loads the library at `path`, after those that it would load anyway: some want to be
/// the first.
#[must_use]
pub fn preload(path: &Path, already: Option<&str>) -> String {
    let others =
        already.filter(|others| !others.is_empty()).map_or(String::new(), |others| format!("{others}:"));
    format!("{others}{}", path.display())
}

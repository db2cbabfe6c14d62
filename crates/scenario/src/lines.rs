//! A line of a scenario that is written back.

use std::fmt::Write;

/// Adds a line, so many spaces from the left.
pub(crate) fn line(text: &mut String, indent: usize, content: &str) {
    // Writing into a string cannot fail.
    let _ = writeln!(text, "{:indent$}{content}", "");
}

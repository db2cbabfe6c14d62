//! What is read of a node's logs, which the node may make as long as it likes.
//!
//! Owns how much of one is kept in memory. What the lines mean, the engine knows.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// The most that is read of a log's end.
const TAIL_BYTES_MAX: u64 = 64 << 10;
/// How much of a line is looked at.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// How many lines are kept of those that are looked for.
const LINES_MAX: usize = 1000;

/// The end of a log.
pub(super) fn end_of(log: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES_MAX)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The lines that have `part` near their beginning, from the whole of a log: the first of them, where there are many, so
/// that a later call finds at least what an earlier one found. Where it cannot be read any further, what came before.
pub(super) fn lines_with(log: &Path, part: &str) -> Vec<String> {
    let Ok(file) = File::open(log) else { return Vec::new() };
    let mut reader = BufReader::new(file);
    let (mut found, mut piece, mut begins_line) = (Vec::new(), Vec::new(), true);
    while found.len() < LINES_MAX {
        piece.clear();
        let read = reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut piece);
        if !read.is_ok_and(|bytes| bytes > 0) {
            break;
        }
        let text = String::from_utf8_lossy(&piece);
        if begins_line && text.contains(part) {
            found.push(text.trim_end().to_owned());
        }
        begins_line = piece.ends_with(b"\n");
    }
    found
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const PART: &str = " was terminated by signal ";

    fn killed(pid: u32) -> String {
        format!("[12] LOG:  server process (PID {pid}) was terminated by signal 9: Killed")
    }

    #[test]
    fn a_line_is_found_however_much_was_logged_after_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        let others = "[14] ERROR:  could not serialize access\n".repeat((1 << 20) / 40);
        fs::write(&log, format!("{}\n{others}{}\n", killed(7), killed(8))).expect("written");
        assert_eq!(lines_with(&log, PART), [killed(7), killed(8)]);
        let end = end_of(&log).expect("read");
        let end = String::from_utf8_lossy(&end);
        assert!(end.contains(&killed(8)) && !end.contains(&killed(7)), "the end alone has one of them");
    }

    #[test]
    fn a_line_without_end_is_looked_at_no_further_and_hides_none_behind_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        let filler = "x".repeat(1 << 20);
        fs::write(&log, format!("{filler}{}\n{}\n{filler}", killed(7), killed(8))).expect("written");
        assert_eq!(lines_with(&log, PART), [killed(8)]);
    }

    #[test]
    fn no_more_lines_are_kept_than_anybody_needs() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        fs::write(&log, format!("{}\n", killed(7)).repeat(LINES_MAX + 1)).expect("written");
        assert_eq!(lines_with(&log, PART).len(), LINES_MAX);
        assert_eq!(lines_with(&folder.path().join("none"), PART), Vec::<String>::new());
    }
}

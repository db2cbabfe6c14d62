//! Lines of text of bounded length, and whether the last one is whole.
//!
//! Owns splitting. What a line says is for `hlog` to find out.

use std::io::{BufRead, Read};

/// The longest line taken, bytes: a histogram of every value there is takes less than a quarter of it.
pub(crate) const LINE_BYTES_MAX: usize = 4 << 20;

/// Splits a stream into lines and numbers them.
pub(crate) struct Lines<R> {
    reader: R,
    /// Number of the line last given, from 1.
    pub(crate) number: u64,
}

/// One line, or why there is none.
pub(crate) enum Line {
    /// A line with its line feed taken off.
    Whole(String),
    /// What follows the last line feed: the line was cut, however complete it may look.
    Torn,
    /// The stream is at its end.
    End,
}

/// What can be wrong with a line before anyone looks at what it says.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// The stream could not be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// It is longer than any line of ours.
    #[error("longer than {LINE_BYTES_MAX} bytes")]
    TooLong,
    /// It is not UTF-8.
    #[error("not text")]
    NotText,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(reader: R) -> Self {
        Lines { reader, number: 0 }
    }

    pub(crate) fn next_line(&mut self) -> Result<Line, LineError> {
        let mut bytes = Vec::new();
        self.number += 1;
        self.reader.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut bytes)?;
        if bytes.pop_if(|last| *last == b'\n').is_none() {
            return match bytes.len() {
                0 => Ok(Line::End),
                length if length > LINE_BYTES_MAX => Err(LineError::TooLong),
                _ => Ok(Line::Torn),
            };
        }
        String::from_utf8(bytes).map(Line::Whole).map_err(|_| LineError::NotText)
    }
}

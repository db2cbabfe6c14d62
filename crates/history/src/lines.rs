//! Lines of JSON from a stream: bounded in length, numbered, and tolerant of an end that was torn off.
//!
//! Owns what a line is and what may be wrong with one. Knows neither compression nor what the lines mean.

use std::io::{BufRead, ErrorKind, Read};
use std::marker::PhantomData;

use serde::de::DeserializeOwned;

/// The longest line that is written or read, bytes without the line's end. A ledger read of 100,000 values of
/// the largest size takes 2.1 MB; anything beyond this is not a history.
pub const LINE_BYTES_MAX: usize = 8 << 20;

/// What can be wrong with a file of JSON lines.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file ends within this line, as it does when its writer was killed. Every line before it is whole.
    #[error("line {line}: the file ends within the line")]
    Truncated {
        /// Number of the torn line, from 1.
        line: u64,
    },
    /// The line is whole but is not what it should be.
    #[error("line {line}: {source}")]
    Malformed {
        /// Number of the line, from 1.
        line: u64,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The line is longer than any line of ours.
    #[error("line {line}: longer than {LINE_BYTES_MAX} bytes")]
    TooLong {
        /// Number of the line, from 1.
        line: u64,
    },
    /// The stream could not be read, or its compressed form is damaged.
    #[error("line {line}: {source}")]
    Unreadable {
        /// Number of the line that was to come, from 1.
        line: u64,
        /// What went wrong.
        source: std::io::Error,
    },
}

impl ReadError {
    /// Whether the file merely ends too early, so that everything before can be used.
    #[must_use]
    pub fn is_truncation(&self) -> bool {
        matches!(self, ReadError::Truncated { .. })
    }
}

/// Iterator over the values of a stream of JSON lines. Blank lines are skipped. Ends after the first error.
pub(crate) struct JsonLines<R, T> {
    reader: R,
    line: u64,
    buffer: Vec<u8>,
    ended: bool,
    values: PhantomData<T>,
}

/// How the bytes of one line came to an end.
enum LineEnd {
    /// With a line feed.
    Whole,
    /// With the end of the stream; the bytes may or may not be all of it.
    EndOfStream,
    /// With a stream that says itself that it was cut.
    Torn,
}

impl<R: BufRead, T: DeserializeOwned> JsonLines<R, T> {
    pub(crate) fn new(reader: R) -> Self {
        JsonLines { reader, line: 0, buffer: Vec::new(), ended: false, values: PhantomData }
    }

    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// Reads the next line into the buffer, its end taken off.
    fn read_line(&mut self) -> Result<LineEnd, ReadError> {
        self.buffer.clear();
        self.line += 1;
        // One byte for the line feed, one to tell "at the limit" from "beyond it".
        let limit = LINE_BYTES_MAX as u64 + 2;
        let end = match self.reader.by_ref().take(limit).read_until(b'\n', &mut self.buffer) {
            Ok(_) if self.buffer.last() == Some(&b'\n') => {
                self.buffer.pop();
                LineEnd::Whole
            }
            Ok(_) => LineEnd::EndOfStream,
            // What was decoded before the cut stands in the buffer.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => LineEnd::Torn,
            Err(source) => return Err(ReadError::Unreadable { line: self.line, source }),
        };
        if self.buffer.len() > LINE_BYTES_MAX {
            return Err(ReadError::TooLong { line: self.line });
        }
        Ok(end)
    }

    /// The next value; `None` at the end.
    fn read_value(&mut self) -> Result<Option<T>, ReadError> {
        loop {
            let end = self.read_line()?;
            let line = self.line;
            let blank = self.buffer.iter().all(u8::is_ascii_whitespace);
            match (end, blank) {
                (LineEnd::Whole, true) => {}
                (LineEnd::EndOfStream, true) => return Ok(None),
                (LineEnd::Torn, _) => return Err(ReadError::Truncated { line }),
                (LineEnd::Whole, false) => {
                    return serde_json::from_slice(&self.buffer)
                        .map(Some)
                        .map_err(|source| ReadError::Malformed { line, source });
                }
                // A last line without a line feed is whole if it parses: an object ends with its brace, so no
                // shorter form of it can pass for the object itself.
                (LineEnd::EndOfStream, false) => {
                    return serde_json::from_slice(&self.buffer).map(Some).map_err(|source| {
                        if source.is_eof() {
                            ReadError::Truncated { line }
                        } else {
                            ReadError::Malformed { line, source }
                        }
                    });
                }
            }
        }
    }
}

impl<R: BufRead, T: DeserializeOwned> Iterator for JsonLines<R, T> {
    type Item = Result<T, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.read_value().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, Operation, Outcome};

    fn read_all(text: &[u8]) -> (Vec<Operation>, Option<String>) {
        let mut operations = Vec::new();
        for item in JsonLines::<_, Operation>::new(text) {
            match item {
                Ok(operation) => operations.push(operation),
                Err(error) => return (operations, Some(error.to_string())),
            }
        }
        (operations, None)
    }

    const LINE: &str = r#"{"load":"l","client":3,"f":"ledger-insert","value":4711,"invoked_s":1.5,"completed_s":1.75,"outcome":"ok"}"#;

    #[test]
    fn blank_lines_and_windows_line_ends_are_skipped() {
        let text = format!("\n  \n{LINE}\r\n\n{LINE}");
        let (operations, error) = read_all(text.as_bytes());
        assert_eq!((operations.len(), error), (2, None));
        assert_eq!(operations[0].action, Action::LedgerInsert { value: 4711 });
        assert_eq!(operations[0].outcome, Outcome::Ok);
    }

    #[test]
    fn a_line_cut_anywhere_is_a_truncation_with_its_number() {
        for length in 1..LINE.len() {
            let text = format!("{LINE}\n{}", &LINE[..length]);
            let (operations, error) = read_all(text.as_bytes());
            assert_eq!(operations.len(), 1, "cut after {length} bytes");
            assert_eq!(
                error.as_deref(),
                Some("line 2: the file ends within the line"),
                "cut after {length} bytes"
            );
        }
    }

    #[test]
    fn a_malformed_line_is_an_error_with_its_number_and_ends_the_reading() {
        let text = format!("{LINE}\nnonsense\n{LINE}\n");
        let (operations, error) = read_all(text.as_bytes());
        assert_eq!(operations.len(), 1);
        assert!(error.is_some_and(|message| message.starts_with("line 2: ")));
        assert_eq!(JsonLines::<_, Operation>::new(text.as_bytes()).count(), 2);
    }

    #[test]
    fn a_line_without_end_is_refused_at_the_limit() {
        let endless = std::io::repeat(b'[').take(u64::MAX);
        let mut lines = JsonLines::<_, Operation>::new(std::io::BufReader::new(endless));
        assert!(matches!(lines.next(), Some(Err(ReadError::TooLong { line: 1 }))));
        assert!(lines.next().is_none());
    }

    #[test]
    fn a_number_beyond_its_range_is_an_error() {
        for text in
            [LINE.replace("1.5", "1e999"), LINE.replace("4711", "99999999999999999999"), "[".repeat(100_000)]
        {
            let (operations, error) = read_all(format!("{text}\n").as_bytes());
            assert!(operations.is_empty());
            assert!(error.is_some_and(|message| message.starts_with("line 1: ")), "{text:.40}");
        }
    }
}

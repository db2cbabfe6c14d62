//! `timeline.hlog`: HdrHistogram's interval log, version 2 histograms, one line for each operation in each
//! second.
//!
//! Owns the file's form, which HdrHistogram's own tools read. The tag of a line is `load/operation`; bytes
//! that a tag cannot hold, and `/` and `%` themselves, are written as `%` and two hexadecimal digits. Errors
//! do not stand in this file.

use std::io::{BufRead, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;

use crate::encoding::{Encoder, EncodingError, decode};
use crate::interval::Interval;
use crate::lines::{Line, LineError, Lines};
use crate::timeline::SECONDS_MAX;

/// What can be wrong with a `timeline.hlog`.
#[derive(Debug, thiserror::Error)]
pub enum HlogError {
    /// The file ends within this line, as it does when its writer was killed. Every line before it is whole.
    #[error("line {line}: the file ends within the line")]
    Truncated {
        /// Number of the torn line, from 1.
        line: u64,
    },
    /// A line is not what it should be.
    #[error("line {line}: {what}")]
    Malformed {
        /// Its number, from 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// A line's histogram is none.
    #[error("line {line}: {source}")]
    Histogram {
        /// Its number, from 1.
        line: u64,
        /// What is wrong.
        source: EncodingError,
    },
    /// A line could not be read.
    #[error("line {line}: {source}")]
    Unreadable {
        /// Its number, from 1.
        line: u64,
        /// What went wrong.
        source: LineError,
    },
}

/// What can go wrong when an interval is written.
#[derive(Debug, thiserror::Error)]
pub enum HlogWriteError {
    /// A histogram cannot be packed.
    #[error("operation {operation}, second {second}: {source}")]
    Histogram {
        operation: String,
        second: u64,
        /// What is wrong.
        source: EncodingError,
    },
    /// The sink failed.
    #[error("interval log: {0}")]
    Io(#[from] std::io::Error),
}

/// Tells the moment the run's clock stood at 0, once there is something to write.
type Start = Box<dyn FnOnce() -> SystemTime + Send>;

/// Writes `timeline.hlog` as the run goes.
pub struct HlogWriter<W: Write> {
    sink: W,
    /// Until the heading is written.
    started_at: Option<Start>,
    encoder: Encoder,
}

impl<W: Write> HlogWriter<W> {
    /// A writer onto an empty sink. `started_at` tells the moment the run's clock stood at 0, and is asked with the first
    /// second.
    pub fn new(sink: W, started_at: impl FnOnce() -> SystemTime + Send + 'static) -> Self {
        HlogWriter { sink, started_at: Some(Box::new(started_at)), encoder: Encoder::default() }
    }

    fn write_heading(&mut self, started_at: SystemTime) -> std::io::Result<()> {
        let started_s = started_at.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        let heading = format!(
            "#[Histogram log format version 1.3]\n\
             #[Latencies in microseconds, one line a second for each load/operation]\n\
             #[StartTime: {started_s:.3} (seconds since epoch)]\n\
             #[BaseTime: {started_s:.3} (seconds since epoch)]\n\
             \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
        );
        self.sink.write_all(heading.as_bytes())?;
        self.sink.flush()
    }

    /// Writes a line for each operation of the interval, in one piece, and flushes; the heading before the first.
    ///
    /// # Errors
    /// When a histogram cannot be packed, in which case nothing is written, or the sink fails.
    pub fn write(&mut self, interval: &Interval) -> Result<(), HlogWriteError> {
        if let Some(started_at) = self.started_at.take() {
            self.write_heading(started_at())?;
        }
        let mut text = String::new();
        let mut packed = Vec::new();
        for (operation, measured) in &interval.operations {
            packed.clear();
            self.encoder.encode(&measured.histogram, &mut packed).map_err(|source| {
                HlogWriteError::Histogram { operation: operation.clone(), second: interval.second, source }
            })?;
            let (load, second, max_us) = (&interval.load, interval.second, measured.histogram.max());
            text += &format!("Tag={}/{},{second}.000,1.000,{max_us}.000,", escape(load), escape(operation));
            STANDARD.encode_string(&packed, &mut text);
            text.push('\n');
        }
        self.sink.write_all(text.as_bytes())?;
        self.sink.flush()?;
        Ok(())
    }

    /// Gives the sink back.
    pub fn into_inner(self) -> W {
        self.sink
    }
}

/// One operation of one load in one second.
#[derive(Debug, Clone, PartialEq)]
pub struct HlogEntry {
    /// The load's name.
    pub load: String,
    /// The operation's name.
    pub operation: String,
    /// The whole second on the run's clock.
    pub second: u64,
    /// Latencies, microseconds.
    pub histogram: Histogram<u64>,
}

/// Iterator over the lines of a `timeline.hlog` of ours. Ends after the first error; [`HlogError::Truncated`]
/// says that what came before is whole.
pub struct HlogReader<R> {
    lines: Lines<R>,
    ended: bool,
}

impl<R: BufRead> HlogReader<R> {
    /// A reader of `stream`.
    pub fn new(stream: R) -> Self {
        HlogReader { lines: Lines::new(stream), ended: false }
    }

    fn read_entry(&mut self) -> Result<Option<HlogEntry>, HlogError> {
        loop {
            let text = match self.lines.next_line() {
                Ok(Line::Whole(text)) => text,
                Ok(Line::Torn) => return Err(HlogError::Truncated { line: self.lines.number }),
                Ok(Line::End) => return Ok(None),
                Err(source) => return Err(HlogError::Unreadable { line: self.lines.number, source }),
            };
            // Comments and the heading of the columns.
            if !text.starts_with(['#', '"']) {
                return parse_entry(&text, self.lines.number).map(Some);
            }
        }
    }
}

impl<R: BufRead> Iterator for HlogReader<R> {
    type Item = Result<HlogEntry, HlogError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.read_entry().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

fn parse_entry(text: &str, line: u64) -> Result<HlogEntry, HlogError> {
    let malformed = |what: &str| HlogError::Malformed { line, what: what.to_owned() };
    let fields: Vec<&str> = text.trim_end().split(',').collect();
    let [tag, start, _length, _max, packed] = fields.as_slice() else {
        return Err(HlogError::Malformed { line, what: format!("{} fields instead of 5", fields.len()) });
    };
    let (load, operation) = tag
        .strip_prefix("Tag=")
        .and_then(|tag| tag.split_once('/'))
        .and_then(|(load, operation)| Some((unescape(load)?, unescape(operation)?)))
        .ok_or_else(|| malformed("its tag is not a load and an operation"))?;
    let start_s: f64 = start.parse().map_err(|_| malformed("its start is not a number"))?;
    if !(0.0..=SECONDS_MAX as f64).contains(&start_s) {
        return Err(malformed("its start is not within any run"));
    }
    let packed = STANDARD.decode(packed).map_err(|_| malformed("its histogram is not base64"))?;
    let histogram = decode(&packed).map_err(|source| HlogError::Histogram { line, source })?;
    Ok(HlogEntry { load, operation, second: start_s as u64, histogram })
}

/// A name as it may stand in a tag: visible ASCII without `,`, `/`, `%` and quotes, all else by its bytes.
fn escape(name: &str) -> String {
    let mut escaped = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_graphic() && !b",/%\"'#".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped += &format!("%{byte:02X}");
        }
    }
    escaped
}

fn unescape(escaped: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = escaped.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        bytes.push((high * 16 + low) as u8);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use proptest::prelude::*;

    use super::*;
    use crate::interval::OperationInterval;

    fn interval(load: &str, second: u64, operation: &str, latencies_us: &[u64]) -> Interval {
        let mut measured = OperationInterval::default();
        for latency_us in latencies_us {
            measured.histogram.record(*latency_us).unwrap();
        }
        Interval { load: load.into(), second, operations: BTreeMap::from([(operation.into(), measured)]) }
    }

    fn written(intervals: &[Interval]) -> Vec<u8> {
        let mut writer =
            HlogWriter::new(Vec::new(), || UNIX_EPOCH + Duration::from_millis(1_500_000_000_250));
        for interval in intervals {
            writer.write(interval).unwrap();
        }
        writer.into_inner()
    }

    fn read_all(bytes: &[u8]) -> (Vec<HlogEntry>, Option<String>) {
        let mut entries = Vec::new();
        for item in HlogReader::new(bytes) {
            match item {
                Ok(entry) => entries.push(entry),
                Err(error) => return (entries, Some(error.to_string())),
            }
        }
        (entries, None)
    }

    #[test]
    fn the_reader_of_the_histogram_library_takes_our_log() {
        let bytes = written(&[
            interval("tpcb", 0, "commit", &[500, 700, 90_000_000]),
            interval("a b,c/d", 1, "%ü", &[]),
        ]);
        let mut found = Vec::new();
        for entry in IntervalLogIterator::new(&bytes) {
            match entry.unwrap() {
                LogEntry::StartTime(time) | LogEntry::BaseTime(time) => {
                    assert_eq!(time.as_millis(), 1_500_000_000_250)
                }
                LogEntry::Interval(line) => {
                    let packed = STANDARD.decode(line.encoded_histogram()).unwrap();
                    let histogram: Histogram<u64> =
                        Deserializer::new().deserialize(&mut packed.as_slice()).unwrap();
                    let tag = line.tag().unwrap().as_str().to_owned();
                    assert_eq!(line.duration().as_secs(), 1);
                    assert_eq!(line.max(), histogram.max() as f64);
                    found.push((tag, line.start_timestamp().as_secs(), histogram.len()));
                }
            }
        }
        assert_eq!(found, [("tpcb/commit".into(), 0, 3), ("a%20b%2Cc%2Fd/%25%C3%BC".into(), 1, 0)]);
    }

    #[test]
    fn a_log_cut_at_any_byte_gives_the_whole_lines_before_the_cut() {
        let bytes = written(&[interval("l", 0, "a", &[1, 2, 3]), interval("l", 1, "a", &[4])]);
        for length in 0..bytes.len() {
            let (entries, error) = read_all(&bytes[..length]);
            let line_count = bytes[..length].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(entries.len(), line_count.saturating_sub(5), "cut at {length}");
            let torn = length > 0 && bytes[length - 1] != b'\n';
            let expected = torn.then(|| format!("line {}: the file ends within the line", line_count + 1));
            assert_eq!(error, expected, "cut at {length}");
        }
    }

    #[test]
    fn malformed_lines_are_refused_with_their_number() {
        for (bad, message) in [
            ("Tag=l/a,0.000,1.000,1.000", "line 1: 4 fields instead of 5"),
            ("Tag=l,0.000,1.000,1.000,AAAA", "line 1: its tag is not a load and an operation"),
            ("Tag=l/%4,0.000,1.000,1.000,AAAA", "line 1: its tag is not a load and an operation"),
            ("Tag=l/a,NaN,1.000,1.000,AAAA", "line 1: its start is not within any run"),
            ("Tag=l/a,1e300,1.000,1.000,AAAA", "line 1: its start is not within any run"),
            ("Tag=l/a,0,1.000,1.000,!", "line 1: its histogram is not base64"),
            ("Tag=l/a,0,1.000,1.000,AAAA", "line 1: not a latency histogram of ours: it is cut short"),
        ] {
            assert_eq!(read_all(format!("{bad}\n").as_bytes()), (Vec::new(), Some(message.to_owned())));
        }
    }

    proptest! {
        #[test]
        fn any_interval_comes_back_as_it_was_written(
            load in any::<String>(),
            operation in any::<String>(),
            second in 0..SECONDS_MAX,
            latencies_us in prop::collection::vec(1u64.., 0..50),
        ) {
            let interval = interval(&load, second, &operation, &latencies_us);
            let histogram = interval.operations[&operation].histogram.clone();
            let expected = HlogEntry { load, operation, second, histogram };
            prop_assert_eq!(read_all(&written(&[interval])), (vec![expected], None));
        }
    }
}

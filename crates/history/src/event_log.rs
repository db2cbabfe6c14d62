//! Reading and writing of `events.jsonl`.
//!
//! Owns its form on disk: plain text, one event a line, each line out of the process as soon as it is written.

use std::io::{BufReader, Read, Write};

use crate::Event;
use crate::lines::{JsonLines, LINE_BYTES_MAX, ReadError};

/// What can go wrong when an event is written.
#[derive(Debug, thiserror::Error)]
pub enum EventWriteError {
    /// The event could not be read back from its line (a figure in it is no number, for example); it was left
    /// out.
    #[error("event at {t_s} s: {source}")]
    Unwritable {
        /// When it happened, seconds.
        t_s: f64,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// The event's line would be longer than what a reader accepts; it was left out.
    #[error("event at {t_s} s: its line of {bytes} bytes exceeds {LINE_BYTES_MAX}")]
    TooLong {
        /// When it happened, seconds.
        t_s: f64,
        /// How long the line would be.
        bytes: usize,
    },
    /// The sink failed.
    #[error("events: {0}")]
    Io(#[from] std::io::Error),
}

/// Writes events, one line each, flushed at once.
pub struct EventWriter<W: Write> {
    sink: W,
}

impl<W: Write> EventWriter<W> {
    /// A writer onto `sink`.
    pub fn new(sink: W) -> Self {
        EventWriter { sink }
    }

    /// Writes one event and flushes.
    ///
    /// # Errors
    /// When the event cannot be written such that it can be read again, or the sink fails.
    pub fn write(&mut self, event: &Event) -> Result<(), EventWriteError> {
        let unwritable = |source| EventWriteError::Unwritable { t_s: event.t_s, source };
        let mut line = serde_json::to_vec(event).map_err(unwritable)?;
        // JSON has no word for infinity: the line would hold a null that no reader takes. Events are few, so
        // the surest test is to read the line back, rather than to find out when the report is made.
        serde_json::from_slice::<Event>(&line).map_err(unwritable)?;
        if line.len() > LINE_BYTES_MAX {
            return Err(EventWriteError::TooLong { t_s: event.t_s, bytes: line.len() });
        }
        line.push(b'\n');
        self.sink.write_all(&line)?;
        self.sink.flush()?;
        Ok(())
    }

    /// Gives the sink back.
    pub fn into_inner(self) -> W {
        self.sink
    }
}

/// What stands in an `events.jsonl`.
#[derive(Debug, Clone, PartialEq)]
pub struct EventLog {
    /// The events, in the order they were written.
    pub events: Vec<Event>,
    /// The number of the last line (from 1) when it is torn, as it is when its writer was killed; it is left
    /// out.
    pub truncated_line: Option<u64>,
}

/// Reads all events.
///
/// # Errors
/// When a line other than a torn last one is not an event, or the stream cannot be read.
pub fn read_events<R: Read>(stream: R) -> Result<EventLog, ReadError> {
    let mut log = EventLog { events: Vec::new(), truncated_line: None };
    for item in JsonLines::<_, Event>::new(BufReader::new(stream)) {
        match item {
            Ok(event) => log.events.push(event),
            Err(ReadError::Truncated { line }) => log.truncated_line = Some(line),
            Err(error) => return Err(error),
        }
    }
    Ok(log)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EventKind, FaultId, Receipt, Verdict};

    fn some_events() -> Vec<Event> {
        let receipt = Receipt { verdict: Verdict::Pass, evidence: vec!["no process left".into()] };
        vec![
            Event { t_s: -3.5, kind: EventKind::Progress { what: "starting \"n1\"\nsecond line ü".into() } },
            Event { t_s: 20.25, kind: EventKind::FaultTookEffect { fault: FaultId::FIRST, receipt } },
            Event { t_s: 60.0, kind: EventKind::RunEnded { verdict: Verdict::Fail } },
        ]
    }

    fn written(events: &[Event]) -> Vec<u8> {
        let mut writer = EventWriter::new(Vec::new());
        for event in events {
            writer.write(event).unwrap();
        }
        writer.into_inner()
    }

    #[test]
    fn events_come_back_as_they_were_written() {
        let log = read_events(written(&some_events()).as_slice()).unwrap();
        assert_eq!(log, EventLog { events: some_events(), truncated_line: None });
    }

    #[test]
    fn a_log_cut_at_any_byte_gives_every_whole_line_before_the_cut() {
        let bytes = written(&some_events());
        for length in 0..bytes.len() {
            let log = read_events(&bytes[..length]).unwrap();
            let whole_lines = bytes[..length].iter().filter(|byte| **byte == b'\n').count();
            // A line that only misses its line feed is whole as well.
            let misses_line_feed = bytes[length] == b'\n' && length > 0 && bytes[length - 1] != b'\n';
            assert_eq!(
                log.events,
                some_events()[..whole_lines + usize::from(misses_line_feed)],
                "cut at {length}"
            );
            let torn = length > 0 && bytes[length - 1] != b'\n' && !misses_line_feed;
            assert_eq!(log.truncated_line, torn.then_some(whole_lines as u64 + 1), "cut at {length}");
        }
    }

    #[test]
    fn damage_before_the_last_line_is_an_error_with_its_line() {
        let mut bytes = b"{\"t_s\":1,\"event\":\"no-such-event\"}\n".to_vec();
        bytes.extend(written(&some_events()));
        let error = read_events(bytes.as_slice()).unwrap_err();
        assert!(error.to_string().starts_with("line 1: "), "{error}");
        assert!(!error.is_truncation());
    }

    #[test]
    fn an_event_with_an_infinite_figure_is_refused_and_leaves_nothing() {
        let mut writer = EventWriter::new(Vec::new());
        let event = Event { t_s: 1.0, kind: EventKind::Phase { name: "fault".into(), for_s: f64::INFINITY } };
        assert!(matches!(writer.write(&event), Err(EventWriteError::Unwritable { .. })));
        assert!(writer.into_inner().is_empty());
    }
}

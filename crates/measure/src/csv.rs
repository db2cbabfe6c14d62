//! `timeline.csv`: a row for each operation of each load in each second.
//!
//! Owns the file's form, as scripts rely on it: comma-separated with a heading, fields quoted only where they
//! must be.

use std::io::{BufRead, Write};

use crate::figures::LatencyFigures;
use crate::interval::{Interval, OperationInterval};
use crate::lines::{Line, LineError, Lines};

/// The heading.
pub const HEADING: &str = "t_s,load,operation,count,errors,p50_us,p95_us,p99_us,max_us";

/// How many lines a quoted field may go over: names are short, so more is a quote that was never closed.
const LINES_PER_ROW_MAX: usize = 100;

/// One operation of one load in one second. Latencies are microseconds, 0 when nothing succeeded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimelineRow {
    /// The whole second on the run's clock.
    pub t_s: u64,
    /// The load's name.
    pub load: String,
    /// The operation's name.
    pub operation: String,
    /// How many succeeded.
    pub count: u64,
    /// How many did not.
    pub errors: u64,
    /// Median.
    pub p50_us: u64,
    /// 95th percentile.
    pub p95_us: u64,
    /// 99th percentile.
    pub p99_us: u64,
    /// Largest.
    pub max_us: u64,
}

impl TimelineRow {
    /// The row of an operation.
    #[must_use]
    pub fn of(load: &str, second: u64, operation: &str, measured: &OperationInterval) -> Self {
        let latency = LatencyFigures::of(&measured.histogram);
        TimelineRow {
            t_s: second,
            load: load.to_owned(),
            operation: operation.to_owned(),
            count: measured.count(),
            errors: measured.error_count(),
            p50_us: latency.p50_us,
            p95_us: latency.p95_us,
            p99_us: latency.p99_us,
            max_us: latency.max_us,
        }
    }
}

/// Writes `timeline.csv` as the run goes.
pub struct CsvWriter<W: Write> {
    sink: W,
}

impl<W: Write> CsvWriter<W> {
    /// A writer onto an empty sink; writes the heading.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn new(mut sink: W) -> std::io::Result<Self> {
        writeln!(sink, "{HEADING}")?;
        sink.flush()?;
        Ok(CsvWriter { sink })
    }

    /// Writes a row for each operation of the interval, in one piece, and flushes.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn write(&mut self, interval: &Interval) -> std::io::Result<()> {
        let mut text = String::new();
        for (operation, measured) in &interval.operations {
            push_row(&mut text, &TimelineRow::of(&interval.load, interval.second, operation, measured));
        }
        self.sink.write_all(text.as_bytes())?;
        self.sink.flush()
    }

    /// Writes one row; does not flush.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn write_row(&mut self, row: &TimelineRow) -> std::io::Result<()> {
        let mut text = String::new();
        push_row(&mut text, row);
        self.sink.write_all(text.as_bytes())
    }

    /// Gives the sink back.
    pub fn into_inner(self) -> W {
        self.sink
    }
}

fn push_row(text: &mut String, row: &TimelineRow) {
    text.push_str(&row.t_s.to_string());
    for name in [&row.load, &row.operation] {
        text.push(',');
        if name.contains([',', '"', '\n', '\r']) {
            text.push('"');
            text.push_str(&name.replace('"', "\"\""));
            text.push('"');
        } else {
            text.push_str(name);
        }
    }
    for figure in [row.count, row.errors, row.p50_us, row.p95_us, row.p99_us, row.max_us] {
        text.push(',');
        text.push_str(&figure.to_string());
    }
    text.push('\n');
}

/// What can be wrong with a `timeline.csv`.
#[derive(Debug, thiserror::Error)]
pub enum CsvError {
    /// The file ends within this row, as it does when its writer was killed. Every row before it is whole.
    #[error("line {line}: the file ends within the row")]
    Truncated {
        /// Number of the torn line, from 1.
        line: u64,
    },
    /// The first line is not the heading.
    #[error("line 1: not the heading of a time line")]
    Heading,
    /// A row is not what it should be.
    #[error("line {line}: {what}")]
    Malformed {
        /// Number of the line the row ends on, from 1.
        line: u64,
        /// What is wrong.
        what: String,
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

/// Iterator over the rows of a `timeline.csv`. Ends after the first error; [`CsvError::Truncated`] says that
/// what came before is whole. A last row without its line feed is torn, for the end of its last figure may be
/// missing.
pub struct CsvReader<R> {
    lines: Lines<R>,
    ended: bool,
}

impl<R: BufRead> CsvReader<R> {
    /// A reader of `stream`.
    pub fn new(stream: R) -> Self {
        CsvReader { lines: Lines::new(stream), ended: false }
    }

    fn read_row(&mut self) -> Result<Option<TimelineRow>, CsvError> {
        if self.lines.number == 0 {
            match self.next_line()? {
                None => return Ok(None),
                Some(heading) if heading.trim_end_matches('\r') != HEADING => return Err(CsvError::Heading),
                Some(_) => {}
            }
        }
        let Some(mut text) = self.next_line()? else { return Ok(None) };
        // A name may hold line feeds, between quotes: the row goes on while a quote is open.
        let mut line_count = 1;
        while text.matches('"').count() % 2 == 1 {
            let line = self.lines.number;
            line_count += 1;
            if line_count > LINES_PER_ROW_MAX {
                return Err(CsvError::Malformed { line, what: "a quote is not closed".into() });
            }
            let Some(next) = self.next_line()? else { return Err(CsvError::Truncated { line }) };
            text.push('\n');
            text.push_str(&next);
        }
        parse_row(&text).map(Some).map_err(|what| CsvError::Malformed { line: self.lines.number, what })
    }

    fn next_line(&mut self) -> Result<Option<String>, CsvError> {
        match self.lines.next_line() {
            Ok(Line::Whole(line)) => Ok(Some(line)),
            Ok(Line::Torn) => Err(CsvError::Truncated { line: self.lines.number }),
            Ok(Line::End) => Ok(None),
            Err(source) => Err(CsvError::Unreadable { line: self.lines.number, source }),
        }
    }
}

impl<R: BufRead> Iterator for CsvReader<R> {
    type Item = Result<TimelineRow, CsvError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.read_row().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

fn parse_row(text: &str) -> Result<TimelineRow, String> {
    let fields = split_fields(text.strip_suffix('\r').unwrap_or(text))?;
    let [t_s, load, operation, count, errors, p50_us, p95_us, p99_us, max_us] = fields.as_slice() else {
        return Err(format!("{} fields instead of 9", fields.len()));
    };
    let figure = |text: &String| text.parse::<u64>().map_err(|_| format!("{text:?} is not a whole number"));
    Ok(TimelineRow {
        t_s: figure(t_s)?,
        load: load.clone(),
        operation: operation.clone(),
        count: figure(count)?,
        errors: figure(errors)?,
        p50_us: figure(p50_us)?,
        p95_us: figure(p95_us)?,
        p99_us: figure(p99_us)?,
        max_us: figure(max_us)?,
    })
}

fn split_fields(text: &str) -> Result<Vec<String>, String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut characters = text.chars().peekable();
    let mut at_start = true;
    while let Some(character) = characters.next() {
        let Some(field) = fields.last_mut() else { break };
        match (character, quoted) {
            ('"', true) if characters.next_if_eq(&'"').is_some() => field.push('"'),
            ('"', true) => {
                quoted = false;
                if characters.peek().is_some_and(|next| *next != ',') {
                    return Err("text after a closing quote".into());
                }
            }
            ('"', false) if at_start => quoted = true,
            ('"', false) => return Err("a quote within an unquoted field".into()),
            (',', false) => fields.push(String::new()),
            (character, _) => field.push(character),
        }
        at_start = character == ',' && !quoted;
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read_all(text: &[u8]) -> (Vec<TimelineRow>, Option<String>) {
        let mut rows = Vec::new();
        for item in CsvReader::new(text) {
            match item {
                Ok(row) => rows.push(row),
                Err(error) => return (rows, Some(error.to_string())),
            }
        }
        (rows, None)
    }

    fn row(load: &str, operation: &str) -> TimelineRow {
        let (load, operation) = (load.to_owned(), operation.to_owned());
        TimelineRow {
            t_s: 17,
            load,
            operation,
            count: 250,
            errors: 1,
            p50_us: 900,
            p95_us: 1500,
            p99_us: 2100,
            max_us: 12345,
        }
    }

    fn written(rows: &[TimelineRow]) -> Vec<u8> {
        let mut writer = CsvWriter::new(Vec::new()).unwrap();
        for row in rows {
            writer.write_row(row).unwrap();
        }
        writer.into_inner()
    }

    #[test]
    fn the_form_is_the_one_scripts_rely_on() {
        let text =
            String::from_utf8(written(&[row("tpcb", "transaction"), row("a,b", "say \"x\"")])).unwrap();
        assert_eq!(
            text,
            "t_s,load,operation,count,errors,p50_us,p95_us,p99_us,max_us\n\
             17,tpcb,transaction,250,1,900,1500,2100,12345\n\
             17,\"a,b\",\"say \"\"x\"\"\",250,1,900,1500,2100,12345\n"
        );
    }

    #[test]
    fn a_file_cut_at_any_byte_gives_the_whole_rows_before_the_cut() {
        let rows = [row("tpcb", "transaction"), row("two\nlines", "b"), row("c", "d")];
        let bytes = written(&rows);
        let row_ends: Vec<usize> = (0..=rows.len()).map(|count| written(&rows[..count]).len()).collect();
        for length in 0..bytes.len() {
            let (read, error) = read_all(&bytes[..length]);
            let whole_rows = row_ends.iter().filter(|end| **end <= length).count().saturating_sub(1);
            assert_eq!(read, rows[..whole_rows], "cut at {length}");
            let at_a_row_end = length == 0 || row_ends.contains(&length);
            assert_eq!(error.is_none(), at_a_row_end, "cut at {length}: {error:?}");
            assert!(error.is_none_or(|message| message.contains("the file ends")), "cut at {length}");
        }
    }

    #[test]
    fn malformed_rows_are_refused_with_their_line() {
        for (bad, message) in [
            ("17,tpcb,x,1,0,1,1,1", "line 2: 8 fields instead of 9"),
            ("17,tpcb,x,-1,0,1,1,1,1", "line 2: \"-1\" is not a whole number"),
            ("17,t\"x,x\",x,1,0,1,1,1,1", "line 2: a quote within an unquoted field"),
            ("17,\"t\"x,x,1,0,1,1,1,1", "line 2: text after a closing quote"),
            ("", "line 2: 1 fields instead of 9"),
        ] {
            let (rows, error) = read_all(format!("{HEADING}\n{bad}\n").as_bytes());
            assert_eq!((rows.len(), error.as_deref()), (0, Some(message)));
        }
        assert_eq!(read_all(b"time,load\n").1.as_deref(), Some("line 1: not the heading of a time line"));
    }

    proptest! {
        #[test]
        fn any_rows_come_back_as_they_were_written(
            names in prop::collection::vec((any::<String>(), "[a\",\r\n ]{0,6}"), 0..8),
            figure in any::<u64>(),
        ) {
            let rows: Vec<_> =
                names.iter().map(|(load, operation)| TimelineRow { count: figure, ..row(load, operation) }).collect();
            prop_assert_eq!(read_all(&written(&rows)), (rows, None));
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in "[0-9a,\"\n\r]{0,200}") {
            read_all(format!("{HEADING}\n{text}").as_bytes());
        }
    }
}

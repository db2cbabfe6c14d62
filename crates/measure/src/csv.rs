//! `timeline.csv`: a row for each operation of each load in each second.
//!
//! Owns the file's form, as scripts rely on it: comma-separated with a heading, fields quoted only where they
//! must be. It is read where run directories are.

use std::io::Write;

use crate::figures::LatencyFigures;
use crate::interval::{Interval, OperationInterval};

/// The heading.
pub const HEADING: &str = "t_s,load,operation,count,errors,p50_us,p95_us,p99_us,max_us";

/// One operation of one load in one second. Latencies are microseconds, 0 when nothing succeeded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimelineRow {
    /// The whole second on the run's clock; the row covers `second` up to `second + 1`.
    pub second: u64,
    /// The load's name.
    pub load: String,
    /// The operation: a transaction, one of its statements, or `connect`.
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
            second,
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
    text.push_str(&row.second.to_string());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_the_one_scripts_rely_on() {
        let row = |load: &str, operation: &str| TimelineRow {
            second: 17,
            load: load.to_owned(),
            operation: operation.to_owned(),
            count: 250,
            errors: 1,
            p50_us: 900,
            p95_us: 1500,
            p99_us: 2100,
            max_us: 12345,
        };
        let mut writer = CsvWriter::new(Vec::new()).unwrap();
        for row in [row("tpcb", "transaction"), row("a,b", "say \"x\"")] {
            writer.write_row(&row).unwrap();
        }
        assert_eq!(
            String::from_utf8(writer.into_inner()).unwrap(),
            "t_s,load,operation,count,errors,p50_us,p95_us,p99_us,max_us\n\
             17,tpcb,transaction,250,1,900,1500,2100,12345\n\
             17,\"a,b\",\"say \"\"x\"\"\",250,1,900,1500,2100,12345\n"
        );
    }
}

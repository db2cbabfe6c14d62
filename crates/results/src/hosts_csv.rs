//! Reads `hosts.csv`: a row a second for each host. Owns the columns' meaning, not what is made of them.

use crate::timeline_csv::{LATEST_SECOND, fields, rows};

/// The header every file begins with.
const HEADER: &str = "t_s,host,processors,read_bytes,durable_bytes,syncs,memory_bytes";
/// That of runs whose memory was not recorded yet.
const HEADER_WITHOUT_MEMORY: &str = "t_s,host,processors,read_bytes,durable_bytes,syncs";
/// How many columns that names.
const COLUMNS_WITHOUT_MEMORY: usize = 6;

/// What one host did in one second.
#[derive(Debug, Clone, PartialEq)]
pub struct HostRow {
    /// The whole second on the run's clock.
    pub second: u64,
    /// The host's path.
    pub host: String,
    /// Processors that its nodes used, as a mean.
    pub processors: f64,
    /// Bytes that its disks handed out.
    pub read_bytes: u64,
    /// Bytes that syncs made durable on its disks.
    pub durable_bytes: u64,
    /// Syncs that its disks answered.
    pub syncs: u64,
    /// Memory that the processes of its nodes held at its end; none where that was not recorded.
    pub memory_bytes: Option<u64>,
}

/// The rows that can be read; a damaged or unfinished line is left out and mentioned.
pub(crate) fn parse(text: &str, notes: &mut Vec<String>) -> Vec<HostRow> {
    let header = text.lines().next().filter(|first| *first == HEADER_WITHOUT_MEMORY).unwrap_or(HEADER);
    rows(text, ("hosts.csv", header), row, notes)
}

fn row(line: &str) -> Option<HostRow> {
    let mut fields = fields(line)?;
    let memory = if fields.len() > COLUMNS_WITHOUT_MEMORY { fields.pop() } else { None };
    let [second, host, processors, read, durable, syncs] =
        <[String; COLUMNS_WITHOUT_MEMORY]>::try_from(fields).ok()?;
    Some(HostRow {
        second: second.parse().ok().filter(|second| *second <= LATEST_SECOND)?,
        host,
        processors: processors.parse().ok().filter(|used: &f64| used.is_finite() && *used >= 0.0)?,
        read_bytes: read.parse().ok()?,
        durable_bytes: durable.parse().ok()?,
        syncs: syncs.parse().ok()?,
        memory_bytes: memory.map(|bytes| bytes.parse::<u64>()).transpose().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rows_are_read_and_what_makes_no_sense_is_left_out_and_mentioned() {
        let text = format!("{HEADER}\n0,a/h1,0.500,1,2000,3,70\n0,a/h2,NaN,1,2,3,4\n1,a/h1,-1,0,0,0,0\n1,a");
        let mut notes = Vec::new();
        let rows = parse(&text, &mut notes);
        assert_eq!(rows.len(), 1);
        assert_eq!(
            (rows[0].host.as_str(), rows[0].processors, rows[0].durable_bytes, rows[0].memory_bytes),
            ("a/h1", 0.5, 2000, Some(70))
        );
        assert_eq!(notes, ["hosts.csv: 3 unreadable line(s) were left out"]);
    }

    #[test]
    fn a_file_from_before_memory_was_recorded_is_still_read() {
        let text = format!("{HEADER_WITHOUT_MEMORY}\n0,dc1/a/h1,0.500,1,2000,3\n");
        let mut notes = Vec::new();
        let rows = parse(&text, &mut notes);
        assert_eq!((rows.len(), rows[0].syncs, rows[0].memory_bytes), (1, 3, None));
        assert!(notes.is_empty(), "{notes:?}");
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "[0-9a-zN,.\"\n-]{0,200}") {
            let _ = parse(&text, &mut Vec::new());
        }
    }
}

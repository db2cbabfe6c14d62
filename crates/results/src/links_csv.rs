//! Reads `links.csv`: a row a second for each link. Owns the columns' meaning, not what is made of them.

use crate::timeline_csv::{LATEST_SECOND, fields, rows};

/// The header every file begins with.
const HEADER: &str = "t_s,link,packets,bytes,dropped_packets,utilisation,waiting_bytes";

/// What one link did in one second.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkRow {
    /// The whole second on the run's clock.
    pub second: u64,
    /// The link's name.
    pub link: String,
    /// Packets it carried.
    pub packets: u64,
    /// Bytes of IP packets it carried.
    pub bytes: u64,
    /// Packets that found its queue full.
    pub dropped_packets: u64,
    /// Share of the second it was sending, 0 to 1; only where it has a rate.
    pub utilisation: Option<f64>,
    /// Bytes that waited for it at the end of the second.
    pub waiting_bytes: u64,
}

/// The rows that can be read; a damaged or unfinished line is left out and mentioned.
pub(crate) fn parse(text: &str, notes: &mut Vec<String>) -> Vec<LinkRow> {
    rows(text, ("links.csv", HEADER), row, notes)
}

fn row(line: &str) -> Option<LinkRow> {
    let [second, link, packets, bytes, dropped, utilisation, waiting] =
        <[String; 7]>::try_from(fields(line)?).ok()?;
    let second: u64 = second.parse().ok().filter(|second| *second <= LATEST_SECOND)?;
    let utilisation = match utilisation.as_str() {
        "" => None,
        share => Some(share.parse().ok().filter(|share| (0.0..=1.0).contains(share))?),
    };
    Some(LinkRow {
        second,
        link,
        packets: packets.parse().ok()?,
        bytes: bytes.parse().ok()?,
        dropped_packets: dropped.parse().ok()?,
        utilisation,
        waiting_bytes: waiting.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Rows as `second link bytes utilisation`, and how many notes there are.
    fn check(lines: &[&str], expected: &[&str], notes_expected: usize) {
        let mut notes = Vec::new();
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let rows = parse(&text, &mut notes);
        let told = rows.iter().map(|row| {
            let share = row.utilisation.map_or_else(|| "-".to_owned(), |share| share.to_string());
            format!("{} {} {} {share}", row.second, row.link, row.bytes)
        });
        assert_eq!(told.collect::<Vec<_>>(), expected);
        assert_eq!(notes.len(), notes_expected);
    }

    #[test]
    fn a_row_has_a_utilisation_or_none() {
        check(
            &[HEADER, "0,dc1 -> dc2,10,1000,0,0.5,0", "0,edge out,1,60,2,,7"],
            &["0 dc1 -> dc2 1000 0.5", "0 edge out 60 -"],
            0,
        );
    }

    #[test]
    fn what_makes_no_sense_is_left_out_and_mentioned() {
        check(&["0,a,1,1,0,1.5,0", "x,a,1,1,0,,0", "1,a,1,1,0,,0", "2,a,1"], &["1 a 1 -"], 1);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "[0-9a-z,.\"\n-]{0,200}") {
            let _ = parse(&text, &mut Vec::new());
        }
    }
}

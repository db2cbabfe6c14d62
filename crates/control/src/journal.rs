//! The journal's form: records one after another, each with its length and its checksum.
//!
//! Owns how a record becomes bytes and how bytes that a power-off has cut become what was kept. Touches no file.

use crate::replica::{Kept, Record};

/// Length and checksum, four bytes each.
const HEAD_BYTES: usize = 8;

/// A record of the journal that is whole and yet no record of ours.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Its bytes are as they were written, and mean nothing.
    #[error("the record at byte {offset} is not one: {source}")]
    Malformed {
        /// Where it begins.
        offset: usize,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// A log entry that belongs behind one that is not there.
    #[error("the record at byte {offset} is log entry {index}, but only {last} stand before it")]
    Gap {
        /// Where it begins.
        offset: usize,
        /// Its number.
        index: u64,
        /// How many there are.
        last: u64,
    },
    /// A record that cannot be written.
    #[error("a record cannot be written: {0}")]
    Unwritable(#[source] serde_json::Error),
    /// A record of 4 GiB or more.
    #[error("a record of {bytes} bytes is too long")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
}

/// Appends a record to `bytes`.
///
/// # Errors
/// When it cannot be written down or is beyond all measure; `bytes` is as before then.
pub fn encode(record: &Record, bytes: &mut Vec<u8>) -> Result<(), JournalError> {
    let body = serde_json::to_vec(record).map_err(JournalError::Unwritable)?;
    let length = u32::try_from(body.len()).map_err(|_| JournalError::TooLong { bytes: body.len() })?;
    bytes.extend(length.to_be_bytes());
    bytes.extend(checksum(length, &body).to_be_bytes());
    bytes.extend(body);
    Ok(())
}

/// The checksum covers the length too: a run of zeros, which a power-off may leave, is no record.
fn checksum(length: u32, body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(b"control");
    hasher.update(&length.to_be_bytes());
    hasher.update(body);
    hasher.finalize()
}

/// What was kept, and how many bytes of the journal that is. What stands beyond was being written when the power went; it
/// was never acknowledged, and must be cut off before anything is appended.
///
/// # Errors
/// When a record is whole but wrong: then the journal was not written by this program as it is now.
pub fn decode(bytes: &[u8]) -> Result<(Kept, usize), JournalError> {
    let mut kept = Kept::default();
    let mut offset = 0;
    while let Some(body) = next_body(&bytes[offset..]) {
        let record =
            serde_json::from_slice(body).map_err(|source| JournalError::Malformed { offset, source })?;
        match record {
            Record::Term { term, vote } => (kept.term, kept.vote) = (term, vote),
            Record::Entry { index, entry } => {
                let last = kept.log.last_index();
                if !kept.log.put(index, entry) {
                    return Err(JournalError::Gap { offset, index, last });
                }
            }
        }
        offset += HEAD_BYTES + body.len();
    }
    Ok((kept, offset))
}

/// The first record's bytes, if they are whole.
fn next_body(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (sum, rest) = rest.split_first_chunk::<4>()?;
    let length = u32::from_be_bytes(*length);
    let body = rest.get(..usize::try_from(length).ok()?)?;
    (checksum(length, body) == u32::from_be_bytes(*sum)).then_some(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Entry;
    use crate::state::Command;

    fn records() -> Vec<Record> {
        let entry = |term| Entry { term, command: Command::Nothing };
        vec![
            Record::Term { term: 1, vote: Some("n1".to_owned()) },
            Record::Entry { index: 1, entry: entry(1) },
            Record::Entry { index: 2, entry: entry(1) },
            Record::Term { term: 3, vote: None },
            Record::Entry { index: 2, entry: entry(3) },
        ]
    }

    fn encoded(records: &[Record]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for record in records {
            encode(record, &mut bytes).expect("a small record");
        }
        bytes
    }

    #[test]
    fn what_was_kept_is_read_back_and_a_later_entry_replaces_an_earlier_one() {
        let bytes = encoded(&records());
        let (kept, length) = decode(&bytes).expect("our own");
        assert_eq!(length, bytes.len());
        assert_eq!((kept.term, kept.vote), (3, None));
        let terms: Vec<_> = (0..=3).map(|index| kept.log.term_at(index)).collect();
        assert_eq!(terms, [Some(0), Some(1), Some(3), None]);
    }

    #[test]
    fn a_journal_cut_or_damaged_anywhere_is_what_stands_whole_before() {
        let records = records();
        let bytes = encoded(&records);
        let ends: Vec<usize> = (0..=records.len()).map(|count| encoded(&records[..count]).len()).collect();
        for cut in 0..bytes.len() {
            let whole = ends.iter().rev().find(|end| **end <= cut).copied().unwrap_or(0);
            assert_eq!(decode(&bytes[..cut]).expect("cut").1, whole, "cut after {cut} bytes");
            let mut zeroed = bytes[..cut].to_vec();
            zeroed.resize(bytes.len() + 64, 0);
            assert_eq!(decode(&zeroed).expect("zeros").1, whole, "zeros from byte {cut} on");
            let mut damaged = bytes.clone();
            damaged[cut] ^= 0x40;
            assert_eq!(decode(&damaged).expect("damaged").1, whole, "byte {cut} is damaged");
        }
    }

    #[test]
    fn an_entry_behind_a_gap_is_an_error() {
        let entry = Entry { term: 1, command: Command::Nothing };
        let error =
            decode(&encoded(&[Record::Entry { index: 2, entry }])).expect_err("nothing stands before it");
        assert_eq!(error.to_string(), "the record at byte 0 is log entry 2, but only 0 stand before it");
    }
}

//! Writes that can be told apart: every write of a run puts a number of its own into the cells it changes, and the final
//! read finds out which write each cell ended with.
//!
//! Owns those numbers, their form at the front of a text and the paging of the final read. What the end must look like is the
//! `last-writes` check's to judge.

use client::{Rows, SessionError, SqlSession};
use history::Action;

use crate::workload::{ClientState, refused};

/// Bits of a write's number that hold the client's own count; the client's number stands above them.
const SEQUENCE_BITS: u32 = 40;

/// The number of what was there before the first write.
pub(crate) const LOADED: u64 = 0;

/// Characters at the front of a text that hold the number of the write it comes from, in hexadecimal.
pub(crate) const NUMBER_CHARACTERS: usize = 16;

/// The front of a text that this write makes.
pub(crate) fn numbered(write: u64) -> String {
    format!("{write:0NUMBER_CHARACTERS$x}")
}

/// The number of the write that a text comes from; nothing where it has none.
pub(crate) fn number_of(text: &str) -> Option<u64> {
    u64::from_str_radix(text.get(..NUMBER_CHARACTERS)?, 16).ok()
}

/// Rows of the final read fetched, and recorded, at a time.
const PAGE_ROWS: usize = 20_000;

/// The number of the client's next write; never [`LOADED`], and nobody else's.
pub(crate) fn next_write(client: &mut ClientState) -> u64 {
    // Counted on at once: a number is used up whatever becomes of its write.
    client.sequence += 1;
    (client.client << SEQUENCE_BITS) | client.sequence
}

/// Reads every row of `query`, past its indexes. `cells` appends the cells of one row, each with the number of the write
/// it ended with.
pub(crate) async fn read_all(
    session: &mut (dyn SqlSession + '_),
    query: &str,
    mut cells: impl FnMut(&Rows, usize, &mut Vec<(u64, u64)>) -> Option<()>,
) -> Result<Vec<Action>, SessionError> {
    let mut pages = Vec::new();
    let mut page = |rows: &Rows| {
        let mut found = Vec::with_capacity(rows.len());
        for row in 0..rows.len() {
            cells(rows, row, &mut found)
                .ok_or_else(|| refused(format!("row {row} of the final read cannot be read")))?;
        }
        pages.push(Action::CellsRead { cells: found, complete: rows.len() < PAGE_ROWS });
        Ok(())
    };
    session.read_table(query, PAGE_ROWS, &mut page).await?;
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn no_two_writes_have_the_same_number_and_none_that_of_what_was_loaded() {
        let mut seen = BTreeSet::from([LOADED]);
        for client in [0, 1, 63, crate::ledger::LARGEST_CLIENT] {
            let mut state = ClientState::new(client, 1, ChaCha8Rng::seed_from_u64(client));
            for _ in 0..1_000 {
                let number = next_write(&mut state);
                assert!(seen.insert(number), "{number} twice");
                assert!(number.cast_signed() > 0, "{number} does not fit a signed column");
                assert_eq!(number_of(&format!("{}abc", numbered(number))), Some(number));
            }
        }
    }
}

//! What a statement answered: rows of text cells and the number of rows it touched.
//!
//! Owns the storage of an answer. Knows no protocol.

/// A cell's place in the row store; `None` for SQL's NULL.
type Cell = Option<(usize, usize)>;

/// The rows one statement answered with, every cell as text.
///
/// All cells lie in one buffer, so that an answer without rows costs no allocation and one with many costs two.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    text: Vec<u8>,
    cells: Vec<Cell>,
    /// Where each row ends in `cells`.
    row_ends: Vec<usize>,
    affected: u64,
}

impl Rows {
    /// Number of rows returned.
    #[must_use]
    pub fn len(&self) -> usize {
        self.row_ends.len()
    }

    /// Whether no row was returned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.row_ends.is_empty()
    }

    /// Number of rows the statement says it inserted, updated, deleted or selected; 0 where it names none.
    #[must_use]
    pub fn affected(&self) -> u64 {
        self.affected
    }

    /// The cell's text; `None` for NULL, for a place outside the answer and for bytes that are not UTF-8.
    #[must_use]
    pub fn text(&self, row: usize, column: usize) -> Option<&str> {
        let end = *self.row_ends.get(row)?;
        let start = match row.checked_sub(1) {
            Some(previous) => *self.row_ends.get(previous)?,
            None => 0,
        };
        let place = start.checked_add(column).filter(|place| *place < end)?;
        let (from, to) = (*self.cells.get(place)?)?;
        std::str::from_utf8(self.text.get(from..to)?).ok()
    }

    /// The cell as a whole number; `None` where [`Rows::text`] is, and where the text is not a number that fits.
    #[must_use]
    pub fn integer(&self, row: usize, column: usize) -> Option<i64> {
        self.text(row, column)?.parse().ok()
    }

    /// Adds a cell to the row being built.
    pub(crate) fn push_cell(&mut self, cell: Option<&[u8]>) {
        self.cells.push(cell.map(|bytes| {
            let from = self.text.len();
            self.text.extend_from_slice(bytes);
            (from, self.text.len())
        }));
    }

    /// Ends the row being built.
    pub(crate) fn end_row(&mut self) {
        self.row_ends.push(self.cells.len());
    }

    /// Notes how many rows the statement touched.
    pub(crate) fn set_affected(&mut self, affected: u64) {
        self.affected = affected;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(lines: &[&[Option<&str>]]) -> Rows {
        let mut rows = Rows::default();
        for line in lines {
            for cell in *line {
                rows.push_cell(cell.map(str::as_bytes));
            }
            rows.end_row();
        }
        rows
    }

    #[test]
    fn cells_are_found_by_row_and_column_and_nothing_outside_panics() {
        let rows = rows(&[&[Some("7"), None], &[Some("eight"), Some("")]]);
        let check = |row, column, expected: Option<&str>| {
            assert_eq!(rows.text(row, column), expected, "{row},{column}")
        };
        check(0, 0, Some("7"));
        check(0, 1, None);
        check(0, 2, None);
        check(1, 0, Some("eight"));
        check(1, 1, Some(""));
        check(2, 0, None);
        check(usize::MAX, usize::MAX, None);
        assert_eq!(rows.integer(0, 0), Some(7));
        assert_eq!(rows.integer(1, 0), None);
    }
}

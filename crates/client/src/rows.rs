//! What a statement answered: rows of text cells and the number of rows it touched.
//!
//! Owns the storage of an answer, in the form in which rows travel: a count of cells, then each cell's length and bytes.
//! Cells are looked for when asked for.

use std::io;

/// The rows one statement answered with, every cell as text.
///
/// All rows lie in one buffer, so that an answer without rows costs no allocation, and one with a single row one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    rows: Vec<u8>,
    count: usize,
    /// Where each row but the first begins.
    later_starts: Vec<usize>,
    affected: u64,
}

impl Rows {
    /// Number of rows returned.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether no row was returned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Number of rows the statement says it inserted, updated, deleted or selected; 0 where it names none.
    #[must_use]
    pub fn affected(&self) -> u64 {
        self.affected
    }

    /// The cell's text; `None` for NULL, for a place outside the answer and for bytes that are not UTF-8.
    #[must_use]
    pub fn text(&self, row: usize, column: usize) -> Option<&str> {
        std::str::from_utf8(self.cell(row, column)??).ok()
    }

    /// Whether the cell is there and NULL.
    #[must_use]
    pub fn is_null(&self, row: usize, column: usize) -> bool {
        self.cell(row, column) == Some(None)
    }

    /// The cell's bytes, none for NULL; `None` for a place outside the answer.
    fn cell(&self, row: usize, column: usize) -> Option<Option<&[u8]>> {
        if row >= self.count {
            return None;
        }
        let start = match row.checked_sub(1) {
            Some(later) => *self.later_starts.get(later)?,
            None => 0,
        };
        let mut cells = Cells::of(self.rows.get(start..)?)?;
        for _ in 0..column {
            cells.next_cell()?;
        }
        cells.next_cell()
    }

    /// All cells of a row as text, with commas between them; NULL is nothing.
    #[must_use]
    pub fn row_text(&self, row: usize) -> String {
        let columns = self.columns(row);
        let cells: Vec<&str> =
            (0..columns).map(|column| self.text(row, column).unwrap_or_default()).collect();
        cells.join(",")
    }

    fn columns(&self, row: usize) -> usize {
        let start = row.checked_sub(1).and_then(|later| self.later_starts.get(later)).copied().unwrap_or(0);
        let cells = self.rows.get(start..).filter(|_| row < self.count).and_then(Cells::of);
        cells.map_or(0, |cells| usize::from(cells.left))
    }

    /// The cell as a whole number; `None` where [`Rows::text`] is, and where the text is not a number that fits.
    #[must_use]
    pub fn integer(&self, row: usize, column: usize) -> Option<i64> {
        self.text(row, column)?.parse().ok()
    }

    /// Adds a row as it travels.
    ///
    /// # Errors
    /// When it is not one.
    pub(crate) fn push_row(&mut self, row: &[u8]) -> io::Result<()> {
        let mut cells = Cells::of(row).ok_or_else(malformed)?;
        while cells.left > 0 {
            cells.next_cell().ok_or_else(malformed)?;
        }
        if self.count > 0 {
            self.later_starts.push(self.rows.len());
        } else {
            // One row is the common case, and needs no more room than itself.
            self.rows.reserve_exact(row.len());
        }
        self.rows.extend_from_slice(row);
        self.count += 1;
        Ok(())
    }

    /// Begins a row of so many cells, which are to be pushed next.
    pub(crate) fn begin_row(&mut self, cells: u16) {
        if self.count > 0 {
            self.later_starts.push(self.rows.len());
        }
        self.rows.extend_from_slice(&cells.to_be_bytes());
        self.count += 1;
    }

    /// The next cell of the row that was begun last; `None` for NULL.
    pub(crate) fn push_cell(&mut self, cell: Option<&[u8]>) {
        let length = cell.map_or(-1, |cell| i32::try_from(cell.len()).unwrap_or(i32::MAX));
        self.rows.extend_from_slice(&length.to_be_bytes());
        self.rows.extend_from_slice(cell.unwrap_or_default());
    }

    /// Adds the rows of another answer behind these.
    pub(crate) fn append(&mut self, other: Rows) {
        if self.count == 0 {
            *self = other;
            return;
        }
        if other.count == 0 {
            return;
        }
        let begin = self.rows.len();
        self.later_starts.push(begin);
        self.later_starts.extend(other.later_starts.iter().map(|start| begin + start));
        self.rows.extend_from_slice(&other.rows);
        self.count += other.count;
    }

    /// Forgets everything but the room it took, for the next statement of a flight.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.later_starts.clear();
        (self.count, self.affected) = (0, 0);
    }

    /// Notes how many rows the statement touched.
    pub(crate) fn set_affected(&mut self, affected: u64) {
        self.affected = affected;
    }
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "row shorter than it claims")
}

/// The cells of one row, first to last.
struct Cells<'a> {
    left: u16,
    rest: &'a [u8],
}

impl<'a> Cells<'a> {
    fn of(row: &'a [u8]) -> Option<Self> {
        let (count, rest) = row.split_first_chunk()?;
        Some(Self { left: u16::from_be_bytes(*count), rest })
    }

    /// The next cell, `Some(None)` for NULL; `None` when there is none.
    fn next_cell(&mut self) -> Option<Option<&'a [u8]>> {
        self.left = self.left.checked_sub(1)?;
        let (length, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else { return Some(None) };
        let (cell, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(Some(cell))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[Option<&str>]) -> Vec<u8> {
        let mut row = u16::try_from(cells.len()).expect("few").to_be_bytes().to_vec();
        for cell in cells {
            let length = cell.map_or(-1, |cell| i32::try_from(cell.len()).expect("short"));
            row.extend_from_slice(&length.to_be_bytes());
            row.extend_from_slice(cell.unwrap_or_default().as_bytes());
        }
        row
    }

    #[test]
    fn cells_are_found_by_row_and_column_and_nothing_outside_panics() {
        let mut rows = Rows::default();
        for cells in [[Some("7"), None], [Some("eight"), Some("")], [None, Some("9")]] {
            rows.push_row(&row(&cells)).expect("row");
        }
        let check = |row, column, expected: Option<&str>| {
            assert_eq!(rows.text(row, column), expected, "{row},{column}")
        };
        check(0, 0, Some("7"));
        check(0, 1, None);
        check(0, 2, None);
        check(1, 0, Some("eight"));
        check(1, 1, Some(""));
        check(2, 1, Some("9"));
        check(3, 0, None);
        check(usize::MAX, usize::MAX, None);
        assert_eq!([0, 1, 3].map(|row| rows.row_text(row)), ["7,", "eight,", ""]);
        assert_eq!(rows.integer(0, 0), Some(7));
        assert_eq!(rows.integer(1, 0), None);
        assert_eq!(rows.len(), 3);
    }

    #[test]
    fn rows_put_together_cell_by_cell_are_as_those_that_arrived_whole() {
        let (mut whole, mut by_cell) = (Rows::default(), Rows::default());
        for cells in [[Some("7"), None], [Some(""), Some("x")]] {
            whole.push_row(&row(&cells)).expect("row");
            by_cell.begin_row(2);
            cells.iter().for_each(|cell| by_cell.push_cell(cell.map(str::as_bytes)));
        }
        assert_eq!(whole, by_cell);
    }

    #[test]
    fn a_row_cut_anywhere_is_refused() {
        let whole = row(&[Some("seven"), None, Some("x")]);
        for length in 0..whole.len() {
            let mut rows = Rows::default();
            assert!(rows.push_row(&whole[..length]).is_err(), "cut at {length}");
            assert_eq!((rows.len(), rows.text(0, 0)), (0, None));
        }
    }
}

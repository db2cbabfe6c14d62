//! Lists of rows as parameters, where a database has no arrays: as many places as there can be rows, those behind the last row
//! NULL, which equals nothing.
//!
//! Owns the SQL of such lists and the order of their parameters, which is row by row.

use client::SqlValue;

/// So many rows of so many columns at most; the first parameter's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) first: usize,
    pub(super) rows: usize,
}

impl Places {
    fn parameters(self, columns: usize) -> impl Iterator<Item = Vec<String>> {
        let of_row = move |row| {
            let first = self.first + row * columns;
            (first..first + columns).map(|number| format!("${number}")).collect()
        };
        (0..self.rows).map(of_row)
    }

    /// As a condition: the columns have the values of one of the rows.
    pub(super) fn condition(self, columns: &[&str]) -> String {
        let of_row = |parameters: Vec<String>| {
            let equal = columns.iter().zip(parameters).map(|(column, value)| format!("{column} = {value}"));
            equal.collect::<Vec<_>>().join(" AND ")
        };
        let rows: Vec<String> = self.parameters(columns.len()).map(of_row).collect();
        format!("({})", rows.join(" OR "))
    }

    /// As a query for the rows, whose columns have these names and types.
    pub(super) fn query(self, columns: &[(&str, &str)]) -> String {
        let of_row = |parameters: Vec<String>| {
            let cast =
                |((name, kind), value): (&(&str, &str), String)| format!("CAST({value} AS {kind}) AS {name}");
            let cells: Vec<String> = columns.iter().zip(parameters).map(cast).collect();
            format!("SELECT {}", cells.join(", "))
        };
        let rows: Vec<String> = self.parameters(columns.len()).map(of_row).collect();
        rows.join(" UNION ALL ")
    }

    /// The values of these rows, and NULL in the places behind them.
    pub(super) fn values<'a, const COLUMNS: usize>(
        self,
        rows: impl IntoIterator<Item = [SqlValue<'a>; COLUMNS]>,
    ) -> Vec<SqlValue<'a>> {
        let mut values: Vec<SqlValue<'a>> = rows.into_iter().flatten().collect();
        values.resize(values.len().max(self.rows * COLUMNS), SqlValue::Null);
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: Places = Places { first: 3, rows: 2 };

    #[test]
    fn the_parameters_of_a_list_go_on_row_by_row_from_the_first() {
        assert_eq!(TWO.condition(&["a", "b"]), "(a = $3 AND b = $4 OR a = $5 AND b = $6)");
        assert_eq!(
            TWO.query(&[("a", "signed"), ("b", "char(9)")]),
            "SELECT CAST($3 AS signed) AS a, CAST($4 AS char(9)) AS b UNION ALL \
             SELECT CAST($5 AS signed) AS a, CAST($6 AS char(9)) AS b"
        );
    }

    #[test]
    fn places_behind_the_last_row_are_null_and_no_row_is_left_out() {
        let [one, two, three] = [1, 2, 3].map(SqlValue::Integer);
        assert_eq!(TWO.values([[one, two]]), [one, two, SqlValue::Null, SqlValue::Null]);
        assert_eq!(TWO.values([[one], [two], [three]]).len(), 3);
    }
}

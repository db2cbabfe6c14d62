//! Values of TPC-C's statements, and what is read from their answers.
//!
//! Owns their forms. All decimal amounts are carried as whole cents.

use client::{Rows, SessionError, SqlValue};

use crate::workload::refused;

pub(super) fn integer(number: u32) -> SqlValue<'static> {
    SqlValue::Integer(i64::from(number))
}

pub(super) fn decimal(cents: i64) -> String {
    let sign = if cents < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", cents.abs() / 100, cents.abs() % 100)
}

/// A decimal number with up to two digits after the point, as hundredths.
pub(super) fn cents(text: &str) -> Option<i64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let part: i64 = match part.len() {
        0 => 0,
        1 => part.parse::<i64>().ok()? * 10,
        2 => part.parse().ok()?,
        _ => return None,
    };
    let whole: i64 = whole.parse().ok()?;
    whole.checked_mul(100)?.checked_add(if text.starts_with('-') { -part } else { part })
}

pub(in crate::tpcc) fn number(rows: &Rows, row: usize, column: usize) -> Result<i64, SessionError> {
    let seen = || rows.text(row, column).unwrap_or("nothing").to_owned();
    rows.integer(row, column).ok_or_else(|| refused(format!("a number was expected, {} is there", seen())))
}

/// A row that is missing or there twice means damaged tables: the transaction is not carried on with.
pub(super) fn exactly(count: u64, wanted: usize, what: &str) -> Result<(), SessionError> {
    if count == wanted as u64 {
        Ok(())
    } else {
        Err(refused(format!("{what}: {count} rows instead of {wanted}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_and_written_to_the_cent() {
        let check = |text: &str, expected: Option<i64>| assert_eq!(cents(text), expected, "{text}");
        check("12.34", Some(1_234));
        check("-0.05", Some(-5));
        check("7", Some(700));
        check("7.5", Some(750));
        check("1.234", None);
        check("x", None);
        check("99999999999999999999", None);
        for amount in [0, 5, 99, 100, 123_456, -5, -1_234] {
            assert_eq!(cents(&decimal(amount)), Some(amount));
        }
    }
}

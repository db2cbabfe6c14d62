//! The rows that orders and payments leave, by names that tell whose they are.
//!
//! Owns the names, alike for the transaction that writes a row and for the final read that finds it, and the questions. What a
//! row that is missing means is the `tpcc-conditions` check's to say.
//!
//! An order is named by its number and its customer: after a failover its number is given again, and then mostly to another
//! customer. A payment has no number of its own (clause 1.3 gives the history no key), so it is named by who paid how much
//! where: two payments share a name about once in a thousand million.

use client::{Rows, SessionError, SqlSession};
use history::Action;

use super::random::{KINDS, NEW_ORDER, PAYMENT};
use super::transactions::number;
use crate::workload::refused;

/// Most rows of one recorded operation.
const ROWS_TOGETHER: usize = 20_000;

/// For each kind of transaction that leaves a row, what asks for the rows that were not loaded: the number of such rows, and
/// what its name is made of.
///
/// Each customer is loaded with one payment of 10.00 in the own district (clause 4.3.3.1), which is not of the run.
pub(super) const QUESTIONS: [(usize, &str); 2] = [
    (
        NEW_ORDER,
        "SELECT count(*), o_w_id, o_d_id, o_id, o_c_id FROM orders WHERE o_id > 3000 \
         GROUP BY o_w_id, o_d_id, o_id, o_c_id",
    ),
    (
        PAYMENT,
        "SELECT more, h_w_id, h_d_id, h_c_w_id, h_c_d_id, h_c_id, h_amount FROM \
         (SELECT count(*) - CASE WHEN h_amount = 10.00 AND h_c_w_id = h_w_id AND h_c_d_id = h_d_id THEN 1 ELSE 0 END AS more, \
         h_w_id, h_d_id, h_c_w_id, h_c_d_id, h_c_id, h_amount FROM history \
         GROUP BY h_w_id, h_d_id, h_c_w_id, h_c_d_id, h_c_id, h_amount) AS payment WHERE more > 0",
    ),
];

/// The name of an order: warehouse, district and number, and its customer.
pub(super) fn order([warehouse, district, order, customer]: [i64; 4]) -> String {
    format!("{warehouse}/{district}/{order} of customer {customer}")
}

/// The name of a payment: warehouse and district, the customer with his own warehouse and district, the amount as a decimal.
pub(super) fn payment([warehouse, district]: [i64; 2], customer: [i64; 3], amount: &str) -> String {
    let [of_warehouse, of_district, customer] = customer;
    format!("{amount} at {warehouse}/{district} of customer {of_warehouse}/{of_district}/{customer}")
}

/// Reads all of them, in the transaction that is open.
pub(super) async fn read(session: &mut (dyn SqlSession + '_)) -> Result<Vec<Action>, SessionError> {
    let mut read = Vec::new();
    for (kind, question) in QUESTIONS {
        let found = session.batch(question).await?;
        let named = (0..found.len()).map(|row| named(kind, &found, row));
        let named = named.collect::<Result<Vec<_>, SessionError>>()?;
        let parts = named.chunks(ROWS_TOGETHER).map(<[_]>::to_vec);
        let kind = KINDS[kind];
        read.extend(parts.map(|rows| Action::RowsRead { kind: kind.into(), rows, complete: false }));
        read.push(Action::RowsRead { kind: kind.into(), rows: Vec::new(), complete: true });
    }
    Ok(read)
}

/// One row of an answer: its name, and how many there are of it.
fn named(kind: usize, found: &Rows, row: usize) -> Result<(String, u64), SessionError> {
    let at = |column| number(found, row, column);
    let count = u64::try_from(at(0)?);
    let count = count.map_err(|_| refused("a negative number of rows was counted".to_owned()))?;
    let name = match kind {
        NEW_ORDER => order([at(1)?, at(2)?, at(3)?, at(4)?]),
        _ => {
            let amount = found.text(row, 6);
            let amount = amount.ok_or_else(|| refused("a payment has no readable amount".to_owned()))?;
            payment([at(1)?, at(2)?], [at(3)?, at(4)?, at(5)?], amount)
        }
    };
    Ok((name, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_one_name_when_it_is_written_and_when_it_is_read() {
        assert_eq!(order([1, 4, 3_005, 77]), "1/4/3005 of customer 77");
        assert_eq!(payment([1, 4], [2, 5, 77], "12.30"), "12.30 at 1/4 of customer 2/5/77");
    }
}

//! The steps of TPC-C's transactions that change or read several rows, or need to know what a row became.
//!
//! Owns what each step is given and answers with. How a dialect does it stands in `by_array` and `by_list`.

use std::collections::BTreeMap;

use client::{Rows, SessionError, SqlValue};

use super::values::{cents, exactly, number};
use crate::workload::{Attempt, refused};

/// The steps as one dialect does them. Rows are locked in the same order by all of them.
pub(super) trait Steps {
    /// Takes the next order number of a district, which is `[warehouse, district]`.
    async fn order_number(attempt: &mut Attempt<'_>, at: [SqlValue<'_>; 2]) -> Result<i64, SessionError>;

    /// The prices of those of these items that are there.
    async fn prices(attempt: &mut Attempt<'_>, items: &[u32]) -> Result<Prices, SessionError>;

    /// Locks stock, and notes of each entry what is left and the information for a district.
    async fn lock_stock(
        attempt: &mut Attempt<'_>,
        district: u32,
        stock: &mut Stock,
    ) -> Result<(), SessionError>;

    /// Writes what became of stock.
    async fn update_stock(attempt: &mut Attempt<'_>, stock: &Stock) -> Result<(), SessionError>;

    /// Writes the lines of an order, which is `[order, district, warehouse]`.
    async fn insert_lines(
        attempt: &mut Attempt<'_>,
        order: [SqlValue<'_>; 3],
        lines: &[OrderLine<'_>],
    ) -> Result<(), SessionError>;

    /// Pays to a warehouse; its name.
    async fn pay_warehouse(
        attempt: &mut Attempt<'_>,
        amount: SqlValue<'_>,
        warehouse: SqlValue<'_>,
    ) -> Result<String, SessionError>;

    /// Pays to a district, which is `[warehouse, district]`; its name.
    async fn pay_district(
        attempt: &mut Attempt<'_>,
        amount: SqlValue<'_>,
        at: [SqlValue<'_>; 2],
    ) -> Result<String, SessionError>;

    /// Books a payment on a customer, who is `[warehouse, district, number]`, made in a district, which is `[district,
    /// warehouse]`.
    async fn pay_customer(
        attempt: &mut Attempt<'_>,
        amount: SqlValue<'_>,
        customer: [SqlValue<'_>; 3],
        made_in: [SqlValue<'_>; 2],
    ) -> Result<(), SessionError>;

    /// Delivers the oldest order of every district of a warehouse that has one.
    async fn deliver(
        attempt: &mut Attempt<'_>,
        warehouse: SqlValue<'_>,
        carrier: SqlValue<'_>,
    ) -> Result<(), SessionError>;
}

/// Prices in cents, by item.
pub(super) type Prices = BTreeMap<u32, i64>;

/// The prices that an answer tells.
pub(super) fn prices_of(rows: &Rows) -> Result<Prices, SessionError> {
    let mut prices = Prices::new();
    for row in 0..rows.len() {
        let item = u32::try_from(number(rows, row, 0)?).unwrap_or(0);
        let price = rows.text(row, 1).and_then(cents);
        prices.insert(item, price.ok_or_else(|| refused(format!("item {item} has no readable price")))?);
    }
    Ok(prices)
}

/// What an order changes of stock, by the warehouse that supplies and the item.
pub(super) type Stock = BTreeMap<(u32, u32), Change>;

/// The change of one stock entry by all lines of an order.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) quantity: i64,
    pub(super) ytd: i64,
    pub(super) orders: i64,
    pub(super) remote: i64,
    pub(super) info: String,
}

impl Change {
    /// Clause 2.4.2.2: ten are always left, or 91 come from the supplier.
    pub(super) fn take(&mut self, quantity: u32, remote: bool) {
        let quantity = i64::from(quantity);
        self.quantity -= quantity;
        if self.quantity < 10 {
            self.quantity += 91;
        }
        self.ytd += quantity;
        self.orders += 1;
        self.remote += i64::from(remote);
    }
}

/// Notes what an answer tells of stock that was asked for: a row of each.
pub(super) fn note_stock(rows: &Rows, stock: &mut Stock) -> Result<(), SessionError> {
    exactly(rows.len() as u64, stock.len(), "stock of a new order")?;
    for row in 0..rows.len() {
        let key = [number(rows, row, 0)?, number(rows, row, 1)?].map(|part| u32::try_from(part).unwrap_or(0));
        let quantity = number(rows, row, 2)?;
        let Some(change) = stock.get_mut(&(key[0], key[1])) else {
            return Err(refused(format!("stock of item {} was not asked for", key[1])));
        };
        change.quantity = quantity;
        rows.text(row, 4).unwrap_or_default().clone_into(&mut change.info);
    }
    Ok(())
}

/// A line of an order as it is written.
#[derive(Debug)]
pub(super) struct OrderLine<'a> {
    pub(super) number: i64,
    pub(super) item: u32,
    pub(super) supplier: u32,
    pub(super) quantity: u32,
    /// A decimal number.
    pub(super) amount: String,
    pub(super) info: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stock_never_falls_below_ten_and_counts_what_was_taken() {
        let mut change = Change { quantity: 12, ..Change::default() };
        change.take(2, false);
        assert_eq!((change.quantity, change.ytd, change.orders, change.remote), (10, 2, 1, 0));
        // The same item again, for another warehouse.
        change.take(1, true);
        assert_eq!((change.quantity, change.ytd, change.orders, change.remote), (100, 3, 2, 1));
    }
}

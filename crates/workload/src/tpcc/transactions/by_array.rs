//! The steps in PostgreSQL's SQL: what is about several rows goes to the database together, as arrays, and a statement that
//! changes a row answers with what it became.

use std::fmt::Display;

use client::{SessionError, SqlValue};

use super::statements::{Place, run};
use super::steps::{OrderLine, Prices, Steps, Stock, note_stock, prices_of};
use super::values::{exactly, number};
use crate::tpcc::random::DISTRICTS;
use crate::workload::Attempt;

/// How often a delivery looks again when others have delivered the orders it had chosen.
const DELIVERY_TRIES: usize = 20;

pub(super) struct ByArray;

/// An array in the database's text form. Its elements hold nothing that would need quotes.
fn array<T: Display>(elements: impl IntoIterator<Item = T>) -> String {
    let elements: Vec<String> = elements.into_iter().map(|element| element.to_string()).collect();
    format!("{{{}}}", elements.join(","))
}

impl Steps for ByArray {
    async fn order_number(attempt: &mut Attempt<'_>, at: [SqlValue<'_>; 2]) -> Result<i64, SessionError> {
        let order = run(attempt, Place::OrderNumber, &at).await?;
        number(&order, 0, 0)
    }

    async fn prices(attempt: &mut Attempt<'_>, items: &[u32]) -> Result<Prices, SessionError> {
        let rows = run(attempt, Place::Items, &[SqlValue::Text(&array(items))]).await?;
        prices_of(&rows)
    }

    async fn lock_stock(
        attempt: &mut Attempt<'_>,
        district: u32,
        stock: &mut Stock,
    ) -> Result<(), SessionError> {
        let (suppliers, items) = keys(stock);
        let values =
            [SqlValue::Integer(i64::from(district)), SqlValue::Text(&suppliers), SqlValue::Text(&items)];
        let rows = run(attempt, Place::LockStock, &values).await?;
        note_stock(&rows, stock)
    }

    async fn update_stock(attempt: &mut Attempt<'_>, stock: &Stock) -> Result<(), SessionError> {
        let (suppliers, items) = keys(stock);
        let columns = [
            suppliers,
            items,
            array(stock.values().map(|change| change.quantity)),
            array(stock.values().map(|change| change.ytd)),
            array(stock.values().map(|change| change.orders)),
            array(stock.values().map(|change| change.remote)),
        ];
        let values: Vec<SqlValue<'_>> = columns.iter().map(|column| SqlValue::Text(column)).collect();
        let updated = run(attempt, Place::UpdateStock, &values).await?;
        exactly(updated.affected(), stock.len(), "stock of a new order")
    }

    async fn insert_lines(
        attempt: &mut Attempt<'_>,
        order: [SqlValue<'_>; 3],
        lines: &[OrderLine<'_>],
    ) -> Result<(), SessionError> {
        let columns = [
            array(lines.iter().map(|line| line.number)),
            array(lines.iter().map(|line| line.item)),
            array(lines.iter().map(|line| line.supplier)),
            array(lines.iter().map(|line| line.quantity)),
            array(lines.iter().map(|line| &line.amount)),
            array(lines.iter().map(|line| line.info)),
        ];
        let mut values = order.to_vec();
        values.extend(columns.iter().map(|column| SqlValue::Text(column)));
        let inserted = run(attempt, Place::InsertLines, &values).await?;
        exactly(inserted.affected(), lines.len(), "lines of a new order")
    }

    async fn pay_warehouse(
        attempt: &mut Attempt<'_>,
        amount: SqlValue<'_>,
        warehouse: SqlValue<'_>,
    ) -> Result<String, SessionError> {
        let paid = run(attempt, Place::PayWarehouse, &[amount, warehouse]).await?;
        exactly(paid.affected(), 1, "warehouse of a payment")?;
        Ok(paid.text(0, 0).unwrap_or_default().to_owned())
    }

    async fn pay_district(
        attempt: &mut Attempt<'_>,
        amount: SqlValue<'_>,
        [warehouse, district]: [SqlValue<'_>; 2],
    ) -> Result<String, SessionError> {
        let paid = run(attempt, Place::PayDistrict, &[amount, warehouse, district]).await?;
        exactly(paid.affected(), 1, "district of a payment")?;
        Ok(paid.text(0, 0).unwrap_or_default().to_owned())
    }

    async fn pay_customer(
        attempt: &mut Attempt<'_>,
        amount: SqlValue<'_>,
        [warehouse, district, customer]: [SqlValue<'_>; 3],
        made_in: [SqlValue<'_>; 2],
    ) -> Result<(), SessionError> {
        let values = [amount, warehouse, district, customer, made_in[0], made_in[1]];
        let paid = run(attempt, Place::PayCustomer, &values).await?;
        exactly(paid.affected(), 1, "customer of a payment")
    }

    async fn deliver(
        attempt: &mut Attempt<'_>,
        warehouse: SqlValue<'_>,
        carrier: SqlValue<'_>,
    ) -> Result<(), SessionError> {
        let taken = take_oldest(attempt, warehouse).await?;
        if taken.is_empty() {
            return Ok(());
        }
        let (districts, orders) =
            (array(taken.iter().map(|order| order.0)), array(taken.iter().map(|order| order.1)));
        let (d, o) = (SqlValue::Text(&districts), SqlValue::Text(&orders));
        let rows = run(attempt, Place::DeliverOrders, &[warehouse, carrier, d, o]).await?;
        exactly(rows.affected(), taken.len(), "orders of a delivery")?;
        let mut delivered = Vec::with_capacity(rows.len());
        for row in 0..rows.len() {
            delivered.push((number(&rows, row, 0)?, number(&rows, row, 1)?, number(&rows, row, 2)?));
        }
        delivered.sort_unstable();
        run(attempt, Place::DeliverLines, &[warehouse, d, o]).await?;
        let customers = array(delivered.iter().map(|order| order.2));
        let values = [warehouse, d, o, SqlValue::Text(&customers)];
        let rows = run(attempt, Place::DeliverCustomers, &values).await?;
        exactly(rows.affected(), taken.len(), "customers of a delivery")
    }
}

/// The warehouses and the items of stock.
fn keys(stock: &Stock) -> (String, String) {
    (array(stock.keys().map(|key| key.0)), array(stock.keys().map(|key| key.1)))
}

/// Takes the oldest new order of every district that has one: districts and orders, sorted.
async fn take_oldest(
    attempt: &mut Attempt<'_>,
    warehouse: SqlValue<'_>,
) -> Result<Vec<(i64, i64)>, SessionError> {
    let mut open: Vec<i64> = (1..=i64::from(DISTRICTS)).collect();
    let mut taken: Vec<(i64, i64)> = Vec::new();
    for _ in 0..DELIVERY_TRIES {
        let districts = array(&open);
        let rows = run(attempt, Place::TakeOldest, &[warehouse, SqlValue::Text(&districts)]).await?;
        for row in 0..rows.len() {
            let (d, o) = (number(&rows, row, 0)?, number(&rows, row, 1)?);
            taken.push((d, o));
            open.retain(|district| *district != d);
        }
        if open.is_empty() {
            break;
        }
        // Nothing was taken there: either nothing is open, or another delivery was faster.
        let districts = array(&open);
        let rows = run(attempt, Place::StillOpen, &[warehouse, SqlValue::Text(&districts)]).await?;
        open = (0..rows.len()).map(|row| number(&rows, row, 0)).collect::<Result<_, _>>()?;
        if open.is_empty() {
            break;
        }
    }
    taken.sort_unstable();
    Ok(taken)
}

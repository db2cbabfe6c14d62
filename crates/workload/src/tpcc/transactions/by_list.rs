//! The steps in MySQL's SQL: what is about several rows goes to the database together, as a list of parameters.
//!
//! A row is changed before it is read: the change locks it, and a transaction reads its own changes whatever its snapshot is. Reads
//! that decide what is written lock: a snapshot's would go on telling of an order that another delivery has taken.

use client::{SessionError, SqlValue};

use super::statements::{Place, of_districts, of_lines, run, run_together};
use super::steps::{OrderLine, Prices, Steps, Stock, note_stock, prices_of};
use super::values::{exactly, integer, number};
use crate::tpcc::random::DISTRICTS;
use crate::workload::{Attempt, refused};

pub(super) struct ByList;

/// A statement and its values.
type Asked<'a> = (Place, Vec<SqlValue<'a>>);

/// Changes one row, and reads it then: its first cell.
async fn change_and_read(
    attempt: &mut Attempt<'_>,
    change: Asked<'_>,
    read: Asked<'_>,
    what: &str,
) -> Result<String, SessionError> {
    let asked = [change, read];
    let cells = run_together(attempt, &asked, |place, rows| {
        exactly(if place == 0 { rows.affected() } else { rows.len() as u64 }, 1, what)?;
        Ok(rows.text(0, 0).unwrap_or_default().to_owned())
    });
    Ok(cells.await?.pop().unwrap_or_default())
}

impl Steps for ByList {
    async fn order_number(attempt: &mut Attempt<'_>, at: [SqlValue<'_>; 2]) -> Result<i64, SessionError> {
        let (change, read) = ((Place::OrderNumber, at.to_vec()), (Place::ReadOrderNumber, at.to_vec()));
        let order = change_and_read(attempt, change, read, "district of a new order").await?;
        order.parse().map_err(|_| refused(format!("an order number was expected, {order} is there")))
    }

    async fn prices(attempt: &mut Attempt<'_>, items: &[u32]) -> Result<Prices, SessionError> {
        let values = of_lines(1).values(items.iter().map(|item| [integer(*item)]));
        let rows = run(attempt, Place::Items, &values).await?;
        prices_of(&rows)
    }

    async fn lock_stock(
        attempt: &mut Attempt<'_>,
        district: u32,
        stock: &mut Stock,
    ) -> Result<(), SessionError> {
        let keys = stock.keys().map(|(supplier, item)| [integer(*supplier), integer(*item)]);
        let values = [vec![integer(district)], of_lines(2).values(keys)].concat();
        let rows = run(attempt, Place::LockStock, &values).await?;
        note_stock(&rows, stock)
    }

    async fn update_stock(attempt: &mut Attempt<'_>, stock: &Stock) -> Result<(), SessionError> {
        let values = of_lines(1).values(stock.iter().map(|((supplier, item), change)| {
            let [quantity, ytd, orders, remote] =
                [change.quantity, change.ytd, change.orders, change.remote].map(SqlValue::Integer);
            [integer(*supplier), integer(*item), quantity, ytd, orders, remote]
        }));
        let updated = run(attempt, Place::UpdateStock, &values).await?;
        exactly(updated.affected(), stock.len(), "stock of a new order")
    }

    async fn insert_lines(
        attempt: &mut Attempt<'_>,
        order: [SqlValue<'_>; 3],
        lines: &[OrderLine<'_>],
    ) -> Result<(), SessionError> {
        let of_lines = of_lines(4).values(lines.iter().map(|line| {
            let [item, supplier, quantity] = [line.item, line.supplier, line.quantity].map(integer);
            let (amount, info) = (SqlValue::Text(&line.amount), SqlValue::Text(line.info));
            [SqlValue::Integer(line.number), item, supplier, quantity, amount, info]
        }));
        let values = [order.to_vec(), of_lines].concat();
        let inserted = run(attempt, Place::InsertLines, &values).await?;
        exactly(inserted.affected(), lines.len(), "lines of a new order")
    }

    async fn pay_warehouse(
        attempt: &mut Attempt<'_>,
        amount: SqlValue<'_>,
        warehouse: SqlValue<'_>,
    ) -> Result<String, SessionError> {
        let change = (Place::PayWarehouse, vec![amount, warehouse]);
        let read = (Place::ReadWarehouse, vec![warehouse]);
        change_and_read(attempt, change, read, "warehouse of a payment").await
    }

    async fn pay_district(
        attempt: &mut Attempt<'_>,
        amount: SqlValue<'_>,
        at: [SqlValue<'_>; 2],
    ) -> Result<String, SessionError> {
        let change = (Place::PayDistrict, vec![amount, at[0], at[1]]);
        change_and_read(attempt, change, (Place::ReadDistrict, at.to_vec()), "district of a payment").await
    }

    async fn pay_customer(
        attempt: &mut Attempt<'_>,
        amount: SqlValue<'_>,
        customer: [SqlValue<'_>; 3],
        made_in: [SqlValue<'_>; 2],
    ) -> Result<(), SessionError> {
        let change = (Place::PayCustomer, [&[amount], customer.as_slice(), &made_in].concat());
        let read = (Place::ReadCustomer, customer.to_vec());
        change_and_read(attempt, change, read, "customer of a payment").await.map(drop)
    }

    async fn deliver(
        attempt: &mut Attempt<'_>,
        warehouse: SqlValue<'_>,
        carrier: SqlValue<'_>,
    ) -> Result<(), SessionError> {
        let taken = lock_oldest(attempt, warehouse).await?;
        if taken.is_empty() {
            return Ok(());
        }
        let list = of_districts(2).values(taken.iter().copied());
        let of_warehouse = [&[warehouse], list.as_slice()].concat();
        let with_carrier = [&[warehouse, carrier], list.as_slice()].concat();
        let deleted = run(attempt, Place::TakeOldest, &of_warehouse).await?;
        exactly(deleted.affected(), taken.len(), "new orders of a delivery")?;
        let updated = run(attempt, Place::DeliverOrders, &with_carrier).await?;
        exactly(updated.affected(), taken.len(), "orders of a delivery")?;
        run(attempt, Place::DeliverLines, &of_warehouse).await?;
        let updated = run(attempt, Place::DeliverCustomers, &of_warehouse).await?;
        exactly(updated.affected(), taken.len(), "customers of a delivery")
    }
}

/// Locks the oldest new order of every district that has one: districts and orders.
async fn lock_oldest(
    attempt: &mut Attempt<'_>,
    warehouse: SqlValue<'_>,
) -> Result<Vec<[SqlValue<'static>; 2]>, SessionError> {
    let asked: Vec<Asked<'_>> =
        (1..=DISTRICTS).map(|district| (Place::Oldest, vec![warehouse, integer(district)])).collect();
    let oldest =
        run_together(
            attempt,
            &asked,
            |_, rows| {
                if rows.is_empty() { Ok(None) } else { number(rows, 0, 0).map(Some) }
            },
        );
    let found = (1..=DISTRICTS).zip(oldest.await?);
    Ok(found.filter_map(|(district, order)| Some([integer(district), SqlValue::Integer(order?)])).collect())
}

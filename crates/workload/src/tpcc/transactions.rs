//! TPC-C's five transactions in SQL (clauses 2.4 to 2.8).
//!
//! Owns what is done in which order. Rows are locked in the same order by everybody, so that transactions wait for each other but
//! seldom in a circle. The standard leaves open how many statements a transaction is: the statements stand in `statements`, the
//! steps that each dialect does in its own way in `by_array` and `by_list`.

mod by_array;
mod by_list;
mod lists;
mod statements;
mod steps;
mod values;

use client::{Dialect, SessionError, SqlValue};

use self::by_array::ByArray;
use self::by_list::ByList;
pub(super) use self::statements::statements;
use self::statements::{Place, run};
use self::steps::{Change, OrderLine, Steps, Stock};
pub(super) use self::values::number;
use self::values::{decimal, exactly, integer};
use super::random::ITEMS;
use super::rows;
use super::terminal::{Input, Line, Wanted};
use crate::workload::{Attempt, refused};

/// Carries a transaction out. True when it was rolled back because its input asked for that. `row` becomes the name of the order
/// or payment as soon as it is known, which is before the row is written.
pub(super) async fn perform(
    input: &Input,
    attempt: &mut Attempt<'_>,
    row: &mut Option<String>,
) -> Result<bool, SessionError> {
    match attempt.session.sql()?.dialect() {
        Dialect::Mysql => carry_out::<ByList>(input, attempt, row).await,
        // Others have no tables of it.
        Dialect::Postgres | Dialect::Standard | Dialect::Cql => {
            carry_out::<ByArray>(input, attempt, row).await
        }
    }
}

async fn carry_out<S: Steps>(
    input: &Input,
    attempt: &mut Attempt<'_>,
    row: &mut Option<String>,
) -> Result<bool, SessionError> {
    run(attempt, Place::Begin, &[]).await?;
    match input {
        Input::NewOrder { warehouse, district, customer, lines } => {
            if !new_order::<S>(attempt, [*warehouse, *district, *customer], lines, row).await? {
                run(attempt, Place::Rollback, &[]).await?;
                return Ok(true);
            }
        }
        Input::Payment { warehouse, district, customer_at, customer, cents } => {
            payment::<S>(attempt, [*warehouse, *district], *customer_at, (customer, *cents), row).await?;
        }
        Input::OrderStatus { warehouse, district, customer } => {
            order_status(attempt, (*warehouse, *district), customer).await?;
        }
        Input::Delivery { warehouse, carrier, .. } => {
            S::deliver(attempt, integer(*warehouse), integer(*carrier)).await?;
        }
        Input::StockLevel { warehouse, district, threshold } => {
            let at = [integer(*warehouse), integer(*district)];
            let next = run(attempt, Place::NextOrder, &at).await?;
            let next = SqlValue::Integer(number(&next, 0, 0)?);
            run(attempt, Place::LowStock, &[at[0], at[1], next, integer(*threshold)]).await?;
        }
    }
    run(attempt, Place::Commit, &[]).await?;
    Ok(false)
}

/// True when the order stands, false when it asks for an item that was never there (TPC-C 5.11, 2.4.1.4).
async fn new_order<S: Steps>(
    attempt: &mut Attempt<'_>,
    [warehouse, district, customer]: [u32; 3],
    lines: &[Line],
    row: &mut Option<String>,
) -> Result<bool, SessionError> {
    let (w, d, c) = (integer(warehouse), integer(district), integer(customer));
    let found = run(attempt, Place::OrderCustomer, &[w, d, c]).await?;
    exactly(found.len() as u64, 1, "customer of a new order")?;
    let order = S::order_number(attempt, [w, d]).await?;
    *row = Some(rows::order([warehouse.into(), district.into(), order, customer.into()]));
    let order = SqlValue::Integer(order);
    let all_local = SqlValue::Integer(i64::from(lines.iter().all(|line| line.supplier == warehouse)));
    let count = SqlValue::Integer(lines.len() as i64);
    run(attempt, Place::InsertOrder, &[order, d, w, c, count, all_local]).await?;
    run(attempt, Place::InsertNewOrder, &[order, d, w]).await?;
    let items: Vec<u32> = lines.iter().map(|line| line.item).collect();
    let prices = S::prices(attempt, &items).await?;
    let missing: Vec<u32> = items.iter().copied().filter(|item| !prices.contains_key(item)).collect();
    match missing.iter().find(|item| (1..=ITEMS).contains(*item)) {
        Some(lost) => return Err(refused(format!("item {lost} is not there, although it was loaded"))),
        None if !missing.is_empty() => return Ok(false),
        None => {}
    }
    let stock = change_stock::<S>(attempt, warehouse, district, lines).await?;
    let written: Vec<OrderLine<'_>> = (1..)
        .zip(lines)
        .map(|(number, line)| OrderLine {
            number,
            item: line.item,
            supplier: line.supplier,
            quantity: line.quantity,
            amount: decimal(prices[&line.item] * i64::from(line.quantity)),
            info: &stock[&(line.supplier, line.item)].info,
        })
        .collect();
    S::insert_lines(attempt, [order, d, w], &written).await?;
    Ok(true)
}

/// Locks and changes the stock of every line; answers with what each stock entry became.
async fn change_stock<S: Steps>(
    attempt: &mut Attempt<'_>,
    warehouse: u32,
    district: u32,
    lines: &[Line],
) -> Result<Stock, SessionError> {
    let mut stock: Stock = lines.iter().map(|line| ((line.supplier, line.item), Change::default())).collect();
    S::lock_stock(attempt, district, &mut stock).await?;
    for line in lines {
        if let Some(change) = stock.get_mut(&(line.supplier, line.item)) {
            change.take(line.quantity, line.supplier != warehouse);
        }
    }
    S::update_stock(attempt, &stock).await?;
    Ok(stock)
}

/// The number of the customer asked for; by name, the one in the middle of those of that name (clause 2.5.2.2).
async fn customer_number(
    attempt: &mut Attempt<'_>,
    at: (u32, u32),
    customer: &Wanted,
) -> Result<i64, SessionError> {
    match customer {
        Wanted::Number(number) => Ok(i64::from(*number)),
        Wanted::LastName(name) => {
            let rows =
                run(attempt, Place::ByName, &[integer(at.0), integer(at.1), SqlValue::Text(name)]).await?;
            let middle = rows.len().div_ceil(2);
            match middle.checked_sub(1) {
                Some(row) => number(&rows, row, 0),
                None => Err(refused(format!(
                    "nobody is called {name} in district {} of warehouse {}",
                    at.1, at.0
                ))),
            }
        }
    }
}

async fn payment<S: Steps>(
    attempt: &mut Attempt<'_>,
    [warehouse, district]: [u32; 2],
    customer_at: (u32, u32),
    (customer, cents): (&Wanted, i64),
    row: &mut Option<String>,
) -> Result<(), SessionError> {
    let text = decimal(cents);
    let amount = SqlValue::Text(&text);
    let (w, d) = (integer(warehouse), integer(district));
    let (c_w, c_d) = (integer(customer_at.0), integer(customer_at.1));
    let warehouse_name = S::pay_warehouse(attempt, amount, w).await?;
    let district_name = S::pay_district(attempt, amount, [w, d]).await?;
    let data = format!("{warehouse_name}    {district_name}");
    let c = customer_number(attempt, customer_at, customer).await?;
    let of = [customer_at.0.into(), customer_at.1.into(), c];
    *row = Some(rows::payment([warehouse.into(), district.into()], of, &text));
    let c = SqlValue::Integer(c);
    S::pay_customer(attempt, amount, [c_w, c_d, c], [d, w]).await?;
    run(attempt, Place::InsertHistory, &[c, c_d, c_w, d, w, amount, SqlValue::Text(&data)]).await?;
    Ok(())
}

async fn order_status(
    attempt: &mut Attempt<'_>,
    at: (u32, u32),
    customer: &Wanted,
) -> Result<(), SessionError> {
    let (w, d) = (integer(at.0), integer(at.1));
    let c = SqlValue::Integer(customer_number(attempt, at, customer).await?);
    let found = run(attempt, Place::StatusCustomer, &[w, d, c]).await?;
    exactly(found.len() as u64, 1, "customer of an order status")?;
    let order = run(attempt, Place::LastOrder, &[w, d, c]).await?;
    exactly(order.len() as u64, 1, "last order of a customer")?;
    let lines = run(attempt, Place::OrderLines, &[w, d, SqlValue::Integer(number(&order, 0, 0)?)]).await?;
    if lines.is_empty() {
        Err(refused("the last order of a customer has no lines".to_owned()))
    } else {
        Ok(())
    }
}

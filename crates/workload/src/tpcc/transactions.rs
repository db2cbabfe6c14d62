//! TPC-C's five transactions in SQL (clauses 2.4 to 2.8).
//!
//! Owns the statements and what is done with their answers. The lines of an order go to the database together, as arrays:
//! the standard leaves open how many statements a transaction is. Rows are locked in the same order by everybody, so that
//! transactions wait for each other but seldom in a circle. All decimal amounts are carried as whole cents. Other databases that
//! speak PostgreSQL's protocol have all of it: no USING in a DELETE, and texts are made of texts only.

use std::collections::BTreeMap;
use std::fmt::Display;

use client::{Rows, SessionError, SqlValue};

use super::terminal::{Input, Line, Wanted};
use crate::workload::{Attempt, Statement, refused};

/// How often a delivery looks again when others have delivered the orders it had chosen.
const DELIVERY_TRIES: usize = 20;

/// Numbers the statements, in order.
macro_rules! statements {
    ($($place:ident = $name:literal, $sql:expr;)*) => {
        /// Places of the statements.
        #[repr(usize)]
        #[derive(Clone, Copy)]
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Place { $($place),* }
        /// All statements; the first one depends on the isolation level asked for.
        pub(super) static STATEMENTS: &[Statement] = &[$(Statement::fixed($name, $sql)),*];
    };
}

statements! {
    Begin = "BEGIN", "BEGIN";
    Commit = "COMMIT", "COMMIT";
    Rollback = "ROLLBACK", "ROLLBACK";
    OrderCustomer = "NEW-ORDER: SELECT customer",
        "SELECT c_discount, c_last, c_credit, w_tax FROM customer JOIN warehouse ON w_id = c_w_id \
         WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";
    OrderNumber = "NEW-ORDER: UPDATE district",
        "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2 \
         RETURNING d_next_o_id - 1, d_tax";
    InsertOrder = "NEW-ORDER: INSERT orders",
        "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local) \
         VALUES ($1, $2, $3, $4, CURRENT_TIMESTAMP, NULL, $5, $6)";
    InsertNewOrder = "NEW-ORDER: INSERT new_order",
        "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES ($1, $2, $3)";
    Items = "NEW-ORDER: SELECT item",
        "SELECT i_id, i_price, i_name, i_data FROM item WHERE i_id = ANY($1::int[])";
    LockStock = "NEW-ORDER: SELECT stock",
        "SELECT s_w_id, s_i_id, s_quantity, s_data, (ARRAY[s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, \
         s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10])[$1::int] FROM stock \
         JOIN unnest($2::int[], $3::int[]) AS wanted (w, i) ON s_w_id = wanted.w AND s_i_id = wanted.i \
         ORDER BY s_w_id, s_i_id FOR UPDATE OF stock";
    UpdateStock = "NEW-ORDER: UPDATE stock",
        "UPDATE stock SET s_quantity = change.quantity, s_ytd = s_ytd + change.ytd, \
         s_order_cnt = s_order_cnt + change.orders, s_remote_cnt = s_remote_cnt + change.remote \
         FROM unnest($1::int[], $2::int[], $3::int[], $4::int[], $5::int[], $6::int[]) \
         AS change (w, i, quantity, ytd, orders, remote) WHERE s_w_id = change.w AND s_i_id = change.i";
    InsertLines = "NEW-ORDER: INSERT order_line",
        "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, \
         ol_quantity, ol_amount, ol_dist_info) \
         SELECT $1::int, $2::int, $3::int, line.number, line.i, line.w, NULL, line.quantity, line.amount, line.info \
         FROM unnest($4::int[], $5::int[], $6::int[], $7::int[], $8::numeric[], $9::text[]) \
         AS line (number, i, w, quantity, amount, info)";
    PayWarehouse = "PAYMENT: UPDATE warehouse",
        "UPDATE warehouse SET w_ytd = w_ytd + $1::numeric WHERE w_id = $2 \
         RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip";
    PayDistrict = "PAYMENT: UPDATE district",
        "UPDATE district SET d_ytd = d_ytd + $1::numeric WHERE d_w_id = $2 AND d_id = $3 \
         RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip";
    ByName = "PAYMENT: SELECT customer",
        "SELECT c_id FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first";
    PayCustomer = "PAYMENT: UPDATE customer",
        "UPDATE customer SET c_balance = c_balance - $1::numeric, c_ytd_payment = c_ytd_payment + $1::numeric, \
         c_payment_cnt = c_payment_cnt + 1, c_data = CASE WHEN c_credit = 'BC' THEN \
         left(concat_ws(' ', c_id::text, c_d_id::text, c_w_id::text, $5::int::text, $6::int::text, $1::numeric::text) \
         || ' | ' || c_data, 500) ELSE c_data END WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4 \
         RETURNING c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, \
         c_credit, c_credit_lim, c_discount, c_balance, left(c_data, 200)";
    InsertHistory = "PAYMENT: INSERT history",
        "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
         VALUES ($1, $2, $3, $4, $5, CURRENT_TIMESTAMP, $6::numeric, $7)";
    StatusCustomer = "ORDER-STATUS: SELECT customer",
        "SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";
    LastOrder = "ORDER-STATUS: SELECT orders",
        "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 \
         ORDER BY o_id DESC LIMIT 1";
    OrderLines = "ORDER-STATUS: SELECT order_line",
        "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
         WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3";
    TakeOldest = "DELIVERY: DELETE new_order",
        "DELETE FROM new_order WHERE no_w_id = $1 AND (no_d_id, no_o_id) IN (SELECT d, (SELECT no_o_id FROM new_order \
         WHERE no_w_id = $1 AND no_d_id = d ORDER BY no_o_id LIMIT 1) FROM unnest($2::int[]) AS district (d)) \
         RETURNING no_d_id, no_o_id";
    StillOpen = "DELIVERY: SELECT new_order",
        "SELECT d FROM unnest($2::int[]) AS district (d) \
         WHERE EXISTS (SELECT 1 FROM new_order WHERE no_w_id = $1 AND no_d_id = d)";
    DeliverOrders = "DELIVERY: UPDATE orders",
        "UPDATE orders SET o_carrier_id = $2 FROM unnest($3::int[], $4::int[]) AS taken (d, o) \
         WHERE o_w_id = $1 AND o_d_id = taken.d AND o_id = taken.o RETURNING o_d_id, o_id, o_c_id";
    DeliverLines = "DELIVERY: UPDATE order_line",
        "UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP FROM unnest($2::int[], $3::int[]) AS taken (d, o) \
         WHERE ol_w_id = $1 AND ol_d_id = taken.d AND ol_o_id = taken.o";
    DeliverCustomers = "DELIVERY: UPDATE customer",
        "UPDATE customer SET c_balance = c_balance + total.amount, c_delivery_cnt = c_delivery_cnt + 1 FROM \
         (SELECT taken.d, taken.c, sum(ol_amount) AS amount FROM unnest($2::int[], $3::int[], $4::int[]) \
         AS taken (d, o, c) JOIN order_line ON ol_w_id = $1 AND ol_d_id = taken.d AND ol_o_id = taken.o \
         GROUP BY taken.d, taken.c) AS total WHERE c_w_id = $1 AND c_d_id = total.d AND c_id = total.c";
    NextOrder = "STOCK-LEVEL: SELECT district",
        "SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2";
    LowStock = "STOCK-LEVEL: SELECT stock",
        "SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = $1 AND s_i_id = ol_i_id \
         WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id < $3::int AND ol_o_id >= $3::int - 20 AND s_quantity < $4";
}

/// Carries a transaction out. True when it was rolled back because its input asked for that.
pub(super) async fn perform(input: &Input, attempt: &mut Attempt<'_>) -> Result<bool, SessionError> {
    run(attempt, Place::Begin, &[]).await?;
    match input {
        Input::NewOrder { warehouse, district, customer, lines } => {
            if !new_order(attempt, [*warehouse, *district, *customer], lines).await? {
                run(attempt, Place::Rollback, &[]).await?;
                return Ok(true);
            }
        }
        Input::Payment { warehouse, district, customer_at, customer, cents } => {
            payment(attempt, [*warehouse, *district], *customer_at, customer, *cents).await?;
        }
        Input::OrderStatus { warehouse, district, customer } => {
            order_status(attempt, (*warehouse, *district), customer).await?;
        }
        Input::Delivery { warehouse, carrier, .. } => delivery(attempt, *warehouse, *carrier).await?,
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

async fn run(attempt: &mut Attempt<'_>, place: Place, values: &[SqlValue<'_>]) -> Result<Rows, SessionError> {
    attempt.run(place as usize, values).await
}

fn integer(number: u32) -> SqlValue<'static> {
    SqlValue::Integer(i64::from(number))
}

/// An array in the database's text form. Its elements hold nothing that would need quotes.
fn array<T: Display>(elements: impl IntoIterator<Item = T>) -> String {
    let elements: Vec<String> = elements.into_iter().map(|element| element.to_string()).collect();
    format!("{{{}}}", elements.join(","))
}

fn decimal(cents: i64) -> String {
    let sign = if cents < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", cents.abs() / 100, cents.abs() % 100)
}

/// A decimal number with up to two digits after the point, as hundredths.
fn cents(text: &str) -> Option<i64> {
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

fn number(rows: &Rows, row: usize, column: usize) -> Result<i64, SessionError> {
    let seen = || rows.text(row, column).unwrap_or("nothing").to_owned();
    rows.integer(row, column).ok_or_else(|| refused(format!("a number was expected, {} is there", seen())))
}

/// A row that is missing or there twice means damaged tables: the transaction is not carried on with.
fn exactly(count: u64, wanted: usize, what: &str) -> Result<(), SessionError> {
    if count == wanted as u64 {
        Ok(())
    } else {
        Err(refused(format!("{what}: {count} rows instead of {wanted}")))
    }
}

/// The change of one stock entry by all lines of an order.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Change {
    quantity: i64,
    ytd: i64,
    orders: i64,
    remote: i64,
    info: String,
}

impl Change {
    /// Clause 2.4.2.2: ten are always left, or 91 come from the supplier.
    fn take(&mut self, quantity: u32, remote: bool) {
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

/// True when the order stands, false when it asks for an item that is not there.
async fn new_order(
    attempt: &mut Attempt<'_>,
    [warehouse, district, customer]: [u32; 3],
    lines: &[Line],
) -> Result<bool, SessionError> {
    let (w, d, c) = (integer(warehouse), integer(district), integer(customer));
    let found = run(attempt, Place::OrderCustomer, &[w, d, c]).await?;
    exactly(found.len() as u64, 1, "customer of a new order")?;
    let order = run(attempt, Place::OrderNumber, &[w, d]).await?;
    let order = SqlValue::Integer(number(&order, 0, 0)?);
    let all_local = SqlValue::Integer(i64::from(lines.iter().all(|line| line.supplier == warehouse)));
    let count = SqlValue::Integer(lines.len() as i64);
    run(attempt, Place::InsertOrder, &[order, d, w, c, count, all_local]).await?;
    run(attempt, Place::InsertNewOrder, &[order, d, w]).await?;
    let Some(prices) = prices(attempt, lines).await? else { return Ok(false) };
    let changes = change_stock(attempt, warehouse, district, lines).await?;
    let amounts = lines.iter().map(|line| decimal(prices[&line.item] * i64::from(line.quantity)));
    let info = lines.iter().map(|line| &changes[&(line.supplier, line.item)].info);
    let columns = [
        array(1..=lines.len()),
        array(lines.iter().map(|line| line.item)),
        array(lines.iter().map(|line| line.supplier)),
        array(lines.iter().map(|line| line.quantity)),
        array(amounts),
        array(info),
    ];
    let mut values = vec![order, d, w];
    values.extend(columns.iter().map(|column| SqlValue::Text(column)));
    let inserted = run(attempt, Place::InsertLines, &values).await?;
    exactly(inserted.affected(), lines.len(), "lines of a new order")?;
    Ok(true)
}

/// The price of each item in cents; `None` where one of them is not there.
async fn prices(
    attempt: &mut Attempt<'_>,
    lines: &[Line],
) -> Result<Option<BTreeMap<u32, i64>>, SessionError> {
    let rows =
        run(attempt, Place::Items, &[SqlValue::Text(&array(lines.iter().map(|line| line.item)))]).await?;
    let mut prices = BTreeMap::new();
    for row in 0..rows.len() {
        let item = u32::try_from(number(&rows, row, 0)?).unwrap_or(0);
        let price = rows.text(row, 1).and_then(cents);
        prices.insert(item, price.ok_or_else(|| refused(format!("item {item} has no readable price")))?);
    }
    Ok(lines.iter().all(|line| prices.contains_key(&line.item)).then_some(prices))
}

/// Locks and changes the stock of every line; answers with what each stock entry became.
async fn change_stock(
    attempt: &mut Attempt<'_>,
    warehouse: u32,
    district: u32,
    lines: &[Line],
) -> Result<BTreeMap<(u32, u32), Change>, SessionError> {
    let mut changes: BTreeMap<(u32, u32), Change> =
        lines.iter().map(|line| ((line.supplier, line.item), Change::default())).collect();
    let suppliers = array(changes.keys().map(|key| key.0));
    let items = array(changes.keys().map(|key| key.1));
    let (suppliers, items) = (SqlValue::Text(&suppliers), SqlValue::Text(&items));
    let rows = run(attempt, Place::LockStock, &[integer(district), suppliers, items]).await?;
    exactly(rows.len() as u64, changes.len(), "stock of a new order")?;
    for row in 0..rows.len() {
        let key =
            [number(&rows, row, 0)?, number(&rows, row, 1)?].map(|part| u32::try_from(part).unwrap_or(0));
        let quantity = number(&rows, row, 2)?;
        let Some(change) = changes.get_mut(&(key[0], key[1])) else {
            return Err(refused(format!("stock of item {} was not asked for", key[1])));
        };
        change.quantity = quantity;
        rows.text(row, 4).unwrap_or_default().clone_into(&mut change.info);
    }
    for line in lines {
        if let Some(change) = changes.get_mut(&(line.supplier, line.item)) {
            change.take(line.quantity, line.supplier != warehouse);
        }
    }
    let column = |pick: fn(&Change) -> i64| array(changes.values().map(pick));
    let columns = [
        column(|change| change.quantity),
        column(|change| change.ytd),
        column(|change| change.orders),
        column(|change| change.remote),
    ];
    let mut values = vec![suppliers, items];
    values.extend(columns.iter().map(|column| SqlValue::Text(column)));
    let updated = run(attempt, Place::UpdateStock, &values).await?;
    exactly(updated.affected(), changes.len(), "stock of a new order")?;
    Ok(changes)
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

async fn payment(
    attempt: &mut Attempt<'_>,
    [warehouse, district]: [u32; 2],
    customer_at: (u32, u32),
    customer: &Wanted,
    cents: i64,
) -> Result<(), SessionError> {
    let amount = decimal(cents);
    let amount = SqlValue::Text(&amount);
    let (w, d) = (integer(warehouse), integer(district));
    let (c_w, c_d) = (integer(customer_at.0), integer(customer_at.1));
    let paid = run(attempt, Place::PayWarehouse, &[amount, w]).await?;
    exactly(paid.affected(), 1, "warehouse of a payment")?;
    let warehouse_name = paid.text(0, 0).unwrap_or_default().to_owned();
    let paid = run(attempt, Place::PayDistrict, &[amount, w, d]).await?;
    exactly(paid.affected(), 1, "district of a payment")?;
    let data = format!("{warehouse_name}    {}", paid.text(0, 0).unwrap_or_default());
    let c = SqlValue::Integer(customer_number(attempt, customer_at, customer).await?);
    let paid = run(attempt, Place::PayCustomer, &[amount, c_w, c_d, c, d, w]).await?;
    exactly(paid.affected(), 1, "customer of a payment")?;
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

/// Delivers the oldest order of every district that has one.
async fn delivery(attempt: &mut Attempt<'_>, warehouse: u32, carrier: u32) -> Result<(), SessionError> {
    let w = integer(warehouse);
    let mut open: Vec<i64> = (1..=i64::from(super::random::DISTRICTS)).collect();
    let mut taken: Vec<(i64, i64)> = Vec::new();
    for _ in 0..DELIVERY_TRIES {
        let districts = array(&open);
        let rows = run(attempt, Place::TakeOldest, &[w, SqlValue::Text(&districts)]).await?;
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
        let rows = run(attempt, Place::StillOpen, &[w, SqlValue::Text(&districts)]).await?;
        open = (0..rows.len()).map(|row| number(&rows, row, 0)).collect::<Result<_, _>>()?;
        if open.is_empty() {
            break;
        }
    }
    if taken.is_empty() {
        return Ok(());
    }
    taken.sort_unstable();
    let (districts, orders) =
        (array(taken.iter().map(|order| order.0)), array(taken.iter().map(|order| order.1)));
    let (d, o) = (SqlValue::Text(&districts), SqlValue::Text(&orders));
    let rows = run(attempt, Place::DeliverOrders, &[w, integer(carrier), d, o]).await?;
    exactly(rows.affected(), taken.len(), "orders of a delivery")?;
    let mut delivered = Vec::with_capacity(rows.len());
    for row in 0..rows.len() {
        delivered.push((number(&rows, row, 0)?, number(&rows, row, 1)?, number(&rows, row, 2)?));
    }
    delivered.sort_unstable();
    run(attempt, Place::DeliverLines, &[w, d, o]).await?;
    let customers = array(delivered.iter().map(|order| order.2));
    let rows = run(attempt, Place::DeliverCustomers, &[w, d, o, SqlValue::Text(&customers)]).await?;
    exactly(rows.affected(), taken.len(), "customers of a delivery")
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

    #[test]
    fn stock_never_falls_below_ten_and_counts_what_was_taken() {
        let mut change = Change { quantity: 12, ..Change::default() };
        change.take(2, false);
        assert_eq!((change.quantity, change.ytd, change.orders, change.remote), (10, 2, 1, 0));
        // The same item again, for another warehouse.
        change.take(1, true);
        assert_eq!((change.quantity, change.ytd, change.orders, change.remote), (100, 3, 2, 1));
    }

    #[test]
    fn statements_stand_at_their_places() {
        let check = |place: Place, name: &str| assert_eq!(STATEMENTS[place as usize].name, name);
        check(Place::Begin, "BEGIN");
        check(Place::InsertLines, "NEW-ORDER: INSERT order_line");
        check(Place::LowStock, "STOCK-LEVEL: SELECT stock");
        assert_eq!(STATEMENTS.len(), Place::LowStock as usize + 1);
    }
}

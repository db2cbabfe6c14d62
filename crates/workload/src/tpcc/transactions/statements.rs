//! TPC-C's statements, in PostgreSQL's SQL and in MySQL's, and how they are run.
//!
//! Owns their texts, both forms side by side. What is done with their answers is the parent's and its neighbours'. Other databases
//! that speak PostgreSQL's protocol have all of its form: no USING in a DELETE, and texts are made of texts only. MySQL's has
//! neither arrays nor RETURNING: rows are lists of parameters, and what a row became is read after it was changed.

use std::borrow::Cow;

use client::{Dialect, Rows, SessionError, SqlValue};

use super::lists::Places;
use crate::tpcc::random::{DISTRICTS, LINES};
use crate::workload::{Attempt, Statement};

/// The rows of an order's lines as parameters, from this one on.
pub(super) const fn of_lines(first: usize) -> Places {
    Places { first, rows: *LINES.end() as usize }
}

/// The rows of a delivery's orders as parameters, from this one on.
pub(super) const fn of_districts(first: usize) -> Places {
    Places { first, rows: DISTRICTS as usize }
}

/// Numbers the statements, in order.
macro_rules! statements {
    ($($place:ident = $statement:expr;)*) => {
        /// Places of the statements.
        #[repr(usize)]
        #[derive(Debug, Clone, Copy)]
        pub(super) enum Place { $($place),* }
        /// All statements; the first one depends on the isolation level asked for.
        pub(in crate::tpcc) fn statements() -> Vec<Statement> {
            vec![$($statement),*]
        }
    };
}

/// One that both have alike.
fn in_both(name: &'static str, sql: &'static str) -> Statement {
    Statement::fixed(name, sql)
}

/// One with its form in PostgreSQL's SQL and in MySQL's.
fn in_each(
    name: &'static str,
    with_arrays: &'static str,
    with_lists: impl Into<Cow<'static, str>>,
) -> Statement {
    Statement { mysql: Some(with_lists.into()), ..Statement::fixed(name, with_arrays) }
}

fn only_with_arrays(name: &'static str, sql: &'static str) -> Statement {
    Statement::only_in(Dialect::Postgres, name, sql)
}

fn only_with_lists(name: &'static str, sql: &'static str) -> Statement {
    Statement::only_in(Dialect::Mysql, name, sql)
}

statements! {
    Begin = in_both("BEGIN", "BEGIN");
    Commit = in_both("COMMIT", "COMMIT");
    Rollback = in_both("ROLLBACK", "ROLLBACK");
    OrderCustomer = in_both("NEW-ORDER: SELECT customer",
        "SELECT c_discount, c_last, c_credit, w_tax FROM customer JOIN warehouse ON w_id = c_w_id \
         WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3");
    OrderNumber = in_each("NEW-ORDER: UPDATE district",
        "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2 \
         RETURNING d_next_o_id - 1, d_tax",
        "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2");
    ReadOrderNumber = only_with_lists("NEW-ORDER: SELECT district",
        "SELECT d_next_o_id - 1, d_tax FROM district WHERE d_w_id = $1 AND d_id = $2");
    InsertOrder = in_both("NEW-ORDER: INSERT orders",
        "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local) \
         VALUES ($1, $2, $3, $4, CURRENT_TIMESTAMP, NULL, $5, $6)");
    InsertNewOrder = in_both("NEW-ORDER: INSERT new_order",
        "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES ($1, $2, $3)");
    Items = in_each("NEW-ORDER: SELECT item",
        "SELECT i_id, i_price, i_name, i_data FROM item WHERE i_id = ANY($1::int[])",
        format!("SELECT i_id, i_price, i_name, i_data FROM item WHERE {}", of_lines(1).condition(&["i_id"])));
    LockStock = in_each("NEW-ORDER: SELECT stock",
        "SELECT s_w_id, s_i_id, s_quantity, s_data, (ARRAY[s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, \
         s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10])[$1::int] FROM stock \
         JOIN unnest($2::int[], $3::int[]) AS wanted (w, i) ON s_w_id = wanted.w AND s_i_id = wanted.i \
         ORDER BY s_w_id, s_i_id FOR UPDATE OF stock",
        format!("SELECT s_w_id, s_i_id, s_quantity, s_data, elt($1, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, \
         s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10) FROM stock WHERE {} \
         ORDER BY s_w_id, s_i_id FOR UPDATE", of_lines(2).condition(&["s_w_id", "s_i_id"])));
    UpdateStock = in_each("NEW-ORDER: UPDATE stock",
        "UPDATE stock SET s_quantity = change.quantity, s_ytd = s_ytd + change.ytd, \
         s_order_cnt = s_order_cnt + change.orders, s_remote_cnt = s_remote_cnt + change.remote \
         FROM unnest($1::int[], $2::int[], $3::int[], $4::int[], $5::int[], $6::int[]) \
         AS change (w, i, quantity, ytd, orders, remote) WHERE s_w_id = change.w AND s_i_id = change.i",
        format!("UPDATE stock JOIN ({}) AS changed ON s_w_id = changed.w AND s_i_id = changed.i \
         SET s_quantity = changed.quantity, s_ytd = s_ytd + changed.ytd, \
         s_order_cnt = s_order_cnt + changed.orders, s_remote_cnt = s_remote_cnt + changed.remote",
         of_lines(1).query(&["w", "i", "quantity", "ytd", "orders", "remote"].map(|name| (name, "signed")))));
    InsertLines = in_each("NEW-ORDER: INSERT order_line",
        "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, \
         ol_quantity, ol_amount, ol_dist_info) \
         SELECT $1::int, $2::int, $3::int, line.number, line.i, line.w, NULL, line.quantity, line.amount, line.info \
         FROM unnest($4::int[], $5::int[], $6::int[], $7::int[], $8::numeric[], $9::text[]) \
         AS line (number, i, w, quantity, amount, info)",
        format!("INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, \
         ol_quantity, ol_amount, ol_dist_info) \
         SELECT $1, $2, $3, entry.number, entry.i, entry.w, NULL, entry.quantity, entry.amount, entry.info \
         FROM ({}) AS entry WHERE entry.number IS NOT NULL",
         of_lines(4).query(&[("number", "signed"), ("i", "signed"), ("w", "signed"), ("quantity", "signed"),
            ("amount", "decimal(6,2)"), ("info", "char(24)")])));
    PayWarehouse = in_each("PAYMENT: UPDATE warehouse",
        "UPDATE warehouse SET w_ytd = w_ytd + $1::numeric WHERE w_id = $2 \
         RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip",
        "UPDATE warehouse SET w_ytd = w_ytd + CAST($1 AS decimal(12,2)) WHERE w_id = $2");
    ReadWarehouse = only_with_lists("PAYMENT: SELECT warehouse",
        "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = $1");
    PayDistrict = in_each("PAYMENT: UPDATE district",
        "UPDATE district SET d_ytd = d_ytd + $1::numeric WHERE d_w_id = $2 AND d_id = $3 \
         RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip",
        "UPDATE district SET d_ytd = d_ytd + CAST($1 AS decimal(12,2)) WHERE d_w_id = $2 AND d_id = $3");
    ReadDistrict = only_with_lists("PAYMENT: SELECT district",
        "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district WHERE d_w_id = $1 AND d_id = $2");
    ByName = in_both("PAYMENT: SELECT customer",
        "SELECT c_id FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first");
    PayCustomer = in_each("PAYMENT: UPDATE customer",
        "UPDATE customer SET c_balance = c_balance - $1::numeric, c_ytd_payment = c_ytd_payment + $1::numeric, \
         c_payment_cnt = c_payment_cnt + 1, c_data = CASE WHEN c_credit = 'BC' THEN \
         left(concat_ws(' ', c_id::text, c_d_id::text, c_w_id::text, $5::int::text, $6::int::text, $1::numeric::text) \
         || ' | ' || c_data, 500) ELSE c_data END WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4 \
         RETURNING c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, \
         c_credit, c_credit_lim, c_discount, c_balance, left(c_data, 200)",
        "UPDATE customer SET c_balance = c_balance - CAST($1 AS decimal(12,2)), \
         c_ytd_payment = c_ytd_payment + CAST($1 AS decimal(12,2)), c_payment_cnt = c_payment_cnt + 1, \
         c_data = CASE WHEN c_credit = 'BC' THEN \
         left(concat(concat_ws(' ', c_id, c_d_id, c_w_id, $5, $6, $1), ' | ', c_data), 500) \
         ELSE c_data END WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4");
    ReadCustomer = only_with_lists("PAYMENT: SELECT paying customer",
        "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, \
         c_credit, c_credit_lim, c_discount, c_balance, left(c_data, 200) FROM customer \
         WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3");
    InsertHistory = in_each("PAYMENT: INSERT history",
        "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
         VALUES ($1, $2, $3, $4, $5, CURRENT_TIMESTAMP, $6::numeric, $7)",
        "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
         VALUES ($1, $2, $3, $4, $5, CURRENT_TIMESTAMP, $6, $7)");
    StatusCustomer = in_both("ORDER-STATUS: SELECT customer",
        "SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3");
    LastOrder = in_both("ORDER-STATUS: SELECT orders",
        "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 \
         ORDER BY o_id DESC LIMIT 1");
    OrderLines = in_both("ORDER-STATUS: SELECT order_line",
        "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
         WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3");
    Oldest = only_with_lists("DELIVERY: SELECT new_order",
        "SELECT no_o_id FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 ORDER BY no_o_id LIMIT 1 FOR UPDATE");
    TakeOldest = in_each("DELIVERY: DELETE new_order",
        "DELETE FROM new_order WHERE no_w_id = $1 AND (no_d_id, no_o_id) IN (SELECT d, (SELECT no_o_id FROM new_order \
         WHERE no_w_id = $1 AND no_d_id = d ORDER BY no_o_id LIMIT 1) FROM unnest($2::int[]) AS district (d)) \
         RETURNING no_d_id, no_o_id",
        format!("DELETE FROM new_order WHERE no_w_id = $1 AND {}", of_districts(2).condition(&["no_d_id", "no_o_id"])));
    StillOpen = only_with_arrays("DELIVERY: SELECT new_order",
        "SELECT d FROM unnest($2::int[]) AS district (d) \
         WHERE EXISTS (SELECT 1 FROM new_order WHERE no_w_id = $1 AND no_d_id = d)");
    DeliverOrders = in_each("DELIVERY: UPDATE orders",
        "UPDATE orders SET o_carrier_id = $2 FROM unnest($3::int[], $4::int[]) AS taken (d, o) \
         WHERE o_w_id = $1 AND o_d_id = taken.d AND o_id = taken.o RETURNING o_d_id, o_id, o_c_id",
        format!("UPDATE orders SET o_carrier_id = $2 WHERE o_w_id = $1 AND {}", of_districts(3).condition(&["o_d_id", "o_id"])));
    DeliverLines = in_each("DELIVERY: UPDATE order_line",
        "UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP FROM unnest($2::int[], $3::int[]) AS taken (d, o) \
         WHERE ol_w_id = $1 AND ol_d_id = taken.d AND ol_o_id = taken.o",
        format!("UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP WHERE ol_w_id = $1 AND {}",
         of_districts(2).condition(&["ol_d_id", "ol_o_id"])));
    DeliverCustomers = in_each("DELIVERY: UPDATE customer",
        "UPDATE customer SET c_balance = c_balance + total.amount, c_delivery_cnt = c_delivery_cnt + 1 FROM \
         (SELECT taken.d, taken.c, sum(ol_amount) AS amount FROM unnest($2::int[], $3::int[], $4::int[]) \
         AS taken (d, o, c) JOIN order_line ON ol_w_id = $1 AND ol_d_id = taken.d AND ol_o_id = taken.o \
         GROUP BY taken.d, taken.c) AS total WHERE c_w_id = $1 AND c_d_id = total.d AND c_id = total.c",
        format!("UPDATE customer JOIN (SELECT o_d_id AS d, o_c_id AS c, sum(ol_amount) AS amount FROM orders JOIN order_line \
         ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE o_w_id = $1 AND {} \
         GROUP BY o_d_id, o_c_id) AS total ON c_w_id = $1 AND c_d_id = total.d AND c_id = total.c \
         SET c_balance = c_balance + total.amount, c_delivery_cnt = c_delivery_cnt + 1",
         of_districts(2).condition(&["o_d_id", "o_id"])));
    NextOrder = in_both("STOCK-LEVEL: SELECT district",
        "SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2");
    LowStock = in_each("STOCK-LEVEL: SELECT stock",
        "SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = $1 AND s_i_id = ol_i_id \
         WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id < $3::int AND ol_o_id >= $3::int - 20 AND s_quantity < $4",
        "SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = $1 AND s_i_id = ol_i_id \
         WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id < $3 AND ol_o_id >= $3 - 20 AND s_quantity < $4");
}

pub(super) async fn run(
    attempt: &mut Attempt<'_>,
    place: Place,
    values: &[SqlValue<'_>],
) -> Result<Rows, SessionError> {
    attempt.run(place as usize, values).await
}

/// Runs several in one flight, of which only the first may write: a transaction of a Galera cluster that is refused between two
/// statements of a flight leaves what the second wrote. Returns what `take` makes of each answer, in their order; `take` gets the answer's place too.
pub(super) async fn run_together<T>(
    attempt: &mut Attempt<'_>,
    asked: &[(Place, Vec<SqlValue<'_>>)],
    take: impl Fn(usize, &Rows) -> Result<T, SessionError>,
) -> Result<Vec<T>, SessionError> {
    let flight: Vec<(usize, &[SqlValue<'_>])> =
        asked.iter().map(|(place, values)| (*place as usize, values.as_slice())).collect();
    let mut taken = Vec::with_capacity(asked.len());
    attempt.run_together(&flight, &mut |place, rows| taken.push(take(place, rows))).await?;
    taken.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_stand_at_their_places() {
        let statements = statements();
        let check = |place: Place, name: &str| assert_eq!(statements[place as usize].name, name);
        check(Place::Begin, "BEGIN");
        check(Place::InsertLines, "NEW-ORDER: INSERT order_line");
        check(Place::LowStock, "STOCK-LEVEL: SELECT stock");
        assert_eq!(statements.len(), Place::LowStock as usize + 1);
    }

    #[test]
    fn a_session_of_mysql_runs_nothing_that_only_postgresql_has_and_the_other_way_round() {
        let statements = statements();
        let texts = |dialect| statements.iter().filter_map(move |statement| statement.text(dialect));
        for foreign in ["unnest", "ANY(", "RETURNING", "::", "ARRAY[", "||"] {
            assert!(texts(Dialect::Mysql).all(|text| !text.contains(foreign)), "{foreign}");
        }
        for foreign in ["elt(", "AS decimal", "AS signed"] {
            assert!(texts(Dialect::Postgres).all(|text| !text.contains(foreign)), "{foreign}");
        }
        let counts = [Dialect::Postgres, Dialect::Mysql].map(|dialect| texts(dialect).count());
        assert_eq!(counts, [statements.len() - 5, statements.len() - 1]);
    }
}

//! The twelve consistency conditions of clause 3.3.2, as queries that list what violates them.
//!
//! Owns the queries. What a violation means is the `tpcc-conditions` check's to say. All are asked in one transaction, so
//! that they speak of the same moment.
//!
//! The standard's condition 11 (the orders of a district less its new orders are 2100) only holds until the first
//! delivery. Each delivery of an order adds one to its customer's count, so it is asked for in the form that always
//! holds: orders less new orders less the deliveries counted are 2100.

use std::collections::BTreeMap;

use client::{Dialect, SessionError, SqlSession};
use history::{Action, ConditionFound};

use super::rows;
use crate::dialect::beginning_of_read;
use crate::workload::refused;

/// Examples of each violated condition.
const EXAMPLES: usize = 3;

/// Whether two values differ, where NULL is a value like any other: a sum over rows that are gone is NULL, which equals nothing.
/// Databases have several words for it, and none that all of them have.
macro_rules! differ {
    ($left:literal, $right:literal) => {
        concat!("(", $left, " <> ", $right, " OR (", $left, " IS NULL) <> (", $right, " IS NULL))")
    };
}

/// Each condition: its name, a sentence about a violation, with expressions in brackets, and where violations are found.
///
/// Where rows of either of two tables may have none in the other, both are put below each other: MySQL has no full join.
const CONDITIONS: [(&str, &str, &str); 12] = [
    (
        "1: W_YTD = sum(D_YTD)",
        "warehouse [w_id]: w_ytd [w_ytd], its districts [districts]",
        concat!(
            "warehouse LEFT JOIN (SELECT d_w_id, sum(d_ytd) AS districts FROM district GROUP BY d_w_id) AS d \
             ON d_w_id = w_id WHERE ",
            differ!("w_ytd", "districts")
        ),
    ),
    (
        "2: D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)",
        "district [d_w_id]/[d_id]: next order [d_next_o_id], last order [last_order], last new order [last_new]",
        concat!(
            "district LEFT JOIN (SELECT o_w_id, o_d_id, max(o_id) AS last_order FROM orders GROUP BY 1, 2) AS o \
             ON o_w_id = d_w_id AND o_d_id = d_id \
             LEFT JOIN (SELECT no_w_id, no_d_id, max(no_o_id) AS last_new FROM new_order GROUP BY 1, 2) AS n \
             ON no_w_id = d_w_id AND no_d_id = d_id WHERE ",
            differ!("d_next_o_id - 1", "last_order"),
            " OR d_next_o_id - 1 <> last_new"
        ),
    ),
    (
        "3: NO_O_ID without gaps",
        "district [no_w_id]/[no_d_id]: [count(*)] new orders from [min(no_o_id)] to [max(no_o_id)]",
        "new_order GROUP BY no_w_id, no_d_id HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)",
    ),
    (
        "4: sum(O_OL_CNT) = number of order lines, by district",
        "district [w]/[d]: its orders tell of [coalesce(sum(told), 0)] lines, [sum(there)] are there",
        "(SELECT o_w_id AS w, o_d_id AS d, sum(o_ol_cnt) AS told, 0 AS there FROM orders GROUP BY 1, 2 UNION ALL \
         SELECT ol_w_id, ol_d_id, 0, count(*) FROM order_line GROUP BY 1, 2) AS counted \
         GROUP BY w, d HAVING coalesce(sum(told), 0) <> sum(there)",
    ),
    (
        "5: an order has no carrier exactly while it is a new order",
        "order [w]/[d]/[o]: carrier [coalesce(CAST(max(carrier) AS text), 'none')], \
         [CASE WHEN sum(orders) = 0 THEN 'a new order without an order' \
         WHEN sum(orders) > 1 OR sum(news) > 1 THEN 'there more than once' \
         WHEN sum(news) = 0 THEN 'not a new order' ELSE 'a new order' END]",
        "(SELECT o_w_id AS w, o_d_id AS d, o_id AS o, o_carrier_id AS carrier, 1 AS orders, 0 AS news FROM orders \
         UNION ALL SELECT no_w_id, no_d_id, no_o_id, NULL, 0, 1 FROM new_order) AS counted \
         GROUP BY w, d, o HAVING sum(orders) <> 1 OR sum(news) > 1 OR (max(carrier) IS NULL) <> (sum(news) > 0)",
    ),
    (
        "6: O_OL_CNT = number of its order lines",
        "order [w]/[d]/[o]: tells of [max(told)] lines, [sum(there)] are there",
        concat!(
            "(SELECT o_w_id AS w, o_d_id AS d, o_id AS o, o_ol_cnt AS told, 0 AS there FROM orders UNION ALL \
             SELECT ol_w_id, ol_d_id, ol_o_id, NULL, count(*) FROM order_line GROUP BY 1, 2, 3) AS counted \
             GROUP BY w, d, o HAVING ",
            differ!("max(told)", "sum(there)")
        ),
    ),
    (
        "7: an order line has no delivery date exactly while its order has no carrier",
        "line [ol_number] of order [ol_w_id]/[ol_d_id]/[ol_o_id]: \
         delivered [coalesce(CAST(ol_delivery_d AS text), 'never')], \
         carrier [coalesce(CAST(o_carrier_id AS text), 'none')]",
        "order_line LEFT JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id \
         WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)",
    ),
    (
        "8: W_YTD = sum(H_AMOUNT)",
        "warehouse [w_id]: w_ytd [w_ytd], its history [paid]",
        concat!(
            "warehouse LEFT JOIN (SELECT h_w_id, sum(h_amount) AS paid FROM history GROUP BY h_w_id) AS h \
             ON h_w_id = w_id WHERE ",
            differ!("w_ytd", "paid")
        ),
    ),
    (
        "9: D_YTD = sum(H_AMOUNT)",
        "district [d_w_id]/[d_id]: d_ytd [d_ytd], its history [paid]",
        concat!(
            "district LEFT JOIN (SELECT h_w_id, h_d_id, sum(h_amount) AS paid FROM history GROUP BY 1, 2) AS h \
             ON h_w_id = d_w_id AND h_d_id = d_id WHERE ",
            differ!("d_ytd", "paid")
        ),
    ),
    (
        "10: C_BALANCE = delivered - paid",
        "customer [c_w_id]/[c_d_id]/[c_id]: balance [c_balance], delivered [coalesce(delivered, 0)], \
         paid [coalesce(paid, 0)]",
        concat!(
            "customer LEFT JOIN delivered USING (c_w_id, c_d_id, c_id) \
             LEFT JOIN (SELECT h_c_w_id AS c_w_id, h_c_d_id AS c_d_id, h_c_id AS c_id, sum(h_amount) AS paid FROM history \
             GROUP BY 1, 2, 3) AS h USING (c_w_id, c_d_id, c_id) \
             WHERE ",
            differ!("c_balance", "coalesce(delivered, 0) - coalesce(paid, 0)")
        ),
    ),
    (
        "11: orders - new orders - deliveries counted = 2100, by district",
        "district [d_w_id]/[d_id]: [orders] orders, [news] new orders, [counted] deliveries",
        concat!(
            "district LEFT JOIN (SELECT o_w_id, o_d_id, count(*) AS orders FROM orders GROUP BY 1, 2) AS o \
             ON o_w_id = d_w_id AND o_d_id = d_id \
             LEFT JOIN (SELECT no_w_id, no_d_id, count(*) AS news FROM new_order GROUP BY 1, 2) AS n \
             ON no_w_id = d_w_id AND no_d_id = d_id \
             LEFT JOIN (SELECT c_w_id, c_d_id, sum(c_delivery_cnt) AS counted FROM customer GROUP BY 1, 2) AS c \
             ON c_w_id = d_w_id AND c_d_id = d_id WHERE ",
            differ!("orders - coalesce(news, 0) - counted", "2100")
        ),
    ),
    (
        "12: C_BALANCE + C_YTD_PAYMENT = delivered",
        "customer [c_w_id]/[c_d_id]/[c_id]: balance [c_balance], paid [c_ytd_payment], \
         delivered [coalesce(delivered, 0)]",
        concat!(
            "customer LEFT JOIN delivered USING (c_w_id, c_d_id, c_id) \
             WHERE ",
            differ!("c_balance + c_ytd_payment", "coalesce(delivered, 0)")
        ),
    ),
];

/// What was delivered to each customer, for the conditions that speak of it.
const DELIVERED: &str = "SELECT o_w_id AS c_w_id, o_d_id AS c_d_id, o_c_id AS c_id, sum(ol_amount) AS delivered \
     FROM order_line JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id \
     WHERE ol_delivery_d IS NOT NULL GROUP BY 1, 2, 3";

/// New orders and payments beyond the initial population: what acknowledged transactions are held against.
const COUNTS: &str = "SELECT (SELECT coalesce(sum(d_next_o_id - 3001), 0) FROM district), \
     (SELECT count(*) FROM orders) - (SELECT count(*) * 3000 FROM district), \
     (SELECT count(*) FROM history) - (SELECT count(*) * 3000 FROM district)";

/// Each condition's name, and the query for examples of its violations and for their number.
pub(super) fn questions(dialect: Dialect) -> impl Iterator<Item = (&'static str, String)> {
    CONDITIONS.into_iter().map(move |(name, sentence, found)| {
        let sentence = in_sql(sentence);
        let question = format!(
            "WITH delivered AS ({DELIVERED}) SELECT sentence, count(*) OVER () FROM \
             (SELECT {sentence} AS sentence FROM {found}) AS violation ORDER BY sentence LIMIT {EXAMPLES}"
        );
        match dialect {
            // Nothing is cast to text there.
            Dialect::Mysql => (name, question.replace(" AS text)", " AS char)")),
            _ => (name, question),
        }
    })
}

/// A sentence with expressions in brackets as an expression; one that is NULL leaves its place empty.
fn in_sql(sentence: &str) -> String {
    let parts = sentence.split(['[', ']']).enumerate().map(|(number, part)| match number % 2 {
        0 => format!("'{part}'"),
        _ => format!("CAST({part} AS text)"),
    });
    // Not `concat`: there a part that is NULL takes the others with it in MySQL.
    format!("concat_ws('', {})", parts.collect::<Vec<_>>().join(", "))
}

/// Looks at all conditions, and at the rows.
pub(super) async fn look(session: &mut (dyn SqlSession + '_)) -> Result<Vec<Action>, SessionError> {
    let dialect = session.dialect();
    session.batch(beginning_of_read(dialect)).await?;
    let mut conditions = Vec::with_capacity(CONDITIONS.len());
    for (name, question) in questions(dialect) {
        let rows = session.batch(&question).await?;
        let violations = match rows.len() {
            0 => 0,
            _ => rows
                .integer(0, 1)
                .and_then(|count| u64::try_from(count).ok())
                .ok_or_else(|| refused(format!("condition {name}: its violations cannot be counted")))?,
        };
        let examples = (0..rows.len()).filter_map(|row| rows.text(row, 0)).map(str::to_owned).collect();
        conditions.push(ConditionFound { name: name.to_owned(), violations, examples });
    }
    let counted = session.batch(COUNTS).await?;
    let mut counts = BTreeMap::new();
    for (column, name) in ["order_numbers", "orders", "payments"].into_iter().enumerate() {
        let count = counted.integer(0, column);
        counts.insert(name.to_owned(), count.ok_or_else(|| refused(format!("{name} cannot be counted")))?);
    }
    let mut found = rows::read(session).await?;
    session.batch("COMMIT").await?;
    found.push(Action::ConditionsRead { conditions, counts });
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_put_together_by_the_database() {
        assert_eq!(
            in_sql("warehouse [w_id]: [a + b]"),
            "concat_ws('', 'warehouse ', CAST(w_id AS text), ': ', CAST(a + b AS text), '')"
        );
    }

    #[test]
    fn every_condition_has_its_number_and_expressions_in_pairs_of_brackets() {
        for (number, (name, sentence, _)) in (1..).zip(CONDITIONS) {
            assert!(name.starts_with(&format!("{number}: ")), "{name}");
            assert_eq!(sentence.matches('[').count(), sentence.matches(']').count(), "{sentence}");
            assert!(sentence.contains('['), "{sentence}");
        }
        assert_eq!(questions(Dialect::Postgres).count(), 12);
    }
}

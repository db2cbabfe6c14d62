//! What a load of TPC-C must leave on any database, and a planted defect for each of its conditions.

use std::collections::BTreeMap;

use history::{Action, ConditionFound, Operation, Outcome};
use load::LoadPlan;

use crate::real_loads::{self, Done};

/// TPC-C's transactions.
pub const KINDS: [&str; 5] = ["NEW-ORDER", "PAYMENT", "ORDER-STATUS", "DELIVERY", "STOCK-LEVEL"];

/// The conditions and counts of the final look.
pub fn looked(read: &[Action]) -> (Vec<ConditionFound>, BTreeMap<String, i64>) {
    match read {
        [.., Action::ConditionsRead { conditions, counts }] => (conditions.clone(), counts.clone()),
        other => panic!("{other:?}"),
    }
}

pub fn violated(conditions: &[ConditionFound]) -> Vec<usize> {
    let number =
        |condition: &ConditionFound| condition.name.split(':').next().and_then(|number| number.parse().ok());
    conditions.iter().filter(|condition| condition.violations > 0).filter_map(number).collect()
}

/// For each condition a defect that violates it, with as few others as can be, and its repair.
const DEFECTS: [(usize, &[usize], &str, &str); 13] = [
    (
        1,
        &[1, 8],
        "UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 1",
        "UPDATE warehouse SET w_ytd = w_ytd - 1 WHERE w_id = 1",
    ),
    (
        2,
        &[2],
        "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 3",
        "UPDATE district SET d_next_o_id = d_next_o_id - 1 WHERE d_id = 3",
    ),
    (
        3,
        // The order lost its place among the new ones: 5 and 11 miss it too.
        &[3, 5, 11],
        "CREATE TABLE kept AS SELECT * FROM new_order WHERE no_d_id = 4 ORDER BY no_o_id DESC LIMIT 1 OFFSET 1; \
         DELETE FROM new_order WHERE no_d_id = 4 AND no_o_id IN (SELECT no_o_id FROM kept)",
        "INSERT INTO new_order SELECT * FROM kept; DROP TABLE kept",
    ),
    (
        4,
        &[4, 6],
        "UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_d_id = 5 AND o_id = 7",
        "UPDATE orders SET o_ol_cnt = o_ol_cnt - 1 WHERE o_d_id = 5 AND o_id = 7",
    ),
    (
        5,
        // Its lines were delivered, and nobody carried them.
        &[5, 7],
        "UPDATE orders SET o_carrier_id = NULL WHERE o_d_id = 5 AND o_id = 7",
        "UPDATE orders SET o_carrier_id = 1 WHERE o_d_id = 5 AND o_id = 7",
    ),
    (
        6,
        &[6],
        "UPDATE orders SET o_ol_cnt = o_ol_cnt + CASE o_id WHEN 7 THEN 1 ELSE -1 END WHERE o_d_id = 5 AND o_id IN (7, 8)",
        "UPDATE orders SET o_ol_cnt = o_ol_cnt - CASE o_id WHEN 7 THEN 1 ELSE -1 END WHERE o_d_id = 5 AND o_id IN (7, 8)",
    ),
    (
        7,
        &[7],
        "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_d_id = 5 AND ol_o_id = 7 AND ol_number = 1",
        "UPDATE order_line SET ol_delivery_d = now() WHERE ol_d_id = 5 AND ol_o_id = 7 AND ol_number = 1",
    ),
    (
        8,
        &[8, 9],
        "UPDATE warehouse SET w_ytd = w_ytd + 1; UPDATE district SET d_ytd = d_ytd + 1 WHERE d_id = 2",
        "UPDATE warehouse SET w_ytd = w_ytd - 1; UPDATE district SET d_ytd = d_ytd - 1 WHERE d_id = 2",
    ),
    (
        9,
        &[9],
        "UPDATE history SET h_d_id = 9 WHERE h_c_d_id = 1 AND h_c_id = 77 AND h_d_id = 1 AND h_amount = 10",
        "UPDATE history SET h_d_id = 1 WHERE h_c_d_id = 1 AND h_c_id = 77 AND h_d_id = 9 AND h_amount = 10",
    ),
    (
        10,
        &[10],
        "UPDATE customer SET c_balance = c_balance + 1, c_ytd_payment = c_ytd_payment - 1 WHERE c_d_id = 1 AND c_id = 5",
        "UPDATE customer SET c_balance = c_balance - 1, c_ytd_payment = c_ytd_payment + 1 WHERE c_d_id = 1 AND c_id = 5",
    ),
    (
        11,
        &[11],
        "UPDATE customer SET c_delivery_cnt = c_delivery_cnt + 1 WHERE c_d_id = 6 AND c_id = 5",
        "UPDATE customer SET c_delivery_cnt = c_delivery_cnt - 1 WHERE c_d_id = 6 AND c_id = 5",
    ),
    (
        12,
        &[12],
        "UPDATE customer SET c_ytd_payment = c_ytd_payment + 1 WHERE c_d_id = 6 AND c_id = 5",
        "UPDATE customer SET c_ytd_payment = c_ytd_payment - 1 WHERE c_d_id = 6 AND c_id = 5",
    ),
    // Rows that are gone altogether are not nothing.
    (
        4,
        &[2, 4, 5, 6, 7, 11],
        "CREATE TABLE kept AS SELECT * FROM orders WHERE o_d_id = 8; DELETE FROM orders WHERE o_d_id = 8",
        "INSERT INTO orders SELECT * FROM kept; DROP TABLE kept",
    ),
];

/// All conditions hold after this load, and the orders and payments that are there are those that succeeded.
pub fn conditions_hold(done: &Done, read: &[Action]) {
    let ended = |wanted: &str| {
        let kept = |operation: &&Operation| {
            let is_wanted = matches!(&operation.action, Action::Transaction { name, rolled_back: false, .. } if name == wanted);
            is_wanted && operation.outcome == Outcome::Ok
        };
        done.operations.iter().filter(kept).count() as i64
    };
    let (conditions, counts) = looked(read);
    assert_eq!(conditions.len(), 12);
    assert!(violated(&conditions).is_empty(), "{conditions:#?}");
    assert_eq!((counts["orders"], counts["order_numbers"]), (ended("NEW-ORDER"), ended("NEW-ORDER")));
    assert_eq!(counts["payments"], ended("PAYMENT"));
    for kind in ["NEW-ORDER", "PAYMENT"] {
        assert_eq!(rows_found(read, kind), rows_asked_for(done, kind), "{kind}");
    }
}

/// The names of the rows that acknowledged transactions of a kind asked for, in order.
fn rows_asked_for(done: &Done, kind: &str) -> Vec<String> {
    let row = |operation: &Operation| match &operation.action {
        Action::Transaction { name, rolled_back: false, row } if name == kind => row.clone(),
        _ => None,
    };
    let acknowledged = done.operations.iter().filter(|operation| operation.outcome == Outcome::Ok);
    let mut rows: Vec<String> = acknowledged.filter_map(row).collect();
    rows.sort_unstable();
    rows
}

/// The names of the rows of a kind that a final read found, in order.
fn rows_found(read: &[Action], wanted: &str) -> Vec<String> {
    let mut found = Vec::new();
    for action in read {
        if let Action::RowsRead { kind, rows, .. } = action
            && kind == wanted
        {
            found.extend(rows.iter().flat_map(|(row, count)| vec![row.clone(); *count as usize]));
        }
    }
    found.sort_unstable();
    found
}

/// Each planted defect is found, with what follows from it, and nothing is found after its repair.
pub fn planted_violations_are_found(plan: &LoadPlan, sql: impl Fn(&str)) {
    for (condition, expected, defect, repair) in DEFECTS {
        sql(defect);
        let (conditions, _) = looked(&real_loads::read(plan));
        let found = violated(&conditions);
        assert!(found.contains(&condition), "{defect}: {found:?}");
        // Those that follow from the same defect, and no others. Sums over orders that are gone touch money as well.
        assert!(expected.iter().all(|expected| found.contains(expected)), "{defect}: {found:?}");
        if expected.len() < 4 {
            assert_eq!(found, expected, "{defect}");
        }
        for condition in conditions.iter().filter(|condition| condition.violations > 0) {
            let examples = usize::try_from(condition.violations).expect("small").min(3);
            assert_eq!(condition.examples.len(), examples, "{condition:?}");
        }
        sql(repair);
    }
    let (conditions, _) = looked(&real_loads::read(plan));
    assert!(violated(&conditions).is_empty(), "{conditions:#?}");
}

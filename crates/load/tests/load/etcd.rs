//! Loads on a real etcd: every workload that speaks of keys and values.

use std::collections::BTreeMap;

use history::Outcome;
use load::{LoadPlan, Protocol};

use crate::etcd_server::Server;
use crate::real_loads;

#[test]
fn every_workload_of_keys_and_values_runs_on_etcd_and_its_final_read_tells_what_is_there() {
    let test = "every_workload_of_keys_and_values_runs_on_etcd_and_its_final_read_tells_what_is_there";
    let Some(server) = Server::here(test) else { return };
    real_loads::every_workload_of_keys_runs(500, |workload| {
        let plan = real_loads::plan_at(workload, &BTreeMap::new(), 4, vec![server.endpoint("n1")]);
        LoadPlan { protocol: Protocol::Etcd, user: String::new(), ..plan }
    });
}

#[test]
fn etcd_takes_as_many_operations_in_a_transaction_as_its_protocol_says_and_no_more() {
    let Some(server) = Server::here("etcd_takes_as_many_operations_as_its_protocol_says") else { return };
    let most = Protocol::Etcd.operation_limit().expect("it has one").default;
    let done = |batch: u64| {
        let options =
            real_loads::texts(&[("batch", &batch.to_string()), ("read", "50%"), ("preload", "200")]);
        let plan = real_loads::plan_at("kv", &options, 2, vec![server.endpoint("n1")]);
        let plan = LoadPlan { protocol: Protocol::Etcd, user: String::new(), ..plan };
        load::prepare(&plan, real_loads::here(), &|_| {}).expect("prepared");
        real_loads::run_until(&plan, 40, &[]).operations
    };
    assert!(done(most).iter().all(|operation| operation.outcome == Outcome::Ok));
    assert!(done(most + 1).iter().all(|operation| operation.outcome == Outcome::Fail));
}

#[test]
fn a_value_that_somebody_else_put_into_etcd_is_one_cell_that_no_write_has() {
    let Some(server) = Server::here("a_value_that_somebody_else_put_into_etcd") else { return };
    let plan = real_loads::plan_at("kv", &BTreeMap::new(), 1, vec![server.endpoint("n1")]);
    real_loads::a_foreign_value_is_one_cell(
        LoadPlan { protocol: Protocol::Etcd, user: String::new(), ..plan },
        || {
            // The key of `KEY_3`, and `<html>`.
            let put = r#"{"key":"a3YvODAwMDAwMDAwMDAwMDAwMw==","value":"PGh0bWw+"}"#;
            let answer = server.ask("/v3/kv/put", put).expect("an answer");
            assert!(answer.contains("200 OK"), "{answer}");
        },
    );
}

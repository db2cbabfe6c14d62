//! Loads on a real Redis: every workload that speaks of keys and values, and what a failover does to acknowledged writes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::channel;
use std::time::Duration;

use history::{Action, Outcome};
use load::{Batch, Clock, Leadership, LoadPlan, Protocol, Refusals, Wait, leadership, prepare, start};
use nix::sys::signal::Signal;

use crate::real_loads::{self, here};
use crate::redis_server::{self, Server};

fn plan(workload: &str, clients: u32, servers: &[&Server]) -> LoadPlan {
    let endpoints = servers.iter().zip(1..).map(|(server, place)| server.endpoint(&format!("n{place}")));
    let plan = real_loads::plan_at(workload, &BTreeMap::new(), clients, endpoints.collect());
    LoadPlan { protocol: Protocol::Redis, user: String::new(), ..plan }
}

#[test]
fn every_workload_of_keys_and_values_runs_and_its_final_read_tells_what_is_there() {
    let Some(server) = Server::here("every_workload_of_keys_and_values_runs", &[]) else { return };
    real_loads::every_workload_of_keys_runs(2_000, |workload| plan(workload, 8, &[&server]));
}

#[test]
fn a_value_that_somebody_else_put_into_redis_is_one_cell_that_no_write_has() {
    let Some(server) = Server::here("a_value_that_somebody_else_put_into_redis", &[]) else { return };
    real_loads::a_foreign_value_is_one_cell(plan("kv", 1, &[&server]), || {
        server.cli(&["SET", real_loads::KEY_3, "<html>"]);
    });
    real_loads::a_foreign_value_is_one_cell(plan("kv", 1, &[&server]), || {
        server.cli(&["DEL", real_loads::KEY_3]);
        server.cli(&["HSET", real_loads::KEY_3, "a field", "of a hash"]);
    });
}

#[test]
fn a_key_that_somebody_else_took_out_of_redis_is_no_cell_and_ends_no_read() {
    let Some(server) = Server::here("a_key_that_somebody_else_took_out_of_redis", &[]) else { return };
    real_loads::a_key_that_is_gone_is_no_cell(plan("kv", 1, &[&server]), || {
        server.cli(&["DEL", real_loads::KEY_3]);
    });
}

#[test]
fn long_values_of_an_earlier_run_do_not_stop_the_next_one() {
    let Some(server) = Server::here("long_values_of_an_earlier_run", &[]) else { return };
    real_loads::long_values_are_written_over(&plan("kv", 2, &[&server]));
}

/// How many acknowledged rows are gone after a failover, and how many rows were left open. The replica is promoted while
/// clients still write to the primary, as when a partition lies between the two; then the primary is lost.
fn lost_at_failover(wait: Option<Wait>) -> (usize, usize) {
    let primary = Server::start(&[]);
    let replica = Server::replica_of(&primary, &[]);
    replica.wait_for_info("replication", "master_link_status:up");
    let plan = LoadPlan { wait, timeout: Duration::from_secs(5), ..plan("ledger", 4, &[&primary, &replica]) };
    prepare(&plan, here(), &|_| {}).expect("prepared");
    let (sink, batches) = channel::<Batch>();
    let load = start(plan.clone(), Clock::new(), here(), sink);
    let mut operations = Vec::new();
    let mut primary = Some(primary);
    let mut is_cut_off = false;
    while let Ok(batch) = batches.recv() {
        let is_found = batch.history.iter().any(|operation| operation.node.as_deref() == Some("n2"));
        operations.extend(batch.history);
        match batch.interval.second {
            second if second >= 1 && !is_cut_off => {
                replica.cli(&["REPLICAOF", "NO", "ONE"]);
                is_cut_off = true;
            }
            second if second >= 3 && primary.is_some() => drop(primary.take()),
            // The new primary has been found.
            _ if primary.is_none() && is_found => load.stop(),
            _ => {}
        }
    }
    load.join().expect("ended well");
    let there: BTreeSet<u64> = real_loads::read(&plan)
        .iter()
        .flat_map(|action| match action {
            Action::LedgerRead { values, .. } => values.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    let lost = operations.iter().filter(|operation| {
        matches!(operation.action, Action::LedgerInsert { value } if operation.outcome == Outcome::Ok && !there.contains(&value))
    });
    let unknown = operations.iter().filter(|operation| operation.outcome == Outcome::Unknown);
    (lost.count(), unknown.count())
}

#[test]
fn a_failover_loses_acknowledged_writes_but_none_that_a_replica_had() {
    if !redis_server::is_here("a_failover_loses_acknowledged_writes") {
        return;
    }
    let (lost, _) = lost_at_failover(None);
    assert!(lost > 0, "what the old primary acknowledged alone is gone with it");
    let wait = Wait { replicas: 1, timeout: Duration::from_millis(200) };
    let (lost, unknown) = lost_at_failover(Some(wait));
    assert_eq!(lost, 0);
    assert!(unknown > 0, "writes that no replica had in time are left open");
}

#[test]
fn each_node_that_takes_writes_is_found_and_a_silent_one_is_told_apart_from_a_replica_and_a_lost_one() {
    let Some(primary) = Server::here("each_node_that_takes_writes_is_found", &[]) else { return };
    let replica = Server::replica_of(&primary, &[]);
    replica.wait_for_info("replication", "master_link_status:up");
    let plan = plan("ledger", 1, &[&primary, &replica]);
    let check = |leaders: &[&str], silent: &[&str]| {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let expected = Leadership { leaders: names(leaders), silent: names(silent) };
        assert_eq!(leadership(&plan, Duration::from_secs(2), Refusals::OfNodes), expected);
    };
    check(&["n1"], &[]);
    replica.cli(&["REPLICAOF", "NO", "ONE"]);
    check(&["n1", "n2"], &[]);
    // Its kernel still takes connections.
    primary.signal(Signal::SIGSTOP);
    check(&["n2"], &["n1"]);
    primary.signal(Signal::SIGCONT);
    check(&["n1", "n2"], &[]);
    drop(primary);
    check(&["n2"], &[]);
}

//! Loads on a real Cassandra: every workload that its statements carry, and a node that is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::channel;
use std::time::Duration;

use history::{Action, ErrorClass, Outcome};
use load::{Batch, Clock, LoadPlan, Protocol, prepare, start};

use crate::cassandra_server::Server;
use crate::ground::{self, here};

/// Options of a workload, by name.
type Options = &'static [(&'static str, &'static str)];

fn plan(workload: &str, options: Options, servers: &[Server]) -> LoadPlan {
    let endpoints = servers.iter().map(Server::endpoint).collect();
    let plan = ground::plan_at(workload, &ground::texts(options), 8, endpoints);
    LoadPlan { protocol: Protocol::Cql, database: "holdfast".to_owned(), user: String::new(), ..plan }
}

#[test]
#[ignore = "boots a Cassandra: half a minute"]
fn every_workload_of_rows_runs_and_its_final_read_tells_what_is_there() {
    let Some(servers) = Server::start(1, "every_workload_of_rows_runs") else { return };
    let of_cells: [(&str, Options, &[&str]); 5] = [
        (
            "kv",
            &[("read", "40%"), ("span", "20%"), ("preload", "500"), ("keys", "1000")],
            &["read", "write", "span"],
        ),
        ("kv", &[("read", "40%"), ("batch", "3"), ("keys", "1000")], &["read", "write"]),
        ("ycsb", &[("workload", "f"), ("records", "1000")], &["READ", "READ-MODIFY-WRITE"]),
        ("ycsb", &[("workload", "e"), ("records", "1000")], &["SCAN", "INSERT"]),
        ("iot", &[("write", "50%"), ("preload", "1000"), ("machines", "100")], &["read", "write"]),
    ];
    for (workload, options, kinds) in of_cells {
        let plan = plan(workload, options, &servers);
        prepare(&plan, here(), &|_| {}).unwrap_or_else(|error| panic!("{workload}: {error}"));
        let done = ground::run_well(&plan, 1_000, kinds);
        ground::cells_are_those_written(&done, &ground::read(&plan));
    }
    let ledger = plan("ledger", &[], &servers);
    prepare(&ledger, here(), &|_| {}).expect("prepared");
    ground::ledger_holds(&ground::run_well(&ledger, 1_000, &[]), &ground::read(&ledger));
    registers_hold_what_was_written(&plan("register", &[], &servers));
}

fn registers_hold_what_was_written(plan: &LoadPlan) {
    prepare(plan, here(), &|_| {}).expect("prepared");
    let done = ground::run_until(plan, 500, &["read", "write", "compare-and-set"]);
    let mut written = BTreeSet::new();
    for operation in &done.operations {
        match (&operation.action, operation.outcome) {
            (
                Action::RegisterWrite { value: new, .. } | Action::RegisterCompareAndSet { new, .. },
                outcome,
            ) => {
                // Those who meet at one key may wait for each other for longer than the server has patience.
                let is_contention = matches!(
                    (outcome, operation.error),
                    (Outcome::Ok, _)
                        | (_, Some(ErrorClass::Serialization))
                        | (Outcome::Unknown, Some(ErrorClass::Timeout))
                );
                assert!(is_contention, "{operation:?}");
                written.insert(*new);
            }
            (Action::RegisterRead { value, .. }, Outcome::Ok) => {
                assert!(value.is_none_or(|value| value > 0), "{operation:?}");
            }
            _ => {}
        }
    }
    for action in ground::read(plan) {
        let Action::RegisterRead { value, .. } = action else { panic!("{action:?}") };
        assert!(value.is_none_or(|value| written.contains(&value)), "{value:?}");
    }
}

#[test]
#[ignore = "boots three Cassandras: a minute"]
fn clients_of_a_lost_node_go_to_others_and_nothing_acknowledged_is_lost() {
    let Some(mut servers) = Server::start(3, "clients_of_a_lost_node_go_to_others") else { return };
    let plan = LoadPlan { timeout: Duration::from_secs(5), ..plan("ledger", &[], &servers) };
    prepare(&plan, here(), &|_| {}).expect("prepared");
    let (sink, batches) = channel::<Batch>();
    let load = start(plan.clone(), Clock::new(), here(), sink);
    let (mut before, mut after) = (BTreeSet::new(), BTreeSet::new());
    let mut operations = Vec::new();
    let mut lost_at = None;
    while let Ok(batch) = batches.recv() {
        for operation in batch.history.iter().filter(|operation| operation.outcome == Outcome::Ok) {
            match lost_at {
                None => before.insert(operation.node.clone()),
                // Answers from before the loss are reported a second later.
                Some(second) if batch.interval.second > second + 1 => after.insert(operation.node.clone()),
                Some(_) => continue,
            };
        }
        operations.extend(batch.history);
        if lost_at.is_none() && before.len() == 3 && batch.interval.second >= 2 {
            servers.truncate(2);
            lost_at = Some(batch.interval.second);
        }
        if after.len() == 2 && lost_at.is_some_and(|second| batch.interval.second > second + 5) {
            load.stop();
        }
        assert!(batch.interval.second < 120, "{before:?} {after:?}");
    }
    load.join().expect("ended well");
    let survivors: BTreeSet<_> = servers.iter().map(|server| Some(server.endpoint().node)).collect();
    assert_eq!(after, survivors, "all clients have gone to them");
    let done = ground::Done { kinds: BTreeMap::new(), operations };
    ground::ledger_holds(&done, &ground::read(&plan));
}

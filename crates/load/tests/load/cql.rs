//! Loads on a real Cassandra: every workload that its statements carry, and a node that is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use client::{Connector as _, cql};
use history::{Action, ErrorClass, Key, Operation, Outcome};
use load::{Batch, Clock, Consistency, LoadPlan, Protocol, are_compared, prepare, replica_reads, start};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::cassandra_server::Server;
use crate::real_loads::{self, here};

/// Options of a workload, by name.
type Options = &'static [(&'static str, &'static str)];

fn plan(workload: &str, options: Options, servers: &[Server]) -> LoadPlan {
    let endpoints = servers.iter().map(Server::endpoint).collect();
    let plan = real_loads::plan_at(workload, &real_loads::texts(options), 8, endpoints);
    LoadPlan { protocol: Protocol::Cql, database: "holdfast".to_owned(), user: String::new(), ..plan }
}

/// A cluster of three fills two processors while it boots, and a second one beside it is not ready in time.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
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
        let done = real_loads::run_well(&plan, 1_000, kinds);
        real_loads::cells_are_those_written(&done, &real_loads::read(&plan));
    }
    real_loads::two_loads_of_time_series_write_no_row_of_each_other(&plan("iot", &[], &servers), 1_000);
    let ledger = plan("ledger", &[], &servers);
    prepare(&ledger, here(), &|_| {}).expect("prepared");
    real_loads::ledger_holds(&real_loads::run_well(&ledger, 1_000, &[]), &real_loads::read(&ledger));
    registers_hold_what_was_written(&plan("register", &[], &servers));
}

fn registers_hold_what_was_written(plan: &LoadPlan) {
    prepare(plan, here(), &|_| {}).expect("prepared");
    let done = real_loads::run_until(plan, 500, &["read", "write", "compare-and-set"]);
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
    for action in real_loads::read(plan) {
        let Action::RegisterRead { value, .. } = action else { panic!("{action:?}") };
        assert!(value.is_none_or(|value| written.contains(&value)), "{value:?}");
    }
}

#[test]
#[ignore = "boots three Cassandras: a minute"]
fn clients_of_a_lost_node_go_to_others_and_nothing_acknowledged_is_lost() {
    let _turn = alone();
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
    let done = real_loads::Done { kinds: BTreeMap::new(), operations };
    real_loads::ledger_holds(&done, &real_loads::read(&plan));
}

#[test]
#[ignore = "boots three Cassandras: a minute"]
fn clients_go_back_to_their_node_when_it_answers_again() {
    let _turn = alone();
    let Some(servers) = Server::start(3, "clients_go_back_to_their_node") else { return };
    let plan = LoadPlan { timeout: Duration::from_secs(2), ..plan("ledger", &[], &servers) };
    prepare(&plan, here(), &|_| {}).expect("prepared");
    let (sink, batches) = channel::<Batch>();
    let load = start(plan.clone(), Clock::new(), here(), sink);
    let third = Some(servers[2].endpoint().node);
    let (mut operations, mut began, mut stopped_at, mut returned_at) =
        (Vec::new(), BTreeSet::new(), None, None);
    while let Ok(batch) = batches.recv() {
        let second = batch.interval.second;
        assert!(second < 120, "{began:?} have not come back: {stopped_at:?} {returned_at:?}");
        let at_third = |operation: &&Operation| operation.outcome == Outcome::Ok && operation.node == third;
        let clients: BTreeSet<u64> =
            batch.history.iter().filter(at_third).map(|operation| operation.client).collect();
        match (stopped_at, returned_at) {
            (None, _) if second >= 2 && !clients.is_empty() => {
                began = clients;
                servers[2].signal("STOP");
                stopped_at = Some(second);
            }
            (Some(stopped), None) if second > stopped + 5 => {
                assert!(clients.is_empty(), "{clients:?} were answered by a node that stands still");
                servers[2].signal("CONT");
                returned_at = Some(second);
            }
            (_, Some(_)) if clients == began => load.stop(),
            _ => {}
        }
        operations.extend(batch.history);
    }
    load.join().expect("ended well");
    let done = real_loads::Done { kinds: BTreeMap::new(), operations };
    real_loads::ledger_holds(&done, &real_loads::read(&plan));
}

#[test]
#[ignore = "boots three Cassandras: a minute"]
fn each_node_tells_what_its_own_copy_holds_and_not_what_the_others_do() {
    let _turn = alone();
    let Some(servers) = Server::start(3, "each_node_tells_what_its_own_copy_holds") else { return };
    let consistency = Consistency { compares_copies: true, ..Consistency::default() };
    let plan = LoadPlan { consistency, ..plan("register", &[("compare_and_set", "off")], &servers) };
    assert!(are_compared(&plan));
    prepare(&plan, here(), &|_| {}).expect("prepared");
    let held = || {
        let reads = replica_reads(&plan, &Clock::new(), here(), Duration::ZERO).expect("read");
        let values = reads.into_iter().map(|read| match (read.action, read.outcome) {
            (Action::ReplicaRead { values, .. }, Outcome::Ok) => values,
            other => panic!("{other:?}"),
        });
        values.collect::<Vec<_>>()
    };
    let register = |value: i64| vec![(Key::Number(3), value)];
    write(&servers[0], cql::Consistency::All, 5);
    assert_eq!(held(), [register(5), register(5), register(5)]);
    write(&servers[1], cql::Consistency::NodeLocal, 6);
    assert_eq!(held(), [register(5), register(6), register(5)]);
}

#[test]
#[ignore = "boots three Cassandras: a minute"]
fn copies_of_rows_that_lie_on_some_nodes_only_are_read_where_they_lie() {
    let _turn = alone();
    let Some(servers) = Server::start(3, "copies_of_rows_that_lie_on_some_nodes") else { return };
    let consistency = Consistency { compares_copies: true, ..Consistency::default() };
    let plan = LoadPlan { consistency, ..plan("register", &[("compare_and_set", "off")], &servers) };
    assert!(are_compared(&plan));
    // Made before the load would make it with three copies.
    let settings = cql::Settings { replicas: Some(2), ..settings(cql::Consistency::All) };
    let made = client::reactor::block_on(async {
        let endpoints = servers.iter().map(Server::endpoint).collect();
        let connector = cql::CqlConnector::new(endpoints, settings);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for _ in 0..100 {
            if connector.connect(&mut rng).await.is_ok() {
                return true;
            }
            // They have not heard of each other yet.
            client::reactor::sleep(Duration::from_millis(200)).await;
        }
        false
    });
    assert!(made.expect("an event loop"), "no keyspace");
    prepare(&plan, here(), &|_| {}).expect("prepared");
    let held = || {
        let reads = replica_reads(&plan, &Clock::new(), here(), Duration::ZERO).expect("read");
        let readers: BTreeSet<u64> = reads.iter().map(|read| read.client).collect();
        assert_eq!(readers.len(), reads.len(), "copies are read at the same time, so by different clients");
        let values = reads.into_iter().map(|read| match (read.action, read.outcome) {
            (Action::ReplicaRead { replica, values, .. }, Outcome::Ok) => {
                assert!(replica.starts_with("copy "), "{replica}");
                values.into_iter().map(|(_, value)| value).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        });
        values.collect::<BTreeSet<_>>()
    };
    let one = |value: i64| BTreeSet::from([vec![value]]);
    let mut owners = 0;
    for (server, new) in servers.iter().zip([6, 7, 8]) {
        write(&servers[0], cql::Consistency::All, 5);
        assert_eq!(held(), one(5));
        // A node that has no copy may turn it down, and changes none.
        let _ = try_write(server, cql::Consistency::NodeLocal, new);
        let held = held();
        if held != one(5) {
            assert_eq!(held, &one(5) | &one(new));
            owners += 1;
        }
    }
    assert_eq!(owners, 2, "two copies, and each of them is read");
}

/// Writes a register through one node.
fn write(server: &Server, writes: cql::Consistency, value: i64) {
    for _ in 0..100 {
        match try_write(server, writes, value) {
            // A node may take another for down that has just started.
            Err(error) if error.definite => std::thread::sleep(Duration::from_millis(200)),
            done => return done.map(drop).expect("written"),
        }
    }
    panic!("{value} is refused again and again");
}

fn settings(writes: cql::Consistency) -> cql::Settings {
    cql::Settings {
        keyspace: "holdfast".to_owned(),
        replicas: None,
        user: String::new(),
        password: None,
        reads: cql::Consistency::One,
        reads_otherwise: None,
        writes,
        timestamps: cql::Timestamps::Client,
        timeout: Duration::from_secs(10),
        connect_timeout: Duration::from_secs(10),
    }
}

fn try_write(
    server: &Server,
    writes: cql::Consistency,
    value: i64,
) -> Result<client::Rows, client::SessionError> {
    let settings = settings(writes);
    let written = client::reactor::block_on(async {
        let connector = cql::CqlConnector::new(vec![server.endpoint()], settings);
        let connected = connector.connect(&mut ChaCha8Rng::seed_from_u64(1)).await;
        let Ok(mut connected) = connected else { panic!("no session") };
        let session = connected.session.sql().expect("SQL");
        session.batch(&format!("UPDATE holdfast_register SET value = {value} WHERE key = 3")).await
    });
    written.expect("an event loop")
}

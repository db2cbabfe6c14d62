//! What the tests of loads on real databases stand on: the servers, a load of a workload on them as most tests want it, and
//! what such a load did.

// Shared with the tests of `run`, which use a part of it.
#![allow(dead_code)]

#[path = "../../../client/tests/client/server.rs"]
pub mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::channel;
use std::time::Duration;

use client::Endpoint;
use history::{Action, ErrorClass, NO_WRITE, Operation, Outcome};
use load::{Batch, Clock, LoadPlan, OnThread, final_read, prepare, start};
use server::Server;

/// A load of so many clients on PostgreSQL that keeps its history; what a test wants otherwise it says.
pub fn plan(
    workload: &str,
    options: &BTreeMap<String, String>,
    clients: u32,
    servers: &[(&str, &Server)],
) -> LoadPlan {
    plan_at(workload, options, clients, servers.iter().map(|(node, server)| server.endpoint(node)).collect())
}

/// The same at any endpoints; a test for another protocol says which.
pub fn plan_at(
    workload: &str,
    options: &BTreeMap<String, String>,
    clients: u32,
    endpoints: Vec<Endpoint>,
) -> LoadPlan {
    LoadPlan {
        name: format!("{workload}-load"),
        workload: workload::configured(workload, options).expect("listed, with options it knows"),
        steps: vec![load::Step { from_s: 0.0, clients, rate_per_s: None }],
        arrival: load::Arrival::Constant,
        part: load::Part::default(),
        think_time: load::ThinkTime::None,
        keeps_history: true,
        first_client: 100,
        scale: 1,
        protocol: load::Protocol::Postgres,
        reads: client::postgres::Reads::Leader,
        wait: None,
        spreads: false,
        program: None,
        consistency: load::Consistency::default(),
        seed: 7,
        endpoints,
        database: "postgres".to_owned(),
        user: "postgres".to_owned(),
        password: None,
        encryption: load::Encryption::Never,
        timeout: Duration::from_secs(20),
        connect_timeout: Duration::from_secs(5),
        defects: load::Defects::default(),
    }
}

/// Every operation of YCSB, on few rows.
pub const YCSB: [(&str, &str); 9] = [
    ("read", "20%"),
    ("update", "20%"),
    ("insert", "20%"),
    ("scan", "20%"),
    ("read_modify_write", "20%"),
    ("records", "300"),
    ("fields", "4"),
    ("field_length", "20"),
    ("distribution", "latest"),
];

/// Options of a workload, by name.
pub fn texts(options: &[(&str, &str)]) -> BTreeMap<String, String> {
    options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A load's thread stays where it is.
pub fn here() -> OnThread {
    Box::new(|| Ok(()))
}

/// The end of what an event loop carries out.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    client::reactor::block_on(future).expect("an event loop")
}

/// What a load did: operations by kind, and all that was recorded.
pub struct Done {
    pub kinds: BTreeMap<String, u64>,
    pub operations: Vec<Operation>,
}

/// Runs a load until it has done so many transactions and every one of these kinds was there.
pub fn run_until(plan: &LoadPlan, transactions: usize, kinds: &[&str]) -> Done {
    let (sink, batches) = channel::<Batch>();
    let load = start(plan.clone(), Clock::new(), here(), sink);
    let mut done = Done { kinds: BTreeMap::new(), operations: Vec::new() };
    while let Ok(batch) = batches.recv() {
        for (name, operation) in &batch.interval.operations {
            *done.kinds.entry(name.clone()).or_default() += operation.histogram.len();
        }
        done.operations.extend(batch.history);
        let all_kinds = kinds.iter().all(|kind| done.kinds.get(*kind).is_some_and(|count| *count > 0));
        if done.operations.len() >= transactions && all_kinds {
            load.stop();
        }
    }
    load.join().expect("ended well");
    done
}

/// The same where every transaction succeeds.
pub fn run_well(plan: &LoadPlan, transactions: usize, kinds: &[&str]) -> Done {
    let done = run_until(plan, transactions, kinds);
    let failed: Vec<&Operation> =
        done.operations.iter().filter(|operation| operation.outcome != Outcome::Ok).collect();
    assert!(failed.is_empty(), "{} failed, such as {:?}", failed.len(), failed[0]);
    done
}

/// Nothing failed but what met another transaction, or found a condition of its own made untrue by others.
pub fn is_undisturbed(done: &Done) {
    let strange = done.operations.iter().find(|operation| {
        operation.outcome != Outcome::Ok && operation.error != Some(ErrorClass::Serialization)
    });
    assert!(strange.is_none(), "{strange:?}");
}

/// What the workload's final read finds.
pub fn read(plan: &LoadPlan) -> Vec<Action> {
    let read = final_read(plan, &Clock::new(), here(), Duration::from_secs(120)).expect("read");
    read.into_iter().map(|operation| operation.action).collect()
}

/// Cells written and acknowledged must be there, each with a number that was written to it, or as loaded.
pub fn cells_are_those_written(done: &Done, read: &[Action]) {
    let mut written: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for operation in &done.operations {
        if let Action::CellsWrite { cells, value } = &operation.action {
            cells.iter().for_each(|cell| {
                written.entry(*cell).or_default().insert(*value);
            });
        }
    }
    assert!(!written.is_empty());
    let mut there = BTreeMap::new();
    for action in read {
        let Action::CellsRead { cells, .. } = action else { panic!("{action:?}") };
        there.extend(cells.iter().copied());
    }
    for (cell, values) in &written {
        assert!(there.get(cell).is_some_and(|value| values.contains(value)), "{cell}: {:?}", there.get(cell));
    }
    for (cell, value) in &there {
        assert!(*value == 0 || written.contains_key(cell), "{cell}: {value}");
    }
}

/// Every acknowledged row of a ledger is there, and no other that was not at least asked for.
pub fn ledger_holds(done: &Done, read: &[Action]) {
    let mut there = BTreeSet::new();
    for action in read {
        let Action::LedgerRead { values, .. } = action else { panic!("{action:?}") };
        values.iter().for_each(|value| assert!(there.insert(*value), "{value} twice"));
    }
    let of = |outcomes: &[Outcome]| -> BTreeSet<u64> {
        let wanted = done.operations.iter().filter(|operation| outcomes.contains(&operation.outcome));
        let value = |operation: &Operation| match operation.action {
            Action::LedgerInsert { value } => value,
            ref other => panic!("{other:?}"),
        };
        wanted.map(value).collect()
    };
    let acknowledged = of(&[Outcome::Ok]);
    assert!(!acknowledged.is_empty());
    assert!(acknowledged.is_subset(&there), "{:?}", acknowledged.difference(&there));
    let may_be_there = of(&[Outcome::Ok, Outcome::Unknown]);
    assert!(there.is_subset(&may_be_there), "{:?}", there.difference(&may_be_there));
}

/// The accounts hold together what they were opened with, at every read and in the end.
pub fn bank_holds(done: &Done, read: &[Action]) {
    let reads = done.operations.iter().filter(|operation| operation.outcome == Outcome::Ok);
    for action in reads.map(|operation| &operation.action).chain(read) {
        if let Action::BankRead { balances } = action {
            assert_eq!(balances.iter().map(|(_, balance)| balance).sum::<i64>(), 8_000, "{balances:?}");
        }
    }
}

/// Sums and rows of TPC-B are those of the transactions that were acknowledged.
pub fn tpcb_holds(done: &Done, read: &[Action]) {
    let deltas =
        done.operations.iter().filter(|operation| operation.outcome == Outcome::Ok).map(|operation| {
            let Action::TpcbTransaction { delta } = operation.action else {
                panic!("{:?}", operation.action)
            };
            delta
        });
    let mut amounts: BTreeMap<String, u64> = BTreeMap::new();
    let (sum, count) = deltas.fold((0, 0), |(sum, count), delta| {
        *amounts.entry(delta.to_string()).or_default() += 1;
        (sum + delta, count + 1)
    });
    let [Action::RowsRead { rows, complete: true, .. }, sums] = read else { panic!("{read:?}") };
    let Action::TpcbRead { accounts, tellers, branches, history, history_rows } = sums else {
        panic!("{read:?}")
    };
    assert_eq!(rows.iter().cloned().collect::<BTreeMap<_, _>>(), amounts);
    assert_eq!([*accounts, *tellers, *branches, *history], [sum; 4]);
    assert_eq!(*history_rows, count);
}

/// Every register has a value that was written to one.
pub fn registers_hold(done: &Done, read: &[Action]) {
    let written: BTreeSet<i64> = done
        .operations
        .iter()
        .filter_map(|operation| match operation.action {
            Action::RegisterWrite { value, .. } => Some(value),
            Action::RegisterCompareAndSet { new, .. } => Some(new),
            _ => None,
        })
        .collect();
    let is_written = |action: &Action| matches!(action, Action::RegisterRead { value: Some(value), .. } if written.contains(value));
    assert!(read.iter().all(is_written), "{read:?}");
}

/// What the acknowledged transactions appended is what the lists hold.
pub fn lists_hold(done: &Done, read: &[Action]) {
    fn appended<'a>(actions: impl Iterator<Item = &'a Action>) -> BTreeSet<i64> {
        let steps = actions.flat_map(|action| match action {
            Action::AppendTransaction { steps } => steps.clone(),
            other => panic!("{other:?}"),
        });
        steps
            .flat_map(|step| match step {
                history::Step::Append { value, .. } => vec![value],
                history::Step::Read { values, .. } => values.unwrap_or_default(),
            })
            .collect()
    }
    let acknowledged = done.operations.iter().filter(|operation| operation.outcome == Outcome::Ok);
    assert_eq!(appended(read.iter()), appended(acknowledged.map(|operation| &operation.action)));
}

/// Every operation of kv, on few keys, of which some are there before.
pub const KV: [(&str, &str); 6] = [
    ("read", "40%"),
    ("span", "10%"),
    ("span_limit", "20"),
    ("batch", "3"),
    ("keys", "200"),
    ("preload", "150"),
];

/// Short time series of few machines.
const IOT: [(&str, &str); 6] = [
    ("write", "60%"),
    ("machines", "10"),
    ("sensors", "3"),
    ("preload", "200"),
    ("data_min", "10"),
    ("data_max", "30"),
];

/// Runs a workload of cells until it has done so many transactions and every one of these kinds was there; its final read finds
/// what it wrote. It is prepared again afterwards, as by the next run on the same database, and what it wrote is gone.
fn cells_are_kept(plan: LoadPlan, options: &[(&str, &str)], transactions: usize, kinds: &[&str]) {
    let workload = plan.workload.name();
    let configured = workload::configured(workload, &texts(options)).expect("options that it knows");
    let plan = LoadPlan { workload: configured, ..plan };
    prepare(&plan, here(), &|_| {}).expect("prepared");
    let done = run_well(&plan, transactions, kinds);
    cells_are_those_written(&done, &read(&plan));
    prepare(&plan, here(), &|_| {}).expect("prepared again");
    let is_loaded = |action: &Action| match action {
        Action::CellsRead { cells, .. } => cells.iter().all(|(_, write)| *write == 0),
        other => panic!("{other:?}"),
    };
    assert!(read(&plan).iter().all(is_loaded), "{}", plan.name);
}

/// Two loads of iot on one database, which share a table: each finds all that it wrote.
pub fn two_loads_of_time_series_write_no_row_of_each_other(plan: &LoadPlan, transactions: usize) {
    let workload = || workload::configured("iot", &texts(&IOT)).expect("options that it knows");
    let first_clients = load::first_clients([4, 4]).into_iter();
    let loads: Vec<LoadPlan> = first_clients
        .map(|first_client| LoadPlan { workload: workload(), first_client, ..plan.clone() })
        .collect();
    loads.iter().for_each(|load| prepare(load, here(), &|_| {}).expect("prepared"));
    let mut done = Done { kinds: BTreeMap::new(), operations: Vec::new() };
    for load in &loads {
        done.operations.extend(run_well(load, transactions, &["write", "read"]).operations);
    }
    loads.iter().for_each(|load| cells_are_those_written(&done, &read(load)));
}

/// The key of kv that holds its key 3.
pub const KEY_3: &str = "kv/8000000000000003";

/// A value that somebody else has put under [`KEY_3`] is one cell that no write has; all others are read, and the next run on the
/// same database writes over it.
pub fn a_foreign_value_is_one_cell(plan: LoadPlan, put: impl Fn()) {
    let options = texts(&[("keys", "10"), ("preload", "10"), ("order", "sequential")]);
    let plan =
        LoadPlan { workload: workload::configured("kv", &options).expect("options that it knows"), ..plan };
    let cells = |no_write: Option<u64>| {
        let found = read(&plan).into_iter().flat_map(|action| match action {
            Action::CellsRead { cells, .. } => cells,
            other => panic!("{other:?}"),
        });
        let expected = (0..10).map(|cell| (cell, if no_write == Some(cell) { NO_WRITE } else { 0 }));
        assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    };
    prepare(&plan, here(), &|_| {}).expect("prepared");
    cells(None);
    put();
    cells(Some(3));
    prepare(&plan, here(), &|_| {}).expect("prepared again");
    cells(None);
}

/// Keys that somebody else has taken away are no cells; all others are read.
pub fn a_key_that_is_gone_is_no_cell(plan: LoadPlan, take: impl Fn()) {
    let options = texts(&[("keys", "10"), ("preload", "10"), ("order", "sequential")]);
    let plan =
        LoadPlan { workload: workload::configured("kv", &options).expect("options that it knows"), ..plan };
    prepare(&plan, here(), &|_| {}).expect("prepared");
    take();
    let cells = read(&plan).into_iter().flat_map(|action| match action {
        Action::CellsRead { cells, .. } => cells,
        other => panic!("{other:?}"),
    });
    let left: Vec<u64> = cells.map(|(cell, _)| cell).collect();
    assert_eq!(left, [0, 1, 2, 4, 5, 6, 7, 8, 9]);
}

/// A run with long values leaves more than a client takes in one answer; the next one on the same database has short ones.
pub fn long_values_are_written_over(plan: &LoadPlan) {
    let run = |preload: &str, block: &str| {
        let options = texts(&[("keys", "100"), ("preload", preload), ("block_min", block)]);
        LoadPlan {
            workload: workload::configured("kv", &options).expect("options that it knows"),
            ..plan.clone()
        }
    };
    prepare(&run("100", "900000"), here(), &|_| {}).expect("prepared with long values");
    let short = run("1", "1");
    prepare(&short, here(), &|_| {}).expect("prepared with short values");
    cells_are_those_written(&run_well(&short, 50, &["write"]), &read(&short));
}

/// Every workload of keys and values, until it has done so many transactions; the final read of each finds what it wrote.
pub fn every_workload_of_keys_runs(transactions: usize, plan: impl Fn(&str) -> LoadPlan) {
    type Holds = fn(&Done, &[Action]);
    let kinds = ["READ", "UPDATE", "INSERT", "SCAN", "READ-MODIFY-WRITE"];
    cells_are_kept(plan("ycsb"), &YCSB, transactions, &kinds);
    cells_are_kept(plan("kv"), &KV, transactions, &["read", "write", "span"]);
    let iot = plan("iot");
    cells_are_kept(iot.clone(), &IOT, transactions, &["write", "read"]);
    two_loads_of_time_series_write_no_row_of_each_other(&iot, transactions);
    let holds: [(&str, Holds); 5] = [
        ("ledger", ledger_holds),
        ("bank", bank_holds),
        ("tpcb", tpcb_holds),
        ("register", registers_hold),
        ("append", lists_hold),
    ];
    for (workload, holds) in holds {
        let plan = plan(workload);
        prepare(&plan, here(), &|_| {}).expect("prepared");
        let done = run_until(&plan, transactions, &[]);
        is_undisturbed(&done);
        holds(&done, &read(&plan));
    }
}

//! The load generator against a real PostgreSQL: what it records must be what happened.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use client::SqlSession;
use history::{Action, ErrorClass, FaultId, Operation, Outcome};
use load::{Batch, Clock, LoadError, LoadPlan, OnThread, final_read, prepare, start};

use crate::real_loads::server::{self, Server};
use crate::real_loads::{self, here, wait};

fn plan(workload: &str, clients: u32, servers: &[(&str, &Server)]) -> LoadPlan {
    let plan = real_loads::plan(workload, &BTreeMap::new(), clients, servers);
    LoadPlan { timeout: Duration::from_secs(5), connect_timeout: Duration::from_secs(2), ..plan }
}

/// What a load handed on, gathered.
#[derive(Default)]
struct Gathered {
    batches: Vec<Batch>,
}

impl Gathered {
    /// Receives until `enough`, or until the load has ended.
    fn until(&mut self, batches: &Receiver<Batch>, enough: impl Fn(&Gathered) -> bool) {
        while !enough(self) {
            let Ok(batch) = batches.recv() else { return };
            self.batches.push(batch);
        }
    }

    fn operations(&self) -> impl Iterator<Item = &Operation> {
        self.batches.iter().flat_map(|batch| &batch.history)
    }

    /// The longest wait that a closed loop recorded is the longest time between two successes of its history.
    fn check_longest_wait(&self) {
        let succeeded = self.operations().filter(|operation| operation.outcome == Outcome::Ok);
        let mut at_s: Vec<f64> = succeeded.map(|operation| operation.completed_s).collect();
        at_s.sort_by(f64::total_cmp);
        let expected_s = at_s.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
        let waits = self.batches.iter().flat_map(|batch| &batch.waits);
        let longest_s = waits.map(|wait| wait.length_s()).fold(0.0, f64::max);
        assert!(
            (longest_s - expected_s).abs() < 0.001,
            "waited {longest_s} s, in the history {expected_s} s"
        );
    }

    fn count(&self, outcome: Outcome) -> usize {
        self.operations().filter(|operation| operation.outcome == outcome).count()
    }

    /// Latencies and errors recorded under an operation's name, over all seconds.
    fn recorded(&self, operation: &str) -> (u64, BTreeMap<ErrorClass, u64>) {
        let (mut latencies, mut errors) = (0, BTreeMap::new());
        for seen in self.batches.iter().filter_map(|batch| batch.interval.operations.get(operation)) {
            latencies += seen.histogram.len();
            for (class, count) in &seen.errors {
                *errors.entry(*class).or_default() += count;
            }
        }
        (latencies, errors)
    }

    /// What must hold of every recording: seconds without gaps, histogram and history agree, times in order.
    fn check_is_sound(&self, transaction: &str) {
        let seconds: Vec<u64> = self.batches.iter().map(|batch| batch.interval.second).collect();
        assert_eq!(seconds, (0..seconds.len() as u64).collect::<Vec<_>>());
        let (latencies, errors) = self.recorded(transaction);
        assert_eq!(latencies, self.count(Outcome::Ok) as u64);
        assert_eq!(
            errors.values().sum::<u64>(),
            (self.count(Outcome::Fail) + self.count(Outcome::Unknown)) as u64
        );
        let of_transactions =
            self.batches.iter().filter_map(|batch| batch.interval.operations.get(transaction));
        let indefinite: u64 = of_transactions.flat_map(|seen| seen.errors_indefinite.values()).sum();
        assert_eq!(indefinite, self.count(Outcome::Unknown) as u64);
        let mut ended: BTreeMap<u64, f64> = BTreeMap::new();
        for operation in self.operations() {
            let before = ended.insert(operation.client, operation.completed_s).unwrap_or(0.0);
            assert!(
                before <= operation.invoked_s && operation.invoked_s <= operation.completed_s,
                "{operation:?}"
            );
            assert_eq!(operation.error.is_none(), operation.outcome == Outcome::Ok, "{operation:?}");
        }
    }
}

fn inserted(operations: &Gathered, outcome: Outcome) -> BTreeSet<u64> {
    let inserts = operations.operations().filter(|operation| operation.outcome == outcome);
    inserts
        .filter_map(|operation| match operation.action {
            Action::LedgerInsert { value } => Some(value),
            _ => None,
        })
        .collect()
}

fn found(read: &[Operation]) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    let last = read.len().checked_sub(1).expect("a read");
    for (page, operation) in read.iter().enumerate() {
        let Action::LedgerRead { values, complete } = &operation.action else { panic!("{operation:?}") };
        assert_eq!(*complete, page == last);
        for value in values {
            assert!(found.insert(*value), "{value} twice");
        }
    }
    found
}

/// Runs a future of the test's own; loads have their own threads.
#[test]
fn tpcb_keeps_its_sums_and_records_every_statement() {
    let Some(programs) = server::programs() else { return };
    let server = wait(Server::start(&programs, &[]));
    let plan = LoadPlan { scale: 2, ..plan("tpcb", 4, &[("n1", &server)]) };
    prepare(&plan, here(), &|_| {}).expect("prepared");
    prepare(&plan, here(), &|_| {}).expect("prepared again");
    let fillers = "SELECT count(*), sum(aid), min(length(filler)), \
                   (SELECT count(*) FROM pgbench_tellers WHERE bid = 2), \
                   (SELECT count(*) FROM pg_indexes WHERE tablename LIKE 'pgbench%') FROM pgbench_accounts";
    let rows = wait(async { server.client().await.batch(fillers).await }).expect("tables");
    let seen: Vec<_> = (0..5).map(|column| rows.integer(0, column)).collect();
    assert_eq!(seen, [200_000, 20_000_100_000, 0, 10, 3].map(Some));

    let clock = Clock::new();
    let (sink, batches) = channel();
    let load = start(plan.clone(), clock.clone(), here(), sink);
    let mut gathered = Gathered::default();
    gathered.until(&batches, |gathered| gathered.batches.len() >= 2 && gathered.count(Outcome::Ok) > 100);
    assert!(load.cpu().total() > Duration::ZERO);
    load.stop();
    gathered.until(&batches, |_| false);
    let end = load.join().expect("ended well");
    assert!(end.cpu.total() > Duration::ZERO);

    gathered.check_is_sound("transaction");
    let transactions = gathered.count(Outcome::Ok);
    assert_eq!((gathered.count(Outcome::Fail), gathered.count(Outcome::Unknown)), (0, 0));
    for statement in [
        "BEGIN",
        "UPDATE accounts",
        "SELECT accounts",
        "UPDATE tellers",
        "UPDATE branches",
        "INSERT history",
        "END",
    ] {
        assert_eq!(gathered.recorded(statement), (transactions as u64, BTreeMap::new()), "{statement}");
    }
    assert_eq!(gathered.recorded("connect").1, BTreeMap::new());
    let clients: BTreeSet<u64> = gathered.operations().map(|operation| operation.client).collect();
    assert_eq!(clients, (100..104).collect());
    let moved: i64 = gathered
        .operations()
        .map(|operation| match operation.action {
            Action::TpcbTransaction { delta } => delta,
            _ => panic!("{operation:?}"),
        })
        .sum();
    let read = final_read(&plan, &clock, here(), Duration::from_secs(60)).expect("read");
    let expected = Action::TpcbRead {
        accounts: moved,
        tellers: moved,
        branches: moved,
        history: moved,
        history_rows: transactions as u64,
    };
    let [amounts, sums] = read.as_slice() else { panic!("{read:?}") };
    assert_eq!(sums.action, expected);
    let Action::RowsRead { rows, complete: true, .. } = &amounts.action else { panic!("{amounts:?}") };
    assert_eq!(rows.iter().map(|(_, count)| count).sum::<u64>(), transactions as u64);
    assert!(read.iter().all(|operation| operation.node.as_deref() == Some("n1")), "{read:?}");
}

#[test]
fn clients_come_back_by_themselves_after_a_crash_and_nothing_acknowledged_is_missing() {
    let Some(programs) = server::programs() else { return };
    let mut server = wait(Server::start(&programs, &[]));
    // A node that is not there: found out on the way to the leader, not an obstacle.
    let mut plan = plan("ledger", 8, &[("n1", &server)]);
    plan.endpoints.push(load::Endpoint {
        node: "n2".into(),
        address: std::net::SocketAddr::from(([127, 0, 0, 1], 1)).into(),
    });
    prepare(&plan, here(), &|_| {}).expect("prepared");
    let clock = Clock::new();
    let (sink, batches) = channel();
    let load = start(plan.clone(), clock.clone(), here(), sink);
    let mut gathered = Gathered::default();
    gathered.until(&batches, |gathered| gathered.count(Outcome::Ok) > 100);

    let before_s = clock.seconds().expect("running");
    server.kill_postmaster();
    load.mark_fault(FaultId::new(5), before_s);
    let killed_s = clock.seconds().expect("running");
    load.mark_fault(FaultId::new(6), killed_s + 0.001);
    gathered.until(&batches, |gathered| {
        gathered.recorded("connect").1.get(&ErrorClass::Connection).is_some_and(|count| *count > 16)
    });
    wait(server.restart());
    let restarted_s = clock.seconds().expect("running");
    gathered.until(&batches, |gathered| {
        let late = gathered.operations().filter(|operation| operation.invoked_s > restarted_s);
        late.filter(|operation| operation.outcome == Outcome::Ok)
            .map(|operation| operation.client)
            .collect::<BTreeSet<_>>()
            .len()
            == 8
    });
    load.stop();
    gathered.until(&batches, |_| false);
    load.join().expect("ended well");

    gathered.check_is_sound("insert");
    let read = final_read(&plan, &clock, here(), Duration::from_secs(60)).expect("read");
    let there = found(&read);
    let (acknowledged, refused) = (inserted(&gathered, Outcome::Ok), inserted(&gathered, Outcome::Fail));
    let indeterminate = inserted(&gathered, Outcome::Unknown);
    assert!(acknowledged.is_subset(&there), "lost: {:?}", acknowledged.difference(&there));
    assert!(refused.is_disjoint(&there), "refused and there: {refused:?}");
    assert!(there.difference(&acknowledged).all(|value| indeterminate.contains(value)), "invented");
    assert!(!indeterminate.is_empty(), "eight clients were cut off in mid-insert");
    let firsts = gathered.batches.iter().flat_map(|batch| &batch.first_success);
    let told: BTreeMap<usize, f64> = firsts.map(|first| (first.fault.index(), first.after_s)).collect();
    assert_eq!(told.keys().copied().collect::<Vec<_>>(), [5, 6]);
    let first = gathered
        .operations()
        .filter(|operation| operation.outcome == Outcome::Ok && operation.invoked_s >= killed_s + 0.001);
    let first_s = first.map(|operation| operation.completed_s).fold(f64::INFINITY, f64::min);
    assert!((told[&6] - (first_s - killed_s - 0.001)).abs() < 0.001, "{told:?} {first_s} {killed_s}");
    gathered.check_longest_wait();
    let errors = gathered.recorded("connect").1;
    assert!(errors.keys().all(|class| *class == ErrorClass::Connection), "{errors:?}");
}

#[test]
fn operations_in_flight_at_the_end_are_unknown_and_late_commits_are_not_lost() {
    let Some(programs) = server::programs() else { return };
    let server = wait(Server::start(&programs, &[]));
    let plan = LoadPlan { timeout: Duration::from_millis(700), ..plan("ledger", 3, &[("n1", &server)]) };
    prepare(&plan, here(), &|_| {}).expect("prepared");
    wait(async {
        let mut admin = server.client().await;
        admin.batch("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (nobody)'").await.expect("set");
        admin.batch("SELECT pg_reload_conf()").await.expect("reload");
        while admin.batch("SHOW synchronous_standby_names").await.expect("show").text(0, 0) == Some("") {}
    });
    let clock = Clock::new();
    let (sink, batches) = channel();
    let load = start(plan.clone(), clock.clone(), here(), sink);
    wait(async {
        let mut watcher = server.client().await;
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
        while watcher.batch(waiting).await.expect("watch").integer(0, 0) < Some(3) {}
    });
    load.stop();
    let mut gathered = Gathered::default();
    gathered.until(&batches, |_| false);
    load.join().expect("ended well");
    gathered.check_is_sound("insert");
    let indeterminate = inserted(&gathered, Outcome::Unknown);
    assert!(indeterminate.len() >= 3, "{indeterminate:?}");
    assert!(inserted(&gathered, Outcome::Ok).len() <= 3, "only inserts from before the setting was seen");
    assert!(
        gathered
            .operations()
            .all(|operation| operation.error.is_none_or(|error| error == ErrorClass::Timeout))
    );
}

#[test]
fn a_load_nobody_listens_to_ends_and_a_dropped_handle_stops_it() {
    let Some(programs) = server::programs() else { return };
    let server = wait(Server::start(&programs, &[]));
    let plan = plan("ledger", 2, &[("n1", &server)]);
    prepare(&plan, here(), &|_| {}).expect("prepared");
    let (sink, batches) = channel();
    let load = start(plan.clone(), Clock::new(), here(), sink);
    drop(batches);
    load.join().expect("ends by itself");

    let (sink, batches) = channel();
    let load = start(plan.clone(), Clock::new(), here(), sink);
    drop(load);
    Gathered::default().until(&batches, |_| false);

    // A zero that lies ahead is waited for. A ledger begins anew: its numbers do too.
    prepare(&plan, here(), &|_| {}).expect("prepared again");
    let zero = Instant::now() + Duration::from_millis(300);
    let (sink, batches) = channel();
    let load = start(plan, Clock::with_zero(zero), here(), sink);
    let mut gathered = Gathered::default();
    gathered.until(&batches, |gathered| gathered.count(Outcome::Ok) > 0);
    load.stop();
    gathered.until(&batches, |_| false);
    load.join().expect("ended well");
    gathered.check_is_sound("insert");
    assert!(gathered.operations().all(|operation| operation.invoked_s >= 0.0));
}

#[test]
fn what_cannot_be_done_is_told_and_nothing_hangs() {
    let Some(programs) = server::programs() else { return };
    let server = wait(Server::start(&programs, &[]));
    let plan = plan("ledger", 2, &[("n1", &server)]);
    let check = |result: Result<(), LoadError>, expected: &str| {
        let seen = result.map_or_else(|error| error.to_string(), |()| "ok".to_owned());
        assert!(seen.contains(expected), "{seen:?} lacks {expected:?}");
    };
    let no_database = LoadPlan { user: "nobody-known".into(), ..plan.clone() };
    let read = final_read(&no_database, &Clock::new(), here(), Duration::from_millis(300));
    check(read.map(|_| ()), "role \"nobody-known\" does not exist");
    let read = final_read(&plan, &Clock::new(), here(), Duration::from_millis(300));
    check(read.map(|_| ()), "relation \"holdfast_ledger\" does not exist");
    let elsewhere: OnThread = Box::new(|| Err(std::io::Error::other("no such namespace")));
    let load = start(plan.clone(), Clock::new(), elsewhere, channel().0);
    check(load.join().map(|_| ()), "load ledger-load: putting its thread into its place: no such namespace");
    let broken: OnThread = Box::new(|| panic!("defect"));
    check(prepare(&plan, broken, &|_| {}).map(|_| ()), "load ledger-load: its thread panicked");
}

#[test]
fn a_final_read_whose_pages_come_takes_as_long_as_it_needs_and_one_whose_page_does_not_come_ends() {
    let Some(programs) = server::programs() else { return };
    let server = wait(Server::start(&programs, &[]));
    let plan = plan("ledger", 1, &[("n1", &server)]);
    let rows = |slow: &str, pause_s: f64, within_s: u64| {
        // A page has 50,000 rows.
        let view = format!(
            "DROP VIEW IF EXISTS holdfast_ledger; CREATE VIEW holdfast_ledger AS \
             SELECT value + CASE WHEN {slow} THEN length(pg_sleep({pause_s})::text) ELSE 0 END AS value \
             FROM generate_series(0::bigint, 149999) value"
        );
        wait(async { server.client().await.batch(&view).await }).expect("a slow table");
        let read = final_read(&plan, &Clock::new(), here(), Duration::from_secs(within_s));
        read.map(|read| found(&read).len()).map_err(|error| error.to_string())
    };
    assert_eq!(rows("value % 50000 = 7", 1.0, 2), Ok(150_000));
    let error = rows("value = 70000", 30.0, 2).expect_err("its second page did not come");
    assert!(error.contains("the final read"), "{error}");
}

#[test]
fn a_load_that_panics_or_ends_with_an_error_leaves_what_was_in_flight_as_unknown() {
    let Some(programs) = server::programs() else { return };
    let server = wait(Server::start(&programs, &[]));
    let panics = load::Defects { panics: true, ..Default::default() };
    let dies = load::Defects { dies: true, ..Default::default() };
    for (defects, clients, expected) in [
        (panics, 1, "load ledger-load: its thread panicked: a planted defect"),
        (panics, 8, "load ledger-load: its thread panicked: a planted defect"),
        (dies, 8, "load ledger-load: a planted defect ended it"),
    ] {
        let plan = LoadPlan { defects, ..plan("ledger", clients, &[("n1", &server)]) };
        prepare(&plan, here(), &|_| {}).expect("prepared");
        let clock = Clock::new();
        let (sink, batches) = channel();
        let load = start(plan.clone(), clock.clone(), here(), sink);
        let mut gathered = Gathered::default();
        gathered.until(&batches, |_| false);
        let ended = load.join().map_or_else(|error| error.to_string(), |_| "well".to_owned());
        assert_eq!(ended, expected);
        assert_eq!(gathered.batches.last().and_then(|batch| batch.failure.as_deref()), Some(expected));
        gathered.check_is_sound("insert");
        let mut waits = gathered.batches.iter().flat_map(|batch| &batch.waits);
        assert!(waits.any(|wait| wait.is_open), "what was waited for when it ended is not told");
        let there = found(&final_read(&plan, &clock, here(), Duration::from_secs(60)).expect("read"));
        let acknowledged = inserted(&gathered, Outcome::Ok);
        let indeterminate = inserted(&gathered, Outcome::Unknown);
        assert!(acknowledged.is_subset(&there), "lost: {:?}", acknowledged.difference(&there));
        assert!(there.difference(&acknowledged).all(|value| indeterminate.contains(value)), "invented");
        if defects == panics {
            // Its insert had been answered when the client panicked.
            assert!(there.intersection(&indeterminate).next().is_some(), "{indeterminate:?}");
        }
    }
}

#[test]
fn one_insert_is_dropped_or_invented_where_a_test_plants_that() {
    let Some(programs) = server::programs() else { return };
    let server = wait(Server::start(&programs, &[]));
    let odd = |defects: load::Defects| {
        let plan = LoadPlan { defects, ..plan("ledger", 2, &[("n1", &server)]) };
        prepare(&plan, here(), &|_| {}).expect("prepared");
        let clock = Clock::new();
        let (sink, batches) = channel();
        let load = start(plan.clone(), clock.clone(), here(), sink);
        let mut gathered = Gathered::default();
        gathered.until(&batches, |gathered| gathered.batches.len() == 2);
        load.stop();
        gathered.until(&batches, |_| false);
        load.join().expect("ended well");
        let there = found(&final_read(&plan, &clock, here(), Duration::from_secs(60)).expect("read"));
        let acknowledged = inserted(&gathered, Outcome::Ok);
        (acknowledged.difference(&there).count(), there.difference(&acknowledged).count())
    };
    assert_eq!(odd(load::Defects::default()), (0, 0));
    assert_eq!(odd(load::Defects { drops_insert: true, ..Default::default() }), (1, 0));
    assert_eq!(odd(load::Defects { invents_insert: true, ..Default::default() }), (0, 1));
}

#[test]
fn the_first_error_of_each_class_is_told_in_the_servers_words() {
    let Some(programs) = server::programs() else { return };
    let server = wait(Server::start(&programs, &[]));
    // Nobody made its tables.
    let (sink, batches) = channel();
    let load = start(plan("ledger", 4, &[("n1", &server)]), Clock::new(), here(), sink);
    let mut gathered = Gathered::default();
    gathered.until(&batches, |gathered| gathered.batches.len() == 2);
    load.stop();
    gathered.until(&batches, |_| false);
    load.join().expect("ended well");
    let told: Vec<_> = gathered.batches.iter().flat_map(|batch| &batch.first_errors).collect();
    let [first] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((first.class, first.node.as_deref()), (ErrorClass::Other, Some("n1")));
    assert_eq!(first.code.as_deref(), Some("42P01"));
    assert!(first.text.contains("relation \"holdfast_ledger\" does not exist"), "{first:?}");
}

#[test]
fn what_clients_wait_for_without_a_session_is_open_when_the_load_is_told_to_stop() {
    let Some(programs) = server::programs() else { return };
    let server = wait(Server::start(&programs, &[]));
    let plan = plan("ledger", 4, &[("n1", &server)]);
    prepare(&plan, here(), &|_| {}).expect("prepared");
    drop(server);
    // The word to stop reaches the clients before the load, or after it.
    for _ in 0..50 {
        let clock = Clock::new();
        clock.set_zero(Instant::now());
        let (sink, batches) = channel();
        let load = start(plan.clone(), clock, here(), sink);
        while load.last_beat().is_none() {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(20));
        load.stop();
        let mut gathered = Gathered::default();
        gathered.until(&batches, |_| false);
        load.join().expect("ended well");
        let waits: Vec<_> = gathered.batches.iter().flat_map(|batch| &batch.waits).collect();
        assert!(waits.iter().any(|wait| wait.is_open), "{waits:?}");
    }
}

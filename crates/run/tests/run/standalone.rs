//! A load alone against a real PostgreSQL: the files it leaves, and what it says is proved.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use client::{Session, SessionFuture, SqlSession};
use history::EventKind;
use load::{Arrival, LoadPlan, Step};
use run::{Standalone, StandaloneEnd, StandaloneNews, run_alone};
use tempfile::TempDir;
use workload::{Attempt, ClientState, Request, Statement, TableSetup, Workload};

use crate::real_loads;
use crate::real_loads::server::{self, Server};

fn asked(server: &Server, out: &TempDir, rate_per_s: Option<f64>, makes_tables: bool) -> Standalone {
    let plan = LoadPlan {
        name: "ledger".to_owned(),
        steps: vec![Step { from_s: 0.0, clients: 4, rate_per_s }],
        arrival: Arrival::Poisson,
        first_client: 0,
        seed: 3,
        timeout: Duration::from_secs(10),
        connect_timeout: Duration::from_secs(10),
        ..real_loads::plan("ledger", &BTreeMap::new(), 4, &[("n1", server)])
    };
    Standalone {
        plan,
        options: BTreeMap::new(),
        warm_up: Duration::from_secs(1),
        length: Duration::from_secs(2),
        makes_tables,
        out: out.path().to_owned(),
        version: "test",
    }
}

fn told(end: &StandaloneEnd) -> String {
    format!("{} {}", end.result.verdict, end.result.reasons.join("; "))
}

#[test]
fn a_load_alone_leaves_a_runs_files_and_proves_only_what_it_could_see() {
    let Some(programs) = server::programs() else { return };
    let server = client::reactor::block_on(Server::start(&programs, &[])).expect("an event loop");
    let out = tempfile::tempdir().expect("temporary folder");

    let seconds = AtomicU64::new(0);
    let count = |told: StandaloneNews<'_>| {
        if matches!(told, StandaloneNews::Second { .. }) {
            seconds.fetch_add(1, Ordering::Relaxed);
        }
    };
    let end = run_alone(&asked(&server, &out, Some(300.0), true), &|| false, &count).expect("ran");
    assert_eq!(told(&end), "pass every check passed");
    assert_eq!(seconds.load(Ordering::Relaxed), 3);
    let load = &end.result.loads[0];
    assert_eq!((load.measured.clients, load.measured.rate_per_s), (None, Some(300.0)));
    assert_eq!(
        load.phases.iter().map(|phase| phase.name.as_str()).collect::<Vec<_>>(),
        ["warm-up", "measured"]
    );
    assert!(
        load.measured.transactions > 0
            && load.measured.operations["insert (service)"].count == load.measured.transactions
    );
    for file in ["timeline.csv", "timeline.hlog", "history.jsonl.zst", "events.jsonl", "result.json"] {
        let length = fs::metadata(end.directory.join(file)).map(|file| file.len()).unwrap_or(0);
        assert!(length > 0, "{file}");
    }
    assert!(results::read(&end.directory).is_ok_and(|read| !read.is_derived));

    // A ledger's rows have the same numbers each time: they must not be there yet.
    client::reactor::block_on(async {
        server.client().await.batch("TRUNCATE holdfast_ledger").await.expect("truncated");
    })
    .expect("an event loop");
    let end = run_alone(&asked(&server, &out, None, false), &|| false, &|_| {}).expect("ran");
    assert!(told(&end).starts_with("unknown the load used existing tables"), "{}", told(&end));
    assert_eq!(
        (end.result.loads[0].measured.clients, end.result.loads[0].measured.rate_per_s),
        (Some(4), None)
    );

    let looks = Cell::new(0);
    let after_a_while = || looks.replace(looks.get() + 1) > 5;
    let end = run_alone(&asked(&server, &out, None, true), &after_a_while, &|_| {}).expect("ran");
    assert!(end.interrupted && told(&end).starts_with("unknown the load was interrupted"), "{}", told(&end));
    let read = results::read(&end.directory).expect("readable");
    assert!(read.events.iter().any(|event| matches!(event.kind, EventKind::Interrupted { .. })));
    assert!(end.result.loads[0].phases.iter().all(|phase| phase.to_s.fract() == 0.0), "whole seconds");
    assert_eq!(end.result.lab.cpu_seconds.len(), results::CPU_PARTS.len());
}

#[test]
fn more_clients_than_the_server_takes_are_refused_in_its_own_words() {
    let Some(programs) = server::programs() else { return };
    // Of 200 sessions.
    let server = client::reactor::block_on(Server::start(&programs, &[])).expect("an event loop");
    let out = tempfile::tempdir().expect("temporary folder");
    let mut asked = asked(&server, &out, None, true);
    asked.plan.steps[0].clients = 260;
    let error = run_alone(&asked, &|| false, &|_| {}).expect_err("refused").to_string();
    assert!(error.contains(" of 260 clients: "), "{error}");
    assert!(error.contains("53300 sorry, too many clients already"), "{error}");
    assert!(error.contains("raise its max_connections above 260"), "{error}");
}

#[test]
fn lists_are_held_against_the_level_that_transactions_begin_at() {
    let Some(programs) = server::programs() else { return };
    let server = client::reactor::block_on(Server::start(&programs, &["fsync=off"])).expect("an event loop");
    let out = tempfile::tempdir().expect("temporary folder");
    let judged = |options: &[(&str, &str)]| {
        let mut asked = asked(&server, &out, None, true);
        asked.options = options.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        asked.plan.name = "append".to_owned();
        asked.plan.workload = workload::configured("append", &asked.options).expect("listed");
        run_alone(&asked, &|| false, &|_| {}).expect("ran").result.checks.remove(0)
    };
    // By itself PostgreSQL promises read committed, which loses updates.
    let plain = judged(&[]);
    assert!(plain.explanation.contains("read-committed"), "{}", plain.explanation);
    assert_eq!(plain.verdict, history::Verdict::Pass, "{}", plain.explanation);
    let strict = judged(&[("isolation", "serializable")]);
    assert!(strict.explanation.contains("serializable"), "{}", strict.explanation);
    assert_eq!(strict.verdict, history::Verdict::Pass, "{}", strict.explanation);
}

/// A ledger whose generator stands still for a fifth of a second after each fifty transactions.
struct Hesitant(Arc<dyn Workload>, AtomicU64);

impl Workload for Hesitant {
    fn facts(&self) -> &'static capabilities::workloads::WorkloadFacts {
        self.0.facts()
    }
    fn statements(&self) -> &[Statement] {
        self.0.statements()
    }
    fn setup<'a>(&'a self, setup: &'a mut TableSetup<'_>) -> SessionFuture<'a, ()> {
        self.0.setup(setup)
    }
    fn draw(&self, client: &mut ClientState) -> Request {
        if self.1.fetch_add(1, Ordering::Relaxed) % 50 == 49 {
            std::thread::sleep(Duration::from_millis(200));
        }
        self.0.draw(client)
    }
    fn perform<'a>(
        &'a self,
        request: &'a mut Request,
        attempt: &'a mut Attempt<'_>,
    ) -> SessionFuture<'a, ()> {
        self.0.perform(request, attempt)
    }
    fn final_read<'a>(&'a self, session: &'a mut Session) -> SessionFuture<'a, Vec<history::Action>> {
        self.0.final_read(session)
    }
}

/// Whether the result, the terminal's text and the page tell a doubt, with what to do about it.
#[track_caller]
fn is_doubted(end: &StandaloneEnd, what: &str, remedy: &str) {
    let warnings = &end.result.lab.warnings;
    assert!(
        warnings.iter().any(|warning| warning.what.contains(what) && warning.remedy.contains(remedy)),
        "{what}: {warnings:#?}"
    );
    report::write(&end.directory).expect("a page");
    let page = fs::read_to_string(end.directory.join("report.html")).expect("read");
    let folded = |text: &str| {
        let text = text.replace("&#39;", "'").replace("&#x27;", "'").replace("&amp;", "&");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for (place, text) in [("terminal", folded(&report::text(&end.result))), ("page", folded(&page))] {
        assert!(text.contains(what) && text.contains(remedy), "{what} is not on the {place}");
    }
}

#[test]
#[ignore = "second tier: a quarter of a minute with every processor busy"]
fn every_doubt_is_told_where_what_it_doubts_is_provoked() {
    let Some(programs) = server::programs() else { return };
    let server = client::reactor::block_on(Server::start(&programs, &["fsync=off"])).expect("an event loop");
    let out = tempfile::tempdir().expect("temporary folder");
    let run = |change: &dyn Fn(&mut Standalone)| {
        let mut asked = asked(&server, &out, Some(100.0), true);
        asked.length = Duration::from_secs(4);
        change(&mut asked);
        run_alone(&asked, &|| false, &|_| {}).expect("ran")
    };

    let stop = AtomicBool::new(false);
    let processors = std::thread::available_parallelism().expect("known").get();
    let end = std::thread::scope(|scope| {
        for _ in 0..2 * processors {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let end = run(&|asked| {
            asked.plan.workload = Arc::new(Hesitant(Arc::clone(&asked.plan.workload), AtomicU64::new(0)));
        });
        stop.store(true, Ordering::Relaxed);
        end
    });
    is_doubted(&end, "the machine's processors were", "lower the load, or run on a machine with more");
    is_doubted(&end, "the generator of load ledger sent 1 % of its operations", "lower the rate, or free");
    is_doubted(&end, "too few samples for p99 of ledger", "make the phase longer or raise");

    let rising = |asked: &mut Standalone| {
        let step = |from_s, per_s| Step { from_s, clients: 4, rate_per_s: Some(per_s) };
        asked.plan.steps = vec![step(0.0, 20.0), step(3.0, 200.0)];
    };
    is_doubted(&run(&rising), "load ledger was not steady", "make the warm-up longer");

    let flooded = |asked: &mut Standalone| {
        asked.plan.steps = vec![Step { from_s: 0.0, clients: 1, rate_per_s: Some(200_000.0) }];
        asked.length = Duration::from_secs(1);
    };
    let end = run(&flooded);
    is_doubted(&end, "were due but never sent", "allow more connections");
    is_doubted(&end, "too few to tell whether it was steady", "make the baseline longer");
}

#[test]
fn two_primaries_among_the_servers_of_a_load_alone_leave_its_verdict_in_doubt() {
    let Some(programs) = server::programs() else { return };
    let start = || client::reactor::block_on(Server::start(&programs, &[])).expect("an event loop");
    let (one, other) = (start(), start());
    let out = tempfile::tempdir().expect("temporary folder");
    let of = |servers: &[(&str, &Server)]| {
        let endpoints = real_loads::plan("ledger", &BTreeMap::new(), 4, servers).endpoints;
        let Standalone { plan, .. } = asked(&one, &out, Some(100.0), true);
        LoadPlan { endpoints, ..plan }
    };
    // The other has the table as well: each takes writes.
    load::prepare(&of(&[("n2", &other)]), load::here(), &|_| {}).expect("prepared");
    let asked =
        Standalone { plan: of(&[("n1", &one), ("n2", &other)]), ..asked(&one, &out, Some(100.0), true) };
    let end = run_alone(&asked, &|| false, &|_| {}).expect("ran");
    assert_ne!(end.result.verdict, history::Verdict::Pass, "{}", told(&end));
    let events = fs::read_to_string(end.directory.join("events.jsonl")).expect("its events");
    assert!(events.contains("leaders-at-the-end"), "{events}");
}

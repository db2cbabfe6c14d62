//! A load alone against a real PostgreSQL: the files it leaves, and what it says is proved.

#[path = "../../client/tests/server/mod.rs"]
mod server;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use client::SqlSession;
use load::{Arrival, LoadPlan, Step, ThinkTime};
use run::{Standalone, StandaloneEnd, Told, run_alone};
use server::Server;
use tempfile::TempDir;

fn asked(server: &Server, out: &TempDir, rate_per_s: Option<f64>, makes_tables: bool) -> Standalone {
    let plan = LoadPlan {
        name: "ledger".to_owned(),
        workload: workload::configured("ledger", &BTreeMap::new()).expect("listed"),
        steps: vec![Step { from_s: 0.0, clients: 4, rate_per_s }],
        arrival: Arrival::Poisson,
        think_time: ThinkTime::None,
        first_client: 0,
        keeps_history: true,
        scale: 1,
        protocol: load::Protocol::Postgres,
        reads: client::postgres::Reads::Leader,
        seed: 3,
        endpoints: vec![server.endpoint("n1")],
        database: "postgres".to_owned(),
        user: "postgres".to_owned(),
        password: None,
        encryption: load::Encryption::Never,
        timeout: Duration::from_secs(10),
        connect_timeout: Duration::from_secs(10),
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
    let count = |told: Told<'_>| {
        if matches!(told, Told::Second { .. }) {
            seconds.fetch_add(1, Ordering::Relaxed);
        }
    };
    let end = run_alone(&asked(&server, &out, Some(300.0), true), &|| false, &count).expect("ran");
    assert_eq!(told(&end), "pass every check passed");
    assert_eq!(seconds.load(Ordering::Relaxed), 3);
    let load = &end.result.loads[0];
    assert_eq!((load.clients, load.rate_per_s), (None, Some(300.0)));
    assert_eq!(
        load.phases.iter().map(|phase| phase.name.as_str()).collect::<Vec<_>>(),
        ["warm-up", "measured"]
    );
    assert!(load.transactions > 0 && load.operations["insert (service)"].count == load.transactions);
    for file in ["timeline.csv", "timeline.hlog", "history.jsonl.zst", "events.jsonl", "result.json"] {
        let length = fs::metadata(end.directory.join(file)).map(|file| file.len()).unwrap_or(0);
        assert!(length > 0, "{file}");
    }
    assert!(report::read(&end.directory).is_ok_and(|read| !read.is_derived));

    // A ledger's rows have the same numbers each time: they must not be there yet.
    client::reactor::block_on(async {
        server.client().await.batch("TRUNCATE holdfast_ledger").await.expect("truncated");
    })
    .expect("an event loop");
    let end = run_alone(&asked(&server, &out, None, false), &|| false, &|_| {}).expect("ran");
    assert!(told(&end).starts_with("unknown the load ran on tables it had not made"), "{}", told(&end));
    assert_eq!((end.result.loads[0].clients, end.result.loads[0].rate_per_s), (Some(4), None));

    let looks = Cell::new(0);
    let after_a_while = || looks.replace(looks.get() + 1) > 5;
    let end = run_alone(&asked(&server, &out, None, true), &after_a_while, &|_| {}).expect("ran");
    assert!(end.interrupted && told(&end).starts_with("unknown the load was interrupted"), "{}", told(&end));
}

//! What the tests of loads on a real PostgreSQL stand on: the server, and a load of a workload on it as most of them want it.

#[path = "../../../client/tests/server/mod.rs"]
pub mod server;

use std::collections::BTreeMap;
use std::time::Duration;

use load::{LoadPlan, OnThread};
use server::Server;

/// A load of so many clients that keeps its history; what a test wants otherwise it says.
pub fn plan(
    workload: &str,
    options: &BTreeMap<String, String>,
    clients: u32,
    servers: &[(&str, &Server)],
) -> LoadPlan {
    LoadPlan {
        name: format!("{workload}-load"),
        workload: workload::configured(workload, options).expect("listed, with options it knows"),
        steps: vec![load::Step { from_s: 0.0, clients, rate_per_s: None }],
        arrival: load::Arrival::Constant,
        think_time: load::ThinkTime::None,
        keeps_history: true,
        first_client: 100,
        scale: 1,
        protocol: load::Protocol::Postgres,
        reads: client::postgres::Reads::Leader,
        seed: 7,
        endpoints: servers.iter().map(|(node, server)| server.endpoint(node)).collect(),
        database: "postgres".to_owned(),
        user: "postgres".to_owned(),
        password: None,
        encryption: load::Encryption::Never,
        timeout: Duration::from_secs(20),
        connect_timeout: Duration::from_secs(5),
        defects: load::Defects::default(),
    }
}

/// A load's thread stays where it is.
pub fn here() -> OnThread {
    Box::new(|| Ok(()))
}

/// The end of what an event loop carries out.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    client::reactor::block_on(future).expect("an event loop")
}

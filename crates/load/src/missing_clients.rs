//! The moment before the clock's zero: every client of every load connects, and who could not is told.
//!
//! Without it the first seconds of a load of thousands would be those of its connecting, and a client that has no session
//! would be missing from the baseline without a word. The counts are `muster`'s.

use std::time::{Duration, Instant};

use history::TOO_MANY_CONNECTIONS;

use crate::generator::LoadHandle;
use crate::plan::LoadPlan;

/// How long the load is waited for while no further client connects. However slow the machine, each that does counts.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it is looked how many have.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A load some of whose clients have no session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingClients {
    /// The load's name.
    pub load: String,
    /// Clients with a session.
    pub connected: usize,
    /// Clients it begins with.
    pub clients: usize,
    /// The code and the text of the first error, where there was one.
    pub error: Option<(Option<String>, String)>,
}

impl MissingClients {
    /// Whether the server refuses further sessions, for all it takes are in use.
    #[must_use]
    pub fn is_for_a_full_server(&self) -> bool {
        matches!(&self.error, Some((Some(code), _)) if TOO_MANY_CONNECTIONS.contains(&code.as_str()))
    }

    /// What is wrong, in words.
    #[must_use]
    pub fn what(&self) -> String {
        let MissingClients { load, connected, clients, error } = self;
        let why = error.as_ref().map(|(_, message)| format!(": {message}")).unwrap_or_default();
        format!(
            "load {load}: {} of its {clients} clients had no session when it began{why}",
            clients - connected
        )
    }
}

/// The load, where some of the clients that it begins with have no session. One that has ended has nobody to wait for.
#[must_use]
pub fn missing_clients(load: &LoadHandle, plan: &LoadPlan) -> Option<MissingClients> {
    let clients = plan.step_at(0.0).map_or(0, |step| usize::try_from(step.clients).unwrap_or(usize::MAX));
    let connected = load.muster().connected();
    (connected < clients && !load.is_finished()).then(|| MissingClients {
        load: plan.name.clone(),
        connected,
        clients,
        error: load.muster().first_error().map(|error| (error.code, error.message)),
    })
}

/// Waits until `missing` finds nobody, or `is_over`, or nobody has connected for a while; who is missing then. `is_over` is asked several
/// times a second and may wait for as long as it is told.
pub fn await_clients(
    missing: impl Fn() -> Vec<MissingClients>,
    mut is_over: impl FnMut(&[MissingClients], Duration) -> bool,
) -> Vec<MissingClients> {
    let (mut progress, mut latest) = (Instant::now(), usize::MAX);
    loop {
        let missing = missing();
        let without = missing.iter().map(|load| load.clients - load.connected).sum();
        if without < latest {
            (progress, latest) = (Instant::now(), without);
        }
        if missing.is_empty() || progress.elapsed() >= PATIENCE || is_over(&missing, LOOK_AGAIN) {
            return missing;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_server_is_known_whichever_database_it_is() {
        let is_full = |code: Option<&str>| {
            let error = Some((code.map(str::to_owned), "no".to_owned()));
            MissingClients { load: "kv".to_owned(), connected: 1, clients: 2, error }.is_for_a_full_server()
        };
        assert!(is_full(Some("53300")), "PostgreSQL's");
        assert!(is_full(Some("1040")), "MySQL's");
        assert!(!is_full(Some("28P01")) && !is_full(Some("1045")) && !is_full(None));
    }
}

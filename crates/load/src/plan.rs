//! What a load is asked to do, and how it can fail as a whole.

use std::io;
use std::time::Duration;

use client::postgres::{Endpoint, PostgresConnector, Settings};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use workload::Workload;

/// Called first on the load's own thread: puts it where the clients stand (a network namespace, a CPU).
pub type OnThread = Box<dyn FnOnce() -> io::Result<()> + Send>;

/// A workload at a number of clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadPlan {
    /// The load's name, unique in the run.
    pub name: String,
    /// The workload's name.
    pub workload: String,
    /// Closed loop: number of clients.
    pub clients: u32,
    /// Number of the first client. Give each load of a run its own range: histories tell clients apart by number, and
    /// the ledger makes its rows' numbers from it.
    pub first_client: u64,
    /// Scale factor.
    pub scale: u32,
    /// The run's seed.
    pub seed: u64,
    /// Every node that may take the writes now or later.
    pub endpoints: Vec<Endpoint>,
    /// The database's name.
    pub database: String,
    /// The role's name.
    pub user: String,
    /// The role's password, for servers that ask.
    pub password: Option<String>,
    /// How long a client waits for an answer to one statement before it gives the session up.
    pub timeout: Duration,
    /// How long a connection attempt at one node may take.
    pub connect_timeout: Duration,
}

/// Why a load, a preparation or a final read could not do its job.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// No workload has this name.
    #[error("load {load}: no workload is named {workload:?}")]
    UnknownWorkload {
        /// The load.
        load: String,
        /// The name.
        workload: String,
    },
    /// There is nothing to do, or nothing to do it to.
    #[error("load {load}: {what}")]
    ImpossiblePlan {
        /// The load.
        load: String,
        /// What is impossible about it.
        what: String,
    },
    /// The thread could not be started or put into its place.
    #[error("load {load}: {what}: {source}")]
    Thread {
        /// The load.
        load: String,
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The thread panicked: a defect of the generator.
    #[error("load {load}: its thread panicked")]
    Panicked {
        /// The load.
        load: String,
    },
    /// Tables could not be made, or the end could not be read, in the time given.
    #[error("load {load}: {what} failed: {last_error}")]
    GaveUp {
        /// The load.
        load: String,
        /// What was tried.
        what: &'static str,
        /// The last error seen.
        last_error: String,
    },
}

impl LoadPlan {
    /// The workload, when the plan as a whole can be carried out.
    pub(crate) fn checked(&self) -> Result<&'static dyn Workload, LoadError> {
        let impossible = |what: String| Err(LoadError::ImpossiblePlan { load: self.name.clone(), what });
        let Some(workload) = workload::by_name(&self.workload) else {
            return Err(LoadError::UnknownWorkload {
                load: self.name.clone(),
                workload: self.workload.clone(),
            });
        };
        if self.clients == 0 {
            return impossible("it has no clients".to_owned());
        }
        if self.endpoints.is_empty() {
            return impossible("it has no endpoints".to_owned());
        }
        let last_client = self.first_client.saturating_add(u64::from(self.clients) - 1);
        if last_client > workload::ledger::LARGEST_CLIENT {
            return impossible(format!(
                "client number {last_client} is above {}",
                workload::ledger::LARGEST_CLIENT
            ));
        }
        Ok(workload)
    }

    /// A connector over the plan's endpoints whose sessions wait `timeout` for each answer.
    pub(crate) fn connector(&self, timeout: Duration) -> PostgresConnector {
        let settings = Settings {
            database: self.database.clone(),
            user: self.user.clone(),
            password: self.password.clone(),
            timeout,
            connect_timeout: self.connect_timeout,
        };
        PostgresConnector::new(self.endpoints.clone(), settings)
    }

    /// A client's own chance, from the seed, the load's name and the client. `stream` keeps uses apart: what is drawn
    /// for reconnecting must not shift the transactions drawn after it.
    pub(crate) fn chance(&self, client: u64, stream: u64) -> ChaCha8Rng {
        let mut seed = [0; 32];
        let words = [self.seed, fnv1a(self.name.as_bytes()), client, stream];
        for (place, word) in seed.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        ChaCha8Rng::from_seed(seed)
    }
}

/// FNV-1a, 64 bits: spreads a name over a seed word, the same on every machine and in every version.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use rand::Rng;

    use super::*;

    fn plan() -> LoadPlan {
        LoadPlan {
            name: "tpcb".into(),
            workload: "tpcb".into(),
            clients: 1,
            first_client: 0,
            scale: 1,
            seed: 1,
            endpoints: vec![Endpoint { node: "n1".into(), address: ([127, 0, 0, 1], 5432).into() }],
            database: "postgres".into(),
            user: "postgres".into(),
            password: None,
            timeout: Duration::from_secs(1),
            connect_timeout: Duration::from_secs(1),
        }
    }

    #[test]
    fn impossible_plans_are_refused_with_their_reason() {
        let check = |change: fn(&mut LoadPlan), expected: &str| {
            let mut plan = plan();
            change(&mut plan);
            let seen = plan.checked().map_or_else(|error| error.to_string(), |_| "accepted".to_owned());
            assert_eq!(seen, expected);
        };
        check(|_| {}, "accepted");
        check(|plan| plan.workload = "tpcd".into(), "load tpcb: no workload is named \"tpcd\"");
        check(|plan| plan.clients = 0, "load tpcb: it has no clients");
        check(|plan| plan.endpoints.clear(), "load tpcb: it has no endpoints");
        check(|plan| plan.first_client = 8_388_607, "accepted");
        check(|plan| plan.first_client = 8_388_608, "load tpcb: client number 8388608 is above 8388607");
        check(
            |plan| plan.first_client = u64::MAX,
            "load tpcb: client number 18446744073709551615 is above 8388607",
        );
    }

    #[test]
    fn every_seed_load_client_and_use_has_a_chance_of_its_own_that_repeats() {
        let first = |seed: u64, name: &str, client, stream| {
            LoadPlan { seed, name: name.into(), ..plan() }.chance(client, stream).next_u64()
        };
        let all = [
            first(1, "a", 0, 0),
            first(2, "a", 0, 0),
            first(1, "b", 0, 0),
            first(1, "a", 1, 0),
            first(1, "a", 0, 1),
        ];
        let distinct: std::collections::BTreeSet<u64> = all.into_iter().collect();
        assert_eq!(distinct.len(), all.len());
        assert_eq!(first(1, "a", 0, 0), all[0]);
    }
}

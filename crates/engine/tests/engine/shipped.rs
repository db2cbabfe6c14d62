//! Engines that ship, over loopback machines: found or fetched, and opened as most tests want them.
//!
//! Owns how they are had and the wait for their leader. What they are asked to do is each engine's own test.

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{Configuration, Engine, Node, Synchronous};

use crate::loopback::Machines;

/// One copy of everything, no places, and these settings. The port is the machines' when it is opened.
pub fn configuration(settings: &[(&str, &str)]) -> Configuration {
    Configuration {
        synchronous: Synchronous::Off,
        settings: settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        port: 0,
        max_connections: 200,
        upgrade: None,
        copies: 1,
        places: Vec::new(),
    }
}

/// An engine that a test wants.
pub struct Wanted {
    pub engine: &'static str,
    /// Whether it is downloaded where it is not there.
    pub is_fetched: bool,
    pub nodes: u8,
    pub configuration: Configuration,
}

impl Wanted {
    /// Machines and the engine over them; nothing, and said so, where it is not to be had.
    pub fn open(self, test: &str) -> Option<(Machines, Box<dyn Engine>)> {
        let entry = engine::registry::named(self.engine).expect("an engine that ships");
        let found = match entry.find(None) {
            Err(_) if self.is_fetched => entry.install(&mut |what| eprintln!("{what}")),
            found => found,
        };
        let installation = match found {
            Ok(installation) => installation,
            Err(error) => {
                eprintln!("skipped: {test}: {error}");
                return None;
            }
        };
        let machines = Machines::new(self.nodes);
        let configuration = Configuration { port: machines.port, ..self.configuration };
        let opened = entry
            .open(machines.reachable(installation), configuration)
            .unwrap_or_else(|error| panic!("{error}"));
        Some((machines, opened))
    }
}

/// Waits until every node answers and one of them leads.
pub fn leader(engine: &dyn Engine, nodes: &[Arc<dyn Node>], patience: Duration) -> String {
    let deadline = Instant::now() + patience;
    loop {
        let roles = engine.leader(nodes);
        match roles.leader() {
            Some(leader) if roles.silent.is_empty() => return leader.to_owned(),
            _ => assert!(Instant::now() < deadline, "{roles:?}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

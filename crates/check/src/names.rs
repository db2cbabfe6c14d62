//! Names by number: keys, and the clients of loads. Keeps what a check holds of each operation small.

use std::collections::HashMap;

use history::{Key, Operation};

/// Keys by number, in the order they were first seen.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    keys: Vec<Key>,
    numbers: HashMap<Key, u32>,
}

impl Keys {
    /// The number of a key, new or known.
    pub(crate) fn number_of(&mut self, key: &Key) -> u32 {
        if let Some(number) = self.numbers.get(key) {
            return *number;
        }
        let number = numbered(self.keys.len());
        self.keys.push(key.clone());
        self.numbers.insert(key.clone(), number);
        number
    }

    /// The key of a number.
    pub(crate) fn key(&self, number: u32) -> &Key {
        &self.keys[number as usize]
    }

    /// Whether a key was seen.
    pub(crate) fn knows(&self, key: &Key) -> bool {
        self.numbers.contains_key(key)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }
}

/// One client of one load.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Session {
    load: u32,
    client: u64,
}

/// The clients that asked, by number.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    sessions: Vec<Session>,
    loads: Vec<String>,
    numbers: HashMap<String, HashMap<u64, u32>>,
}

impl Sessions {
    /// The number of the client that asked for an operation.
    pub(crate) fn number_of(&mut self, operation: &Operation) -> u32 {
        let known = self.numbers.get(&operation.load);
        if let Some(number) = known.and_then(|clients| clients.get(&operation.client)) {
            return *number;
        }
        let load = match self.loads.iter().position(|load| *load == operation.load) {
            Some(load) => numbered(load),
            None => {
                self.loads.push(operation.load.clone());
                numbered(self.loads.len() - 1)
            }
        };
        let number = numbered(self.sessions.len());
        self.sessions.push(Session { load, client: operation.client });
        self.numbers.entry(operation.load.clone()).or_default().insert(operation.client, number);
        number
    }

    /// The load of a client.
    pub(crate) fn load(&self, number: u32) -> &str {
        &self.loads[self.sessions[number as usize].load as usize]
    }

    /// `client 3`; with the load's name where there are several loads.
    pub(crate) fn told(&self, number: u32) -> String {
        let Session { load, client } = &self.sessions[number as usize];
        match self.loads.as_slice() {
            [_] => format!("client {client}"),
            loads => format!("client {client} of {}", loads[*load as usize]),
        }
    }

    /// Where a client stands among all: by load's name and client's number, however they came in.
    pub(crate) fn ranks(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..numbered(self.sessions.len())).collect();
        order.sort_by_key(|number| {
            let session = &self.sessions[*number as usize];
            (self.loads[session.load as usize].as_str(), session.client)
        });
        let mut ranks = vec![0; order.len()];
        for (rank, number) in order.into_iter().enumerate() {
            ranks[number as usize] = numbered(rank);
        }
        ranks
    }
}

/// An index as the number it is kept under. A history has far fewer than four thousand million of anything: each takes
/// a line of a file.
pub(crate) fn numbered(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

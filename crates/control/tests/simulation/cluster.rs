//! The cluster, its network, its disks and its clients, in virtual time; the same seed makes the same run.

use std::collections::{BTreeMap, BTreeSet};

use control::chance::Chance;
use control::journal;
use control::replica::{Acknowledgements, Event, Record, Replica, Settings};
use control::state::Command;
use control::transaction::{Answer, Found, Operation, Value};
use control::{Flaw, message::Message};

use super::judge::Seen;

const SECOND_US: u64 = 1_000_000;
/// Trouble ends here; then everything is well until the end.
const HEALED_US: u64 = 13 * SECOND_US;
const END_US: u64 = 17 * SECOND_US;
const LISTS: usize = 3;
const CLIENTS: usize = 5;
const CLIENT_PATIENCE_US: u64 = SECOND_US;

/// What happens to the cluster.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Weather {
    Good,
    Bad,
}

enum Happening {
    Deliver { from: String, to: usize, message: Message },
    Wake { node: usize },
    Restart { node: usize },
    Trouble,
    Ask { client: usize },
    GiveUp { client: usize, request: u64 },
}

struct Node {
    name: String,
    /// Nothing while it is down.
    replica: Option<Replica>,
    disk: Vec<u8>,
    /// Bytes of the disk that a crash leaves.
    synced: usize,
    clock_ahead_us: u64,
}

struct Client {
    node: usize,
    asked: Option<(u64, Seen)>,
}

pub struct Cluster {
    nodes: Vec<Node>,
    clients: Vec<Client>,
    pub history: Vec<Seen>,
    chance: Chance,
    weather: Weather,
    flaw: Option<Flaw>,
    acknowledgements: Acknowledgements,
    now_us: u64,
    agenda: BTreeMap<(u64, u64), Happening>,
    scheduled: u64,
    requests: u64,
    cut: BTreeSet<(usize, usize)>,
    terms_led: BTreeSet<u64>,
}

impl Cluster {
    pub fn new(
        nodes: usize,
        acknowledgements: Acknowledgements,
        flaw: Option<Flaw>,
        weather: Weather,
        seed: u64,
    ) -> Self {
        let named = |number: usize| Node {
            name: format!("n{}", number + 1),
            replica: None,
            disk: Vec::new(),
            synced: 0,
            clock_ahead_us: match flaw {
                Some(Flaw::ClockLastWriteWins) => (nodes - number) as u64 * 3 * SECOND_US,
                _ => 0,
            },
        };
        let mut cluster = Cluster {
            nodes: (0..nodes).map(named).collect(),
            clients: (0..CLIENTS).map(|client| Client { node: client % nodes, asked: None }).collect(),
            history: Vec::new(),
            chance: Chance::new(seed),
            weather,
            flaw,
            acknowledgements,
            now_us: 0,
            agenda: BTreeMap::new(),
            scheduled: 0,
            requests: 0,
            cut: BTreeSet::new(),
            terms_led: BTreeSet::new(),
        };
        for node in 0..nodes {
            cluster.start(node);
        }
        for client in 0..CLIENTS {
            cluster.after(2 * SECOND_US + client as u64, Happening::Ask { client });
        }
        if weather == Weather::Bad {
            cluster.after(4 * SECOND_US, Happening::Trouble);
        }
        cluster
    }

    /// How many terms had a leader.
    pub fn elections(&self) -> usize {
        self.terms_led.len()
    }

    fn after(&mut self, wait_us: u64, happening: Happening) {
        self.scheduled += 1;
        self.agenda.insert((self.now_us + wait_us, self.scheduled), happening);
    }

    /// Runs to the end; the last transactions of the history see everything that is there.
    pub fn run(&mut self) {
        while let Some(((at_us, _), happening)) = self.agenda.pop_first() {
            if at_us > END_US {
                break;
            }
            self.now_us = at_us;
            self.happen(happening);
        }
        for client in 0..CLIENTS {
            if let Some((_, seen)) = self.clients[client].asked.take() {
                self.history.push(Seen { is_unknown: true, ..seen });
            }
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Deliver { from, to, message } => {
                self.step(to, Event::Message { from, message });
            }
            Happening::Wake { node } => {
                let now_us = self.now_us;
                if let Some(replica) = &mut self.nodes[node].replica
                    && replica.next_due_us() <= now_us
                {
                    replica.tick(now_us);
                    self.release(node);
                }
            }
            Happening::Restart { node } => self.start(node),
            Happening::Trouble => self.trouble(),
            Happening::Ask { client } => self.ask(client),
            Happening::GiveUp { client, request } => {
                let waits = self.clients[client].asked.as_ref().is_some_and(|(asked, _)| *asked == request);
                if waits {
                    self.answered(client, Answer::Unknown);
                }
            }
        }
    }

    fn start(&mut self, number: usize) {
        let peers = self.nodes.iter().map(|node| node.name.clone());
        let node = &self.nodes[number];
        let settings = Settings {
            node: node.name.clone(),
            peers: peers.filter(|name| *name != node.name).collect(),
            acknowledgements: self.acknowledgements,
            flaw: self.flaw,
        };
        let (kept, length) = journal::decode(&node.disk).expect("our own journal");
        let seed = self.chance.below(u64::MAX);
        let node = &mut self.nodes[number];
        node.disk.truncate(length);
        node.synced = length;
        node.replica = Some(Replica::new(settings, kept, Chance::new(seed), self.now_us));
        self.release(number);
    }

    fn step(&mut self, node: usize, event: Event) {
        let now_us = self.now_us;
        if let Some(replica) = &mut self.nodes[node].replica {
            replica.step(now_us, event);
            self.release(node);
        }
    }

    /// Keeps, sends and answers what a replica wants kept, sent and answered.
    fn release(&mut self, number: usize) {
        let Some(replica) = &mut self.nodes[number].replica else { return };
        let output = replica.take_output();
        let due_us = replica.next_due_us();
        let status = replica.status();
        self.keep(number, &output.records);
        if status.leads && output.records.iter().any(is_first_of_term) {
            assert!(self.terms_led.insert(status.term) || self.flaw.is_some(), "two leaders of one term");
        }
        for (to, message) in output.messages {
            let to = self.nodes.iter().position(|node| node.name == to).expect("a node");
            self.send(number, to, &message);
        }
        for (request, answer) in output.answers {
            let asker = |client: &Client| client.asked.as_ref().is_some_and(|(asked, _)| *asked == request);
            if let Some(client) = self.clients.iter().position(asker) {
                self.answered(client, answer);
            }
        }
        self.after(due_us.saturating_sub(self.now_us), Happening::Wake { node: number });
    }

    fn keep(&mut self, number: usize, records: &[Record]) {
        let lazy = self.flaw == Some(Flaw::AckBeforeFsync);
        let sync_now = !lazy || self.chance.below(50) == 0;
        let node = &mut self.nodes[number];
        for record in records {
            journal::encode(record, &mut node.disk).expect("a small record");
        }
        if sync_now {
            node.synced = node.disk.len();
        }
    }

    fn send(&mut self, from: usize, to: usize, message: &Message) {
        let bad = self.weather == Weather::Bad && self.now_us < HEALED_US;
        if self.cut.contains(&(from, to)) || (bad && self.chance.below(50) == 0) {
            return;
        }
        let copies = if bad && self.chance.below(50) == 0 { 2 } else { 1 };
        for _ in 0..copies {
            let slow = bad && self.chance.below(30) == 0;
            let delay_us = 200 + self.chance.below(if slow { 300_000 } else { 5_000 });
            let from = self.nodes[from].name.clone();
            self.after(delay_us, Happening::Deliver { from, to, message: message.clone() });
        }
    }

    fn trouble(&mut self) {
        if self.now_us >= HEALED_US {
            self.cut.clear();
            return;
        }
        let nodes = self.nodes.len() as u64;
        let leads = |node: &Node| node.replica.as_ref().is_some_and(|replica| replica.status().leads);
        let leader = self.nodes.iter().position(leads);
        let random = usize::try_from(self.chance.below(nodes)).expect("small");
        match self.chance.below(4) {
            // One is cut off, or none.
            0 => {
                self.cut.clear();
                let alone = leader.unwrap_or(random);
                let others = (0..self.nodes.len()).filter(|other| *other != alone);
                self.cut = others.flat_map(|other| [(alone, other), (other, alone)]).collect();
            }
            1 => {
                self.cut.clear();
                self.cut.insert((leader.unwrap_or(random), random));
            }
            2 => self.crash(leader.unwrap_or(random)),
            _ => (0..self.nodes.len()).for_each(|node| self.crash(node)),
        }
        let wait_us = SECOND_US / 2 + self.chance.below(3 * SECOND_US);
        self.after(wait_us, Happening::Trouble);
    }

    fn crash(&mut self, number: usize) {
        let node = &mut self.nodes[number];
        if node.replica.take().is_none() {
            return;
        }
        node.disk.truncate(node.synced);
        // The last sync was cut short: what was being written remains in part, and nothing that followed it was sent.
        let wait_us = SECOND_US / 10 + self.chance.below(2 * SECOND_US);
        self.after(wait_us, Happening::Restart { node: number });
    }

    fn ask(&mut self, client: usize) {
        self.requests += 1;
        let request = self.requests;
        let element = i64::try_from(request).expect("small");
        let key = |list: usize| format!("list/{list}");
        let random = usize::try_from(self.chance.below(LISTS as u64)).expect("small");
        let appends_to = match self.chance.below(4) {
            0 => Vec::new(),
            1 => BTreeSet::from([random, (random + 1) % LISTS]).into_iter().collect(),
            _ => vec![random],
        };
        let mut operations: Vec<Operation> =
            (0..LISTS).map(|list| Operation::Read { key: key(list) }).collect();
        let appends = appends_to.iter().map(|list| Operation::Append { key: key(*list), element });
        operations.extend(appends);
        let seen = Seen {
            invoked_us: self.now_us,
            completed_us: u64::MAX,
            observed: None,
            appends_to,
            element,
            is_unknown: false,
        };
        self.clients[client].asked = Some((request, seen));
        self.after(CLIENT_PATIENCE_US, Happening::GiveUp { client, request });
        let node = self.clients[client].node;
        // A client is where the nodes are: what it asks comes at once, and what is down does not answer.
        if self.nodes[node].replica.is_some() {
            let stamp_us = self.now_us + self.nodes[node].clock_ahead_us;
            self.step(node, Event::Request { request, operations, stamp_us });
        } else {
            self.answered(client, Answer::NotLeader { leader: None });
        }
    }

    fn answered(&mut self, client: usize, answer: Answer) {
        let Some((_, mut seen)) = self.clients[client].asked.take() else { return };
        seen.completed_us = self.now_us;
        let satisfied = matches!(answer, Answer::Committed { .. });
        match answer {
            Answer::Committed { found } => seen.observed = Some(lists(&found)),
            Answer::Unknown => seen.is_unknown = true,
            Answer::Refused { .. } | Answer::Conflict { .. } | Answer::NotLeader { .. } => {}
        }
        self.history.push(seen);
        if !satisfied {
            let nodes = self.nodes.len() as u64;
            self.clients[client].node = usize::try_from(self.chance.below(nodes)).expect("small");
        }
        // Bursts are what makes transactions meet; pauses between them keep histories short.
        let pause = !satisfied || self.chance.below(4) == 0;
        let wait_us = if pause { 100_000 } else { 0 } + self.chance.below(30_000);
        if self.now_us + wait_us + CLIENT_PATIENCE_US < END_US {
            self.after(wait_us, Happening::Ask { client });
        }
    }
}

fn is_first_of_term(record: &Record) -> bool {
    matches!(record, Record::Entry { entry, .. } if entry.command == Command::Nothing)
}

/// What the reads of the lists found.
fn lists(found: &[Found]) -> Vec<Vec<i64>> {
    let list = |found: &Found| match found {
        Found::Value(Some(Value::List(list))) => list.clone(),
        _ => Vec::new(),
    };
    found.iter().take(LISTS).map(list).collect()
}

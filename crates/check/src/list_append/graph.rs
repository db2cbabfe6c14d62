//! Who must come before whom: the graph of transactions.
//!
//! Edges are those of Adya: write on write, read of a write, and a write over what was read (an anti-dependency); and,
//! where asked for, a client's own order and that of time. Its size is linear in the history's:
//! - The order of time is not a set of edges but a chain of moments: a transaction leads to the first moment after its
//!   end, a moment to the next one, and to the transactions that began before that. One that ended before another began
//!   so leads to it, and to no other.
//! - Appends that nobody read come after the last version read, in an order unknown. Where there are several of one
//!   list, whoever must come before all of them leads to a chain of stations, each of which leads to one. One of them
//!   that must come before all others leads to the chain in the middle: there is one chain in each direction.

use history::Outcome;

use super::level::Order;
use super::record::{Kind, NONE, Record, Transaction};
use super::versions::Versions;
use crate::names::numbered;

/// Why one comes before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Edge {
    /// It wrote the version before.
    Write,
    /// It wrote what the other read.
    Read,
    /// It read the version before the other's.
    Anti,
    /// From one station to the next: the edge that led to the first goes on.
    Further,
    /// The same client did it before.
    Session,
    /// It had ended when the other began.
    Time,
}

const KIND_SHIFT: u32 = 30;
const NODE_MASK: u32 = (1 << KIND_SHIFT) - 1;

/// The graph. Nodes are transactions by their place, then stations, then moments.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) transactions: u32,
    /// Transactions and stations.
    pub(super) lasting: u32,
    /// Transactions, stations and moments.
    nodes: u32,
    starts: Vec<u32>,
    /// Targets of data edges, the kind in the two highest bits.
    targets: Vec<u32>,
    /// The next transaction of the same client, by transaction; `NONE` after the last.
    next_of_session: Vec<u32>,
    /// Transactions without an answer after the client's last one that had one; in order.
    unanswered: Vec<(u32, u32)>,
    /// The first moment after a transaction's end; `NONE` for one that may take effect at any later time.
    moment_after: Vec<u32>,
    /// The first transaction that begins at each moment; one more at the end.
    first_at_moment: Vec<u32>,
}

/// Edges as they are found.
struct Builder {
    edges: Vec<(u32, u32)>,
    stations: u32,
    first_station: u32,
}

impl Builder {
    fn add(&mut self, from: u32, to: u32, edge: Edge) {
        let kind = match edge {
            Edge::Write => 0,
            Edge::Read => 1,
            Edge::Anti => 2,
            Edge::Further | Edge::Session | Edge::Time => 3,
        };
        self.edges.push((from, to | kind << KIND_SHIFT));
    }

    fn station(&mut self) -> u32 {
        self.stations += 1;
        self.first_station + self.stations - 1
    }
}

/// The committed appends of one list that nobody read.
struct Unseen {
    writers: Vec<u32>,
    /// One station for each: the first in order, which leads on upwards, and the second, downwards.
    upwards: u32,
    downwards: u32,
}

impl Unseen {
    /// Lays the stations.
    fn lay(writers: Vec<u32>, builder: &mut Builder) -> Unseen {
        let count = numbered(writers.len());
        let mut unseen = Unseen { writers, upwards: NONE, downwards: NONE };
        if count > 1 {
            unseen.upwards = builder.first_station + builder.stations;
            unseen.downwards = unseen.upwards + count;
            for _ in 0..2 * count {
                builder.station();
            }
            for (writer, at) in unseen.writers.iter().zip(0u32..) {
                builder.add(unseen.upwards + at, *writer, Edge::Further);
                builder.add(unseen.downwards + at, *writer, Edge::Further);
                if at + 1 < count {
                    builder.add(unseen.upwards + at, unseen.upwards + at + 1, Edge::Further);
                    builder.add(unseen.downwards + at + 1, unseen.downwards + at, Edge::Further);
                }
            }
        }
        unseen
    }

    /// Lets `from` come before all of them but itself.
    fn follow(&self, from: u32, edge: Edge, builder: &mut Builder) {
        match (self.writers.as_slice(), self.writers.binary_search(&from)) {
            ([], _) => {}
            ([only], _) => {
                if *only != from {
                    builder.add(from, *only, edge);
                }
            }
            (_, Err(_)) => builder.add(from, self.upwards, edge),
            (all, Ok(own)) => {
                if own + 1 < all.len() {
                    builder.add(from, self.upwards + numbered(own) + 1, edge);
                }
                if own > 0 {
                    builder.add(from, self.downwards + numbered(own) - 1, edge);
                }
            }
        }
    }
}

impl Graph {
    /// Builds it.
    pub(super) fn of(record: &Record, versions: &Versions) -> Graph {
        let transactions = numbered(record.transactions.len());
        let mut builder = Builder { edges: Vec::new(), stations: 0, first_station: transactions };
        let unseen = write_edges(record, versions, &mut builder);
        read_edges(record, versions, &unseen, &mut builder);
        let lasting = transactions + builder.stations;
        let (starts, targets) = sorted_by_source(&builder.edges, lasting);
        drop(builder);
        let mut graph = Graph { transactions, lasting, nodes: lasting, starts, targets, ..Graph::default() };
        graph.follow_sessions(record, versions);
        graph.follow_time(&record.transactions);
        graph
    }

    /// Nodes: transactions and stations, and moments where time counts.
    pub(super) fn nodes(&self, order: Order) -> u32 {
        if order == Order::RealTime { self.nodes } else { self.lasting }
    }

    /// The edge of a node at `cursor`, which is moved on; session and time edges only as `order` wants them.
    pub(super) fn next(&self, node: u32, order: Order, cursor: &mut u32) -> Option<(u32, Edge)> {
        let at = *cursor;
        *cursor += 1;
        if node >= self.lasting {
            return self.next_of_moment(node - self.lasting, at);
        }
        let start = self.starts[node as usize];
        let degree = self.starts[node as usize + 1] - start;
        if at < degree {
            let packed = self.targets[(start + at) as usize];
            let edge = match packed >> KIND_SHIFT {
                0 => Edge::Write,
                1 => Edge::Read,
                2 => Edge::Anti,
                _ => Edge::Further,
            };
            return Some((packed & NODE_MASK, edge));
        }
        if node >= self.transactions || order == Order::Any {
            return None;
        }
        let session = self.next_of_session[node as usize];
        let mut further = at - degree;
        if session != NONE {
            if further == 0 {
                return Some((session, Edge::Session));
            }
            further -= 1;
        }
        let unanswered = self.unanswered_after(node);
        if let Some((_, to)) = unanswered.get(further as usize) {
            return Some((*to, Edge::Session));
        }
        further -= numbered(unanswered.len());
        let moment = self.moment_after[node as usize];
        let leads_on = further == 0 && order == Order::RealTime && moment != NONE;
        leads_on.then(|| (self.lasting + moment, Edge::Time))
    }

    fn unanswered_after(&self, node: u32) -> &[(u32, u32)] {
        if self.unanswered.is_empty() {
            return &[];
        }
        let from = self.unanswered.partition_point(|(from, _)| *from < node);
        let rest = &self.unanswered[from..];
        &rest[..rest.partition_point(|(from, _)| *from == node)]
    }

    fn next_of_moment(&self, moment: u32, at: u32) -> Option<(u32, Edge)> {
        let (first, end) = (self.first_at_moment[moment as usize], self.first_at_moment[moment as usize + 1]);
        if first + at < end {
            return Some((first + at, Edge::Time));
        }
        let is_last = self.lasting + moment + 1 >= self.nodes;
        (first + at == end && !is_last).then_some((self.lasting + moment + 1, Edge::Time))
    }

    fn follow_sessions(&mut self, record: &Record, versions: &Versions) {
        self.next_of_session = vec![NONE; record.transactions.len()];
        let mut last: Vec<u32> = Vec::new();
        for (transaction, place) in record.transactions.iter().zip(0u32..) {
            if !versions.has_happened[place as usize] {
                continue;
            }
            let session = transaction.session as usize;
            if session >= last.len() {
                last.resize(session + 1, NONE);
            }
            // A client that has two at once keeps no order between them.
            let before = record.transactions.get(last[session] as usize);
            let follows = before.is_some_and(|before| before.completed_s <= transaction.invoked_s);
            // One without an answer may take effect after the client's next one, which then follows the one before.
            let is_answered = transaction.outcome == Outcome::Ok;
            match (follows, is_answered) {
                (true, true) => self.next_of_session[last[session] as usize] = place,
                (true, false) => self.unanswered.push((last[session], place)),
                (false, _) => {}
            }
            if is_answered {
                last[session] = place;
            }
        }
        self.unanswered.sort_unstable();
    }

    fn follow_time(&mut self, transactions: &[Transaction]) {
        self.moment_after = vec![NONE; transactions.len()];
        let acknowledged = transactions.iter().zip(0u32..).filter(|(one, _)| one.outcome == Outcome::Ok);
        let mut ends: Vec<(f64, u32)> = acknowledged.map(|(one, place)| (one.completed_s, place)).collect();
        ends.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut ended = 0;
        let mut moments = 0;
        for (transaction, place) in transactions.iter().zip(0u32..) {
            let before = ended;
            while ends.get(ended).is_some_and(|(end_s, _)| *end_s < transaction.invoked_s) {
                self.moment_after[ends[ended].1 as usize] = moments;
                ended += 1;
            }
            if ended > before {
                self.first_at_moment.push(place);
                moments += 1;
            }
        }
        self.first_at_moment.push(numbered(transactions.len()));
        self.nodes = self.lasting + moments;
    }
}

/// Edges between writers of consecutive versions. Gives the appends that nobody read, by list.
fn write_edges(record: &Record, versions: &Versions, builder: &mut Builder) -> Vec<Unseen> {
    let mut left = versions.unseen.as_slice();
    let mut all = Vec::with_capacity(record.lists.len());
    for key in 0..numbered(record.lists.len()) {
        let (of_list, rest) = left.split_at(left.partition_point(|(list, _)| *list == key));
        left = rest;
        if versions.is_orderless[key as usize] {
            all.push(Unseen { writers: Vec::new(), upwards: NONE, downwards: NONE });
            continue;
        }
        let unseen = Unseen::lay(of_list.iter().map(|(_, writer)| *writer).collect(), builder);
        let mut last = NONE;
        // Between two there may be what was refused, or what nobody knows who appended: they keep their order.
        for writer in versions.writers(key, 0).iter().filter(|writer| **writer != NONE) {
            if last != NONE && last != *writer {
                builder.add(last, *writer, Edge::Write);
            }
            last = *writer;
        }
        if last != NONE {
            unseen.follow(last, Edge::Write, builder);
        }
        all.push(unseen);
    }
    all
}

/// Edges to and from readers.
fn read_edges(record: &Record, versions: &Versions, unseen: &[Unseen], builder: &mut Builder) {
    for (transaction, reader) in record.transactions.iter().zip(0u32..) {
        for did in record.steps_of(transaction) {
            if did.kind != Kind::Read || versions.is_orderless[did.key as usize] {
                continue;
            }
            let writers = versions.writers(did.key, 0);
            let length = did.length();
            if let Some(last) = length.checked_sub(1).map(|last| writers[last])
                && last != reader
                && last != NONE
            {
                builder.add(last, reader, Edge::Read);
            }
            match writers.get(length) {
                None => unseen[did.key as usize].follow(reader, Edge::Anti, builder),
                Some(next) if *next != reader && *next != NONE => builder.add(reader, *next, Edge::Anti),
                Some(_) => {}
            }
        }
    }
}

/// Edges by the node they leave: where those of each begin, and their targets.
fn sorted_by_source(edges: &[(u32, u32)], nodes: u32) -> (Vec<u32>, Vec<u32>) {
    let mut starts = vec![0u32; nodes as usize + 1];
    for (from, _) in edges {
        starts[*from as usize + 1] += 1;
    }
    for node in 0..nodes as usize {
        starts[node + 1] += starts[node];
    }
    let mut next = starts.clone();
    let mut targets = vec![0; edges.len()];
    for (from, to) in edges {
        targets[next[*from as usize] as usize] = *to;
        next[*from as usize] += 1;
    }
    (starts, targets)
}

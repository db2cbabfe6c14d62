//! What each statement of a transaction waits for on the network: the client's round trip, and quorum round trips.
//!
//! Owns the counting and the seeded sampling; how long a packet takes is told to it. Says nothing of what a server
//! itself needs, of loss, or of waiting for a link's rate.
//!
//! Sources: PostgreSQL documentation, "Synchronous Replication": one write-ahead log, waited for at COMMIT. YugabyteDB
//! and CockroachDB documentation on transactions: a write is replicated by the Raft group of its tablet or range before
//! the statement returns, and so is the transaction's status at COMMIT; reads are the leader's own.

use history::NodeId;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::commit::Acknowledgements;
use crate::survival::copies;

/// Transactions drawn when delays vary.
const SAMPLES: usize = 4_000;

/// What a statement does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Begins a transaction.
    Begin,
    /// Reads.
    Read,
    /// Writes within a transaction.
    Write,
    /// Ends a transaction.
    Commit,
    /// A write that is a transaction of its own.
    WriteAndCommit,
}

impl Kind {
    /// Of an SQL text, by its first word; `alone` when it is the only statement of its transaction.
    #[must_use]
    pub fn of_sql(sql: &str, alone: bool) -> Kind {
        let word = sql.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
        match (word.as_str(), alone) {
            ("BEGIN" | "START", _) => Kind::Begin,
            ("END" | "COMMIT", _) => Kind::Commit,
            ("SELECT" | "SHOW" | "VALUES" | "TABLE", _) => Kind::Read,
            (_, true) => Kind::WriteAndCommit,
            (_, false) => Kind::Write,
        }
    }
}

/// When an engine waits for its quorum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Once, at commit, for so many standbys: one write-ahead log.
    AtCommit(Acknowledgements),
    /// At every write and at commit, for a majority: a Raft group for each tablet or range, led where the leader is.
    AtEachWrite,
    /// At everything asked, for as many nodes as must have it: one Raft group, through whose log reads go as well.
    AtEachRequest(Acknowledgements),
}

impl Engine {
    /// Quorum round trips, one after the other, that a statement waits for.
    #[must_use]
    pub fn quorum_round_trips(self, kind: Kind) -> usize {
        match (self, kind) {
            (Engine::AtEachRequest(acknowledgements), _) => {
                usize::from(acknowledgements != Acknowledgements::None)
            }
            (_, Kind::Begin | Kind::Read) | (Engine::AtCommit(Acknowledgements::None), _) => 0,
            (Engine::AtCommit(_), Kind::Write) => 0,
            (Engine::AtCommit(_), Kind::Commit | Kind::WriteAndCommit) => 1,
            // A single write to one group commits with it.
            (Engine::AtEachWrite, Kind::Write | Kind::Commit | Kind::WriteAndCommit) => 1,
        }
    }

    /// Answers besides the leader's own that a quorum needs, of so many nodes.
    #[must_use]
    pub fn answers(self, nodes: usize) -> usize {
        match self {
            Engine::AtCommit(Acknowledgements::None) => 0,
            Engine::AtCommit(Acknowledgements::Any(count)) => count,
            Engine::AtCommit(Acknowledgements::All) => nodes.saturating_sub(1),
            Engine::AtEachWrite => nodes / 2,
            Engine::AtEachRequest(acknowledgements) => copies(acknowledgements, nodes).saturating_sub(1),
        }
    }
}

/// How long packets take, by the numbers of places: the nodes, then the clients as the last.
pub trait Delays {
    /// One packet, one way.
    fn draw_ns(&self, from: usize, to: usize, random: &mut ChaCha8Rng) -> u64;

    /// Whether any of it differs from packet to packet.
    fn vary(&self) -> bool;
}

/// A transaction on a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// How many nodes; the clients' number comes after theirs.
    pub nodes: usize,
    pub leader: NodeId,
    /// When the engine waits.
    pub engine: Engine,
    /// Names and kinds of its statements, in order.
    pub statements: Vec<(String, Kind)>,
}

/// A latency over many draws, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyMs {
    pub mean: f64,
    /// Half are below.
    pub p50: f64,
    /// All but one in a hundred are below.
    pub p99: f64,
}

impl LatencyMs {
    fn of(mut ns: Vec<u64>) -> LatencyMs {
        ns.sort_unstable();
        let at = |share: f64| ns[((ns.len() - 1) as f64 * share).round() as usize] as f64 / 1e6;
        let mean = ns.iter().map(|ns| *ns as f64).sum::<f64>() / ns.len() as f64 / 1e6;
        LatencyMs { mean, p50: at(0.5), p99: at(0.99) }
    }
}

/// What one statement costs on the network.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// As results name what is timed: `COMMIT`.
    pub name: String,
    /// Quorum round trips it waits for, one after the other.
    pub quorum_round_trips: usize,
    /// Client and quorum together.
    pub latency_ms: LatencyMs,
}

/// What a transaction costs on the network.
#[derive(Debug, Clone, PartialEq)]
pub struct TransactionCost {
    /// By statement, in order.
    pub statements: Vec<Cost>,
    /// All of them.
    pub total_ms: LatencyMs,
    /// Nodes whose answers complete the quorum, nearest first; empty when none is waited for.
    pub quorum: Vec<NodeId>,
}

/// What the network makes a transaction wait for; `None` when a quorum needs more nodes than there are, and it waits
/// for ever. The same seed gives the same figures.
#[must_use]
pub fn cost(transaction: &Transaction, delays: &impl Delays, seed: u64) -> Option<TransactionCost> {
    let all = (0..transaction.nodes).map(NodeId::new);
    let followers: Vec<NodeId> = all.filter(|node| *node != transaction.leader).collect();
    let answers = transaction.engine.answers(transaction.nodes);
    if answers > followers.len() {
        return None;
    }
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let samples = if delays.vary() { SAMPLES } else { 1 };
    let mut drawn: Vec<Vec<u64>> = vec![Vec::with_capacity(samples); transaction.statements.len()];
    let mut totals = Vec::with_capacity(samples);
    for _ in 0..samples {
        let mut total_ns = 0;
        for ((_, kind), drawn) in transaction.statements.iter().zip(&mut drawn) {
            let clients = transaction.nodes;
            let mut ns = round_trip_ns(clients, transaction.leader.index(), delays, &mut random);
            for _ in 0..transaction.engine.quorum_round_trips(*kind) {
                ns += quorum_ns(transaction.leader, &followers, answers, delays, &mut random);
            }
            drawn.push(ns);
            total_ns += ns;
        }
        totals.push(total_ns);
    }
    let statements = transaction.statements.iter().zip(drawn).map(|((name, kind), drawn)| Cost {
        name: name.clone(),
        quorum_round_trips: transaction.engine.quorum_round_trips(*kind),
        latency_ms: LatencyMs::of(drawn),
    });
    let mut nearest: Vec<(u64, NodeId)> = followers
        .iter()
        .map(|node| (between_ns(transaction.leader, *node, delays, &mut random), *node))
        .collect();
    nearest.sort_unstable();
    Some(TransactionCost {
        statements: statements.collect(),
        total_ms: LatencyMs::of(totals),
        quorum: nearest.into_iter().take(answers).map(|(_, node)| node).collect(),
    })
}

fn round_trip_ns(from: usize, to: usize, delays: &impl Delays, random: &mut ChaCha8Rng) -> u64 {
    delays.draw_ns(from, to, random) + delays.draw_ns(to, from, random)
}

fn between_ns(one: NodeId, other: NodeId, delays: &impl Delays, random: &mut ChaCha8Rng) -> u64 {
    round_trip_ns(one.index(), other.index(), delays, random)
}

/// The answer that completes the quorum is the last of as many as it needs.
fn quorum_ns(
    leader: NodeId,
    followers: &[NodeId],
    answers: usize,
    delays: &impl Delays,
    random: &mut ChaCha8Rng,
) -> u64 {
    if answers == 0 {
        return 0;
    }
    let mut round_trips: Vec<u64> =
        followers.iter().map(|node| between_ns(leader, *node, delays, random)).collect();
    round_trips.sort_unstable();
    round_trips.get(answers - 1).copied().unwrap_or(0)
}

/// The mean of a transaction for each node that might lead, in milliseconds, the cheapest first and among equals the
/// present leader first.
#[must_use]
pub fn leaders_by_cost(transaction: &Transaction, delays: &impl Delays, seed: u64) -> Vec<(NodeId, f64)> {
    let with = |leader: NodeId| {
        let moved = Transaction { leader, ..transaction.clone() };
        Some((leader, cost(&moved, delays, seed)?.total_ms.mean))
    };
    let all = (0..transaction.nodes).map(NodeId::new);
    let mut leaders: Vec<(NodeId, f64)> = all.filter_map(with).collect();
    leaders.sort_by(|one, other| {
        let order = one.1.total_cmp(&other.1);
        order.then_with(|| (one.0 != transaction.leader).cmp(&(other.0 != transaction.leader)))
    });
    leaders
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand_chacha::rand_core::Rng;

    use super::*;

    /// Microseconds one way by row and column, and what is added to each, evenly from nothing.
    struct Table {
        us: Vec<Vec<u64>>,
        spread_us: u64,
    }

    impl Delays for Table {
        fn draw_ns(&self, from: usize, to: usize, random: &mut ChaCha8Rng) -> u64 {
            let spread_ns = self.spread_us * 1000;
            let added = if spread_ns == 0 { 0 } else { random.next_u64() % (spread_ns + 1) };
            self.us[from][to] * 1000 + added
        }

        fn vary(&self) -> bool {
            self.spread_us > 0
        }
    }

    const TPCB: [&str; 7] = ["BEGIN", "UPDATE", "SELECT", "UPDATE", "UPDATE", "INSERT", "END"];

    fn tpcb(engine: Engine, nodes: usize, leader: usize) -> Transaction {
        let statements = TPCB.iter().map(|sql| ((*sql).to_owned(), Kind::of_sql(sql, false))).collect();
        Transaction { nodes, leader: NodeId::new(leader), engine, statements }
    }

    /// FR-3: node 0 and the clients in dc1, two nodes in dc2, 50 ms on what leaves dc1.
    fn field_report() -> Table {
        let far = 50_000;
        Table { us: vec![vec![0, far, far, 0], vec![0; 4], vec![0; 4], vec![0, far, far, 0]], spread_us: 0 }
    }

    fn check(engine: Engine, expected_ms: [f64; 7]) {
        let found = cost(&tpcb(engine, 3, 0), &field_report(), 1).expect("enough nodes");
        let means: Vec<f64> = found.statements.iter().map(|cost| cost.latency_ms.mean).collect();
        assert_eq!(means, expected_ms, "{engine:?}");
    }

    #[test]
    fn one_log_pays_the_delay_at_commit_and_raft_groups_at_five_statements() {
        check(Engine::AtCommit(Acknowledgements::Any(1)), [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 50.0]);
        check(Engine::AtCommit(Acknowledgements::None), [0.0; 7]);
        check(Engine::AtEachWrite, [0.0, 50.0, 0.0, 50.0, 50.0, 50.0, 50.0]);
        check(Engine::AtEachRequest(Acknowledgements::Any(1)), [50.0; 7]);
        check(Engine::AtEachRequest(Acknowledgements::None), [0.0; 7]);
    }

    #[test]
    fn a_quorum_that_cannot_be_had_costs_no_number() {
        let engine = Engine::AtCommit(Acknowledgements::Any(3));
        assert_eq!(cost(&tpcb(engine, 3, 0), &field_report(), 1), None);
    }

    #[test]
    fn the_leader_belongs_where_its_clients_and_a_standby_are() {
        // Clients with node 2; nodes 1 and 2 near each other, node 0 far from both.
        let us = vec![
            vec![0, 9_000, 9_000, 9_000],
            vec![9_000, 0, 1_000, 1_000],
            vec![9_000, 1_000, 0, 0],
            vec![9_000, 1_000, 0, 0],
        ];
        let engine = Engine::AtCommit(Acknowledgements::Any(1));
        let found = leaders_by_cost(&tpcb(engine, 3, 0), &Table { us, spread_us: 0 }, 1);
        assert_eq!(found[0], (NodeId::new(2), 2.0));
        assert_eq!(found[2], (NodeId::FIRST, 7.0 * 18.0 + 18.0));
    }

    #[test]
    fn with_jitter_the_faster_of_two_standbys_beats_the_mean_and_the_seed_decides_all() {
        let flat = |spread_us| Table { us: vec![vec![10_000; 4]; 4], spread_us };
        let engine = Engine::AtCommit(Acknowledgements::Any(1));
        let transaction =
            Transaction { statements: vec![("END".to_owned(), Kind::Commit)], ..tpcb(engine, 3, 0) };
        let found = cost(&transaction, &flat(10_000), 7).expect("enough nodes");
        // Client: 20 + 10 ms on average; quorum: the lesser of two sums of two uniform draws: 20 + 10 - 7/3 ms.
        let expected = 30.0 + 30.0 - 7.0 / 3.0;
        assert!((found.total_ms.mean - expected).abs() < 0.15, "{found:?} against {expected}");
        assert_eq!(cost(&transaction, &flat(10_000), 7), Some(found.clone()));
        assert_ne!(cost(&transaction, &flat(10_000), 8), Some(found));
    }

    proptest! {
        #[test]
        fn commit_costs_what_the_wait_at_commit_is(
            rows in prop::collection::vec(prop::collection::vec(0_u64..1_000_000, 6), 6),
            wanted in 0_usize..5,
        ) {
            struct Plain<'a>(&'a [Vec<u64>]);
            impl crate::Distances for Plain<'_> {
                fn one_way(&self, from: usize, to: usize) -> std::time::Duration {
                    std::time::Duration::from_micros(self.0[from][to])
                }
            }
            let acknowledgements = Acknowledgements::Any(wanted);
            let wait = crate::commit_wait(0, &[1, 2, 3, 4], acknowledgements, &Plain(&rows)).expect("enough");
            let client_us = rows[5][0] + rows[0][5];
            let table = Table { us: rows, spread_us: 0 };
            let found = cost(&tpcb(Engine::AtCommit(acknowledgements), 5, 0), &table, 1).expect("enough");
            let end = found.statements.last().expect("seven");
            let expected_ms = wait.as_secs_f64() * 1e3 + client_us as f64 / 1e3;
            prop_assert!((end.latency_ms.mean - expected_ms).abs() < 1e-6);
        }
    }
}

//! Which levels a history's cycles rule out, and the shortest cycle of each class.
//!
//! A level is ruled out exactly if the graph of what it demands has a cycle: read uncommitted, of writes alone; read
//! committed, of writes and reads; serializable, of all. Snapshot isolation is ruled out by a cycle without two
//! anti-dependencies in a row, also round the corner (Cerone and Gotsman, "Analysing snapshot isolation", 2016): walks
//! like that are the walks of a graph with two copies of each node, of which one is reached by an anti-dependency and
//! cannot be left by one. Each graph is searched only within the cycles of the next larger one, so that a history
//! without cycles costs one search.
//!
//! One thing is not seen: of several appends to one list that nobody read, no order is known. Where each order alone would
//! break snapshot isolation, but by different cycles, only two that read the same version before are found (as a lost
//! update). That needs two such appends within one group of transactions that hang together by cycles: of two in
//! different groups the one whose group comes first can go first, which closes no cycle. Where there are two in one group,
//! snapshot isolation is undecided. Final reads of every list leave no such appends.

use std::collections::{HashMap, HashSet, VecDeque};

use super::graph::{Edge, Graph};
use super::level::{Isolation, Level, Order};
use super::record::Transaction;
use crate::components::{Components, Walk, cyclic};

/// Steps of the search for the shortest cycle of one class.
const SEARCH_STEPS_MAX: u64 = 3_000_000;
/// Lengths that are tried one after another: what is found is the shortest up to the gaps between these.
const LENGTHS: [u32; 9] = [2, 3, 4, 5, 6, 8, 12, 24, u32::MAX];

/// What kind of cycle, told by its anti-dependencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// Only writes.
    G0,
    /// Writes and reads.
    G1c,
    /// One anti-dependency.
    GSingle,
    /// Several, none next to another.
    GNonadjacent,
    /// Several, some next to each other.
    G2Item,
}

impl Class {
    const ALL: [Class; 5] = [Class::G0, Class::G1c, Class::GSingle, Class::GNonadjacent, Class::G2Item];

    /// Its name in the literature.
    pub(super) fn name(self) -> &'static str {
        match self {
            Class::G0 => "G0",
            Class::G1c => "G1c",
            Class::GSingle => "G-single",
            Class::GNonadjacent => "G-nonadjacent",
            Class::G2Item => "G2-item",
        }
    }

    /// The weakest isolation that forbids it.
    pub(super) fn breaks(self) -> Isolation {
        match self {
            Class::G0 => Isolation::ReadUncommitted,
            Class::G1c => Isolation::ReadCommitted,
            Class::GSingle | Class::GNonadjacent => Isolation::Snapshot,
            Class::G2Item => Isolation::Serializable,
        }
    }
}

/// One step of a cycle, from transaction to transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) from: u32,
    pub(super) edge: Edge,
    pub(super) to: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cycle {
    pub(super) class: Class,
    /// The weakest order that makes it one.
    pub(super) order: Order,
    pub(super) links: Vec<Link>,
}

impl Cycle {
    /// The weakest level that forbids it.
    pub(super) fn breaks(&self) -> Level {
        Level { isolation: self.class.breaks(), order: self.order }
    }
}

/// What the graph says.
#[derive(Debug, Default)]
pub(super) struct Cycles {
    /// Levels that have a cycle against them.
    pub(super) ruled_out: Vec<Level>,
    /// The shortest found of each class that is there.
    pub(super) found: Vec<Cycle>,
    /// Groups of transactions that hang together by cycles, with the order of time.
    pub(super) groups: u32,
    /// Levels that have no cycle against them, but might have one in every order of some list's unseen appends.
    pub(super) undecided: Vec<Level>,
    /// The lists of those appends.
    pub(super) undecided_lists: Vec<u32>,
}

/// The graph of what one level demands. For snapshot isolation nodes are doubled: even ones are those not reached by an
/// anti-dependency.
struct View<'g> {
    graph: &'g Graph,
    level: Level,
    /// Components of a larger graph, outside of which there are no cycles. Its nodes are not doubled.
    within: Option<&'g Components>,
}

impl View<'_> {
    fn is_doubled(&self) -> bool {
        self.level.isolation == Isolation::Snapshot
    }

    fn step(&self, state: u32, cursor: &mut u32) -> Option<(u32, Edge)> {
        let (node, after_anti) = if self.is_doubled() { (state / 2, state % 2 == 1) } else { (state, false) };
        if self.component(node) == Some(Components::NONE) {
            return None;
        }
        while let Some((next, edge)) = self.graph.next(node, self.level.order, cursor) {
            let is_open = match edge {
                Edge::Read => self.level.isolation >= Isolation::ReadCommitted,
                Edge::Anti => self.level.isolation >= Isolation::Snapshot && !after_anti,
                Edge::Write | Edge::Further | Edge::Session | Edge::Time => true,
            };
            if !is_open || self.component(next) != self.component(node) {
                continue;
            }
            let next_after_anti = edge == Edge::Anti || (edge == Edge::Further && after_anti);
            let next = if self.is_doubled() { next * 2 + u32::from(next_after_anti) } else { next };
            return Some((next, edge));
        }
        None
    }

    fn component(&self, node: u32) -> Option<u32> {
        self.within.map(|within| within.of[node as usize])
    }
}

impl Walk for View<'_> {
    fn nodes(&self) -> u32 {
        let nodes = self.graph.nodes(self.level.order);
        if self.is_doubled() { nodes * 2 } else { nodes }
    }

    fn next(&self, node: u32, cursor: &mut u32) -> Option<u32> {
        self.step(node, cursor).map(|(next, _)| next)
    }
}

/// Searches the graph. `unseen` are the committed appends that are in no read, in order of the list.
pub(super) fn find(graph: &Graph, transactions: &[Transaction], unseen: &[(u32, u32)]) -> Cycles {
    let components = components(graph);
    let mut cycles = Cycles::default();
    if let Some(all) = components.get(&Level::STRICT_SERIALIZABLE) {
        cycles.groups = all.count;
    }
    cycles.ruled_out = components.keys().copied().collect();
    cycles.ruled_out.sort_unstable();
    for class in Class::ALL {
        let found = Order::ALL.into_iter().find_map(|order| {
            let level = Level { isolation: class.breaks(), order };
            let within = components.get(&level)?;
            shortest(graph, transactions, class, order, within)
        });
        cycles.found.extend(found);
    }
    // Of a level that is ruled out there must be a cycle to show for it.
    for level in cycles.ruled_out.clone() {
        let is_told = cycles.found.iter().any(|cycle| level.implies(cycle.breaks()));
        if let Some(within) = components.get(&level).filter(|_| !is_told) {
            cycles.found.extend(any_cycle(graph, level, within));
        }
    }
    for order in Order::ALL {
        let level = Level { isolation: Isolation::Snapshot, order };
        let groups = components.get(&Level { isolation: Isolation::Serializable, order });
        if let Some(groups) = groups.filter(|_| !components.contains_key(&level)) {
            let lists = lists_in_one_group(unseen, groups);
            cycles.undecided.extend((!lists.is_empty()).then_some(level));
            cycles.undecided_lists.extend(lists);
        }
    }
    cycles.undecided_lists.sort_unstable();
    cycles.undecided_lists.dedup();
    cycles
}

/// Lists of which two unseen appends are of transactions in one group.
fn lists_in_one_group(unseen: &[(u32, u32)], groups: &Components) -> Vec<u32> {
    let group = |(list, writer): &(u32, u32)| (*list, groups.of[*writer as usize]);
    let mut grouped: Vec<(u32, u32)> =
        unseen.iter().map(group).filter(|(_, group)| *group != Components::NONE).collect();
    grouped.sort_unstable();
    let pairs = grouped.windows(2).filter(|pair| pair[0] == pair[1]);
    let mut lists: Vec<u32> = pairs.map(|pair| pair[0].0).collect();
    lists.dedup();
    lists
}

/// The components of the graph of every level that has cycles.
fn components(graph: &Graph) -> HashMap<Level, Components> {
    let mut found = HashMap::new();
    let mut within: Option<Components> = None;
    for order in Order::ALL.into_iter().rev() {
        let search = |isolation, within| cyclic(&View { graph, level: Level { isolation, order }, within });
        let Some(all) = search(Isolation::Serializable, within.as_ref()) else { break };
        for isolation in [Isolation::Snapshot, Isolation::ReadCommitted, Isolation::ReadUncommitted] {
            let Some(components) = search(isolation, Some(&all)) else { break };
            found.insert(Level { isolation, order }, components);
        }
        found.insert(Level { isolation: Isolation::Serializable, order }, all.clone());
        within = Some(all);
    }
    found
}

/// What matters of the way so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Way {
    node: u32,
    antis: u8,
    begins_with_anti: bool,
    ends_with_anti: bool,
    has_adjacent: bool,
    has_read: bool,
    has_session: bool,
}

impl Way {
    fn from(node: u32) -> Way {
        Way {
            node,
            antis: 0,
            begins_with_anti: false,
            ends_with_anti: false,
            has_adjacent: false,
            has_read: false,
            has_session: false,
        }
    }

    fn on(self, next: u32, edge: Edge, is_first: bool) -> Way {
        if edge == Edge::Further {
            return Way { node: next, ..self };
        }
        let is_anti = edge == Edge::Anti;
        Way {
            node: next,
            antis: (self.antis + u8::from(is_anti)).min(2),
            begins_with_anti: if is_first { is_anti } else { self.begins_with_anti },
            ends_with_anti: is_anti,
            has_adjacent: self.has_adjacent || (is_anti && self.ends_with_anti),
            has_read: self.has_read || edge == Edge::Read,
            has_session: self.has_session || edge == Edge::Session,
        }
    }

    /// Whether a way of this class may look so while it is not closed.
    fn may_become(self, class: Class) -> bool {
        match class {
            Class::G0 => self.antis == 0 && !self.has_read,
            Class::G1c => self.antis == 0,
            Class::GSingle => self.antis <= 1,
            Class::GNonadjacent => !self.has_adjacent,
            Class::G2Item => true,
        }
    }

    /// Whether it is one of this class when it is closed here, or by the order of time.
    fn is(self, class: Class, order: Order) -> bool {
        let meets = order != Order::RealTime && self.begins_with_anti && self.ends_with_anti;
        let has_adjacent = self.has_adjacent || (meets && self.antis > 1);
        (order != Order::Session || self.has_session)
            && match class {
                Class::G0 => self.antis == 0 && !self.has_read,
                Class::G1c => self.antis == 0 && self.has_read,
                Class::GSingle => self.antis == 1,
                Class::GNonadjacent => self.antis > 1 && !has_adjacent,
                Class::G2Item => self.antis > 1 && has_adjacent,
            }
    }
}

/// The shortest cycle of a class, as far as the budget of steps allows.
///
/// One edge of the order of time is enough for any cycle: of two such edges, from a to b and from c to d, with b later
/// leading to c, either a ended before d began, and the way from b to c can be left out; or not, and then c, which ended
/// before d began, ended before a did, and so before b began, and the way from d to a can be left out.
fn shortest(
    graph: &Graph,
    transactions: &[Transaction],
    class: Class,
    order: Order,
    within: &Components,
) -> Option<Cycle> {
    let is_member = |node: u32| {
        let of = |state: u32| within.of[state as usize] != Components::NONE;
        if class.breaks() == Isolation::Snapshot { of(node * 2) || of(node * 2 + 1) } else { of(node) }
    };
    let members: Vec<u32> = (0..graph.transactions).filter(|node| is_member(*node)).collect();
    let mut steps_left = SEARCH_STEPS_MAX;
    for length_max in LENGTHS {
        for start in &members {
            let mut search = Shortest {
                graph,
                transactions,
                class,
                order,
                is_member: &is_member,
                start: *start,
                length_max,
            };
            match search.run(&mut steps_left) {
                Some(links) => return Some(Cycle { class, order, links }),
                None if steps_left == 0 => return None,
                None => {}
            }
        }
    }
    None
}

struct Shortest<'s, M> {
    graph: &'s Graph,
    transactions: &'s [Transaction],
    class: Class,
    order: Order,
    is_member: &'s M,
    start: u32,
    length_max: u32,
}

impl<M: Fn(u32) -> bool> Shortest<'_, M> {
    fn run(&mut self, steps_left: &mut u64) -> Option<Vec<Link>> {
        let begun_s = self.transactions[self.start as usize].invoked_s;
        // The ways found, each with the one it goes on from, the edge, and its length.
        let mut ways: Vec<(Way, usize, Edge, u32)> = vec![(Way::from(self.start), 0, Edge::Further, 0)];
        let mut seen = HashSet::from([ways[0].0]);
        let walked = if self.order == Order::Any { Order::Any } else { Order::Session };
        let mut at = 0;
        while let Some(&(way, _, _, length)) = ways.get(at) {
            if self.order == Order::RealTime && at > 0 && self.closes_by_time(way, begun_s) {
                return Some(self.links(&ways, at, Some(Edge::Time)));
            }
            // The order of time takes one more link to close.
            let length_max = self.length_max - u32::from(self.order == Order::RealTime);
            let mut cursor = 0;
            while length < length_max
                && let Some((next, edge)) = self.graph.next(way.node, walked, &mut cursor)
            {
                *steps_left = steps_left.saturating_sub(1);
                if *steps_left == 0 {
                    return None;
                }
                let on = way.on(next, edge, at == 0);
                if !on.may_become(self.class) || !(self.is_member)(next) {
                    continue;
                }
                if next == self.start {
                    if self.order != Order::RealTime && on.is(self.class, self.order) {
                        ways.push((on, at, edge, length + 1));
                        return Some(self.links(&ways, ways.len() - 1, None));
                    }
                } else if seen.insert(on) {
                    ways.push((on, at, edge, length + 1));
                }
            }
            at += 1;
        }
        None
    }

    fn closes_by_time(&self, way: Way, begun_s: f64) -> bool {
        let ended_before =
            self.transactions.get(way.node as usize).is_some_and(|one| one.completed_s < begun_s);
        ended_before && way.is(self.class, self.order)
    }

    /// The links of a way, closed by one more if it does not end at its start.
    fn links(&self, ways: &[(Way, usize, Edge, u32)], end: usize, closed_by: Option<Edge>) -> Vec<Link> {
        let mut steps = Vec::new();
        let mut at = end;
        while at != 0 {
            let (way, from, edge, _) = ways[at];
            steps.push((ways[from].0.node, edge, way.node));
            at = from;
        }
        steps.reverse();
        steps.extend(closed_by.map(|edge| (ways[end].0.node, edge, self.start)));
        joined(self.graph, &steps)
    }
}

/// Leaves out stations and moments: what led to the first of them leads to the transaction after the last.
fn joined(graph: &Graph, steps: &[(u32, Edge, u32)]) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    for (from, edge, to) in steps {
        match links.last_mut() {
            Some(last) if last.to >= graph.transactions => last.to = *to,
            _ => links.push(Link { from: *from, edge: *edge, to: *to }),
        }
    }
    links
}

/// Some cycle against a level, of any length: for when the search for a short one was given up.
fn any_cycle(graph: &Graph, level: Level, within: &Components) -> Option<Cycle> {
    let view = View { graph, level, within: None };
    let node = |state: u32| if view.is_doubled() { state / 2 } else { state };
    let is_start =
        |state: &u32| within.of[*state as usize] != Components::NONE && node(*state) < graph.transactions;
    let start = (0..view.nodes()).find(is_start)?;
    let mut came_from: HashMap<u32, (u32, Edge)> = HashMap::new();
    let mut waiting = VecDeque::from([start]);
    while let Some(state) = waiting.pop_front() {
        let mut cursor = 0;
        while let Some((next, edge)) = view.step(state, &mut cursor) {
            if within.of[next as usize] != within.of[start as usize] || came_from.contains_key(&next) {
                continue;
            }
            came_from.insert(next, (state, edge));
            waiting.push_back(next);
        }
        if came_from.contains_key(&start) {
            break;
        }
    }
    let mut steps = Vec::new();
    let mut at = start;
    loop {
        let (from, edge) = *came_from.get(&at)?;
        steps.push((node(from), edge, node(at)));
        at = from;
        if at == start {
            break;
        }
    }
    steps.reverse();
    let links = joined(graph, &steps);
    let antis = links.iter().filter(|link| link.edge == Edge::Anti).count();
    let class = match (level.isolation, antis) {
        (Isolation::ReadUncommitted, _) => Class::G0,
        (Isolation::ReadCommitted, _) => Class::G1c,
        (Isolation::Snapshot, 0..=1) => Class::GSingle,
        (Isolation::Snapshot, _) => Class::GNonadjacent,
        (Isolation::Serializable, _) => Class::G2Item,
    };
    Some(Cycle { class, order: level.order, links })
}

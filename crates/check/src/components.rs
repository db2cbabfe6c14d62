//! Cycles of a directed graph: its strongly connected components, in linear time (Tarjan, "Depth-first search and linear
//! graph algorithms", 1972), without recursion, because chains here are as long as histories.

/// A graph to be walked.
pub(crate) trait Walk {
    /// How many nodes there are.
    fn nodes(&self) -> u32;
    /// The next node that `node` leads to; `cursor` starts at 0 and is moved on.
    fn next(&self, node: u32, cursor: &mut u32) -> Option<u32>;
}

/// The components with a cycle in them: for each node the number of its own, or [`Components::NONE`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Components {
    pub(crate) of: Vec<u32>,
    pub(crate) count: u32,
}

impl Components {
    /// In no cycle.
    pub(crate) const NONE: u32 = u32::MAX;
}

const UNSEEN: u32 = 0;

struct Search<'w, W> {
    walk: &'w W,
    /// When a node was first seen, from 1; lowered to that of the oldest node it leads back to. `u32::MAX` once its
    /// component is known.
    low: Vec<u32>,
    clock: u32,
    /// Nodes whose component is not known yet.
    open: Vec<u32>,
    /// The way from the root: node, cursor, when it was first seen.
    path: Vec<(u32, u32, u32)>,
    components: Vec<u32>,
    count: u32,
}

/// The components with a cycle; `None` when there is no cycle.
pub(crate) fn cyclic<W: Walk>(walk: &W) -> Option<Components> {
    let nodes = walk.nodes();
    let mut search = Search {
        walk,
        low: vec![UNSEEN; nodes as usize],
        clock: 0,
        open: Vec::new(),
        path: Vec::new(),
        components: Vec::new(),
        count: 0,
    };
    for root in 0..nodes {
        if search.low[root as usize] == UNSEEN {
            search.from(root);
        }
    }
    let Search { components: of, count, .. } = search;
    (count > 0).then_some(Components { of, count })
}

impl<W: Walk> Search<'_, W> {
    fn enter(&mut self, node: u32) {
        self.clock += 1;
        self.low[node as usize] = self.clock;
        self.open.push(node);
        self.path.push((node, 0, self.clock));
    }

    fn from(&mut self, root: u32) {
        self.enter(root);
        while let Some((node, cursor, born)) = self.path.last_mut() {
            let (node, born) = (*node, *born);
            match self.walk.next(node, cursor) {
                Some(next) => match self.low[next as usize] {
                    UNSEEN => self.enter(next),
                    // A known component's `u32::MAX` lowers nothing.
                    low => self.low[node as usize] = self.low[node as usize].min(low),
                },
                None => {
                    self.path.pop();
                    let low = self.low[node as usize];
                    if low == born {
                        self.close(node);
                    } else if let Some((parent, ..)) = self.path.last() {
                        let parent = *parent as usize;
                        self.low[parent] = self.low[parent].min(low);
                    }
                }
            }
        }
    }

    /// Takes the component of which `node` is the oldest off the open nodes.
    fn close(&mut self, node: u32) {
        let start = self.open.iter().rposition(|open| *open == node).unwrap_or(0);
        // No transaction comes before itself alone: a single node is no cycle.
        if self.open.len() - start > 1 {
            if self.components.is_empty() {
                self.components = vec![Components::NONE; self.low.len()];
            }
            for member in &self.open[start..] {
                self.components[*member as usize] = self.count;
            }
            self.count += 1;
        }
        for member in self.open.drain(start..) {
            self.low[member as usize] = u32::MAX;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    struct Edges(u32, Vec<(u32, u32)>);

    impl Walk for Edges {
        fn nodes(&self) -> u32 {
            self.0
        }

        fn next(&self, node: u32, cursor: &mut u32) -> Option<u32> {
            let found = self.1.iter().filter(|(from, _)| *from == node).nth(*cursor as usize);
            *cursor += 1;
            found.map(|(_, to)| *to)
        }
    }

    /// Whether one node leads to another over at least one edge, by trying until nothing new is reached.
    fn reaches(edges: &[(u32, u32)], from: u32, to: u32) -> bool {
        let mut reached = std::collections::BTreeSet::new();
        let mut waiting = vec![from];
        while let Some(node) = waiting.pop() {
            for (_, next) in edges.iter().filter(|(from, _)| *from == node) {
                if reached.insert(*next) {
                    waiting.push(*next);
                }
            }
        }
        reached.contains(&to)
    }

    proptest! {
        #[test]
        fn nodes_share_a_component_exactly_if_each_leads_to_the_other(
            edges in prop::collection::vec((0u32..8, 0u32..8), 0..20),
        ) {
            let edges: Vec<_> = edges.into_iter().filter(|(from, to)| from != to).collect();
            let found = cyclic(&Edges(8, edges.clone()));
            for one in 0..8 {
                let of = |node: u32| found.as_ref().map_or(Components::NONE, |found| found.of[node as usize]);
                prop_assert_eq!(of(one) != Components::NONE, reaches(&edges, one, one));
                for other in (0..8).filter(|other| *other != one) {
                    let together = reaches(&edges, one, other) && reaches(&edges, other, one);
                    prop_assert_eq!(of(one) != Components::NONE && of(one) == of(other), together);
                }
            }
        }
    }
}

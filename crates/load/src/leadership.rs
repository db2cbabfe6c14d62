//! Which nodes of a cluster lead, each asked by itself.
//!
//! Owns the question and what can be said of a node that does not answer it. How often it is put is the caller's.

use std::collections::BTreeSet;
use std::net::TcpStream;
use std::time::Duration;

use client::{Address, ConnectError, Endpoint, reactor};

use crate::plan::{LoadPlan, here};
use crate::preparation::{Leader, in_place};

/// What the nodes answered at one look. Those in neither set said that they follow, or take no connections at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Leadership {
    /// Those that said that they lead.
    pub leaders: BTreeSet<String>,
    /// Those that did not answer or could not be reached, and may take writes of others all the same.
    pub silent: BTreeSet<String>,
}

impl Leadership {
    /// The nodes that may have led all the time from this look to another.
    #[must_use]
    pub fn and(&self, other: &Leadership) -> Leadership {
        let may_lead = |look: &Leadership| &look.leaders | &look.silent;
        let leaders = &self.leaders & &other.leaders;
        let silent = &(&may_lead(self) & &may_lead(other)) - &leaders;
        Leadership { leaders, silent }
    }

    /// Whether more than one node may lead.
    #[must_use]
    pub fn is_in_doubt(&self) -> bool {
        self.leaders.len() + self.silent.len() > 1
    }
}

/// Who answers where a connection is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusals {
    /// The node's own machine: nothing listens there for clients.
    OfNodes,
    /// The end of a forwarded port on this machine: nothing is known of the node.
    OfForwards,
}

/// PostgreSQL's `cannot_connect_now`: it is starting or ending, and takes no session that could write.
const CANNOT_CONNECT_NOW: &str = "57P03";

/// The least patience with a client program, which starts first.
const PROGRAM_PATIENCE: Duration = Duration::from_secs(15);

/// Asks every node of `plan` once whether it takes writes, from this process' place, all at the same time, each for as long
/// as `of_one_node`.
#[must_use]
pub fn leadership(plan: &LoadPlan, of_one_node: Duration, refusals: Refusals) -> Leadership {
    let patience = if plan.program.is_some() { of_one_node.max(PROGRAM_PATIENCE) } else { of_one_node };
    let mut seen = Leadership::default();
    let answers: Vec<(&Endpoint, Answer)> = std::thread::scope(|scope| {
        let ask = |endpoint| (endpoint, scope.spawn(move || answer_of(plan, endpoint, patience, refusals)));
        let asked: Vec<_> = plan.endpoints.iter().map(ask).collect();
        asked
            .into_iter()
            .map(|(endpoint, thread)| (endpoint, thread.join().unwrap_or(Answer::Silent)))
            .collect()
    });
    for (endpoint, answer) in answers {
        match answer {
            Answer::Leads => seen.leaders.insert(endpoint.node.clone()),
            Answer::Silent => seen.silent.insert(endpoint.node.clone()),
            Answer::Follows => false,
        };
    }
    seen
}

enum Answer {
    Leads,
    /// It said so, or nothing listens for clients there.
    Follows,
    Silent,
}

fn answer_of(plan: &LoadPlan, endpoint: &Endpoint, patience: Duration, refusals: Refusals) -> Answer {
    let alone = LoadPlan { endpoints: vec![endpoint.clone()], spreads: false, ..plan.clone() };
    let asked = in_place(&alone, here(), |plan| async move {
        let mut leader = Leader::new(plan, patience);
        let answer = match reactor::timeout(patience, leader.connect_once()).await {
            Ok(Ok(_)) => Answer::Leads,
            Ok(Err(error)) if !error.read_only_nodes.is_empty() || is_starting(&error) => Answer::Follows,
            Ok(Err(_)) if refusals == Refusals::OfNodes && takes_no_connections(endpoint, patience) => {
                Answer::Follows
            }
            Ok(Err(_)) | Err(_) => Answer::Silent,
        };
        Ok(answer)
    });
    asked.unwrap_or(Answer::Silent)
}

fn is_starting(error: &ConnectError) -> bool {
    error.failed_attempts.iter().any(|attempt| attempt.error.code.as_deref() == Some(CANNOT_CONNECT_NOW))
}

/// Whether the node's machine says that nothing listens where clients connect.
fn takes_no_connections(endpoint: &Endpoint, patience: Duration) -> bool {
    let Address::Tcp { address, .. } = &endpoint.address else { return false };
    let refused = std::io::ErrorKind::ConnectionRefused;
    TcpStream::connect_timeout(address, patience).is_err_and(|error| error.kind() == refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(leaders: &[&str], silent: &[&str]) -> Leadership {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        Leadership { leaders: names(leaders), silent: names(silent) }
    }

    #[test]
    fn a_node_may_have_led_from_one_look_to_the_next_where_it_led_or_was_silent_at_both() {
        let check = |looks: [Leadership; 2], expected: Leadership| {
            assert_eq!(looks[0].and(&looks[1]), expected);
            assert_eq!(looks[1].and(&looks[0]), expected);
        };
        check([look(&["n1", "n2"], &[]), look(&["n1", "n2"], &[])], look(&["n1", "n2"], &[]));
        check([look(&["n1"], &["n2"]), look(&["n1", "n2"], &[])], look(&["n1"], &["n2"]));
        check([look(&["n1"], &["n2"]), look(&["n1"], &[])], look(&["n1"], &[]));
        check([look(&["n1"], &[]), look(&["n2"], &[])], look(&[], &[]));
    }

    #[test]
    fn one_node_that_may_lead_is_no_doubt_and_two_are() {
        assert!(!look(&[], &[]).is_in_doubt());
        assert!(!look(&["n1"], &[]).is_in_doubt() && !look(&[], &["n1"]).is_in_doubt());
        assert!(look(&["n1"], &["n2"]).is_in_doubt() && look(&[], &["n1", "n2"]).is_in_doubt());
    }
}

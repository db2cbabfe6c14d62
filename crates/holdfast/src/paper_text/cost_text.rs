//! What commits cost on the network, as text.

use history::NodeId;
use model::cost::{LatencyMs, TransactionCost};
use model::deployment::{Quorum, Rules};
use paper::{Analysis, CommitCost, NotComputed, PhaseCost};

use super::beside;

/// Where what it costs stands.
const LABEL: usize = 28;

pub(super) fn costs(paper: &Analysis) -> Vec<String> {
    let mut lines = Vec::new();
    for load in &paper.commits {
        lines.push(String::new());
        lines.extend(of_load(paper, load));
    }
    if let (true, Rules::Groups { quorums, .. }) = (paper.commits.is_empty(), &paper.deployment.rules) {
        lines.push(String::new());
        lines.push("Network delay of a request".to_owned());
        let waits = match quorums.contains(&Quorum::Majority) {
            true => "the nodes agree on its order",
            false => "it waits for as many replicas of the row as its consistency level says",
        };
        lines.push(format!("  not computed: any node can handle it, and {waits}"));
    }
    lines
}

fn of_load(paper: &Analysis, load: &CommitCost) -> Vec<String> {
    let mut lines =
        vec![format!("Network delay of one {} transaction (packet loss and queues left out)", load.load)];
    match &load.phases {
        Ok(phases) => phases.iter().for_each(|phase| lines.extend(of_phase(paper, phase))),
        Err(NotComputed::SeveralKinds) => {
            lines.push("  not computed: its transactions are of several types, chosen at random".to_owned());
        }
        Err(NotComputed::ReadsFirst) => lines.push(
            "  not computed: a write is sent only after a read, and again after a conflict; each costs round trips"
                .to_owned(),
        ),
    }
    lines
}

fn of_phase(paper: &Analysis, phase: &PhaseCost) -> Vec<String> {
    let head = format!("  {}", phase.names.join(", "));
    if !phase.steady {
        return beside(&head, LABEL, "not computed: more than delays change, or not for the whole phase");
    }
    let Some(cost) = &phase.cost else {
        return beside(&head, LABEL, "a commit waits forever: it needs more standbys than there are");
    };
    let node = |node: &NodeId| format!("{node} ({})", paper.deployment.host_of(*node).join("/"));
    let quorum: Vec<String> = cost.quorum.iter().map(node).collect();
    let trips: usize = cost.statements.iter().map(|cost| cost.quorum_round_trips).sum();
    let waits = if trips == 0 {
        "no statement waits for a standby".to_owned()
    } else {
        let waiting: Vec<String> = cost
            .statements
            .iter()
            .filter(|cost| cost.quorum_round_trips > 0)
            .map(|cost| cost.name.clone())
            .collect();
        format!(
            "{} for {}",
            waiting.join(", ") + if waiting.len() == 1 { " waits" } else { " wait" },
            quorum.join(" and ")
        )
    };
    let mut lines = beside(&head, LABEL, &format!("{}; {waits}", latency(&cost.total_ms)));
    lines.extend(by_statement(cost));
    if let Some(raft) = phase.on_raft.as_ref().filter(|raft| raft.total_ms.mean > cost.total_ms.mean) {
        let trips: usize = raft.statements.iter().map(|cost| cost.quorum_round_trips).sum();
        let text = format!(
            "on a database with a Raft group for each tablet it would be {}: {trips} quorum round {}",
            latency(&raft.total_ms),
            if trips == 1 { "trip" } else { "trips, one after the other" }
        );
        lines.extend(beside("", LABEL, &text));
    }
    if let Some((leader, mean_ms)) = &phase.better_leader {
        let text = format!(
            "with {leader} ({}) leading: {mean_ms:.2} ms",
            paper.deployment.host_of(*leader).join("/")
        );
        lines.extend(beside("", LABEL, &text));
    }
    lines
}

/// Statements that cost something; nothing when none does.
fn by_statement(cost: &TransactionCost) -> Vec<String> {
    let paying: Vec<String> = cost
        .statements
        .iter()
        .filter(|statement| statement.latency_ms.mean >= 0.005)
        .map(|statement| format!("{} {}", statement.name, latency(&statement.latency_ms)))
        .collect();
    if cost.statements.len() < 2 || paying.is_empty() {
        Vec::new()
    } else {
        beside("", LABEL, &paying.join("; "))
    }
}

fn latency(latency: &LatencyMs) -> String {
    if (latency.p99 - latency.p50).abs() < 1e-9 {
        format!("{:.2} ms", latency.mean)
    } else {
        format!("{:.2} ms (p50 {:.2}, p99 {:.2})", latency.mean, latency.p50, latency.p99)
    }
}

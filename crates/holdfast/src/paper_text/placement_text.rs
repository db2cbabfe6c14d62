//! Placement as text: who would find no host after the loss of one.

use paper::{PlacementSurvey, obstacles_in_words};

use super::beside;

/// So many nodes that no host can run are named, with what stands against each host.
const NAMED_NODES: usize = 6;

pub(super) fn placement(survey: &PlacementSurvey) -> Vec<String> {
    let mut lines = vec![String::new(), "Placement, by capacities and rules".to_owned()];
    if survey.stranded.is_empty() {
        lines.push("  after the loss of any one host every node can restart".to_owned());
    }
    let stranded: Vec<_> =
        survey.stranded.iter().flat_map(|(host, nodes)| nodes.iter().map(move |of| (*host, of))).collect();
    for (host, of) in stranded.iter().take(NAMED_NODES) {
        let lost = survey.cluster.hosts[*host].path.join("/");
        let why = obstacles_in_words(&of.obstacles, &survey.cluster);
        let text = format!("{} stays off after the loss of {lost}; {why}", of.vm);
        lines.extend(beside("  ", 2, &text));
    }
    let rest = stranded.len().saturating_sub(NAMED_NODES);
    if rest > 0 {
        lines.push(format!("  and {rest} more that stay off after the loss of a host"));
    }
    lines
}

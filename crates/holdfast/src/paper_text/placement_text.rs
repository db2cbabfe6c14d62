//! Placement as text: who would find no host after the loss of one.

use paper::{PlacementSurvey, obstacles_in_words};

use super::beside;

pub(super) fn placement(survey: &PlacementSurvey) -> Vec<String> {
    let mut lines = vec![String::new(), "Placement, by capacities and rules".to_owned()];
    if survey.stranded.is_empty() {
        lines.push("  after the loss of any one host every node can restart".to_owned());
    }
    for (host, stranded) in &survey.stranded {
        for of in stranded {
            let lost = survey.cluster.hosts[*host].path.join("/");
            let why = obstacles_in_words(&of.obstacles, &survey.cluster);
            let text = format!("n{} stays off after the loss of {lost}; {why}", of.vm + 1);
            lines.extend(beside("  ", 2, &text));
        }
    }
    lines
}

//! Survival as text: what single and double failures leave, equal outcomes together.

use std::collections::BTreeMap;

use model::deployment::Rules;
use model::survival::{Action, Failure, Outcome, Smallest};
use run::on_paper::{OnPaper, Planned, Struck, nodes_in};

use super::beside;

/// Of pairs with the same outcome, so many are named.
const NAMED_PAIRS: usize = 6;
/// Of single failures with the same outcome, so many are named.
const NAMED_SINGLES: usize = 40;
/// Where what failed stands.
const LABEL: usize = 44;

pub(super) fn survival(paper: &OnPaper) -> Vec<String> {
    let survey = &paper.survey;
    let mut lines = vec![String::new(), "What survives, once the platform has done what it does".to_owned()];
    lines.extend(beside("", 2, &setting(paper)));
    lines.push(String::new());
    lines.push(format!("  {:42}{}", "one failure leaves", "of these"));
    let mut singles: BTreeMap<Outcome, Vec<String>> = BTreeMap::new();
    for (failure, outcome) in &survey.singles {
        singles.entry(*outcome).or_default().push(named(paper, failure));
    }
    for (outcome, failures) in &singles {
        lines.extend(beside(&label(*outcome), LABEL, &some_of(failures, NAMED_SINGLES)));
    }
    lines.push(String::new());
    lines.extend(doubles(paper));
    lines.push(String::new());
    let smallest = |what: &str, smallest: &Smallest| beside("  ", 2, &told(paper, what, smallest));
    lines.extend(smallest("Not everything is served any more after", &survey.stops_service));
    lines.extend(smallest("Acknowledged writes are on nothing that lives on after", &survey.loses_data));
    if !paper.planned.is_empty() {
        lines.push(String::new());
        lines.push("  the schedule breaks".to_owned());
        for planned in &paper.planned {
            lines.extend(scheduled(paper, planned));
        }
    }
    lines
}

fn setting(paper: &OnPaper) -> String {
    let deployment = &paper.deployment;
    let nodes: Vec<String> = (0..deployment.nodes.len())
        .map(|node| format!("n{} on {}", node + 1, deployment.host_of(node).join("/")))
        .collect();
    let leads = match deployment.rules {
        Rules::SingleLog { .. } => "; n1 leads",
        Rules::Elected { .. } => "; n1 leads at first, the next leader is elected by a majority",
        Rules::Groups { .. } => "",
    };
    format!("{}{leads}. Clients live on whatever fails.", nodes.join(", "))
}

/// Pairs that do more harm than either failure alone; the rest is counted.
fn doubles(paper: &OnPaper) -> Vec<String> {
    let Some(doubles) = &paper.survey.doubles else {
        return vec![
            "  two failures at once: too many pairs to look through here; holdfast predict does".to_owned(),
        ];
    };
    let alone: BTreeMap<&Failure, Outcome> =
        paper.survey.singles.iter().map(|(failure, outcome)| (failure, *outcome)).collect();
    let mut worse: BTreeMap<Outcome, Vec<String>> = BTreeMap::new();
    for (pair, outcome) in doubles {
        let least =
            |part: &dyn Fn(&Outcome) -> bool| pair.iter().any(|failure| alone.get(failure).is_some_and(part));
        let service = least(&|alone| alone.service <= outcome.service);
        let data = least(&|alone| alone.data <= outcome.data);
        if !(service && data) {
            let [one, other] = pair;
            worse.entry(*outcome).or_default().push(format!(
                "{} + {}",
                named(paper, one),
                named(paper, other)
            ));
        }
    }
    let count: usize = worse.values().map(Vec::len).sum();
    let mut lines = vec![format!(
        "  two failures at once: {} pairs, of which {count} leave less than either alone{}",
        doubles.len(),
        if count == 0 { "" } else { ":" }
    )];
    for (outcome, pairs) in &worse {
        lines.extend(beside(&label(*outcome), LABEL, &some_of(pairs, NAMED_PAIRS)));
    }
    lines
}

fn label(outcome: Outcome) -> String {
    let action = match outcome.action {
        Action::None => "",
        Action::Restarted => ", restarted",
        Action::Promoted => ", promoted",
    };
    format!("    {}{action}; writes {}", outcome.service, outcome.data)
}

/// `host dc1/a/h1 (n1)`, with the wider place of which it is all there is.
fn named(paper: &OnPaper, failure: &Failure) -> String {
    let Failure::Down(place) = failure else { return failure.to_string() };
    let deployment = &paper.deployment;
    let hosts = deployment.hosts_in(place);
    let whole = (1..place.len()).find(|length| deployment.hosts_in(&place[..*length]) == hosts);
    let whole = whole.map(|length| {
        let wider = &place[..length];
        format!("all of {} {}", deployment.kind(wider), wider.join("/"))
    });
    let nodes = nodes_in(deployment, place);
    let remarks: Vec<String> =
        whole.into_iter().chain((!nodes.is_empty()).then(|| nodes.join(" "))).collect();
    let remarks = if remarks.is_empty() { String::new() } else { format!(" ({})", remarks.join(", ")) };
    format!("{} {}{remarks}", deployment.kind(place), place.join("/"))
}

fn some_of(all: &[String], most: usize) -> String {
    let named: Vec<&str> = all.iter().take(most).map(String::as_str).collect();
    let rest = all.len().saturating_sub(most);
    let rest = if rest > 0 { format!("; and {rest} more") } else { String::new() };
    format!("{}{rest}", named.join("; "))
}

fn told(paper: &OnPaper, what: &str, smallest: &Smallest) -> String {
    match smallest {
        Smallest::Found { set, alike } => {
            let names: Vec<String> = set.iter().map(|failure| named(paper, failure)).collect();
            let others = match alike {
                0 | 1 => String::new(),
                2 => ", or 1 other set of that size".to_owned(),
                alike => format!(", or {} other sets of that size", alike - 1),
            };
            let count =
                if set.len() == 1 { "1 failure".to_owned() } else { format!("{} failures", set.len()) };
            format!("{what} {count}: {}{others}.", names.join(" + "))
        }
        Smallest::MoreThan(size) => {
            format!("{what} more than {size} failures; larger sets were not looked through.")
        }
    }
}

fn scheduled(paper: &OnPaper, planned: &Planned) -> Vec<String> {
    let head = format!("    {}: {}", planned.phase, planned.what);
    let tail = match &planned.struck {
        Struck::Worst { failures, outcome } => {
            let names: Vec<String> = failures.iter().map(|failure| named(paper, failure)).collect();
            format!("{}: {}", names.join(" + "), label(*outcome).trim_start())
        }
        Struck::NotOnPaper(why) => format!("not judged here: {why}"),
    };
    beside(&format!("{head}  "), LABEL, &tail)
}

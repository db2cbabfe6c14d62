//! What happened, in sentences and in the three numbers that matter. Plain text; `page` and `text` set it.

use history::{Event, EventKind, Verdict};

use crate::format;
use crate::interruption;
use results::RunDirectory;
use results::losses::{self, LostWrites};
use results::{FaultResult, RunResult};
use scenario::{Clause, Nodes, Story, fault_kind};

/// One of the numbers that stand on top.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Number {
    pub(crate) label: &'static str,
    pub(crate) value: String,
    pub(crate) detail: String,
}

/// Lost writes, longest interruption, throughput while the fault stood.
pub(crate) fn numbers(result: &RunResult) -> [Number; 3] {
    [lost_writes(result), interruption(result), throughput_during(result)]
}

/// What the checks that count lost writes say, taken together.
struct Ledger {
    acknowledged: u64,
    lost: Option<LostWrites>,
    indeterminate: u64,
    verdict: Verdict,
}

impl Ledger {
    /// What could not be read to its end has lost nothing that is known of: that is not zero.
    fn known_lost(&self) -> Option<LostWrites> {
        self.lost.filter(|lost| lost.known() > 0 || self.verdict != Verdict::Unknown)
    }
}

fn ledger(result: &RunResult) -> Option<Ledger> {
    let lost = losses::lost_writes(&result.checks);
    losses::counting_lost_writes(&result.checks).fold(None, |sum, check| {
        let sum = sum.unwrap_or(Ledger { acknowledged: 0, lost, indeterminate: 0, verdict: Verdict::Pass });
        Some(Ledger {
            acknowledged: sum.acknowledged.saturating_add(check.acknowledged.unwrap_or(0)),
            lost,
            indeterminate: sum.indeterminate.saturating_add(check.indeterminate.unwrap_or(0)),
            verdict: sum.verdict.and(check.verdict),
        })
    })
}

fn lost_writes(result: &RunResult) -> Number {
    let (value, detail) = match ledger(result) {
        None => ("not checked".to_owned(), "no check in this run counts acknowledged writes".to_owned()),
        Some(ledger) => match ledger.known_lost() {
            None if ledger.verdict == Verdict::Pass => (
                "not counted".to_owned(),
                format!(
                    "of {} acknowledged; the check passed and does not count losses",
                    format::count(ledger.acknowledged)
                ),
            ),
            None => ("unknown".to_owned(), format!("of {} acknowledged", format::count(ledger.acknowledged))),
            Some(lost) => (
                format::lost(lost),
                format!(
                    "of {} acknowledged; {} without a definite answer",
                    format::count(ledger.acknowledged),
                    format::count(ledger.indeterminate)
                ),
            ),
        },
    };
    Number { label: "Lost writes", value, detail }
}

fn interruption(result: &RunResult) -> Number {
    let (value, detail) = interruption::headline(result);
    Number { label: "Longest interruption", value, detail }
}

fn throughput_during(result: &RunResult) -> Number {
    let ratio = |fault: &FaultResult| {
        let lowest = fault.throughput_ratio_during.filter(|_| !fault.has_uneven_baseline())?;
        let mut keeping_least =
            fault.loads.iter().filter(|load| load.throughput_ratio_during == Some(lowest));
        let load = keeping_least.next().filter(|_| fault.loads.len() > 1 && keeping_least.next().is_none());
        let load = load.map(|load| load.load.clone());
        Some((lowest, load))
    };
    let ratios: Vec<(f64, Option<String>)> = result.faults.iter().filter_map(ratio).collect();
    let worst = ratios.iter().min_by(|(one, _), (other, _)| one.total_cmp(other));
    let (value, detail) = match worst {
        _ if result.faults.is_empty() => ("no fault".to_owned(), "nothing to compare".to_owned()),
        None => ("unknown".to_owned(), nothing_to_compare(result)),
        Some((worst, load)) => {
            let of_load = load.as_ref().map(|load| format!(" of {load}, the load that kept least"));
            let which = if ratios.len() > 1 {
                format!(", the lowest of {} faults", ratios.len())
            } else {
                String::new()
            };
            let is_healed = result.faults.iter().all(|fault| fault.healed_s.is_some());
            let until = if is_healed { "its end" } else { "the end of the recording" };
            let of_load = of_load.unwrap_or_default();
            let detail = format!("of the baseline{of_load}; mean from the fault's effect to {until}{which}");
            (format::percent(*worst), detail)
        }
    };
    Number { label: "Throughput under fault", value, detail }
}

/// Why no fault has a throughput to compare with the baseline's.
fn nothing_to_compare(result: &RunResult) -> String {
    if result.faults.iter().any(FaultResult::has_uneven_baseline) {
        return "the baseline is too uneven".to_owned();
    }
    let mut loads = result.faults.iter().flat_map(|fault| &fault.loads);
    match loads.clone().find_map(|load| load.incomparable.as_ref()) {
        Some(why) => interruption::incomparable(why),
        None if loads.any(|load| load.baseline_per_s.is_some()) => {
            "no fault stood for a whole second".to_owned()
        }
        None => "no baseline, or no fault that can be compared with it".to_owned(),
    }
}

/// What happened, a sentence for each fault, and one about what was lost.
pub(crate) fn sentences(run: &RunDirectory) -> Vec<String> {
    const TOLD: usize = 6;
    let result = &run.result;
    let mut said = None;
    let mut sentences: Vec<String> =
        result.faults.iter().take(TOLD).map(|fault| fault_sentence(run, fault, &mut said)).collect();
    if result.faults.len() > TOLD {
        sentences.push(format!("{} more faults followed.", result.faults.len() - TOLD));
    }
    if result.faults.is_empty() {
        sentences.push(undisturbed(result));
    }
    sentences.push(loss(result));
    sentences
}

fn undisturbed(result: &RunResult) -> String {
    let rates: Vec<String> = result
        .loads
        .iter()
        .map(|load| format!("{} ran at {}", load.name, format::rate(load.measured.throughput_per_s)))
        .collect();
    if rates.is_empty() {
        "No fault was injected in this run.".to_owned()
    } else {
        format!("No fault was injected in this run; {}.", format::listed(&rates))
    }
}

fn loss(result: &RunResult) -> String {
    let Some(ledger) = ledger(result) else {
        return "Whether acknowledged writes survived was not checked.".to_owned();
    };
    let acknowledged = format::count(ledger.acknowledged);
    match ledger.known_lost() {
        // The checks are sound, and count no single writes.
        None if ledger.verdict == Verdict::Pass => {
            format!(
                "No check counts lost writes one by one; the checks of {acknowledged} acknowledged writes passed."
            )
        }
        None => {
            format!("Whether any of {acknowledged} acknowledged writes was lost could not be determined.")
        }
        Some(LostWrites::Exactly(0)) => format!("None of {acknowledged} acknowledged writes was lost."),
        Some(lost) => {
            let beginning = if lost.is_at_least() { "At least " } else { "" };
            let (known, verb) = (lost.known(), if lost.known() == 1 { "was" } else { "were" });
            format!("{beginning}{} of {acknowledged} acknowledged writes {verb} lost.", format::count(known))
        }
    }
}

fn fault_sentence(run: &RunDirectory, fault: &FaultResult, said: &mut Option<String>) -> String {
    let Some(effect_s) = fault.took_effect_s else {
        return format!(
            "At {} a fault was requested ({}, {}); there is no evidence that it took effect.",
            format::seconds(fault.asked_s),
            fault.kind,
            fault.target
        );
    };
    let mut parts =
        vec![format!("At {} {}", format::seconds(effect_s), struck(fault, &with_nodes(run, fault)))];
    parts.extend(answers(run, fault, effect_s));
    let felt = interruption::clauses(fault, said);
    // A run that left no result, or an older one, has no gaps: then the first success is all there is.
    if felt.is_empty() {
        parts.push(match fault.recovery_s.first_success {
            Some(after_s) => format!("the first success came after {}", format::seconds(after_s)),
            None => "no success was seen afterwards".to_owned(),
        });
    }
    parts.extend(felt);
    format!("{}.", parts.join("; "))
}

/// What happened, to which nodes, and as it stands in the scenario where that says more than the hosts.
fn struck(fault: &FaultResult, nodes: &str) -> String {
    let what = match fault.hits.as_slice() {
        [] => fault.target.clone(),
        [host] => format!("the host {host}"),
        hosts => format!("the hosts {}", format::listed(hosts)),
    };
    match fault_kind(&fault.kind).map(|kind| kind.story.clause) {
        Some(Clause::Hosts(clause)) => format!("{what} {clause}{nodes}"),
        Some(Clause::Target(clause)) => format!("{clause}{nodes}: {}", fault.target),
        None => format!("{} started on {what}{nodes}", fault.kind),
    }
}

fn with_nodes(run: &RunDirectory, fault: &FaultResult) -> String {
    let story = fault_kind(&fault.kind).map(|kind| kind.story);
    if fault.nodes.is_empty() {
        // Only a host can have nodes on it or not.
        let are_hosts = matches!(story, Some(Story { clause: Clause::Hosts(_), .. }));
        return if are_hosts { " without a node of the database" } else { "" }.to_owned();
    }
    let leader = leader_before(run, fault.asked_s);
    let names: Vec<String> = fault
        .nodes
        .iter()
        .map(|node| if leader == Some(node.as_str()) { format!("the leader {node}") } else { node.clone() })
        .collect();
    match (story.map_or(Nodes::With, |story| story.nodes), fault.hits.len()) {
        (Nodes::Around, _) => format!(" around {}", format::listed(&names)),
        (Nodes::On, _) => format!(" on {}", format::listed(&names)),
        (Nodes::With, 0 | 1) => format!(" with {} on it", format::listed(&names)),
        (Nodes::With, _) => format!(" with {} on them", format::listed(&names)),
    }
}

/// The node that took the writes just before a moment.
fn leader_before(run: &RunDirectory, moment_s: f64) -> Option<&str> {
    let first =
        run.result.facts.site.nodes.iter().find(|node| node.role == "leader").map(|node| node.name.as_str());
    run.events.iter().filter(|event| event.t_s < moment_s).fold(first, |leader, event| match &event.kind {
        EventKind::Leader { node } => Some(node),
        _ => leader,
    })
}

/// What the platform and the database did about a fault before the next one struck.
fn answers(run: &RunDirectory, fault: &FaultResult, effect_s: f64) -> Vec<String> {
    let until_s = run
        .result
        .faults
        .iter()
        .map(|other| other.asked_s)
        .filter(|asked_s| *asked_s > effect_s)
        .fold(f64::INFINITY, f64::min);
    let mut leader = leader_before(run, fault.asked_s);
    let mut restarted: Vec<&str> = Vec::new();
    let mut told = Vec::new();
    for event in run.events.iter().filter(|event| event.t_s >= fault.asked_s && event.t_s < until_s) {
        match &event.kind {
            EventKind::NodeUp { node, host }
                if moved(run, event, node, host) && !restarted.contains(&node.as_str()) =>
            {
                restarted.push(node);
                told.push(format!("{node} booted on {host} after {}", format::seconds(event.t_s - effect_s)));
            }
            EventKind::Leader { node } if leader != Some(node) => {
                leader = Some(node);
                told.push(format!(
                    "{node} took over as leader after {}",
                    format::seconds(event.t_s - effect_s)
                ));
            }
            EventKind::LeaderAgain { node, without_s } => {
                let (after, without) = (format::seconds(event.t_s - effect_s), format::seconds(*without_s));
                told.push(format!(
                    "{node} was leader again after {after}; no node reported to lead for {without}"
                ));
            }
            _ => {}
        }
    }
    told
}

/// Whether a node came up on another host than the one it was last on.
fn moved(run: &RunDirectory, up: &Event, node: &str, host: &str) -> bool {
    let first =
        run.result.facts.site.nodes.iter().find(|facts| facts.name == node).map(|facts| facts.host.as_str());
    let last =
        run.events.iter().filter(|event| event.t_s < up.t_s).fold(first, |last, event| match &event.kind {
            EventKind::NodeUp { node: name, host } if name == node => Some(host),
            EventKind::Migration { facts } if facts.is_made() && facts.node == node => Some(&facts.to),
            _ => last,
        });
    last != Some(host)
}

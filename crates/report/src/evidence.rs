//! What a reader may hold against the verdict: expectations, checks with their stories, receipts, warnings, the events.

use std::fmt::Write;

use history::{EventKind, FaultId, Receipt, Verdict};

use crate::agents;
use crate::format;
use crate::interruption;
use crate::markup::escape;
use crate::migrations;
use results::RunDirectory;
use results::{CheckResult, FaultLoadResult, FaultResult};

/// The list of events is cut here; the run directory has them all.
const MOST_EVENTS: usize = 500;

/// A verdict as a small label: a sign, a word and a colour, so that none of them has to be seen.
pub(crate) fn badge(verdict: Verdict) -> String {
    let sign = match verdict {
        Verdict::Pass => "✓",
        Verdict::Fail => "✕",
        Verdict::Unknown => "?",
    };
    format!("<span class=\"badge {verdict}\"><span aria-hidden=\"true\">{sign}</span> {verdict}</span>")
}

/// The table of expectations.
pub(crate) fn expectations(run: &RunDirectory) -> String {
    if run.result.expectations.is_empty() {
        let why = if run.has_ended {
            "The scenario has no expectations."
        } else {
            "The run ended before the expectations were judged."
        };
        return format!("<p>{why}</p>");
    }
    let mut html = "<div class=\"scroll\"><table><thead><tr><th>Expectation<th>Wanted<th>Measured<th>Verdict</tr></thead><tbody>".to_owned();
    for expectation in &run.result.expectations {
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}<td>{}<td>{}<td>{}</tr>",
            escape(&expectation.name),
            escape(&expectation.wanted),
            escape(&expectation.measured),
            badge(expectation.verdict)
        );
    }
    html.push_str("</tbody></table></div>");
    html
}

/// Every check with its story and its counts.
pub(crate) fn checks(run: &RunDirectory) -> String {
    if run.result.checks.is_empty() {
        return "<p>No check was made in this run, so nothing is known about its data.</p>".to_owned();
    }
    run.result.checks.iter().map(check).collect()
}

fn check(check: &CheckResult) -> String {
    let named = [
        ("acknowledged", check.acknowledged),
        ("lost", check.lost),
        ("invented", check.invented),
        ("without a definite answer", check.indeterminate),
    ];
    let mut counts: Vec<String> = named
        .iter()
        .filter_map(|(name, value)| Some(format!("<span><b>{}</b> {name}</span>", format::count((*value)?))))
        .collect();
    counts.extend(check.counts.iter().map(|(name, value)| {
        let sign = if *value < 0 { "−" } else { "" };
        let (count, name) = (format::count(value.unsigned_abs()), count_name(name));
        format!("<span><b>{sign}{count}</b> {}</span>", escape(&name))
    }));
    format!(
        "<div class=\"item\"><h3>{} {}</h3><p class=\"story\">{}</p><p class=\"counts\">{}</p>{}{}</div>",
        badge(check.verdict),
        escape(&check.name),
        escape(&check.explanation),
        counts.join(" "),
        proof("What it proves if it passes", &check.proves),
        proof("What it does not prove", &check.does_not_prove)
    )
}

/// What a check counted, in words.
fn count_name(name: &str) -> String {
    match name {
        "indeterminate_there" => "there without a definite answer".to_owned(),
        "refused_but_there" => "refused but there".to_owned(),
        name => name.replace('_', " "),
    }
}

fn proof(term: &str, sentences: &str) -> String {
    if sentences.is_empty() {
        return String::new();
    }
    format!("<p class=\"proof\"><b>{term}:</b> {}</p>", escape(sentences))
}

/// Every fault with the evidence of its effect and of its healing.
pub(crate) fn faults(run: &RunDirectory) -> String {
    if run.result.faults.is_empty() {
        return "<p>No fault was injected in this run.</p>".to_owned();
    }
    FaultId::of_each(&run.result.faults).map(|(number, fault)| self::fault(run, number, fault)).collect()
}

fn fault(run: &RunDirectory, number: FaultId, fault: &FaultResult) -> String {
    let moment = |moment_s: Option<f64>, otherwise: &str| {
        moment_s.map_or_else(|| otherwise.to_owned(), format::seconds)
    };
    let hits = if fault.hits.is_empty() { "no host".to_owned() } else { fault.hits.join(", ") };
    let nodes = if fault.nodes.is_empty() { "none directly".to_owned() } else { fault.nodes.join(", ") };
    let mut html = format!(
        "<div class=\"item\"><h3>{} {} <small>{}</small></h3><dl class=\"facts\">",
        badge(fault.receipt.verdict),
        escape(&fault.kind),
        escape(&fault.target)
    );
    let recovery = &fault.recovery_s;
    let doubt = if fault.has_uneven_baseline() { " (the baseline is uneven)" } else { "" };
    // What goes on up to the end of the time that counts for the fault is no longer counted after it.
    let at_least = |goes_on: fn(&FaultLoadResult) -> bool| {
        if fault.loads.iter().any(goes_on) { "at least " } else { "" }
    };
    let is_open = fault.loads.iter().any(|load| load.gap_is_open && load.gap_s == fault.gap_s);
    let gap_goes_on = if is_open { "at least " } else { "" };
    let has_no_baseline =
        |load: &FaultLoadResult| load.recovery_s.back_to_95_percent.is_none() && load.incomparable.is_some();
    let never_back = if fault.loads.iter().any(has_no_baseline) { "unknown" } else { "not in this run" };
    for (name, value) in [
        ("Affected", hits),
        ("Nodes affected", nodes),
        ("Asked for at", format::seconds(fault.asked_s)),
        ("Took effect at", moment(fault.took_effect_s, "no evidence that it did")),
        ("Healed at", moment(fault.healed_s, "not before the recording ended")),
        ("Longest time without a success", gap_goes_on.to_owned() + &moment(fault.gap_s, "unknown")),
        ("First success after", moment(recovery.first_success, "none seen")),
        ("Back at 95 % for a second after", moment(recovery.back_to_95_percent, never_back) + doubt),
        ("Sustained recovery after", back_for_good(fault)),
        (
            "Below 95 % of the baseline",
            low(fault.below_95_percent_s, at_least(|load| load.below_95_percent_at_end)) + &limits(fault),
        ),
        (
            "Below 50 % of the baseline",
            low(fault.below_50_percent_s, at_least(|load| load.below_50_percent_at_end)),
        ),
        (
            "Throughput meanwhile",
            fault.throughput_ratio_during.map_or_else(
                || "unknown".to_owned(),
                |ratio| format!("{} of the baseline{doubt}", format::percent(ratio)),
            ),
        ),
        (
            "Missing operations, compared with the baseline",
            fault.lost_operations.map_or_else(
                || "unknown".to_owned(),
                |lost| format::count(lost.max(0.0).round() as u64) + doubt,
            ),
        ),
        ("Acknowledged writes lost", lost_writes(fault)),
    ] {
        let _ = write!(html, "<div><dt>{name}</dt><dd>{}</dd></div>", escape(&value));
    }
    html.push_str("</dl>");
    html.push_str(&why_unknown(fault));
    html.push_str(&by_load(fault));
    html.push_str(&receipts(run, number, fault));
    html.push_str("</div>");
    html
}

fn low(low_s: Option<f64>, at_least: &str) -> String {
    low_s.map_or_else(|| "unknown".to_owned(), |low_s| format!("{at_least}{}", format::seconds(low_s)))
}

/// Below what a second counted, of each load of which that is less than 95 %.
fn limits(fault: &FaultResult) -> String {
    let one = |load: &FaultLoadResult| {
        let share = format::percent(load.lowered_limit_share()?);
        Some(format!("{} from below {share} on", load.load))
    };
    let limits: Vec<String> = fault.loads.iter().filter_map(one).collect();
    if limits.is_empty() || fault.below_95_percent_s.is_none() {
        String::new()
    } else {
        format!(" ({}: uneven baseline)", format::listed(&limits))
    }
}

fn lost_writes(fault: &FaultResult) -> String {
    fault.lost().map_or_else(|| "unknown".to_owned(), format::lost)
}

fn back_for_good(fault: &FaultResult) -> String {
    match fault.recovery_s.sustained {
        Some(after_s) if after_s > 0.0 => format::seconds(after_s),
        Some(_) => "nothing to recover from".to_owned(),
        None if fault.below_95_percent_s.is_none() => "unknown".to_owned(),
        // Why no more is known is a sentence: it stands in the story, not in a table.
        None => match fault.sustained_at_least_s() {
            Some(least_s) if least_s > 0.0 && fault.gap_s.is_some() => {
                format!("at least {}", format::seconds(least_s))
            }
            _ => "unknown".to_owned(),
        },
    }
}

/// Why it is unknown how long throughput was low; empty where it is known.
fn why_unknown(fault: &FaultResult) -> String {
    if fault.below_95_percent_s.is_some() {
        return String::new();
    }
    let why = escape(&interruption::why_unknown(fault));
    format!("<p class=\"note\">How long throughput was low is unknown: {why}.</p>")
}

/// What a fault did to each load, where there are several: the figures above are the worst of them.
fn by_load(fault: &FaultResult) -> String {
    if fault.loads.len() < 2 {
        return String::new();
    }
    let seconds = |value: Option<f64>| value.map_or_else(|| "unknown".to_owned(), format::seconds);
    let mut html = "<div class=\"scroll\"><table><thead><tr><th>Load<th class=\"n\">Longest time without a success\
                    <th class=\"n\">in the baseline<th class=\"n\">First success<th class=\"n\">Sustained recovery\
                    <th class=\"n\">Below 95\u{a0}%<th class=\"n\">Below 50\u{a0}%<th class=\"n\">Missing operations</tr></thead><tbody>"
        .to_owned();
    for load in &fault.loads {
        let back = match load.recovery_s.sustained {
            None if load.below_95_percent_s.is_some() => "not in time".to_owned(),
            sustained => seconds(sustained),
        };
        let missing = load
            .lost_operations
            .map_or_else(|| "unknown".to_owned(), |lost| format::count(lost.max(0.0).round() as u64));
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{back}\
             <td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{missing}</tr>",
            escape(&load.load),
            interruption::gap(load),
            seconds(load.baseline_gap_s),
            seconds(load.recovery_s.first_success),
            seconds(load.below_95_percent_s),
            seconds(load.below_50_percent_s)
        );
    }
    html.push_str("</tbody></table></div>");
    html
}

/// The evidence, apart for effect and healing where the events tell them apart.
fn receipts(run: &RunDirectory, number: FaultId, fault: &FaultResult) -> String {
    let of_event = |healing: bool| {
        run.events.iter().find_map(|event| match &event.kind {
            EventKind::FaultTookEffect { fault, receipt } if *fault == number && !healing => {
                Some((event.t_s, receipt))
            }
            EventKind::FaultHealed { fault, receipt } if *fault == number && healing => {
                Some((event.t_s, receipt))
            }
            _ => None,
        })
    };
    let canaries: Vec<(f64, &Receipt)> = run
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Canary { fault, receipt } if *fault == number => Some((event.t_s, receipt)),
            _ => None,
        })
        .collect();
    let mut html = String::new();
    match (of_event(false), of_event(true)) {
        (None, None) => html.push_str(&receipt("Receipt", &fault.receipt)),
        (effect, healing) => {
            if let Some((t_s, evidence)) = effect {
                html.push_str(&receipt(&format!("Evidence of effect, {}", format::seconds(t_s)), evidence));
            }
            if let Some((t_s, evidence)) = healing {
                html.push_str(&receipt(&format!("Evidence of healing, {}", format::seconds(t_s)), evidence));
            }
            for (t_s, evidence) in &canaries {
                html.push_str(&receipt(&format!("Evidence of loss, {}", format::seconds(*t_s)), evidence));
            }
            // Whatever the result holds beyond the events belongs to the receipt as well.
            let told: Vec<&String> = effect
                .iter()
                .chain(&healing)
                .chain(&canaries)
                .flat_map(|(_, receipt)| &receipt.evidence)
                .collect();
            let rest: Vec<String> =
                fault.receipt.evidence.iter().filter(|sentence| !told.contains(sentence)).cloned().collect();
            if !rest.is_empty() {
                html.push_str(&receipt(
                    "Further evidence",
                    &Receipt { verdict: fault.receipt.verdict, evidence: rest },
                ));
            }
        }
    }
    html
}

fn receipt(title: &str, receipt: &Receipt) -> String {
    let mut html = format!("<p class=\"receipt\">{title}: {}</p>", badge(receipt.verdict));
    if receipt.evidence.is_empty() {
        html.push_str("<p class=\"note\">No evidence was recorded.</p>");
        return html;
    }
    html.push_str("<ul>");
    for sentence in &receipt.evidence {
        let _ = write!(html, "<li>{}</li>", escape(sentence));
    }
    html.push_str("</ul>");
    html
}

/// Doubts about the measurement, with their remedies, and what could not be read.
pub(crate) fn warnings(run: &RunDirectory) -> String {
    let warnings = &run.result.lab.warnings;
    if warnings.is_empty() && run.notes.is_empty() {
        return "<p>None.</p>".to_owned();
    }
    let mut html = "<ul class=\"warnings\">".to_owned();
    for warning in warnings {
        let _ = write!(
            html,
            "<li><strong>{}</strong><br>What to do: {}</li>",
            escape(&warning.what),
            escape(&warning.remedy)
        );
    }
    for note in &run.notes {
        let _ = write!(html, "<li><strong>{}</strong></li>", escape(note));
    }
    html.push_str("</ul>");
    html
}

/// The events as a list for people.
pub(crate) fn events(run: &RunDirectory) -> String {
    if run.events.is_empty() {
        return "<p>No event was recorded.</p>".to_owned();
    }
    let mut html = "<div class=\"scroll\"><table class=\"events\"><tbody>".to_owned();
    // What takes time to be known is recorded late, with the time at which it was.
    let mut in_order: Vec<_> = run.events.iter().collect();
    in_order.sort_by(|one, other| one.t_s.total_cmp(&other.t_s));
    for event in in_order.into_iter().take(MOST_EVENTS) {
        let (class, what) = told(run, &event.kind);
        let _ = write!(
            html,
            "<tr class=\"{class}\"><th scope=\"row\" class=\"n\">{}<td>{}</tr>",
            format::seconds(event.t_s),
            escape(&what)
        );
    }
    html.push_str("</tbody></table></div>");
    if run.events.len() > MOST_EVENTS {
        let _ = write!(
            html,
            "<p class=\"note\">{} later events are in events.jsonl only.</p>",
            format::count((run.events.len() - MOST_EVENTS) as u64)
        );
    }
    html
}

/// A fault by its kind and its target.
fn name_of(run: &RunDirectory, number: FaultId) -> String {
    let fault = run.result.faults.get(number.index());
    let name = |fault: &FaultResult| results::fault_name(&fault.kind, " of ", &fault.target);
    fault.map_or_else(|| format!("fault {}", number.index()), name)
}

/// Whether something of a fault was shown: what to say if it was, if it was not, and after `whether`.
fn shown(verdict: Verdict, fault: &str, [yes, no, whether]: [&str; 3]) -> String {
    match verdict {
        Verdict::Pass => format!("The {fault} {yes}."),
        Verdict::Fail => format!("The {fault} {no}."),
        Verdict::Unknown => format!("Whether the {fault} {whether} could not be determined."),
    }
}

/// What is ready once the lab is up.
fn what_is_up(run: &RunDirectory, from_snapshot: bool) -> &'static str {
    match (from_snapshot, run.result.facts.site.has_database()) {
        (true, _) => "Volumes are returned to a snapshot, and the database is",
        (false, true) => "Lab and database are",
        (false, false) => "Lab and volumes are",
    }
}

fn leaders_at_the_end(nodes: &[String], silent: &[String]) -> String {
    let led = format!("{} led while the final state was read", format::listed(nodes));
    match (nodes, silent) {
        (_, []) => format!("{led}."),
        ([], _) => {
            format!("Whether {} led while the final state was read is not known.", format::listed(silent))
        }
        _ => format!("{led}, and perhaps {}, which did not answer.", format::listed(silent)),
    }
}

fn leader_changes(changes: u64) -> String {
    format!("Until here the nodes were asked who leads: {}.", format::counted(changes, "change", "changes"))
}

/// An event in words, with a class of the style sheet for those that matter most.
fn told(run: &RunDirectory, kind: &EventKind) -> (&'static str, String) {
    let name = |fault: &FaultId| name_of(run, *fault);
    match kind {
        EventKind::RunStarted { .. } => ("", "The run starts.".to_owned()),
        EventKind::Progress { what } => ("", what.clone()),
        EventKind::LabUp { boot_s, from_snapshot, .. } => {
            let what = what_is_up(run, *from_snapshot);
            ("", format!("{what} ready after {}.", format::seconds(*boot_s)))
        }
        EventKind::RoundTrips { occasion, pairs } => {
            let pairs = format::counted(pairs.len() as u64, "pair", "pairs");
            ("", format!("Round trips of {pairs} of places measured from inside: {occasion}."))
        }
        EventKind::Phase { name, for_s } => {
            ("phase", format!("Phase {name} begins, for {}.", format::seconds(*for_s)))
        }
        EventKind::FaultAsked { kind, target, hits, nodes, .. } => {
            let nodes =
                if nodes.is_empty() { String::new() } else { format!(", with {}", format::listed(nodes)) };
            let hits = if hits.is_empty() { "nothing matches now".to_owned() } else { format::listed(hits) };
            let fault = results::fault_name(kind, " of ", target);
            ("fault", format!("Fault requested: {fault} ({hits}){nodes}."))
        }
        EventKind::FaultTookEffect { fault, receipt } => {
            let words = ["took effect", "did not take effect", "took effect"];
            ("fault", shown(receipt.verdict, &name(fault), words))
        }
        EventKind::FaultHealed { fault, receipt } => {
            ("fault", shown(receipt.verdict, &name(fault), ["is healed", "did not heal", "healed"]))
        }
        EventKind::Canary { receipt, .. } => {
            ("", format!("Canary marks: {}.", format::listed(&receipt.evidence)))
        }
        EventKind::NodeDown { node, host } => ("", format!("{node} on {host} is down.")),
        EventKind::NodeUp { node, host } => ("", format!("{node} is up on {host}.")),
        EventKind::Migration { facts } => ("platform", migrations::sentence(facts)),
        EventKind::Platform { action, node, what } => ("platform", format!("{node} ({action}): {what}")),
        EventKind::VolumeMoved { node, host, why } => {
            ("platform", format!("{host} now serves the volume of {node} and has every write: {why}"))
        }
        EventKind::Leader { node } => ("platform", format!("{node} is now the leader.")),
        EventKind::LeaderAgain { node, without_s: gap_s } => {
            ("platform", format!("{node} leads again; no node said so for {}.", format::seconds(*gap_s)))
        }
        EventKind::LeadersAtOnce { seen } => ("fault", format!("Split brain: {seen}.")),
        EventKind::LeadersMonitored { changes, .. } => ("", leader_changes(*changes)),
        EventKind::FirstSuccess { load, after_s, .. } => {
            ("platform", format!("First success of {load}, {} after the fault.", format::seconds(*after_s)))
        }
        EventKind::Warning { what, .. } => ("", format!("Warning: {what}")),
        EventKind::LoadEnded { why, .. } => ("fault", format!("A load ended early: {why}")),
        EventKind::AgentLost { agent, load, why } => {
            ("fault", format!("Agent {agent} of {load} was lost: {why}"))
        }
        EventKind::Agent { facts } => ("", agents::sentence(facts)),
        EventKind::FinalReadMissed { load, nodes, why } => {
            ("fault", format!("The final state of {load} was not read at {}: {why}", format::listed(nodes)))
        }
        EventKind::LeadersAtTheEnd { nodes, silent } => ("fault", leaders_at_the_end(nodes, silent)),
        EventKind::RollbackFailed { volume, why, .. } => ("fault", format!("No rollback: {volume}: {why}")),
        EventKind::LabStall { stall } => ("fault", format!("Stall: {stall}.")),
        EventKind::Interference { interference } => {
            ("fault", format!("Outside the schedule: {interference}."))
        }
        EventKind::Check { name, verdict, .. } => ("", format!("Check {name}: {verdict}.")),
        EventKind::Interrupted { why } => ("fault", format!("Interrupted: {why}")),
        EventKind::RunFailed { why } => ("fault", format!("The run failed: {why}")),
        EventKind::RunEnded { verdict } => ("", format!("The run ends; verdict {verdict}.")),
    }
}

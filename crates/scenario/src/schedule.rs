//! The `schedule` section: phases, and the faults that begin in them.
//!
//! Owns reading it and what makes a time line sound: whole seconds, a baseline before the first fault, no host switched
//! off twice at once. What a fault does is in `faults`.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::decode::Decoder;
use crate::faults::receipts::OfAllFaults;
use crate::faults::{self, Fault, FaultAction, FaultDocument, FaultTarget, Surroundings, Takes};
use crate::file::PHASE;
use crate::rejection::{Finding, Findings, Spanned, Spot};
use crate::repeated::{self, MOST_FAULTS, Repetition};
use crate::resolved::Place;
use crate::resolved::pace::WARM_UP;
use crate::scenario::Phase;
use crate::tree::Node;
use crate::units::format_duration;

/// Longest run.
const MOST_RUN: Duration = Duration::from_secs(24 * 3600);

/// The phase that recovery is held against.
const BASELINE: &str = "baseline";

/// A phase as written.
pub(crate) struct PhaseDocument {
    name: Spanned<String>,
    length: Spanned<Duration>,
    faults: Vec<FaultDocument>,
}

/// Reads the section.
pub(crate) fn decode(node: &Node, decoder: &mut Decoder) -> Option<Vec<PhaseDocument>> {
    let items = decoder.list(node, "the schedule", 1)?;
    let phases: Vec<PhaseDocument> = items.iter().filter_map(|item| decode_phase(item, decoder)).collect();
    let mut first: BTreeMap<&str, Spot> = BTreeMap::new();
    for phase in &phases {
        if let Some(earlier) = first.insert(&phase.name.value, phase.name.at) {
            decoder.findings.push(Finding {
                code: "duplicate-name",
                message: format!("two phases are named `{}`", phase.name.value),
                at: phase.name.at,
                label: "the same name again".to_owned(),
                help: format!("give it another name, such as `{}-again`", phase.name.value),
                also: Some((earlier, "first here".to_owned())),
            });
        }
    }
    for late in phases.iter().skip(1).filter(|phase| phase.name.value == WARM_UP) {
        decoder.findings.add(
            "late-warm-up",
            late.name.at,
            format!("`{WARM_UP}` can only be the first phase: it is left out of what is judged"),
            "not the first",
            "give this phase another name",
        );
    }
    Some(phases)
}

fn decode_phase(node: &Node, decoder: &mut Decoder) -> Option<PhaseDocument> {
    let record = decoder.record(node, &PHASE)?;
    let name = record.get("phase").and_then(|node| decoder.name(node, "the phase's name"));
    let length = record.get("for").and_then(|node| decoder.duration(node, "the phase's length", "s"));
    if let Some(length) = &length {
        check_length(length, decoder);
    }
    let faults = record.get("faults").and_then(|node| decoder.list(node, "faults", 0)).unwrap_or_default();
    let faults = faults.iter().filter_map(|item| faults::decode(item, decoder)).collect();
    Some(PhaseDocument { name: name?, length: length?, faults })
}

fn check_length(length: &Spanned<Duration>, decoder: &mut Decoder) {
    if length.value.is_zero() {
        decoder.findings.add(
            "too-small",
            length.at,
            "a phase cannot last 0s",
            "too short",
            "write 1s or more, or remove the phase",
        );
    } else if length.value.subsec_nanos() != 0 {
        let seconds = length.value.as_secs();
        decoder.findings.add(
            "not-whole-seconds",
            length.at,
            "a phase must end on a whole second",
            "not whole seconds",
            format!("write {}s: figures are counted per second", seconds + 1),
        );
    } else if length.value > MOST_RUN {
        decoder.findings.add(
            "too-large",
            length.at,
            format!("a phase of {}", format_duration(length.value)),
            "too long",
            "write 24h or less",
        );
    }
}

/// Power lost by a named place, on the run's time line.
struct Strike {
    place: Place,
    from: Duration,
    to: Duration,
    at: Spot,
}

/// Resolves the section.
pub(crate) fn resolve(
    documents: Vec<PhaseDocument>,
    surroundings: &Surroundings<'_>,
    findings: &mut Findings,
) -> Vec<Phase> {
    let end: Duration = documents.iter().map(|phase| phase.length.value).sum();
    if let (true, Some(last)) = (end > MOST_RUN, documents.last()) {
        findings.add(
            "too-large",
            last.length.at,
            format!("the run lasts {}", format_duration(end)),
            "too long with this",
            "keep the sum of all phases at 24h or less",
        );
    }
    if let Some(beyond) = documents.iter().flat_map(|phase| &phase.faults).nth(MOST_FAULTS) {
        too_many(beyond.kind_at, findings);
        return Vec::new();
    }
    let mut phases = Vec::new();
    let mut fault_count = 0;
    let mut strikes: Vec<Strike> = Vec::new();
    let (mut begin, mut baseline_over) = (Duration::ZERO, false);
    let mut upgrades = Upgrades::default();
    let all = OfAllFaults::of(
        documents.iter().flat_map(|phase| &phase.faults).filter_map(FaultDocument::conditions),
    );
    for document in documents {
        let span = Span { begin, length: document.length.value, end };
        let mut faults = Vec::new();
        for fault in &document.faults {
            if !baseline_over {
                no_baseline(fault.kind_at, findings);
            }
            check_times(fault, &document.name.value, span, findings);
            let Some(action) = fault.resolve(surroundings, findings) else { continue };
            let at = fault.at.as_ref().map_or(Duration::ZERO, |at| at.value);
            let length = action.own_length().or(fault.length.as_ref().map(|length| length.value));
            let stands = length.unwrap_or(span.length.saturating_sub(at));
            fault.check_flap(stands, findings);
            fault.check_receipt(&action, stands, (surroundings, all), findings);
            // What takes no length is over by itself.
            let repeats_after = length.or(fault.takes_no_length().then_some(Duration::ZERO));
            let repetition = Repetition { every: fault.every.as_ref(), at, length: repeats_after };
            for at in repeated::moments(&repetition, span.length, findings) {
                if let Takes::Power(FaultTarget::Place(place)) = action.takes() {
                    let from = begin + at;
                    let to = length.map_or(begin + span.length, |length| from + length);
                    strike(
                        Strike { place: place.clone(), from, to, at: fault.target_at() },
                        &mut strikes,
                        findings,
                    );
                }
                upgrades.take(&action, fault.kind_at, findings);
                faults.push(Fault { action: action.clone(), at, length, flap: fault.flap });
                fault_count += 1;
                if fault_count == MOST_FAULTS + 1 {
                    too_many(fault.kind_at, findings);
                    return Vec::new();
                }
            }
        }
        faults.sort_by_key(|fault| fault.at);
        begin += span.length;
        baseline_over |= document.name.value == BASELINE;
        phases.push(Phase { name: document.name.value, length: span.length, faults });
    }
    phases
}

/// Where the run's upgrade stands.
#[derive(Default)]
struct Upgrades {
    first: Option<Spot>,
}

impl Upgrades {
    /// Refuses a second one: a node that has it has nothing to be upgraded to.
    fn take(&mut self, action: &FaultAction, at: Spot, findings: &mut Findings) {
        if !matches!(action, FaultAction::RollingUpgrade(_)) {
            return;
        }
        if let Some(earlier) = self.first.replace(at) {
            findings.push(Finding {
                code: "one-too-many",
                message: "a run has one rolling upgrade".to_owned(),
                at,
                label: "another one".to_owned(),
                help: "remove it, or put it into a scenario of its own whose database begins with the newer version"
                    .to_owned(),
                also: (earlier != at).then(|| (earlier, "the first".to_owned())),
            });
        }
    }
}

fn no_baseline(at: Spot, findings: &mut Findings) {
    findings.add(
        "no-baseline",
        at,
        "a fault needs a `baseline` phase before it",
        "nothing to compare with",
        "put `- { phase: baseline, for: 15s }` before this phase: the effect of a fault is measured against it",
    );
}

fn too_many(at: Spot, findings: &mut Findings) {
    findings.add(
        "too-large",
        at,
        format!("more than {MOST_FAULTS} faults in one run"),
        "one too many",
        "split the schedule into several scenarios",
    );
}

/// Where a phase lies in the run.
#[derive(Clone, Copy)]
struct Span {
    begin: Duration,
    length: Duration,
    end: Duration,
}

fn check_times(fault: &FaultDocument, phase: &str, span: Span, findings: &mut Findings) {
    let at = fault.at.as_ref().map_or(Duration::ZERO, |at| at.value);
    let phase_length = format_duration(span.length);
    if let Some(written) = fault.at.as_ref().filter(|at| at.value >= span.length) {
        findings.add(
            "outside-phase",
            written.at,
            format!("the fault starts at {}, after the end of phase `{phase}` ({phase_length})", format_duration(at)),
            "after the phase's end",
            format!("`at` counts from the start of its phase: write less than {phase_length}, or move the fault to a later phase"),
        );
        return;
    }
    let left = span.end.saturating_sub(span.begin + at);
    if let Some(written) = fault.length_given().filter(|length| length.value > left) {
        findings.add(
            "outside-run",
            written.at,
            format!(
                "the fault lasts {}, but the run ends {} after it starts",
                format_duration(written.value),
                format_duration(left)
            ),
            "longer than the run",
            format!("write {} or less, or make a later phase longer", format_duration(left)),
        );
    }
}

/// Notes the strike, unless a host of its place is without power at that time already.
fn strike(new: Strike, strikes: &mut Vec<Strike>, findings: &mut Findings) {
    let overlaps = |old: &&Strike| old.place.overlaps(&new.place) && old.from < new.to && new.from < old.to;
    if let Some(old) = strikes.iter().find(overlaps) {
        findings.push(Finding {
            code: "overlapping-faults",
            message: format!("`{}` loses power while `{}` is still off", new.place, old.place),
            at: new.at,
            label: "without power already".to_owned(),
            help: format!(
                "start it {} into the run or later, or end the earlier fault sooner with `for`",
                format_duration(old.to)
            ),
            also: Some((
                old.at,
                format!("off from {} to {}", format_duration(old.from), format_duration(old.to)),
            )),
        });
    }
    strikes.push(new);
}

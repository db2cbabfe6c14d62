//! What every chart over time shows besides its curve: phases, faults as bands, and the moments that explain a turn.

use history::{EventKind, PhaseFacts};

use crate::format;
use results::RunDirectory;
use results::{FaultLoadResult, FaultResult, RunResult, VolumeResult};

/// No more moments than this are marked in a chart; all of them are in the list of events.
const MOST_MOMENTS: usize = 24;

/// No more stretches than this are shaded.
const MOST_SHADES: usize = 60;

/// A chart ends here at the latest: 31 days.
const LATEST_S: f64 = 31.0 * 24.0 * 3600.0;

/// A fault as a stretch of time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Band {
    pub(crate) from_s: f64,
    /// Absent when the fault was not healed while the run was recorded.
    pub(crate) to_s: Option<f64>,
    pub(crate) label: String,
    pub(crate) took_effect: bool,
}

/// A moment worth a mark.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Moment {
    pub(crate) t_s: f64,
    pub(crate) what: String,
}

/// Why a stretch is shaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShadeKind {
    /// A component of a volume catches up.
    CatchUp,
    /// Nothing of a load succeeded.
    Gap,
    /// Parts of the lab stood still.
    Stall,
}

impl ShadeKind {
    /// Its class in the style sheet.
    pub(crate) fn class(self) -> &'static str {
        match self {
            ShadeKind::CatchUp => "shade",
            ShadeKind::Gap => "shade gap",
            ShadeKind::Stall => "shade stall",
        }
    }
}

/// A stretch of time in which something went on that may have cost something.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shade {
    pub(crate) kind: ShadeKind,
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
    pub(crate) what: String,
}

/// All marks of a run.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    pub(crate) end_s: f64,
    pub(crate) phases: Vec<PhaseFacts>,
    pub(crate) bands: Vec<Band>,
    pub(crate) shades: Vec<Shade>,
    /// In order of time: the number a moment is marked with is its index plus one.
    pub(crate) moments: Vec<Moment>,
    /// Moments left out.
    pub(crate) unmarked: usize,
}

/// The marks of a run whose recording ends at `recorded_until_s`.
pub(crate) fn of(run: &RunDirectory, recorded_until_s: f64) -> Marks {
    let phases = phases(&run.result);
    let end_s = phases.iter().map(|phase| phase.to_s).fold(recorded_until_s, f64::max).clamp(1.0, LATEST_S);
    let bands = run.result.faults.iter().map(|fault| Band {
        from_s: fault.took_effect_s.unwrap_or(fault.asked_s),
        to_s: fault.healed_s,
        label: match run.result.facts.is_external {
            // The target names the command file.
            true => fault.target.clone(),
            false if fault.hits.is_empty() => format!("{} {}", fault.kind, fault.target),
            false => format!("{} {}", fault.kind, places(fault)),
        },
        took_effect: fault.took_effect_s.is_some(),
    });
    let mut moments = moments(run);
    moments.retain(|moment| (0.0..=end_s).contains(&moment.t_s));
    moments.sort_by(|one, other| one.t_s.total_cmp(&other.t_s));
    let unmarked = moments.len().saturating_sub(MOST_MOMENTS);
    moments.truncate(MOST_MOMENTS);
    Marks { end_s, bands: bands.collect(), shades: shades(&run.result), phases, moments, unmarked }
}

/// What a fault hit, short: both directions of a way are one.
fn places(fault: &FaultResult) -> String {
    let ways: Vec<_> = fault.ways().collect();
    if let [(from, to), back] = ways[..]
        && back == (to, from)
    {
        return format!("{from} <-> {to}");
    }
    format::listed(&fault.hits)
}

/// Where the lab stood still, volumes whose components catch up, and the longest interruption of each load after each fault.
fn shades(result: &RunResult) -> Vec<Shade> {
    let of = |volume: &VolumeResult| {
        let (node, catch_ups) = (volume.node.clone(), volume.catch_ups.clone());
        catch_ups.into_iter().map(move |caught| Shade {
            kind: ShadeKind::CatchUp,
            from_s: caught.from_s,
            to_s: caught.to_s,
            what: format!("{node}’s volume catches up on {}", caught.component),
        })
    };
    let interrupted = result.faults.iter().flat_map(|fault| &fault.loads);
    let gap = |load: &FaultLoadResult| {
        let (from_s, gap_s) = (load.gap_from_s?, load.gap_s.filter(|_| load.interrupted == Some(true))?);
        let what = format!("no success of {}", load.load);
        Some(Shade { kind: ShadeKind::Gap, from_s, to_s: from_s + gap_s, what })
    };
    let stalled = result.lab.stalls.iter().map(|stall| Shade {
        kind: ShadeKind::Stall,
        from_s: stall.from_s,
        to_s: stall.to_s,
        what: stall.to_string(),
    });
    let others = result.volumes.iter().flat_map(of).chain(interrupted.filter_map(gap));
    stalled.chain(others).take(MOST_SHADES).collect()
}

/// Phases as they were, or as planned where no load tells.
pub(crate) fn phases(result: &RunResult) -> Vec<PhaseFacts> {
    match result.loads.iter().find(|load| !load.phases.is_empty()) {
        Some(load) => load
            .phases
            .iter()
            .map(|phase| PhaseFacts { name: phase.name.clone(), from_s: phase.from_s, to_s: phase.to_s })
            .collect(),
        None => result.facts.phases.clone(),
    }
}

fn moments(run: &RunDirectory) -> Vec<Moment> {
    let mut leader =
        run.result.facts.site.nodes.iter().find(|node| node.role == "leader").map(|node| node.name.as_str());
    let mut moments = Vec::new();
    let mut first_successes = Vec::new();
    for event in &run.events {
        match &event.kind {
            EventKind::Platform { what, action, node } => {
                moments.push(Moment { t_s: event.t_s, what: format!("{node} ({action}): {what}") });
            }
            EventKind::Migration { facts } if facts.is_made() => {
                moments.push(Moment {
                    t_s: event.t_s,
                    what: format!("{} moved live to {}", facts.node, facts.to),
                });
            }
            EventKind::VolumeMoved { node, host, .. } => {
                moments.push(Moment { t_s: event.t_s, what: format!("{host} serves the volume of {node}") });
            }
            EventKind::Leader { node } => {
                if leader != Some(node.as_str()) {
                    moments.push(Moment { t_s: event.t_s, what: format!("{node} is the leader now") });
                }
                leader = Some(node);
            }
            EventKind::LeaderAgain { node, .. } => {
                moments.push(Moment { t_s: event.t_s, what: format!("{node} is the leader again") });
            }
            EventKind::FirstSuccess { fault, load, after_s } => {
                let t_s = event.t_s;
                let what = format!("first success of {load}, {} after the fault", format::seconds(*after_s));
                first_successes.push((*fault, *after_s, Moment { t_s, what }));
            }
            EventKind::Interrupted { why } => {
                moments.push(Moment { t_s: event.t_s, what: format!("interrupted: {why}") });
            }
            EventKind::RunFailed { why } => {
                moments.push(Moment { t_s: event.t_s, what: format!("the run failed: {why}") });
            }
            _ => {}
        }
    }
    // One mark a fault: where several loads came back, the first of them.
    first_successes.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
    first_successes.dedup_by_key(|success| success.0);
    moments.extend(first_successes.into_iter().map(|(_, _, moment)| moment));
    moments
}

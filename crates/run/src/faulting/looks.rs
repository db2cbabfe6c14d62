//! Looking at the network from inside: datagrams and round trips between places, which know nothing of the fabric's
//! rules. Owns what is to be seen and whether it is; what was imposed is `network`'s business.

use std::time::Duration;

use fabric::{Block, Path, Rule};
use history::{Receipt, RoundTrip, Verdict};
use lab::round_trip::arrivals;

use crate::asked::Asked;
use crate::round_trips::{Station, measure};

/// Looks taken at the same time.
const LOOKS_AT_ONCE: usize = 8;
/// Looks taken of one partition at most: what holds for so many pairs is not chance.
const LOOKS_MAX: usize = 40;
/// Datagrams sent to see whether a direction is open.
const PROBES: u32 = 5;
/// Between two of them.
const PROBE_INTERVAL: Duration = Duration::from_millis(20);
/// How long the last may take beyond what the way takes.
const PROBE_PATIENCE: Duration = Duration::from_millis(300);
/// Datagrams sent to see how many are lost.
const LOSS_PROBES: u32 = 1_000;
/// Between two of them.
const LOSS_INTERVAL: Duration = Duration::from_micros(500);
/// A lost share is believed when it lies within so many standard deviations of what was asked.
const LOSS_DEVIATIONS: f64 = 4.0;
/// A round trip may miss what was asked by this share of it,
const ROUND_TRIP_SHARE: f64 = 0.1;
/// or by this: a machine with busy processors answers late.
const ROUND_TRIP_SLACK: Duration = Duration::from_millis(5);

/// One direction to look at, by the stations' numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// The station packets leave.
    pub from: usize,
    /// The station they should reach.
    pub to: usize,
    /// How long a packet takes on the way, as asked.
    pub way: Duration,
    /// What is to be seen.
    pub wanted: Wanted,
}

/// What is to be seen while a fault stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Wanted {
    /// No datagram arrives.
    Silent,
    /// Datagrams arrive, though a fault stands elsewhere: the other direction, the bridge.
    Open,
    /// The round trip is this long, give or take the jitter.
    RoundTrip {
        /// Both ways.
        asked: Duration,
        /// How much it may differ by chance.
        spread: Duration,
    },
    /// This share is lost.
    Lost(f64),
}

/// The looks that show a partition: every pair of stations whose direction a rule cuts must be silent, every other
/// direction between the same two open. Of rules that cover a direction the last counts.
#[must_use]
pub fn partition_looks(stations: &[Station], rules: &[Rule], asked: &Asked) -> Vec<Look> {
    let is_cut = |from: &Station, to: &Station| {
        let last = rules.iter().rev().find(|rule| rule.covers(&from.path, &to.path));
        last.is_some_and(|rule| rule.block.is_some_and(|block| block != Block::Open))
    };
    let mut looks = Vec::new();
    for (number, one) in stations.iter().enumerate() {
        for (other_number, other) in stations.iter().enumerate().skip(number + 1) {
            let (there, back) = (is_cut(one, other), is_cut(other, one));
            if (there || back) && looks.len() < LOOKS_MAX {
                let look = |from: usize, to: usize, cut| Look {
                    from,
                    to,
                    way: asked.one_way(&stations[from].path, &stations[to].path),
                    wanted: if cut { Wanted::Silent } else { Wanted::Open },
                };
                looks.push(look(number, other_number, there));
                looks.push(look(other_number, number, back));
            }
        }
    }
    looks
}

/// The looks that show conditions from one place to another, between the first station of each.
#[must_use]
pub fn conditions_looks(
    stations: &[Station],
    from: &Path,
    to: &Path,
    shows: Shows,
    asked: &Asked,
) -> Vec<Look> {
    let first = |place: &Path, not: Option<usize>| {
        (0..stations.len()).find(|number| Some(*number) != not && stations[*number].path.starts_with(place))
    };
    let Some(here) = first(from, None) else { return Vec::new() };
    let Some(there) = first(to, Some(here)) else { return Vec::new() };
    let way = asked.one_way(&stations[here].path, &stations[there].path);
    let back = asked.one_way(&stations[there].path, &stations[here].path);
    let mut wanted = Vec::new();
    if let Some(spread) = shows.delay_spread {
        wanted.push(Wanted::RoundTrip { asked: way + back, spread });
    }
    wanted.extend(shows.lost.map(Wanted::Lost));
    wanted.into_iter().map(|wanted| Look { from: here, to: there, way: way + back, wanted }).collect()
}

/// What of a network fault a probe can see.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Shows {
    /// That the delay is as asked, give or take this much.
    pub delay_spread: Option<Duration>,
    /// That this share is lost.
    pub lost: Option<f64>,
}

/// Whether what is wanted is seen.
#[must_use]
pub fn show(stations: &[Station], looks: &[Look]) -> Receipt {
    let mut receipt = Receipt { verdict: Verdict::Pass, evidence: Vec::new() };
    for group in looks.chunks(LOOKS_AT_ONCE) {
        let seen: Vec<(Verdict, String)> = std::thread::scope(|scope| {
            let threads: Vec<_> = group.iter().map(|look| scope.spawn(|| look_at(stations, look))).collect();
            let panicked = || (Verdict::Unknown, "a probe panicked".to_owned());
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| panicked())).collect()
        });
        for (verdict, sentence) in seen {
            receipt.verdict = receipt.verdict.and(verdict);
            receipt.evidence.push(sentence);
        }
    }
    if looks.is_empty() {
        receipt.verdict = Verdict::Unknown;
        receipt.evidence.push(
            "no probe shows it: no node or client stands at both ends, or nothing that a probe sees changes"
                .to_owned(),
        );
    }
    receipt
}

fn look_at(stations: &[Station], look: &Look) -> (Verdict, String) {
    let (from, to) = (&stations[look.from], &stations[look.to]);
    let patience = PROBE_PATIENCE + look.way;
    match &look.wanted {
        Wanted::Silent => direction(from, to, false, patience),
        Wanted::Open => direction(from, to, true, patience),
        Wanted::RoundTrip { asked, spread } => round_trip(&measure(from, to, *asked), *asked, *spread),
        Wanted::Lost(ratio) => lost(from, to, *ratio, patience),
    }
}

fn direction(from: &Station, to: &Station, open: bool, patience: Duration) -> (Verdict, String) {
    let (here, there) = (&from.name, &to.name);
    match arrivals(from.end(), to.end(), PROBES, PROBE_INTERVAL, patience) {
        Err(error) => (Verdict::Unknown, format!("{here} to {there} could not be tried: {error}")),
        Ok(arrived) => {
            let as_wanted = if open { arrived > 0 } else { arrived == 0 };
            let verdict = if as_wanted { Verdict::Pass } else { Verdict::Fail };
            (verdict, format!("{arrived} of {PROBES} datagrams from {here} reached {there}"))
        }
    }
}

fn round_trip(seen: &RoundTrip, asked: Duration, spread: Duration) -> (Verdict, String) {
    let (from, to) = (&seen.from, &seen.to);
    let asked_ms = asked.as_secs_f64() * 1e3;
    let Some(measured_us) = seen.measured_us else {
        return (
            Verdict::Fail,
            format!("no round trip between {from} and {to}, of which {asked_ms:.1} ms was asked"),
        );
    };
    let measured = Duration::from_micros(measured_us);
    let allowed = asked.mul_f64(ROUND_TRIP_SHARE).max(ROUND_TRIP_SLACK) + spread * 2;
    let verdict = if measured.abs_diff(asked) <= allowed { Verdict::Pass } else { Verdict::Fail };
    let measured_ms = measured.as_secs_f64() * 1e3;
    (
        verdict,
        format!("a round trip between {from} and {to} takes {measured_ms:.1} ms, asked {asked_ms:.1} ms"),
    )
}

fn lost(from: &Station, to: &Station, ratio: f64, patience: Duration) -> (Verdict, String) {
    let (here, there) = (&from.name, &to.name);
    match arrivals(from.end(), to.end(), LOSS_PROBES, LOSS_INTERVAL, patience) {
        Err(error) => (Verdict::Unknown, format!("{here} to {there} could not be tried: {error}")),
        Ok(arrived) => {
            let sent = f64::from(LOSS_PROBES);
            let lost = sent - f64::from(arrived);
            let deviation = (sent * ratio * (1.0 - ratio)).sqrt();
            // One more or less is no evidence against anything.
            let as_asked = (lost - sent * ratio).abs() <= LOSS_DEVIATIONS * deviation + 1.0;
            let verdict = if as_asked { Verdict::Pass } else { Verdict::Fail };
            let asked = ratio * 100.0;
            (
                verdict,
                format!(
                    "{lost} of {LOSS_PROBES} datagrams from {here} to {there} were lost, asked {asked} %"
                ),
            )
        }
    }
}

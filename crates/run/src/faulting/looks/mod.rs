//! Looking at the network from inside: datagrams and round trips between places, which know nothing of the fabric's
//! rules. Owns what is to be seen and whether it is; what was imposed is `network`'s business.

pub mod capacity;
pub mod disk;
pub mod fates;
pub mod foreseen;

use std::time::Duration;

use fabric::{Block, Distribution, Jitter, Path, Rule};
use history::{Receipt, RoundTrip, Verdict};
use lab::stream::{Plan, stream};
use scenario::FaultAction;

use crate::asked::Asked;
use crate::faulting::flapping::{Behaviour, Watch};
use crate::faulting::looks::capacity::Capacity;
use crate::faulting::looks::fates::Fates;
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
/// Directions of a flapping fault that are watched at most.
const WATCHES_MAX: usize = 2;
/// A way that takes less than this is not told from one that takes nothing.
const OVERTAKEN_MIN: Duration = Duration::from_millis(4);
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
    /// These shares of datagrams are lost, arrive twice, overtake.
    Fates(Fates),
    /// So much gets through, and so much waits for it.
    Capacity(Capacity),
    /// A datagram in a packet of so many bytes arrives whole, and a larger one does not.
    Mtu(u32),
}

/// What was seen: each sentence with what it shows.
pub type Seen = Vec<(Verdict, String)>;

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

/// What of the conditions between two places changes, so that it is to be seen.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Changes {
    /// The delay, or its jitter.
    pub delay: bool,
    /// The share that is lost, or corrupted: whoever gets a corrupted packet throws it away.
    pub lost: bool,
    /// The share that arrives twice.
    pub twice: bool,
    /// The share that overtakes.
    pub overtaking: bool,
    /// What gets through; this is the fault's rate.
    pub rate_bits_per_s: Option<u64>,
    /// How much waits for that.
    pub queue: bool,
    /// The largest packet.
    pub mtu: bool,
}

/// The largest packet where none is asked for: what the interfaces send.
const MTU_BYTES: u32 = 1_500;

/// The looks that show what is asked now of what changes from one place to another, between the first station of each.
#[must_use]
pub fn conditions_looks(
    stations: &[Station],
    from: &Path,
    to: &Path,
    changes: Changes,
    asked: &Asked,
) -> Vec<Look> {
    let Some((here, there)) = first_stations(stations, from, to) else { return Vec::new() };
    let (there_path, here_path) = (&stations[there].path, &stations[here].path);
    let (way, back) = (asked.treatment(here_path, there_path), asked.treatment(there_path, here_path));
    let round_trip = Duration::from_nanos(way.delay_ns + back.delay_ns);
    let spread = [way.jitter, back.jitter].into_iter().flatten().map(|jitter| jitter.spread).sum();
    let mut wanted = Vec::new();
    if changes.delay {
        wanted.push(Wanted::RoundTrip { asked: round_trip, spread });
    }
    if changes.mtu {
        wanted.push(Wanted::Mtu(way.mtu_bytes.unwrap_or(MTU_BYTES)));
    }
    let narrowest = asked.narrowest(here_path, there_path);
    if changes.lost || changes.twice || changes.overtaking {
        let (lost, corrupt, twice) = (way.loss.value(), way.corrupt.value(), way.duplicate.value());
        // Each copy is corrupted by itself.
        let seen = (1.0 - lost) * ((1.0 - twice) * (1.0 - corrupt) + twice * (1.0 - corrupt * corrupt));
        let both = (1.0 - lost) * twice * (1.0 - corrupt).powi(2);
        let way_min = least_delay(Duration::from_nanos(way.delay_ns), way.jitter);
        wanted.push(Wanted::Fates(Fates {
            lost: changes.lost.then_some(1.0 - seen),
            twice: changes.twice.then(|| if seen > 0.0 { both / seen } else { 0.0 }),
            overtaking: (changes.overtaking && way_min >= OVERTAKEN_MIN).then(|| way.reorder.value()),
            way_min,
            rate_bits_per_s: narrowest.map(|link| link.rate_bits_per_s),
        }));
    }
    if changes.rate_bits_per_s.is_some() || changes.queue {
        wanted.push(Wanted::Capacity(Capacity {
            asked: narrowest,
            faulty_bits_per_s: changes.rate_bits_per_s,
            shows_queue: changes.queue,
        }));
    }
    let longest = round_trip + spread * 4;
    wanted.into_iter().map(|wanted| Look { from: here, to: there, way: longest, wanted }).collect()
}

/// What is to be watched of a fault that comes and goes: of a partition the first direction it cuts, of conditions
/// their delay and loss, between the first stations of each direction.
#[must_use]
pub fn watches(
    stations: &[Station],
    action: &FaultAction,
    directions: &[(Path, Path)],
    looks: &[Look],
    (with, without): (&Asked, &Asked),
) -> Vec<Watch> {
    let FaultAction::Network { conditions, .. } = action else {
        let cut = looks.iter().filter(|look| look.wanted == Wanted::Silent).take(WATCHES_MAX);
        let share = |lost| Behaviour { takes: None, lost: Some(lost) };
        return cut
            .map(|look| Watch { from: look.from, to: look.to, standing: share(1.0), otherwise: share(0.0) })
            .collect();
    };
    let timed = conditions.delay.is_some() || conditions.jitter.is_some();
    let counted = conditions.loss.is_some() || conditions.corrupt.is_some();
    let behaviour = |asked: &Asked, from: usize, to: usize| {
        let way = asked.treatment(&stations[from].path, &stations[to].path);
        let spread = way.jitter.map(|jitter| jitter.spread).unwrap_or_default();
        Behaviour {
            takes: timed.then_some((Duration::from_nanos(way.delay_ns), spread)),
            lost: counted.then(|| 1.0 - (1.0 - way.loss.value()) * (1.0 - way.corrupt.value())),
        }
    };
    let ends =
        directions.iter().take(WATCHES_MAX).filter_map(|(from, to)| first_stations(stations, from, to));
    let watch = |(from, to)| Watch {
        from,
        to,
        standing: behaviour(with, from, to),
        otherwise: behaviour(without, from, to),
    };
    let shown = |_: &Watch| timed || counted;
    ends.map(watch).filter(shown).collect()
}

/// The first station in each of two places, by number.
fn first_stations(stations: &[Station], from: &Path, to: &Path) -> Option<(usize, usize)> {
    let first = |place: &Path, not: Option<usize>| {
        (0..stations.len()).find(|number| Some(*number) != not && stations[*number].path.starts_with(place))
    };
    let here = first(from, None)?;
    Some((here, first(to, Some(here))?))
}

/// What nearly every packet takes at least.
fn least_delay(delay: Duration, jitter: Option<Jitter>) -> Duration {
    let below = jitter.map_or(Duration::ZERO, |jitter| match jitter.distribution {
        Distribution::Uniform | Distribution::Pareto => jitter.spread,
        Distribution::Normal => jitter.spread * 3,
        Distribution::Exponential => Duration::ZERO,
    });
    delay.saturating_sub(below)
}

/// Whether what is wanted is seen. Looks that fill a link come one by one, when all others are over.
#[must_use]
pub fn show(stations: &[Station], looks: &[Look]) -> Receipt {
    let fills = |look: &&Look| matches!(look.wanted, Wanted::Capacity(_));
    let (filling, light): (Vec<&Look>, Vec<&Look>) = looks.iter().partition(fills);
    let groups = light.chunks(LOOKS_AT_ONCE).chain(filling.chunks(1));
    let mut receipt = Receipt { verdict: Verdict::Pass, evidence: Vec::new() };
    for group in groups {
        look_at_once(&mut receipt, group, |look| look_at(stations, look));
    }
    if receipt.evidence.is_empty() {
        receipt.verdict = Verdict::Unknown;
        receipt.evidence.push(
            "no probe shows it: no node or client stands at both ends, or nothing that a probe sees changes"
                .to_owned(),
        );
    }
    receipt
}

/// Looks at several things at the same time, and takes what is seen into the receipt.
pub fn look_at_once<T: Sync>(receipt: &mut Receipt, things: &[T], look: impl Fn(&T) -> Seen + Sync) {
    let look = &look;
    let seen: Vec<Seen> = std::thread::scope(|scope| {
        let threads: Vec<_> = things.iter().map(|thing| scope.spawn(move || look(thing))).collect();
        let panicked = || vec![(Verdict::Unknown, "a probe panicked".to_owned())];
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| panicked())).collect()
    });
    for (verdict, sentence) in seen.into_iter().flatten() {
        receipt.verdict = receipt.verdict.and(verdict);
        receipt.evidence.push(sentence);
    }
}

fn look_at(stations: &[Station], look: &Look) -> Seen {
    let (from, to) = (&stations[look.from], &stations[look.to]);
    let patience = PROBE_PATIENCE + look.way;
    match &look.wanted {
        Wanted::Silent => vec![direction(from, to, false, patience)],
        Wanted::Open => vec![direction(from, to, true, patience)],
        Wanted::RoundTrip { asked, spread } => vec![round_trip(&measure(from, to, *asked), *asked, *spread)],
        Wanted::Fates(fates) => fates.look(from, to, patience),
        Wanted::Capacity(capacity) => capacity.look(from, to, patience),
        Wanted::Mtu(bytes) => mtu(from, to, *bytes, patience),
    }
}

fn direction(from: &Station, to: &Station, open: bool, patience: Duration) -> (Verdict, String) {
    let (here, there) = (&from.name, &to.name);
    match arrivals(from, to, PROBES, 4, patience) {
        Err(error) => (Verdict::Unknown, format!("{here} to {there} could not be tried: {error}")),
        Ok(arrived) => {
            let as_wanted = if open { arrived > 0 } else { arrived == 0 };
            let verdict = if as_wanted { Verdict::Pass } else { Verdict::Fail };
            (verdict, format!("{arrived} of {PROBES} datagrams from {here} reached {there}"))
        }
    }
}

/// How many of a few datagrams of so many bytes arrive whole.
fn arrivals(
    from: &Station,
    to: &Station,
    count: u32,
    bytes: usize,
    patience: Duration,
) -> std::io::Result<usize> {
    let plan = Plan { count, interval: PROBE_INTERVAL, bytes, patience, is_whole: true, wants_copies: false };
    let datagrams = stream(from.end(), to.end(), plan)?;
    Ok(datagrams.iter().filter(|datagram| !datagram.arrivals.is_empty()).count())
}

fn mtu(from: &Station, to: &Station, bytes: u32, patience: Duration) -> Seen {
    let (here, there) = (&from.name, &to.name);
    let headers = from.header_bytes();
    let mut seen = Vec::new();
    for (packet, passes) in [(bytes, true), (bytes + 1, false)] {
        if packet > MTU_BYTES {
            // The interface itself sends nothing larger, so nothing is shown of the way.
            continue;
        }
        seen.push(match arrivals(from, to, PROBES, packet as usize - headers, patience) {
            Err(error) => (Verdict::Unknown, format!("{here} to {there} could not be tried: {error}")),
            Ok(arrived) => {
                let verdict = if (arrived > 0) == passes { Verdict::Pass } else { Verdict::Fail };
                (
                    verdict,
                    format!(
                        "{arrived} of {PROBES} packets of {packet} bytes from {here} reached {there} whole"
                    ),
                )
            }
        });
    }
    seen
}

/// How much a time measured may miss what was asked, by chance and by the machine.
#[must_use]
pub fn round_trip_allowance(asked: Duration, spread: Duration) -> Duration {
    asked.mul_f64(ROUND_TRIP_SHARE).max(ROUND_TRIP_SLACK) + spread * 2
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
    let verdict = if measured.abs_diff(asked) <= round_trip_allowance(asked, spread) {
        Verdict::Pass
    } else {
        Verdict::Fail
    };
    let measured_ms = measured.as_secs_f64() * 1e3;
    (
        verdict,
        format!("a round trip between {from} and {to} takes {measured_ms:.1} ms, asked {asked_ms:.1} ms"),
    )
}

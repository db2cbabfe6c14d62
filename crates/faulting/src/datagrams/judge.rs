//! What becomes of datagrams on one way as asked, and whether those that were seen show it. Pure.
//!
//! Each condition has an observation of its own: how long copies take, which of them take no delay, how many datagrams
//! leave no copy, how many leave two, how many copies have a bit flipped. A condition is shown when what was seen fits with
//! it and does not fit without it; where both fit, the answer is "unknown" and says so.

use std::time::Duration;

use fabric::overlay::Treatment;
use fabric::{Block, Distribution, PairCounters};
use history::Verdict;
use lab::patrol::Probe;

use crate::observations::Observations;
use crate::samples::delays::{self, Delays, tolerance_ms};
use crate::samples::shares::{self, Counted, Width, percent};

/// A way that takes less than this is not told from one that takes nothing.
const OVERTAKEN_MIN_MS: f64 = 2.0;
/// Datagrams that must have been sent while a direction was cut.
pub const CUT_MIN: usize = 500;
/// Datagrams that must have been sent throughout a fault to show a share of them.
pub const SHARE_MIN: usize = 500;
/// Of a direction that is open, so much may be lost that nobody asked to lose.
const OPEN_LOSS: f64 = 0.02;
/// Datagrams that must have been sent to see that a direction is open.
pub const OPEN_MIN: usize = 100;

/// A condition that datagrams show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Property {
    /// How long they take.
    Delay,
    /// How that differs.
    Jitter,
    /// The share that is lost.
    Loss,
    /// The share that arrives twice.
    Duplicate,
    /// The share that takes no delay.
    Reorder,
    /// The share with a bit flipped.
    Corrupt,
}

/// What becomes of datagrams on one way.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Foreseen {
    /// How long those take that do not overtake.
    pub delays: Delays,
    /// The share that is lost, 0 to 1.
    pub lost: f64,
    /// The share of the others that arrives twice.
    pub twice: f64,
    /// The share of all copies that takes no delay.
    pub overtaking: f64,
    /// The share of all copies with a bit flipped.
    pub corrupted: f64,
    /// How packets are stopped, if they are.
    pub block: Block,
    /// Whether links limit the way: what else uses them may fill them, and makes packets late or has them dropped.
    pub is_limited: bool,
}

/// What to add where packets came through a direction that is cut.
const THOUGH_BLOCKED: &str = ", although the fault blocks this direction";
/// What to add where the network has not seen what was sent.
const PAST_THE_FABRIC: &str = "; the datagrams took another way than through the fabric";
/// What to add where a limited way leaves doubt.
const MAY_BE_FULL: &str = "; a rate-limited link on the path may be full of other traffic";

impl Foreseen {
    /// What a treatment makes of datagrams that the rates of the way hold up for so long.
    #[must_use]
    pub fn of(treatment: &Treatment, sending: Duration) -> Foreseen {
        Foreseen {
            delays: Delays {
                delay: Duration::from_nanos(treatment.delay_ns) + sending,
                jitter: treatment.jitter.filter(|jitter| !jitter.spread.is_zero()),
            },
            lost: treatment.loss.value(),
            twice: treatment.duplicate.value(),
            overtaking: treatment.reorder.value(),
            corrupted: treatment.corrupt.value(),
            block: treatment.block,
            is_limited: !sending.is_zero(),
        }
    }

    fn share(&self, property: Property) -> f64 {
        match property {
            Property::Loss => self.lost,
            Property::Duplicate => self.twice,
            Property::Reorder => self.overtaking,
            Property::Corrupt => self.corrupted,
            Property::Delay | Property::Jitter => 0.0,
        }
    }

    /// Whether one of these properties is another here. What the rates of the way make of a delay is not.
    #[must_use]
    pub fn differs_in(&self, properties: &[Property], other: &Foreseen) -> bool {
        properties.iter().any(|property| match property {
            Property::Delay => {
                let apart = self.delays.delay.abs_diff(other.delays.delay);
                apart.as_secs_f64() * 1e3 > self.delays.tolerance_ms()
            }
            Property::Jitter => self.delays.jitter != other.delays.jitter,
            share => (self.share(*share) - other.share(*share)).abs() > f64::EPSILON,
        })
    }

    /// Below this a copy has taken no delay, milliseconds; `None` where none can be told from the others.
    fn overtakes_below_ms(&self) -> Option<f64> {
        let least_ms = self.delays.least_ms();
        Some(least_ms - tolerance_ms(least_ms)).filter(|ms| *ms >= OVERTAKEN_MIN_MS)
    }

    /// How many datagrams show these properties, or that they are gone.
    #[must_use]
    pub fn needed(&self, properties: &[Property]) -> usize {
        let one = |property: &Property| match property {
            Property::Delay | Property::Jitter => self.delays.needed(),
            share => shares::needed(self.share(*share)),
        };
        // Of what is lost nothing else is seen.
        let arriving = if self.lost < 1.0 { (1.0 - self.lost).max(0.05) } else { 1.0 };
        properties.iter().map(one).max().unwrap_or(OPEN_MIN).max(OPEN_MIN) * 100 / (arriving * 100.0) as usize
    }
}

/// What a way is to show, beside what it would show without the fault.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// The conditions that are looked for.
    pub properties: Vec<Property>,
    /// What becomes of datagrams now.
    pub expected: Foreseen,
    /// What would become of them without the change that is to be shown; `None` where nothing changes, so that all that
    /// is to be seen is that nothing does.
    pub otherwise: Option<Foreseen>,
}

impl Wanted {
    /// What datagrams show, as sentences; `way` says from where to where, `least` how many must have been sent to show a share.
    #[must_use]
    pub fn judge(
        &self,
        probes: &[Probe],
        counted: Option<PairCounters>,
        (least, way): (usize, &str),
    ) -> Observations {
        if self.expected.block != Block::Open {
            let told = format!("no evidence: a partition blocks all packets {way}");
            return vec![(Verdict::Unknown, told)];
        }
        let times = self.times_ms(probes);
        let mut seen = self.judge_times(&times, way);
        for property in &self.properties {
            if let Some(sample) = self.counted(*property, probes, &times) {
                let of_all = counted
                    .and_then(|pair| Wanted::counted_by_the_network(*property, pair))
                    .map(|(of_all, _)| of_all);
                let width = if least == 0 { Width::AtOnce } else { Width::Throughout };
                let mut judged = self.judge_share(*property, (sample, of_all), width, way);
                if probes.len() < least && judged.0 == Verdict::Pass {
                    let sent = probes.len();
                    judged.0 = Verdict::Unknown;
                    judged.1.push_str(&format!(
                        "; {sent} were sent, and at least {least} must be to show a share"
                    ));
                }
                seen.push(judged);
            } else if *property == Property::Reorder {
                seen.extend(self.cannot_overtake(way));
            }
            seen.extend(counted.and_then(|pair| self.judge_pair(*property, (pair, probes.len()), way)));
        }
        seen
    }

    fn threshold_ms(&self) -> Option<f64> {
        let may_overtake = self.expected.overtaking > 0.0
            || self.otherwise.is_some_and(|otherwise| otherwise.overtaking > 0.0);
        self.expected.overtakes_below_ms().filter(|_| may_overtake)
    }

    /// How long every copy took, in order.
    fn times_ms(&self, probes: &[Probe]) -> Vec<f64> {
        let took = |probe: &Probe| {
            let sent = probe.sent;
            probe
                .arrivals
                .iter()
                .map(move |arrival| arrival.at.saturating_duration_since(sent).as_secs_f64() * 1e3)
                .collect::<Vec<_>>()
        };
        let mut times: Vec<f64> = probes.iter().flat_map(took).collect();
        times.sort_by(f64::total_cmp);
        times
    }

    fn counted(&self, property: Property, probes: &[Probe], times_ms: &[f64]) -> Option<Counted> {
        let copies = || probes.iter().flat_map(|probe| &probe.arrivals);
        let arrived = probes.iter().filter(|probe| !probe.arrivals.is_empty()).count();
        Some(match property {
            Property::Delay | Property::Jitter => return None,
            Property::Loss => Counted { count: probes.len() - arrived, of: probes.len() },
            Property::Duplicate => {
                let twice = probes.iter().filter(|probe| probe.arrivals.len() > 1).count();
                Counted { count: twice, of: arrived }
            }
            Property::Corrupt => {
                Counted { count: copies().filter(|copy| copy.is_corrupted).count(), of: times_ms.len() }
            }
            Property::Reorder => {
                let threshold = self.threshold_ms()?;
                Counted { count: times_ms.partition_point(|ms| *ms < threshold), of: times_ms.len() }
            }
        })
    }

    fn judge_times(&self, times_ms: &[f64], way: &str) -> Observations {
        let timed: Vec<Property> = self
            .properties
            .iter()
            .copied()
            .filter(|property| [Property::Delay, Property::Jitter].contains(property))
            .collect();
        if timed.is_empty() {
            return Vec::new();
        }
        if self.expected.overtaking > 0.0 && self.threshold_ms().is_none() {
            let told = format!("overtaking packets {way} cannot be distinguished, so the delay is unknown");
            return vec![(Verdict::Unknown, told)];
        }
        let overtakers = self.threshold_ms().map_or(0, |least| times_ms.partition_point(|ms| *ms < least));
        let times_ms = &times_ms[overtakers..];
        if times_ms.len() < delays::COUNT_MIN {
            let few = times_ms.len();
            return vec![(
                Verdict::Unknown,
                format!("only {few} datagrams {way} arrived, too few to measure the delay"),
            )];
        }
        let asked = self.expected.delays;
        let seen = asked.judge(times_ms);
        let mut sentence = delay_in_words(&asked, seen, times_ms.len(), way);
        let verdict = match seen.fit {
            delays::Fit::AsAsked => Verdict::Pass,
            delays::Fit::Short => {
                sentence.push_str("; the delay is too short");
                Verdict::Fail
            }
            delays::Fit::Long if self.expected.is_limited => {
                sentence.push_str("; the delay is too long");
                sentence.push_str(MAY_BE_FULL);
                Verdict::Unknown
            }
            delays::Fit::Long => {
                sentence.push_str("; the delay is too long");
                Verdict::Fail
            }
            delays::Fit::Wide => {
                sentence.push_str("; the interval is too wide to judge: the machine is too busy, or there are too few datagrams");
                Verdict::Unknown
            }
        };
        let alike =
            timed.iter().find(|property| verdict == Verdict::Pass && self.fits_without(**property, times_ms));
        match alike {
            Some(property) => {
                let which = if *property == Property::Delay { "delay" } else { "jitter" };
                sentence.push_str(&format!("; the {which} of this fault makes no measurable difference"));
                vec![(Verdict::Unknown, sentence)]
            }
            None => vec![(verdict, sentence)],
        }
    }

    /// Whether the times would be as they are without this property of the fault.
    fn fits_without(&self, property: Property, times_ms: &[f64]) -> bool {
        let Some(otherwise) = self.otherwise else { return false };
        let expected = self.expected.delays;
        let without = match property {
            Property::Delay => Delays { delay: otherwise.delays.delay, ..expected },
            _ => Delays { jitter: otherwise.delays.jitter, ..expected },
        };
        if without == expected {
            return true;
        }
        if property == Property::Jitter && without.jitter.is_none() {
            // Late datagrams look like jitter; that there is some shows in that too few are early.
            return !expected.is_told_from(&without, times_ms.len());
        }
        matches!(without.judge(times_ms).fit, delays::Fit::AsAsked | delays::Fit::Wide)
    }

    /// Where too few datagrams were sent for the width that is demanded, what the network counted of all packets may be as narrow,
    /// if it is `of_all`.
    fn judge_share(
        &self,
        property: Property,
        (counted, of_all): (Counted, Option<Counted>),
        width: Width,
        way: &str,
    ) -> (Verdict, String) {
        let asked = self.expected.share(property);
        let what = match property {
            Property::Loss => "were lost".to_owned(),
            Property::Duplicate => "arrived twice".to_owned(),
            Property::Corrupt => "arrived with a bit flipped".to_owned(),
            _ => format!("took less than {:.1} ms", self.threshold_ms().unwrap_or_default()),
        };
        let (low, high) = counted.interval();
        let Counted { count, of } = counted;
        let mut sentence = format!(
            "{count} of {of} datagrams {way} {what} ({:.1} to {:.1} %), expected {} %",
            low * 100.0,
            high * 100.0,
            percent(asked)
        );
        let is_narrow_in_all = of_all.is_some_and(|all| all.judge(asked, width) == shares::Fit::AsAsked);
        let verdict = match counted.judge(asked, if is_narrow_in_all { Width::AtOnce } else { width }) {
            shares::Fit::AsAsked => Verdict::Pass,
            // A full queue drops single copies, and lets nobody overtake.
            shares::Fit::Off if self.expected.is_limited && (low > asked) == (property == Property::Loss) => {
                sentence.push_str(MAY_BE_FULL);
                Verdict::Unknown
            }
            shares::Fit::Off => Verdict::Fail,
            shares::Fit::Wide => {
                sentence.push_str("; the interval is too wide to judge");
                Verdict::Unknown
            }
        };
        let without = self.otherwise.map(|otherwise| otherwise.share(property));
        if verdict == Verdict::Pass && without.is_some_and(|share| counted.is_explained_by(share)) {
            sentence.push_str("; this fault makes no measurable difference");
            return (Verdict::Unknown, sentence);
        }
        (verdict, sentence)
    }

    /// What there is to say where nothing can be seen to overtake.
    fn cannot_overtake(&self, way: &str) -> Option<(Verdict, String)> {
        // With nothing that could be overtaken, nothing overtakes: what is healed is healed.
        let is_over = self.expected.overtaking == 0.0;
        let told = || {
            format!(
                "reordering {way} cannot be measured: almost no packet takes longer than {OVERTAKEN_MIN_MS} ms there"
            )
        };
        (!is_over).then(|| (Verdict::Unknown, told()))
    }

    /// What the network itself counted of all packets of the way, the database's included: how many met the fate, and which.
    fn counted_by_the_network(property: Property, pair: PairCounters) -> Option<(Counted, &'static str)> {
        let copies = pair.passed_packets() + pair.duplicated_packets;
        let (count, of, what) = match property {
            Property::Loss => (pair.lost_packets, pair.chanced_packets(), "were lost"),
            Property::Duplicate => (pair.duplicated_packets, pair.passed_packets(), "were sent on twice"),
            Property::Corrupt => (pair.corrupted_packets, copies, "had a bit flipped"),
            Property::Reorder => (pair.overtaking_packets, copies, "took no delay"),
            Property::Delay | Property::Jitter => return None,
        };
        Some((Counted { count: usize::try_from(count).ok()?, of: usize::try_from(of).ok()? }, what))
    }

    /// Whether that is as asked, of so many datagrams that were sent.
    fn judge_pair(
        &self,
        property: Property,
        (pair, sent): (PairCounters, usize),
        way: &str,
    ) -> Option<(Verdict, String)> {
        let (counted, what) = Wanted::counted_by_the_network(property, pair)?;
        let Counted { count, of } = counted;
        let asked = self.expected.share(property);
        let told = format!(
            "the fabric counted: {count} of {of} packets {way} {what}, expected {} %",
            percent(asked)
        );
        Some(match () {
            () if !counted.is_explained_by(asked) => (Verdict::Fail, told),
            () if passed_by(pair, sent) => (Verdict::Unknown, format!("{told}{PAST_THE_FABRIC}")),
            () => (Verdict::Pass, told),
        })
    }
}

/// Whether the network has seen fewer packets than datagrams were sent, beyond those that were still under way when it began or
/// ceased to count.
fn passed_by(pair: PairCounters, sent: usize) -> bool {
    usize::try_from(pair.packets).is_ok_and(|packets| packets < sent / 2)
}

/// Whether a direction is cut, by datagrams sent while it should have been and by what the network counted.
#[must_use]
pub fn judge_cut(
    probes: &[Probe],
    refusals: usize,
    counted: Option<PairCounters>,
    answer: Block,
    (least, way): (usize, &str),
) -> Observations {
    let arrived = probes.iter().filter(|probe| !probe.arrivals.is_empty()).count();
    let sent = probes.len();
    let mut seen = Vec::new();
    let (low, high) = Counted { count: arrived, of: sent }.interval();
    let mut sentence =
        format!("{arrived} of {sent} datagrams {way} arrived ({:.1} to {:.1} %)", low * 100.0, high * 100.0);
    let verdict = if arrived > 0 {
        sentence.push_str(THOUGH_BLOCKED);
        Verdict::Fail
    } else if sent < least {
        sentence.push_str(&format!("; at least {least} must be sent to show that no packet gets through"));
        Verdict::Unknown
    } else {
        Verdict::Pass
    };
    if answer == Block::Reset {
        sentence.push_str(&format!("; {refusals} got a reset"));
    }
    seen.push((verdict, sentence));
    if sent >= OPEN_MIN {
        match (answer, refusals) {
            (Block::Reset, 0) => {
                seen.push((
                    Verdict::Fail,
                    format!("no datagram {way} got a reset, although the fault sets `answer: reset`"),
                ));
            }
            (Block::BlackHole, 1..) => {
                let told = format!("{refusals} datagrams {way} got a reset, although the fault sets silence");
                seen.push((Verdict::Fail, told));
            }
            _ => {}
        }
    }
    if let Some(pair) = counted {
        let (passed, all) = (pair.passed_packets(), pair.packets);
        let told = format!("the fabric counted: {passed} of {all} packets {way} were let through");
        seen.push(match passed {
            0 if passed_by(pair, sent) => (Verdict::Unknown, format!("{told}{PAST_THE_FABRIC}")),
            0 => (Verdict::Pass, told),
            _ => (Verdict::Fail, format!("{told}{THOUGH_BLOCKED}")),
        });
    }
    seen
}

/// Whether a direction is open, though a fault stands elsewhere or has gone.
#[must_use]
pub fn judge_open(probes: &[Probe], expected: &Foreseen, way: &str) -> (Verdict, String) {
    let arrived = probes.iter().filter(|probe| !probe.arrivals.is_empty()).count();
    let sent = probes.len();
    let lost = Counted { count: sent - arrived, of: sent };
    let sentence = format!("{arrived} of {sent} datagrams {way} arrived");
    let verdict = if sent == 0 || (sent < OPEN_MIN && arrived > 0) {
        return (Verdict::Unknown, format!("{sentence}; too few to show that the path is open"));
    } else if lost.interval().0 > expected.lost + OPEN_LOSS || arrived == 0 {
        if expected.is_limited && arrived > 0 {
            return (Verdict::Unknown, format!("{sentence}{MAY_BE_FULL}"));
        }
        Verdict::Fail
    } else {
        Verdict::Pass
    };
    (verdict, sentence)
}

fn delay_in_words(asked: &Delays, seen: delays::Seen, count: usize, way: &str) -> String {
    let asked_ms = asked.delay.as_secs_f64() * 1e3;
    let (low_ms, high_ms, may_miss_ms) = (seen.low_ms, seen.high_ms, asked.tolerance_ms());
    let Some(jitter) = asked.jitter else {
        return format!(
            "the fastest twentieth of {count} datagrams {way} takes {low_ms:.2} to {high_ms:.2} ms, expected \
             {asked_ms:.2} ms ± {may_miss_ms:.2} ms"
        );
    };
    let shape = match jitter.distribution {
        Distribution::Uniform => "uniform",
        Distribution::Normal => "normal",
        Distribution::Exponential => "exponential",
        Distribution::Pareto => "pareto",
    };
    let spread_ms = jitter.spread.as_secs_f64() * 1e3;
    format!(
        "{count} datagrams {way} fit a {shape} jitter of {spread_ms:.2} ms around {low_ms:.2} to {high_ms:.2} ms, \
         expected {asked_ms:.2} ms ± {may_miss_ms:.2} ms; the jitter itself widens the interval"
    )
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn datagrams_that_the_network_did_not_count_took_another_way_and_leave_doubt() {
        let sent = vec![Probe { sent: Instant::now(), arrivals: Vec::new() }; 600];
        let check = |packets: u64, expected: Verdict| {
            let counted = PairCounters { packets, blocked_packets: packets, ..PairCounters::default() };
            let seen = judge_cut(&sent, 0, Some(counted), Block::BlackHole, (500, "there"));
            let verdict = seen.iter().fold(Verdict::Pass, |verdict, (seen, _)| verdict.and(*seen));
            assert_eq!(verdict, expected, "{packets}: {seen:?}");
        };
        check(600, Verdict::Pass);
        check(2_000, Verdict::Pass);
        check(0, Verdict::Unknown);
    }
}

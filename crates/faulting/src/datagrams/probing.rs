//! Datagrams on the ways of a fault, from before it strikes until it is shown to have healed: how fast they are sent, which of
//! them count, and when there are enough.
//!
//! Which of them count, in time, is `spans`' business; what those show is `judge`'s.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fabric::{Block, CountGuard, Fabric, FabricError, PairCounters, Path};
use history::{Receipt, Verdict};
use lab::patrol::{Patrol, Probe};
use paper::RequestedNetwork;
use platform::{Datacentre, Standstill};

use crate::datagrams::judge::{OPEN_MIN, SHARE_MIN, judge_cut, judge_open};
use crate::datagrams::pacing::{SLOW, interval, least_interval};
use crate::datagrams::presence::Presence;
use crate::datagrams::spans::{Closed, Ends, closing, counting, is_changed};
use crate::datagrams::{Shows, Way, foreseen, foreseen_between};
use crate::flapping::Turn;
use crate::observations::Observations;
use crate::stations::Station;

/// How long a datagram may take beyond what the way takes.
const LATENESS: Duration = Duration::from_millis(300);
/// A datagram sent this close to a turn of a flapping fault may meet either side of it.
const TURN_GUARD: Duration = Duration::from_millis(20);
/// Datagrams that show at once that a way is cut; that it stays so is shown by all of them in the end.
const CUT_AT_ONCE: usize = 100;
/// A cut that comes and goes has fewer datagrams to show.
const CUT_IN_TURNS: usize = 200;
/// Turns of each kind that show that a fault comes and goes.
const TURNS_MIN: usize = 2;

/// Every change of the network as asked for, in order.
#[derive(Default)]
pub struct RequestLog(Mutex<Vec<(Instant, Arc<RequestedNetwork>)>>);

impl RequestLog {
    fn entries(&self) -> MutexGuard<'_, Vec<(Instant, Arc<RequestedNetwork>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the network is asked to be this.
    pub fn changes_now(&self, asked: Arc<RequestedNetwork>) {
        self.entries().push((Instant::now(), asked));
    }
}

/// When a fault stood.
#[derive(Debug, Clone)]
pub enum Stood {
    /// From one moment on.
    Since(Instant),
    InTurns(Arc<Mutex<Vec<Turn>>>),
}

/// What is looked at.
#[derive(Clone, Copy)]
pub enum Occasion<'a> {
    /// The fault stands.
    Stands(&'a Stood),
    /// A flapping fault has gone for a while, and the network is this.
    Between(&'a Stood, &'a RequestedNetwork),
    /// It has been healed at a moment, and the network is this.
    Healed(Instant, &'a RequestedNetwork),
}

impl<'a> Occasion<'a> {
    /// When it began; `None` where it has not yet.
    fn begun(self) -> Option<Instant> {
        match self {
            Occasion::Stands(Stood::Since(from)) => Some(*from),
            Occasion::Healed(from, _) => Some(from),
            Occasion::Stands(Stood::InTurns(turns)) | Occasion::Between(Stood::InTurns(turns), _) => {
                turns.lock().unwrap_or_else(PoisonError::into_inner).first().map(|turn| turn.from)
            }
            Occasion::Between(Stood::Since(_), _) => None,
        }
    }

    /// The network without the fault, where it is looked at.
    fn network(self) -> Option<&'a RequestedNetwork> {
        match self {
            Occasion::Stands(_) => None,
            Occasion::Between(_, asked) | Occasion::Healed(_, asked) => Some(asked),
        }
    }
}

/// Datagrams under way for one fault.
pub struct Probing {
    stations: Arc<Vec<Station>>,
    ways: Vec<Way>,
    patrol: Result<Patrol, String>,
    datacentre: Arc<Datacentre>,
    asked: Arc<RequestLog>,
    /// The network as asked for at first.
    at_first: Arc<RequestedNetwork>,
    presence: Presence,
    /// When other probes of the same fault filled the links.
    disturbed: Mutex<Vec<(Instant, Instant)>>,
}

impl Probing {
    /// Begins to send.
    #[must_use]
    pub fn start(
        datacentre: Arc<Datacentre>,
        asked: Arc<RequestLog>,
        (stations, ways): (Vec<Station>, Vec<Way>),
        stands_for: Option<Duration>,
        with: &Arc<RequestedNetwork>,
    ) -> Probing {
        let ends: Vec<_> = ways
            .iter()
            .map(|way| {
                let (from, to) = (&stations[way.from], &stations[way.to]);
                (
                    from.end(),
                    to.end(),
                    interval(way, ways.len(), stands_for).max(least_interval(with, from, to)),
                )
            })
            .collect();
        let patrol = Patrol::start(&ends).map_err(|error| error.to_string());
        let stations = Arc::new(stations);
        let presence = Presence::watch(stations.clone(), datacentre.clone());
        let (at_first, disturbed) = (with.clone(), Mutex::default());
        Probing { stations, ways, patrol, datacentre, asked, at_first, presence, disturbed }
    }

    /// The stations, by number.
    #[must_use]
    pub fn stations(&self) -> &[Station] {
        &self.stations
    }

    /// Whether an end of a way has lost its power since the start, or was moved to where datagrams meet something else: such a
    /// way shows nothing more.
    #[must_use]
    pub fn has_lost_an_end(&self, now: &RequestedNetwork) -> bool {
        let healed = Occasion::Healed(Instant::now(), now);
        (0..self.ways.len()).any(|number| {
            let way = &self.ways[number];
            let moved = || self.moved(way, &self.shows(number, healed), healed, &self.ends(way));
            self.presence.there_until([way.from, way.to]).1 || moved().is_some()
        })
    }

    /// The names of those of these stations that stood still to be moved since they were found, by number.
    #[must_use]
    pub fn moved_among<'s>(&self, stations: &'s [Station], numbers: &BTreeSet<usize>) -> Vec<&'s str> {
        let stations = numbers.iter().filter_map(|number| stations.get(*number));
        let moved = stations.filter(|station| !station.standstills(&self.datacentre).is_empty());
        moved.map(|station| station.name.as_str()).collect()
    }

    /// How long nearly every datagram takes at most on the longest way.
    #[must_use]
    pub fn longest_way(&self) -> Duration {
        self.ways.iter().map(|way| way.shows.expected().delays.most()).max().unwrap_or_default()
    }

    /// Counts, from now on, what the network itself does on each way.
    ///
    /// # Errors
    /// When the fabric's thread is gone, or places cannot be brought back from the kernel's own path.
    pub fn count(&self, fabric: &Fabric) -> Result<CountGuard, FabricError> {
        let place = |station: usize| -> Path { self.stations[station].path.clone() };
        fabric.count(self.ways.iter().map(|way| (place(way.from), place(way.to))).collect())
    }

    /// Sends nothing more until it is resumed.
    pub fn pause(&self) {
        if let Ok(patrol) = &self.patrol {
            patrol.pause();
        }
    }

    /// Sends again, as fast as at first.
    pub fn resume(&self, with: &RequestedNetwork) {
        let Ok(patrol) = &self.patrol else { return };
        for (number, way) in self.ways.iter().enumerate() {
            let (from, to) = (&self.stations[way.from], &self.stations[way.to]);
            patrol.pace(number, interval(way, self.ways.len(), None).max(least_interval(with, from, to)));
        }
        patrol.resume();
    }

    /// Lets other probes of the fault have the links to themselves.
    pub fn while_paused<T>(&self, work: impl FnOnce() -> T) -> T {
        let from = Instant::now();
        self.pause();
        let done = work();
        self.disturbed.lock().unwrap_or_else(PoisonError::into_inner).push((from, Instant::now()));
        if let Ok(patrol) = &self.patrol {
            patrol.resume();
        }
        done
    }

    /// Sends seldom from now on: there is enough for a first answer.
    pub fn slow_down(&self) {
        let Ok(patrol) = &self.patrol else { return };
        for (number, way) in self.ways.iter().enumerate() {
            let (from, to) = (&self.stations[way.from], &self.stations[way.to]);
            let asked = self.asked.entries().last().map(|(_, asked)| asked.clone());
            let least = asked.map_or(SLOW, |asked| least_interval(&asked, from, to));
            patrol.pace(number, SLOW.max(least));
        }
    }

    /// Whether enough datagrams, sent until a moment, have had the time to arrive.
    #[must_use]
    pub fn has_enough(&self, occasion: Occasion<'_>, until: Instant, at_once: bool) -> bool {
        let turns = match occasion {
            Occasion::Stands(Stood::InTurns(turns)) | Occasion::Between(Stood::InTurns(turns), _) => {
                let turns = turns.lock().unwrap_or_else(PoisonError::into_inner);
                let stood = turns.iter().filter(|turn| turn.stood).count();
                stood.min(turns.len() - stood) >= TURNS_MIN
            }
            _ => true,
        };
        turns
            && (0..self.ways.len()).all(|number| {
                let shows = self.shows(number, occasion);
                let (count, closed) = self.counted(number, &shows, occasion, until);
                // A cut that comes and goes is shown by fewer, and yet it gets as many as its turns leave room for.
                let wanted = if at_once { needed(&shows, occasion, true) } else { shows.needed() };
                closed.is_some() || count >= wanted
            })
    }

    /// What datagrams sent until a moment show, with what the network counted.
    #[must_use]
    pub fn judge(
        &self,
        occasion: Occasion<'_>,
        until: Instant,
        counted: Option<&[PairCounters]>,
        at_once: bool,
    ) -> Receipt {
        let mut receipt = Receipt { verdict: Verdict::Pass, evidence: Vec::new() };
        for number in 0..self.ways.len() {
            let counted = counted.and_then(|pairs| pairs.get(number)).copied();
            for (verdict, sentence) in self.judge_way(number, occasion, until, counted, at_once) {
                receipt.verdict = receipt.verdict.and(verdict);
                receipt.evidence.push(sentence);
            }
        }
        receipt
    }

    /// Whether anything of what the fault cuts arrived before it struck.
    #[must_use]
    pub fn judge_before(&self, from: Instant, to: Instant) -> Observations {
        let Ok(patrol) = &self.patrol else { return Vec::new() };
        let mut seen = Vec::new();
        for (number, way) in self.ways.iter().enumerate() {
            let Shows::Cut { before, .. } = &way.shows else { continue };
            let probes = patrol.probes(number, from, to);
            let arrived = probes.iter().filter(|probe| !probe.arrivals.is_empty()).count();
            if before.block != Block::Open || arrived == 0 {
                let (sent, way) = (probes.len(), self.in_words(number));
                let told = format!(
                    "before the fault {arrived} of {sent} datagrams {way} arrived: the path was already cut, so the \
                     fault cannot be verified"
                );
                seen.push((Verdict::Unknown, told));
            }
        }
        seen
    }

    fn judge_way(
        &self,
        number: usize,
        occasion: Occasion<'_>,
        until: Instant,
        counted: Option<PairCounters>,
        at_once: bool,
    ) -> Observations {
        let way = self.in_words(number);
        let when = match occasion {
            Occasion::Stands(_) => "",
            Occasion::Between(..) => "in between ",
            Occasion::Healed(..) => "after the fault ",
        };
        let shows = self.shows(number, occasion);
        if let Err(error) = &self.patrol {
            return vec![(Verdict::Unknown, format!("{when}no datagrams {way} could be sent: {error}"))];
        }
        let (probes, closed) = self.sample(number, &shows, occasion, until);
        let moved = self.moved_in_words(number, occasion, until, closed);
        let moved = moved.map(|told| (Verdict::Pass, format!("{when}{told}")));
        if probes.len() < OPEN_MIN && closed.is_some() {
            let sent = probes.len();
            let told = format!(
                "{when}only {sent} datagrams {way} were sent before its ends or its path changed again"
            );
            let verdict = if self.ways[number].shows.is_changed() { Verdict::Unknown } else { Verdict::Pass };
            return std::iter::once((verdict, told)).chain(moved).collect();
        }
        let counted = counted.filter(|_| counts_the_fault_alone(&shows, closed));
        let seen = match &shows {
            Shows::Cut { standing, .. } => {
                let refusals = self.refusals(number, &shows, occasion, until);
                let is_counted = counted.is_some_and(|pair| pair.packets > 0);
                let least = least(&shows, occasion, at_once, (closed, is_counted));
                judge_cut(&probes, refusals, counted, standing.block, (least, &way))
            }
            Shows::Open(expected) if expected.block != Block::Open => {
                let is_changed = self.ways[number].shows.is_changed();
                let verdict = if is_changed { Verdict::Unknown } else { Verdict::Pass };
                vec![(verdict, format!("another fault cuts the path {way}"))]
            }
            Shows::Open(expected) => vec![judge_open(&probes, expected, &way)],
            Shows::Conditions(wanted) => {
                let least = if at_once { 0 } else { least_for_a_share(occasion) };
                wanted.judge(&probes, counted, (least, &way))
            }
        };
        let overridden =
            (!at_once).then(|| self.overridden_in_words(number, &shows, occasion, until)).flatten();
        let seen = seen.into_iter().map(|(verdict, told)| (verdict, format!("{when}{told}")));
        seen.chain(moved).chain(overridden.map(|told| (Verdict::Unknown, told))).collect()
    }

    /// What is to be said where another fault put something else in the place of these conditions while they stood.
    fn overridden_in_words(
        &self,
        number: usize,
        shows: &Shows,
        occasion: Occasion<'_>,
        until: Instant,
    ) -> Option<String> {
        let (Shows::Conditions(wanted), Occasion::Stands(Stood::Since(begun))) = (shows, occasion) else {
            return None;
        };
        wanted.otherwise?;
        let (way, header_bytes) = (&self.ways[number], self.stations[self.ways[number].from].header_bytes());
        let ends = self.ends(way);
        let is_otherwise = |at: Instant, asked: &RequestedNetwork| {
            let now = foreseen_between(asked, ends.at(at), header_bytes);
            now.block == Block::Open && wanted.expected.differs_in(&wanted.properties, &now)
        };
        let entries = self.asked.entries();
        let mut later = entries.iter().filter(|(at, _)| at > begun && *at < until);
        later.any(|(at, asked)| is_otherwise(*at, asked)).then(|| {
            let way = self.in_words(number);
            format!("another fault changed what this one asks of packets {way} while it stood")
        })
    }

    /// What a way is to show on an occasion.
    fn shows(&self, number: usize, occasion: Occasion<'_>) -> Shows {
        let way = &self.ways[number];
        match occasion {
            Occasion::Stands(_) => way.shows.clone(),
            Occasion::Between(_, asked) | Occasion::Healed(_, asked) => {
                way.shows.healed(foreseen(asked, &self.stations[way.from], &self.stations[way.to]))
            }
        }
    }

    fn counted(
        &self,
        number: usize,
        shows: &Shows,
        occasion: Occasion<'_>,
        until: Instant,
    ) -> (usize, Option<Closed>) {
        let Ok(patrol) = &self.patrol else { return (0, Some(Closed::Gone)) };
        let (spans, closed) = self.spans(number, shows, occasion, until);
        (spans.iter().map(|(from, to)| patrol.probes(number, *from, *to).len()).sum(), closed)
    }

    fn sample(
        &self,
        number: usize,
        shows: &Shows,
        occasion: Occasion<'_>,
        until: Instant,
    ) -> (Vec<Probe>, Option<Closed>) {
        let Ok(patrol) = &self.patrol else { return (Vec::new(), Some(Closed::Gone)) };
        let (spans, closed) = self.spans(number, shows, occasion, until);
        (spans.iter().flat_map(|(from, to)| patrol.probes(number, *from, *to)).collect(), closed)
    }

    fn refusals(&self, number: usize, shows: &Shows, occasion: Occasion<'_>, until: Instant) -> usize {
        let Ok(patrol) = &self.patrol else { return 0 };
        let (spans, _) = self.spans(number, shows, occasion, until);
        spans.iter().map(|(from, to)| patrol.refusals(number, *from, *to)).sum()
    }

    /// The times in which datagrams of a way count, and why no more can be added, if none can.
    fn spans(
        &self,
        number: usize,
        shows: &Shows,
        occasion: Occasion<'_>,
        until: Instant,
    ) -> (Vec<(Instant, Instant)>, Option<Closed>) {
        let way = &self.ways[number];
        let (ends, header_bytes) = (self.ends(way), self.stations[way.from].header_bytes());
        let Some(begun) = occasion.begun() else { return (Vec::new(), None) };
        let most = shows.expected().delays.most();
        // What was sent so late that it was still on its way says nothing either.
        let (there_until, is_gone) = self.presence.there_until([way.from, way.to]);
        let there_until = there_until.checked_sub(most).unwrap_or(begun);
        let gone = is_gone.then_some(there_until);
        // While a flapping fault has gone, what is asked of the way is not what the log says.
        let standing = match occasion {
            Occasion::Between(..) => way.shows.expected(),
            _ => shows.expected(),
        };
        let moved = self.moved(way, shows, occasion, &ends);
        let entries = self.asked.entries();
        let is_other = |at: Instant, asked: &RequestedNetwork| {
            is_changed(shows, standing, &foreseen_between(asked, ends.at(at), header_bytes))
        };
        let changed = entries.iter().find(|(at, asked)| *at > begun && is_other(*at, asked));
        let changed = changed.map(|(at, _)| *at);
        let ended =
            closing([(gone, Closed::Gone), (changed, Closed::Changed), (moved, Closed::Moved)], until);
        let settled = Instant::now().checked_sub(LATENESS + most).unwrap_or(begun);
        let end = ended.map_or(until, |(at, _)| at).min(settled).min(there_until);
        let spans = match occasion {
            Occasion::Stands(Stood::InTurns(turns)) => in_turns(turns, true),
            Occasion::Between(Stood::InTurns(turns), _) => in_turns(turns, false),
            _ => vec![(begun, end)],
        };
        let mut disturbed = self.disturbed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        disturbed.extend(ends.standing_still(most, Instant::now()));
        let spans = counting(spans, end, &disturbed);
        (spans, ended.filter(|(at, _)| *at <= settled).map(|(_, why)| why))
    }

    fn ends(&self, way: &Way) -> Ends<'_> {
        let ends = [&self.stations[way.from], &self.stations[way.to]];
        let standstills = ends.map(|end| end.standstills(&self.datacentre));
        Ends { found: ends.map(|end| end.path.as_slice()), standstills }
    }

    /// Until when datagrams of a way met what they meet between the places where its ends were found, if an end was moved to
    /// where that is otherwise: as asked at first, as asked then, or as asked on this occasion.
    fn moved(&self, way: &Way, shows: &Shows, occasion: Occasion<'_>, ends: &Ends<'_>) -> Option<Instant> {
        let header_bytes = self.stations[way.from].header_bytes();
        let begun = occasion.begun();
        let entries = self.asked.entries();
        ends.moved(shows, shows.expected().delays.most(), |places, at| {
            // Nothing that was sent before it began counts.
            let from = begun.map_or(at, |begun| begun.max(at));
            let then = entries.iter().rev().find(|(since, _)| *since <= from);
            let then = then.map(|(_, asked)| &**asked);
            let asked = [Some(&*self.at_first), then, occasion.network()];
            asked.into_iter().flatten().map(|asked| foreseen_between(asked, places, header_bytes)).collect()
        })
    }

    /// What of a way does not count because an end was moved.
    fn moved_in_words(
        &self,
        number: usize,
        occasion: Occasion<'_>,
        until: Instant,
        closed: Option<Closed>,
    ) -> Option<String> {
        let (way, begun) = (&self.ways[number], occasion.begun()?);
        let is_closed = closed == Some(Closed::Moved);
        let is_meant = |stood: &Standstill| match is_closed {
            true => stood.moved_to.is_some(),
            false => stood.began < until && stood.ended.is_none_or(|ended| ended > begun),
        };
        let moved = [way.from, way.to].map(|number| &self.stations[number]).into_iter();
        let moved = moved.filter(|station| station.standstills(&self.datacentre).iter().any(is_meant));
        let names = moved.map(|station| station.name.as_str()).collect::<Vec<_>>().join(" and ");
        let way = self.in_words(number);
        match (names.is_empty(), is_closed) {
            (true, _) => None,
            (false, true) => Some(format!(
                "datagrams {way} are judged only until {names} moved to a host with another network path"
            )),
            (false, false) => Some(format!(
                "datagrams {way} that were sent while a migration stunned {names} are not judged"
            )),
        }
    }

    fn in_words(&self, number: usize) -> String {
        let way = &self.ways[number];
        format!("from {} to {}", self.stations[way.from].name, self.stations[way.to].name)
    }
}

/// The middle half of each turn of a kind: on a busy machine a datagram may be carried in the next one.
fn in_turns(turns: &Mutex<Vec<Turn>>, stood: bool) -> Vec<(Instant, Instant)> {
    let turns = turns.lock().unwrap_or_else(PoisonError::into_inner);
    let of_kind = turns.iter().filter(|turn| turn.stood == stood);
    of_kind
        .filter_map(|turn| {
            let guard = TURN_GUARD.max((turn.to - turn.from) / 4);
            Some((turn.from + guard, turn.to.checked_sub(guard)?))
        })
        .collect()
}

/// Whether what the network counted until the fault was lifted is the fault's alone: nothing else changed the way. A cut
/// stands whether an end has power or not.
fn counts_the_fault_alone(shows: &Shows, closed: Option<Closed>) -> bool {
    match closed {
        None => true,
        Some(Closed::Gone) => shows.is_cut(),
        Some(Closed::Changed | Closed::Moved) => false,
    }
}

/// How many datagrams a way takes that closed, or did not. A node that loses its power can be sent nothing more; the network's
/// own count, where there is one, goes on.
fn least(
    shows: &Shows,
    occasion: Occasion<'_>,
    at_once: bool,
    (closed, is_counted): (Option<Closed>, bool),
) -> usize {
    needed(shows, occasion, at_once || (closed == Some(Closed::Gone) && is_counted))
}

/// How many datagrams must have been sent to show a share of them. While a fault stands, a way sends longer than after it.
fn least_for_a_share(occasion: Occasion<'_>) -> usize {
    match occasion {
        Occasion::Stands(Stood::Since(_)) => SHARE_MIN,
        _ => 0,
    }
}

/// How many datagrams are needed; at once, for a first answer or beside the network's own count.
fn needed(shows: &Shows, occasion: Occasion<'_>, at_once: bool) -> usize {
    match (shows, occasion) {
        (Shows::Cut { .. }, _) if at_once => CUT_AT_ONCE,
        (Shows::Cut { .. }, Occasion::Stands(Stood::InTurns(_))) => CUT_IN_TURNS,
        _ => shows.needed(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagrams::judge::Foreseen;

    fn cut() -> Shows {
        let open = Foreseen::default();
        Shows::Cut { standing: Foreseen { block: Block::BlackHole, ..open }, before: open }
    }

    #[test]
    fn a_cut_way_that_closed_after_a_hundred_datagrams_is_shown_only_beside_the_networks_count() {
        let (cut, since) = (cut(), Stood::Since(Instant::now()));
        let few = vec![Probe { sent: Instant::now(), arrivals: Vec::new() }; CUT_AT_ONCE];
        let check = |closed: Option<Closed>, counted: Option<PairCounters>, expected: Verdict| {
            let counted = counted.filter(|_| counts_the_fault_alone(&cut, closed));
            let is_counted = counted.is_some_and(|pair| pair.packets > 0);
            let least = least(&cut, Occasion::Stands(&since), false, (closed, is_counted));
            let seen = judge_cut(&few, 0, counted, Block::BlackHole, (least, "there"));
            let verdict = seen.iter().fold(Verdict::Pass, |verdict, (seen, _)| verdict.and(*seen));
            assert_eq!(verdict, expected, "{closed:?}: {seen:?}");
        };
        let nothing_passed = PairCounters { packets: 90, blocked_packets: 90, ..PairCounters::default() };
        check(Some(Closed::Gone), Some(nothing_passed), Verdict::Pass);
        check(Some(Closed::Gone), None, Verdict::Unknown);
        check(Some(Closed::Gone), Some(PairCounters::default()), Verdict::Unknown);
        check(Some(Closed::Changed), Some(nothing_passed), Verdict::Unknown);
        check(Some(Closed::Moved), Some(nothing_passed), Verdict::Unknown);
        check(None, Some(nothing_passed), Verdict::Unknown);
        let one_passed = PairCounters { blocked_packets: 89, ..nothing_passed };
        check(Some(Closed::Gone), Some(one_passed), Verdict::Fail);
    }

    #[test]
    fn a_cut_way_takes_five_hundred_datagrams_two_hundred_in_turns_and_a_hundred_for_a_first_answer() {
        let cut = cut();
        let (since, turns) = (Stood::Since(Instant::now()), Stood::InTurns(Arc::default()));
        let of = |stood, at_once| needed(&cut, Occasion::Stands(stood), at_once);
        assert_eq!((of(&since, false), of(&turns, false), of(&since, true)), (500, 200, 100));
    }

    #[test]
    fn the_networks_count_of_a_cut_goes_on_without_an_end_and_not_beside_another_fault() {
        let (open, cut) = (Foreseen::default(), cut());
        let of_cut = |closed| counts_the_fault_alone(&cut, closed);
        assert!(of_cut(None) && of_cut(Some(Closed::Gone)) && !of_cut(Some(Closed::Changed)));
        assert!(!of_cut(Some(Closed::Moved)), "nobody knows of the packets of its other place");
        let of_open = |closed| counts_the_fault_alone(&Shows::Open(open), closed);
        assert!(of_open(None) && !of_open(Some(Closed::Gone)) && !of_open(Some(Closed::Changed)));
    }
}

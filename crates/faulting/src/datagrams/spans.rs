//! Which times of a way count: not those in which an end stood still to be moved or other probes filled the links, nor any after
//! something else than the fault changed the way. Pure.

use std::time::{Duration, Instant};

use platform::Standstill;

use crate::datagrams::Shows;
use crate::datagrams::judge::Foreseen;
use crate::datagrams::presence::GUARD;

/// Why no more datagrams of a way count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closed {
    /// One of its ends has lost its power.
    Gone,
    /// Another fault has changed it.
    Changed,
    /// One of its ends was moved to where datagrams meet something else.
    Moved,
}

/// The ends of a way: where they were found, and when they stood still to be moved since.
pub(super) struct Ends<'a> {
    /// Their paths when they were found.
    pub(super) found: [&'a [String]; 2],
    /// Of each, in order.
    pub(super) standstills: [Vec<Standstill>; 2],
}

impl Ends<'_> {
    /// Where they are at a moment. One that is moved is in its new place as soon as it stands still.
    pub(super) fn at(&self, moment: Instant) -> [&[String]; 2] {
        [0_usize, 1].map(|end| {
            let mut until_then = self.standstills[end].iter().rev().filter(|stood| stood.began <= moment);
            until_then.find_map(|stood| stood.moved_to.as_deref()).unwrap_or(self.found[end])
        })
    }

    /// Until when datagrams that take so long at most met what they meet between the places where the ends were found, if an end
    /// was moved to where that is otherwise. `meets` says what they meet between two places at a moment, in each network that
    /// counts.
    pub(super) fn moved(
        &self,
        shows: &Shows,
        most: Duration,
        meets: impl Fn([&[String]; 2], Instant) -> Vec<Foreseen>,
    ) -> Option<Instant> {
        let moved = self.standstills.iter().flatten().filter(|stood| stood.moved_to.is_some());
        let is_otherwise = |at: &Instant| {
            let (found, now) = (meets(self.found, *at), meets(self.at(*at), *at));
            found.iter().zip(&now).any(|(found, now)| is_changed(shows, found, now))
        };
        let first = moved.map(|stood| stood.began).filter(is_otherwise).min();
        first.map(|began| before(began, most))
    }

    /// The times in which datagrams that take so long at most may have met a standstill of an end.
    pub(super) fn standing_still(&self, most: Duration, now: Instant) -> Vec<(Instant, Instant)> {
        let may_meet = |stood: &Standstill| {
            let until = stood.ended.map_or(now, |ended| ended + GUARD);
            (before(stood.began, most), until)
        };
        self.standstills.iter().flatten().map(may_meet).collect()
    }
}

/// When a datagram that takes so long at most must have been sent to arrive before a moment for certain.
fn before(moment: Instant, most: Duration) -> Instant {
    moment.checked_sub(GUARD + most).unwrap_or(moment)
}

/// When no more datagrams of a way count, and why: the first of what ends it before a moment.
pub(super) fn closing(ends: [(Option<Instant>, Closed); 3], until: Instant) -> Option<(Instant, Closed)> {
    let ends = ends.into_iter().filter_map(|(at, why)| Some((at?, why)));
    ends.min_by_key(|(at, _)| *at).filter(|(at, _)| *at < until)
}

/// Whether a datagram meets something else now than what is looked at.
pub(super) fn is_changed(shows: &Shows, standing: &Foreseen, now: &Foreseen) -> bool {
    // Nothing that passes through a cut way meets what else is asked of it.
    if shows.is_cut() { now.block != standing.block } else { now != standing }
}

/// The spans until an end, less those in which datagrams met something else than the way.
pub(super) fn counting(
    spans: Vec<(Instant, Instant)>,
    end: Instant,
    disturbed: &[(Instant, Instant)],
) -> Vec<(Instant, Instant)> {
    let spans = spans.into_iter().map(|(from, to)| (from, to.min(end))).filter(|(from, to)| from < to);
    spans.flat_map(|span| without(span, disturbed)).collect()
}

/// A span less all others.
fn without(span: (Instant, Instant), others: &[(Instant, Instant)]) -> Vec<(Instant, Instant)> {
    others.iter().fold(vec![span], |spans, (begin, end)| {
        let parts = |(from, to): (Instant, Instant)| [(from, to.min(*begin)), (from.max(*end), to)];
        spans.into_iter().flat_map(parts).filter(|(from, to)| from < to).collect()
    })
}

#[cfg(test)]
mod tests {
    use fabric::Block;
    use history::Verdict;
    use lab::patrol::{Arrival, Probe};

    use super::*;
    use crate::datagrams::judge::judge_open;

    fn cut() -> Shows {
        let open = Foreseen::default();
        Shows::Cut { standing: Foreseen { block: Block::BlackHole, ..open }, before: open }
    }

    fn place(host: &str) -> Vec<String> {
        ["dc1", host, "n1"].map(str::to_owned).to_vec()
    }

    fn standstill(began: Instant, ended: Option<Instant>, moved_to: Option<&str>) -> Standstill {
        Standstill { began, ended, moved_to: moved_to.map(place) }
    }

    #[test]
    fn a_way_closes_with_the_first_of_what_ends_it_and_counts_nothing_sent_afterwards() {
        let begun = Instant::now();
        let at = |ms: u64| begun + Duration::from_millis(ms);
        let (gone, changed) = ((Some(at(300)), Closed::Gone), (Some(at(200)), Closed::Changed));
        let moved = (Some(at(250)), Closed::Moved);
        assert_eq!(closing([gone, changed, moved], at(1_000)), Some((at(200), Closed::Changed)));
        assert_eq!(
            closing([gone, (None, Closed::Changed), moved], at(1_000)),
            Some((at(250), Closed::Moved))
        );
        assert_eq!(closing([gone, changed, moved], at(150)), None, "the fault was healed before");
        let spans = counting(vec![(begun, at(1_000))], at(200), &[(at(50), at(100))]);
        assert_eq!(spans, [(begun, at(50)), (at(100), at(200))]);
        assert!(counting(vec![(at(300), at(400))], at(200), &[]).is_empty());
    }

    #[test]
    fn a_cut_way_is_changed_only_by_what_opens_it_or_answers_otherwise() {
        let (open, cut) = (Foreseen::default(), cut());
        let standing = cut.expected();
        assert!(!is_changed(&cut, standing, &Foreseen { lost: 0.5, ..*standing }));
        assert!(is_changed(&cut, standing, &open));
        assert!(is_changed(&cut, standing, &Foreseen { block: Block::Reset, ..open }));
        assert!(is_changed(&Shows::Open(open), &open, &Foreseen { lost: 0.5, ..open }));
    }

    #[test]
    fn what_is_lost_while_an_end_stands_still_is_not_the_networks_loss_and_what_is_lost_besides_is() {
        let begun = Instant::now();
        let at = |ms: u64| begun + Duration::from_millis(ms);
        let found = place("h1");
        let verdict = |lost: std::ops::Range<u64>| {
            let stood = vec![standstill(at(2_000), Some(at(3_000)), None)];
            let ends = Ends { found: [&found, &found], standstills: [Vec::new(), stood] };
            let spans = counting(
                vec![(begun, at(5_000))],
                at(5_000),
                &ends.standing_still(Duration::ZERO, at(6_000)),
            );
            let probe = |ms: u64| {
                let arrival = Arrival { at: at(ms), is_corrupted: false };
                Probe { sent: at(ms), arrivals: if lost.contains(&ms) { Vec::new() } else { vec![arrival] } }
            };
            let sent = (0..5_000).step_by(5).map(probe);
            let counts = |probe: &Probe| spans.iter().any(|(from, to)| (*from..*to).contains(&probe.sent));
            judge_open(&sent.filter(counts).collect::<Vec<_>>(), &Foreseen::default(), "there").0
        };
        assert_eq!(verdict(1_990..3_010), Verdict::Pass);
        assert_eq!(verdict(3_500..4_500), Verdict::Fail);
        assert_eq!(verdict(500..1_500), Verdict::Fail);
    }

    #[test]
    fn a_standstill_in_which_all_was_sent_leaves_doubt_and_fails_nothing() {
        assert_eq!(judge_open(&[], &Foreseen::default(), "there").0, Verdict::Unknown);
    }

    #[test]
    fn what_was_on_its_way_when_the_standstill_began_does_not_count_nor_what_is_sent_while_it_lasts() {
        let begun = Instant::now();
        let at = |ms: u64| begun + Duration::from_millis(ms);
        let found = place("h1");
        let stood = vec![standstill(at(2_000), None, None)];
        let ends = Ends { found: [&found, &found], standstills: [stood, Vec::new()] };
        let most = Duration::from_millis(400);
        assert_eq!(ends.standing_still(most, at(9_000)), [(at(1_600) - GUARD, at(9_000))]);
    }

    #[test]
    fn a_move_ends_a_way_where_datagrams_meet_something_else_there_and_does_not_where_they_do_not() {
        let begun = Instant::now();
        let at = |ms: u64| begun + Duration::from_millis(ms);
        let found = place("h1");
        let open = Foreseen::default();
        // Only what comes from the third host is lost.
        let meets = |[from, _]: [&[String]; 2], _: Instant| {
            vec![open, Foreseen { lost: if from[1] == "h3" { 0.5 } else { 0.0 }, ..open }]
        };
        let moved = |to: Option<&str>| {
            let stood = vec![
                standstill(at(1_000), Some(at(1_100)), Some("h2")),
                standstill(at(2_000), Some(at(2_100)), to),
            ];
            let ends = Ends { found: [&found, &found], standstills: [stood, Vec::new()] };
            assert_eq!(ends.at(at(999))[0], found);
            assert_eq!(ends.at(at(1_500))[0], place("h2"));
            ends.moved(&Shows::Open(open), Duration::ZERO, meets)
        };
        assert_eq!(moved(Some("h3")), Some(at(2_000) - GUARD));
        assert_eq!(moved(Some("h1")), None);
        assert_eq!(moved(None), None, "the move was given up");
    }
}

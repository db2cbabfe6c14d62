//! The ways that datagrams take to show a network fault: between which places, and what becomes of them there on paper.
//!
//! Owns which directions show a fault. Sending is `probing`'s business, judging `judge`'s.

pub mod judge;
mod pacing;
mod presence;
pub mod probing;
pub mod site;
mod spans;

use fabric::{Block, Path, Rule};
use paper::RequestedNetwork;
use scenario::Conditions;

use crate::datagrams::judge::{CUT_MIN, Foreseen, OPEN_MIN, Property, Wanted};
use crate::stations::Station;

/// Ways of one partition at most: what holds for so many pairs is not chance.
const WAYS_MAX: usize = 40;

/// One direction and what it is to show.
#[derive(Debug, Clone, PartialEq)]
pub struct Way {
    /// The station datagrams leave, by number.
    pub from: usize,
    /// The station they should reach.
    pub to: usize,
    /// What is to be seen.
    pub shows: Shows,
}

/// What a way is to show.
#[derive(Debug, Clone, PartialEq)]
pub enum Shows {
    /// That nothing arrives any more.
    Cut {
        /// What becomes of datagrams while it is cut,
        standing: Foreseen,
        /// and what became of them before.
        before: Foreseen,
    },
    /// That everything arrives, though a fault stands elsewhere or has gone.
    Open(Foreseen),
    /// That conditions hold.
    Conditions(Wanted),
}

impl Shows {
    /// What becomes of datagrams as long as nothing else is changed.
    #[must_use]
    pub fn expected(&self) -> &Foreseen {
        match self {
            Shows::Cut { standing, .. } => standing,
            Shows::Open(expected) => expected,
            Shows::Conditions(wanted) => &wanted.expected,
        }
    }

    /// Whether nothing is to arrive.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        matches!(self, Shows::Cut { .. })
    }

    /// Whether this is about what the fault changes, not about what it leaves alone.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        match self {
            Shows::Cut { .. } => true,
            Shows::Open(_) => false,
            Shows::Conditions(wanted) => wanted.otherwise.is_some(),
        }
    }

    /// How many datagrams show it.
    #[must_use]
    pub fn needed(&self) -> usize {
        match self {
            Shows::Cut { .. } => CUT_MIN,
            Shows::Open(_) => OPEN_MIN,
            Shows::Conditions(wanted) => {
                let otherwise = wanted.otherwise.map_or(0, |otherwise| otherwise.needed(&wanted.properties));
                wanted.expected.needed(&wanted.properties).max(otherwise)
            }
        }
    }

    /// What shows that the fault is gone, now that datagrams are to meet this.
    #[must_use]
    pub fn healed(&self, now: Foreseen) -> Shows {
        match self {
            Shows::Conditions(wanted) => {
                // What the fault left alone had nothing to heal.
                let otherwise = wanted.otherwise.map(|_| wanted.expected);
                let properties = wanted.properties.clone();
                Shows::Conditions(Wanted { properties, expected: now, otherwise })
            }
            _ => Shows::Open(now),
        }
    }
}

/// What becomes of datagrams between two stations.
#[must_use]
pub fn foreseen(asked: &RequestedNetwork, from: &Station, to: &Station) -> Foreseen {
    foreseen_between(asked, [&from.path, &to.path], from.header_bytes())
}

/// The same between two places, with so many bytes of headers.
fn foreseen_between(asked: &RequestedNetwork, [from, to]: [&[String]; 2], header_bytes: usize) -> Foreseen {
    let bytes = lab::patrol::PAYLOAD_BYTES + header_bytes;
    Foreseen::of(&asked.treatment(from, to), asked.sending(from, to, bytes))
}

/// The ways that show a partition: of pairs of stations of which a rule cuts a direction, both directions; of more pairs than can
/// be looked at, such that as many stations as can be have one. Of rules that cover a direction the last counts.
#[must_use]
pub fn of_partition(
    stations: &[Station],
    rules: &[Rule],
    (with, before): (&RequestedNetwork, &RequestedNetwork),
) -> Vec<Way> {
    let is_cut = |from: &Station, to: &Station| {
        let last = rules.iter().rev().find(|rule| rule.covers(&from.path, &to.path));
        last.is_some_and(|rule| rule.block.is_some_and(|block| block != Block::Open))
    };
    let way = |from: usize, to: usize, cut: bool| {
        let (here, there) = (&stations[from], &stations[to]);
        let standing = foreseen(with, here, there);
        let before = foreseen(before, here, there);
        Way { from, to, shows: if cut { Shows::Cut { standing, before } } else { Shows::Open(standing) } }
    };
    let mut pairs = Vec::new();
    for (number, one) in stations.iter().enumerate() {
        for (other_number, other) in stations.iter().enumerate().skip(number + 1) {
            let (there, back) = (is_cut(one, other), is_cut(other, one));
            if there || back {
                pairs.push(([number, other_number], [there, back]));
            }
        }
    }
    let mut ways = Vec::new();
    for ([one, other], [there, back]) in spread(pairs, stations.len()) {
        ways.push(way(one, other, there));
        ways.push(way(other, one, back));
    }
    // A direction that another partition cuts as well says nothing of this one.
    ways.retain(|way| way.shows.is_changed() || way.shows.expected().block == Block::Open);
    ways
}

/// Two stations by number, and which of their directions are cut.
type Pair = ([usize; 2], [bool; 2]);

/// So many pairs as can be looked at: always one next whose stations have been chosen least.
fn spread(mut pairs: Vec<Pair>, stations: usize) -> Vec<Pair> {
    let mut chosen = Vec::new();
    let mut times = vec![0_usize; stations];
    while chosen.len() < WAYS_MAX / 2 {
        let seldom = |(_, ([one, other], _)): &(usize, &Pair)| {
            let (one, other) = (times[*one], times[*other]);
            (one.min(other), one.max(other))
        };
        let Some((next, _)) = pairs.iter().enumerate().min_by_key(seldom) else { break };
        let pair = pairs.remove(next);
        pair.0.iter().for_each(|station| times[*station] += 1);
        chosen.push(pair);
    }
    chosen.sort_unstable();
    chosen
}

/// The conditions that datagrams show, one by one.
#[must_use]
pub fn properties(conditions: &Conditions) -> Vec<Property> {
    let all = [
        (conditions.delay.is_some(), Property::Delay),
        (conditions.jitter.is_some(), Property::Jitter),
        (conditions.loss.is_some(), Property::Loss),
        (conditions.duplicate.is_some(), Property::Duplicate),
        (conditions.reorder.is_some(), Property::Reorder),
        (conditions.corrupt.is_some(), Property::Corrupt),
    ];
    all.into_iter().filter(|(is_given, _)| *is_given).map(|(_, property)| property).collect()
}

/// The ways that show conditions, from the first so many stations of one end to the first of the other; and the way back of those
/// that have one way only, which must stay as it is.
#[must_use]
pub fn of_conditions(
    stations: &[Station],
    directions: &[(Path, Path)],
    (properties, senders): (&[Property], usize),
    (with, before): (&RequestedNetwork, &RequestedNetwork),
) -> Vec<Way> {
    if properties.is_empty() {
        return Vec::new();
    }
    let mut ways = Vec::new();
    for (from, to) in directions {
        let Some((here, there)) = first_stations(stations, from, to) else { continue };
        let one = |from: usize, to: usize, is_changed: bool| {
            let of = |asked: &RequestedNetwork| foreseen(asked, &stations[from], &stations[to]);
            let otherwise = is_changed.then(|| of(before));
            let wanted = Wanted { properties: properties.to_vec(), expected: of(with), otherwise };
            Way { from, to, shows: Shows::Conditions(wanted) }
        };
        ways.push(one(here, there, true));
        let is_another =
            |number: &usize| *number != here && *number != there && stations[*number].path.starts_with(from);
        let others = (0..stations.len()).filter(is_another).take(senders.saturating_sub(1));
        ways.extend(others.map(|other| one(other, there, true)));
        let back = one(there, here, false);
        let goes_back = directions.iter().any(|(other, _)| other == to);
        if !goes_back && back.shows.expected().block == Block::Open {
            ways.push(back);
        }
    }
    ways
}

/// The directions of which no datagram can show anything, because an end has no station.
#[must_use]
pub fn without_stations(stations: &[Station], directions: &[(Path, Path)]) -> Vec<(Path, Path)> {
    let is_unseen = |(from, to): &&(Path, Path)| first_stations(stations, from, to).is_none();
    directions.iter().filter(is_unseen).cloned().collect()
}

/// A place in words.
#[must_use]
pub fn named(path: &Path) -> String {
    if path.is_empty() { "everything else".to_owned() } else { path.join("/") }
}

/// The first station in each of two places, by number. Where one place is a part of the other, as the leader's host is of its
/// region, the two are different stations all the same.
#[must_use]
pub fn first_stations(stations: &[Station], from: &Path, to: &Path) -> Option<(usize, usize)> {
    let inside = |place: &Path| -> Vec<usize> {
        (0..stations.len()).filter(|number| stations[*number].path.starts_with(place)).collect()
    };
    let (from, to) = (inside(from), inside(to));
    let pair = |here: usize| Some((here, to.iter().copied().find(|there| *there != here)?));
    from.into_iter().find_map(pair)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn conditions_are_looked_at_from_as_many_senders_as_have_a_way_of_their_own() {
        let stations: Vec<Station> = ["a", "b", "c", "d"].map(Station::of_clients).into();
        let directions = [(Path::new(), vec!["d".to_owned()])];
        let lossy = Rule { to: vec!["d".to_owned()], loss: fabric::Probability::new(0.5), ..Rule::default() };
        let before = RequestedNetwork::new(fabric::Policy::default(), std::iter::empty());
        let with = RequestedNetwork::new(fabric::Policy::default(), [lossy]);
        let senders = |senders: usize| -> Vec<usize> {
            let ways = of_conditions(&stations, &directions, (&[Property::Loss], senders), (&with, &before));
            ways.iter().filter(|way| way.shows.is_changed()).map(|way| way.from).collect()
        };
        assert_eq!(senders(1), [0]);
        assert_eq!(senders(3), [0, 1, 2]);
        assert_eq!(senders(9), [0, 1, 2]);
    }

    #[test]
    fn every_station_that_a_large_partition_cuts_off_has_a_way_that_shows_it() {
        let names: Vec<String> =
            (0..40).map(|number| format!("{}{number}", if number < 13 { "a" } else { "b" })).collect();
        let stations: Vec<Station> = names.iter().map(|name| Station::of_clients(name)).collect();
        let cut = |from: &str, to: &str| Rule {
            from: vec![from.to_owned(), "clients".to_owned()],
            to: vec![to.to_owned(), "clients".to_owned()],
            block: Some(Block::BlackHole),
            ..Rule::default()
        };
        let (inside, outside) = names.split_at(13);
        let rules: Vec<Rule> = inside
            .iter()
            .flat_map(|one| outside.iter().flat_map(move |other| [cut(one, other), cut(other, one)]))
            .collect();
        let before = RequestedNetwork::new(fabric::Policy::default(), std::iter::empty());
        let with = RequestedNetwork::new(fabric::Policy::default(), rules.iter().cloned());
        let ways = of_partition(&stations, &rules, (&with, &before));
        assert_eq!(ways.len(), WAYS_MAX);
        let seen: BTreeSet<usize> = ways.iter().map(|way| way.from).collect();
        assert!((0..13).all(|station| seen.contains(&station)), "{seen:?}");
        assert!(seen.len() > 30, "{seen:?}");
    }
}

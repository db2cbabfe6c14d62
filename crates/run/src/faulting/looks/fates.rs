//! What becomes of many datagrams in one direction: how many are lost, arrive twice, or overtake those before them.
//!
//! Owns the shares to be seen and whether they are.

use std::time::Duration;

use history::Verdict;
use lab::stream::{Datagram, Plan, stream};

use crate::faulting::looks::Seen;
use crate::round_trips::Station;

/// Datagrams sent to see what share of them meets a fate,
const COUNT: u32 = 1_000;
/// fewer of them on a link so narrow that they would fill it,
const COUNT_MIN: u32 = 100;
/// because they may take this share of it,
const SHARE_OF_RATE: f64 = 0.1;
/// and no longer than this.
const TIME_MAX: Duration = Duration::from_secs(6);
/// Between two of them where nothing is narrow.
const INTERVAL: Duration = Duration::from_micros(500);
/// A datagram's number and the headers before it.
const WIRE_BITS: f64 = 8.0 * (4.0 + 48.0);
/// A share is believed when it lies within so many standard deviations of what was asked.
const DEVIATIONS: f64 = 4.0;

/// Shares that are asked of one direction, 0 to 1; `None` where nothing is asked that a probe can see.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Fates {
    /// Of all datagrams, those of which nothing arrives.
    pub lost: Option<f64>,
    /// Of those that arrive, those that arrive twice.
    pub twice: Option<f64>,
    /// Of those that arrive, those that take no delay,
    pub overtaking: Option<f64>,
    /// where all others take at least this long.
    pub way_min: Duration,
    /// What the narrowest link of the way carries.
    pub rate_bits_per_s: Option<u64>,
}

impl Fates {
    /// Sends datagrams and looks.
    pub fn look(&self, from: &Station, to: &Station, patience: Duration) -> Seen {
        let interval = match self.rate_bits_per_s {
            Some(rate) => INTERVAL.max(Duration::from_secs_f64(WIRE_BITS / (SHARE_OF_RATE * rate as f64))),
            None => INTERVAL,
        };
        let fitting = (TIME_MAX.as_secs_f64() / interval.as_secs_f64()) as u32;
        let count = fitting.clamp(COUNT_MIN, COUNT);
        let plan =
            Plan { count, interval, bytes: 4, patience, is_whole: false, wants_copies: self.twice.is_some() };
        let (here, there) = (&from.name, &to.name);
        match stream(from.end(), to.end(), plan) {
            Err(error) => {
                vec![(Verdict::Unknown, format!("{here} to {there} could not be tried: {error}"))]
            }
            Ok(datagrams) => self.judge(&datagrams, &format!("from {here} to {there}")),
        }
    }

    fn judge(&self, datagrams: &[Datagram], way: &str) -> Seen {
        let sent = datagrams.len();
        let arrived: Vec<&Datagram> =
            datagrams.iter().filter(|datagram| !datagram.arrivals.is_empty()).collect();
        let mut seen = Vec::new();
        let mut tell = |asked: Option<f64>, count: usize, of: usize, what: &str| {
            let Some(asked) = asked else { return };
            let verdict = if is_share(count, of, asked) { Verdict::Pass } else { Verdict::Fail };
            seen.push((
                verdict,
                format!("{count} of {of} datagrams {way} {what}, asked {} %", percent(asked)),
            ));
        };
        tell(self.lost, sent - arrived.len(), sent, "were lost");
        let twice = arrived.iter().filter(|datagram| datagram.arrivals.len() > 1).count();
        tell(self.twice, twice, arrived.len(), "arrived twice");
        let threshold = self.way_min / 2;
        let early = |datagram: &&&Datagram| datagram.took().is_some_and(|took| took < threshold);
        let overtaking = arrived.iter().filter(early).count();
        let what = format!("took less than {} ms", threshold.as_secs_f64() * 1e3);
        tell(self.overtaking, overtaking, arrived.len(), &what);
        seen
    }
}

/// Whether so many of so many are what chance makes of a share.
#[must_use]
pub fn is_share(count: usize, of: usize, share: f64) -> bool {
    let of = of as f64;
    let deviation = (of * share * (1.0 - share)).sqrt();
    // One more or less is no evidence against anything.
    of > 0.0 && (count as f64 - of * share).abs() <= DEVIATIONS * deviation + 1.0
}

fn percent(share: f64) -> String {
    let written = format!("{:.3}", share * 100.0);
    written.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// Datagrams by how long each copy took, in milliseconds: `5`, `5 5` twice, nothing lost.
    fn datagrams(took_ms: &[&str]) -> Vec<Datagram> {
        let sent = Instant::now();
        let arrivals = |text: &str| {
            text.split_whitespace()
                .map(|ms| sent + Duration::from_millis(ms.parse().expect("milliseconds")))
                .collect()
        };
        took_ms.iter().map(|text| Datagram { sent, arrivals: arrivals(text) }).collect()
    }

    fn check(fates: Fates, took_ms: &[&str], expected: &[(Verdict, &str)]) {
        let found = fates.judge(&datagrams(took_ms), "there");
        let expected: Vec<(Verdict, String)> =
            expected.iter().map(|(verdict, text)| (*verdict, (*text).to_owned())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_not_asked_is_not_told() {
        check(Fates::default(), &["5", ""], &[]);
    }

    #[test]
    fn a_share_that_is_asked_is_found_and_another_is_not() {
        let half: Vec<&str> = std::iter::repeat_n(["5", ""], 100).flatten().collect();
        let asked = |lost| Fates { lost: Some(lost), ..Fates::default() };
        check(asked(0.5), &half, &[(Verdict::Pass, "100 of 200 datagrams there were lost, asked 50 %")]);
        check(asked(0.1), &half, &[(Verdict::Fail, "100 of 200 datagrams there were lost, asked 10 %")]);
        check(asked(0.0), &half, &[(Verdict::Fail, "100 of 200 datagrams there were lost, asked 0 %")]);
    }

    #[test]
    fn copies_are_counted_among_those_that_arrive() {
        let all: Vec<&str> = std::iter::repeat_n(["5 5", "5", "", ""], 50).flatten().collect();
        let fates = Fates { twice: Some(0.5), ..Fates::default() };
        check(fates, &all, &[(Verdict::Pass, "50 of 100 datagrams there arrived twice, asked 50 %")]);
        let never = Fates { twice: Some(0.0), ..Fates::default() };
        check(never, &all, &[(Verdict::Fail, "50 of 100 datagrams there arrived twice, asked 0 %")]);
    }

    #[test]
    fn those_that_take_no_delay_overtake() {
        let all: Vec<&str> = std::iter::repeat_n(["0", "40", "45", "41"], 50).flatten().collect();
        let fates = Fates { overtaking: Some(0.25), way_min: Duration::from_millis(40), ..Fates::default() };
        check(fates, &all, &[(Verdict::Pass, "50 of 200 datagrams there took less than 20 ms, asked 25 %")]);
        let none = Fates { overtaking: Some(0.0), ..fates };
        check(none, &all, &[(Verdict::Fail, "50 of 200 datagrams there took less than 20 ms, asked 0 %")]);
    }

    #[test]
    fn nothing_that_arrives_proves_no_share() {
        let fates = Fates { twice: Some(0.0), ..Fates::default() };
        check(fates, &["", ""], &[(Verdict::Fail, "0 of 0 datagrams there arrived twice, asked 0 %")]);
    }
}

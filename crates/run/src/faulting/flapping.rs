//! Network faults that come and go: imposed and lifted in turn until they are healed, and shown to do so.
//!
//! Owns the turns and the evidence of both halves; what is imposed is `network`'s business.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fabric::{Fabric, FabricError, Rule};
use history::{Receipt, Verdict};
use lab::stream::{Datagram, Plan, stream};
use scenario::Flap;

use crate::faulting::looks::fates::is_share;
use crate::faulting::looks::{Seen, look_at_once, round_trip_allowance};
use crate::round_trips::Station;

/// A stream watches so many turns of both kinds,
const TURNS_WATCHED: u32 = 2;
/// but no longer than this.
const WATCHED_MAX: Duration = Duration::from_secs(20);
/// Datagrams sent in the shorter of the two turns.
const PER_TURN: u32 = 40;
const INTERVAL_MIN: Duration = Duration::from_millis(2);
/// A datagram sent this close to a change may meet either side of it.
const GUARD: Duration = Duration::from_millis(20);
/// Fewer datagrams in the turns of one kind show nothing.
const DATAGRAMS_MIN: usize = 10;

/// A turn: the fault stood, or it did not, from one moment to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Whether the fault stood.
    pub stood: bool,
    /// Since when for certain.
    pub from: Instant,
    /// Until when for certain.
    pub to: Instant,
}

/// A fault that comes and goes. Dropping it lifts it for good.
pub struct Flapping {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Result<(), FabricError>>>,
    turns: Arc<Mutex<Vec<Turn>>>,
}

impl Flapping {
    /// Begins with the fault standing; returns once it stands.
    ///
    /// # Errors
    /// When the fabric or the thread is not to be had.
    pub fn start(fabric: Arc<Fabric>, rules: Vec<Rule>, flap: Flap) -> Result<Flapping, FabricError> {
        let (stop, stopped) = channel();
        let turns: Arc<Mutex<Vec<Turn>>> = Arc::default();
        let kept = turns.clone();
        let first = fabric.impose_all(rules.clone())?;
        let begun = Instant::now();
        let thread = std::thread::Builder::new()
            .name("flapping".to_owned())
            .spawn(move || {
                let (mut guard, mut from) = (Some(first), begun);
                loop {
                    let is_over = !pause(&stopped, if guard.is_some() { flap.down } else { flap.up });
                    let turn = Turn { stood: guard.is_some(), from, to: Instant::now() };
                    kept.lock().unwrap_or_else(PoisonError::into_inner).push(turn);
                    guard = match guard.take() {
                        Some(standing) => {
                            standing.lift()?;
                            None
                        }
                        None if is_over => None,
                        None => Some(fabric.impose_all(rules.clone())?),
                    };
                    from = Instant::now();
                    if is_over {
                        return Ok(());
                    }
                }
            })
            .map_err(FabricError::SetUp)?;
        Ok(Flapping { stop: Some(stop), thread: Some(thread), turns })
    }

    /// The turns that are over.
    #[must_use]
    pub fn turns(&self) -> Arc<Mutex<Vec<Turn>>> {
        self.turns.clone()
    }

    /// Lifts the fault for good.
    ///
    /// # Errors
    /// When the fabric is gone.
    pub fn end(mut self) -> Result<(), FabricError> {
        self.end_now()
    }

    fn end_now(&mut self) -> Result<(), FabricError> {
        drop(self.stop.take());
        match self.thread.take() {
            Some(thread) => thread.join().unwrap_or(Err(FabricError::Gone)),
            None => Ok(()),
        }
    }
}

impl Drop for Flapping {
    fn drop(&mut self) {
        // Without its thread there is no network that could still be broken.
        let _ = self.end_now();
    }
}

/// Waits; false when it is told to stop.
fn pause(stopped: &Receiver<()>, time: Duration) -> bool {
    matches!(stopped.recv_timeout(time), Err(RecvTimeoutError::Timeout))
}

/// What one direction is to do in one kind of turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Behaviour {
    /// How long a datagram takes, give or take the jitter; `None` where that does not change.
    pub takes: Option<(Duration, Duration)>,
    /// The share that is lost, 0 to 1; `None` where that does not change.
    pub lost: Option<f64>,
}

/// A direction to watch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Watch {
    /// The station packets leave, by number.
    pub from: usize,
    /// The station they should reach.
    pub to: usize,
    /// While the fault stands,
    pub standing: Behaviour,
    /// and in between.
    pub otherwise: Behaviour,
}

/// Watches directions over the first turns, and tells what they show.
#[must_use]
pub fn show(stations: &[Station], watches: &[Watch], flap: Flap, turns: &Mutex<Vec<Turn>>) -> Receipt {
    let mut receipt = Receipt { verdict: Verdict::Pass, evidence: Vec::new() };
    look_at_once(&mut receipt, watches, |watch| watch_one(stations, watch, flap, turns));
    if receipt.evidence.is_empty() {
        receipt.verdict = Verdict::Unknown;
        receipt.evidence.push("no probe shows that it comes and goes".to_owned());
    }
    receipt
}

fn watch_one(stations: &[Station], watch: &Watch, flap: Flap, turns: &Mutex<Vec<Turn>>) -> Seen {
    let (from, to) = (&stations[watch.from], &stations[watch.to]);
    let interval = (flap.down.min(flap.up) / PER_TURN).max(INTERVAL_MIN);
    let length = ((flap.down + flap.up) * TURNS_WATCHED).min(WATCHED_MAX);
    let longest = [watch.standing, watch.otherwise].into_iter().filter_map(|behaviour| behaviour.takes);
    let longest = longest.map(|(takes, spread)| takes + spread * 4).max().unwrap_or_default();
    let plan = Plan {
        count: (length.as_secs_f64() / interval.as_secs_f64()) as u32,
        interval,
        bytes: 4,
        patience: Duration::from_millis(300) + longest,
        is_whole: false,
        wants_copies: false,
    };
    let way = format!("from {} to {}", from.name, to.name);
    match stream(from.end(), to.end(), plan) {
        Err(error) => vec![(Verdict::Unknown, format!("{way} could not be tried: {error}"))],
        Ok(datagrams) => {
            // The turn under way when the stream ended is not over yet, and the one before it is.
            let turns = turns.lock().unwrap_or_else(PoisonError::into_inner).clone();
            [(true, watch.standing), (false, watch.otherwise)]
                .into_iter()
                .flat_map(|(stood, behaviour)| judge(&datagrams, &turns, stood, behaviour, &way))
                .collect()
        }
    }
}

fn judge(datagrams: &[Datagram], turns: &[Turn], stood: bool, behaviour: Behaviour, way: &str) -> Seen {
    // The middle half of a turn: on a machine that is busy with other things a datagram may be carried in the next one.
    let within = |turn: &Turn, sent: Instant| {
        let guard = GUARD.max((turn.to - turn.from) / 4);
        turn.stood == stood && sent >= turn.from + guard && sent + guard <= turn.to
    };
    let of_turns: Vec<&Datagram> =
        datagrams.iter().filter(|datagram| turns.iter().any(|turn| within(turn, datagram.sent))).collect();
    let when = if stood { "while it stood" } else { "in between" };
    let sent = of_turns.len();
    if sent < DATAGRAMS_MIN {
        return vec![(Verdict::Unknown, format!("{when} only {sent} datagrams {way} were sent"))];
    }
    let mut seen = Vec::new();
    let mut times: Vec<Duration> = of_turns.iter().filter_map(|datagram| datagram.took()).collect();
    if let Some(asked) = behaviour.lost {
        let lost = sent - times.len();
        let verdict = if is_share(lost, sent, asked) { Verdict::Pass } else { Verdict::Fail };
        let arrived = times.len();
        seen.push((verdict, format!("{when} {arrived} of {sent} datagrams {way} arrived")));
    }
    if let Some((asked, spread)) = behaviour.takes {
        times.sort_unstable();
        let asked_ms = asked.as_secs_f64() * 1e3;
        seen.push(match times.get(times.len() / 2) {
            Some(median) => {
                let is_as_asked = median.abs_diff(asked) <= round_trip_allowance(asked, spread);
                let verdict = if is_as_asked { Verdict::Pass } else { Verdict::Fail };
                let ms = median.as_secs_f64() * 1e3;
                (verdict, format!("{when} a datagram {way} takes {ms:.1} ms, asked {asked_ms:.1} ms"))
            }
            None => (Verdict::Fail, format!("{when} no datagram {way} arrived, asked {asked_ms:.1} ms")),
        });
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOST: Behaviour = Behaviour { takes: None, lost: Some(1.0) };
    const OPEN: Behaviour = Behaviour { takes: None, lost: Some(0.0) };

    /// One datagram each 10 ms; `arrives` says of each by its moment in milliseconds whether it does.
    fn sent(begun: Instant, arrives: impl Fn(u64) -> bool) -> Vec<Datagram> {
        (0..400)
            .map(|number| {
                let sent = begun + Duration::from_millis(number * 10);
                let arrivals = if arrives(number * 10) { vec![sent] } else { Vec::new() };
                Datagram { sent, arrivals }
            })
            .collect()
    }

    /// One second down, one second up, twice.
    fn turns(begun: Instant) -> Vec<Turn> {
        (0..4)
            .map(|number| Turn {
                stood: number % 2 == 0,
                from: begun + Duration::from_secs(number),
                to: begun + Duration::from_secs(number + 1),
            })
            .collect()
    }

    fn check(arrives: impl Fn(u64) -> bool, expected: [Verdict; 2]) {
        let begun = Instant::now();
        let (datagrams, turns) = (sent(begun, arrives), turns(begun));
        let verdicts = [(true, LOST), (false, OPEN)].map(|(stood, behaviour)| {
            let seen = judge(&datagrams, &turns, stood, behaviour, "there");
            seen.iter().fold(Verdict::Pass, |verdict, (part, _)| verdict.and(*part))
        });
        assert_eq!(verdicts, expected);
    }

    #[test]
    fn a_fault_that_comes_and_goes_is_seen_doing_so() {
        check(|ms| ms % 2000 >= 1000, [Verdict::Pass, Verdict::Pass]);
    }

    #[test]
    fn one_that_never_comes_or_never_goes_is_found_out() {
        check(|_| true, [Verdict::Fail, Verdict::Pass]);
        check(|_| false, [Verdict::Pass, Verdict::Fail]);
    }

    #[test]
    fn too_few_datagrams_show_nothing() {
        let begun = Instant::now();
        let seen = judge(&sent(begun, |_| true)[..5], &turns(begun), true, LOST, "there");
        assert_eq!(seen[0].0, Verdict::Unknown);
    }

    #[test]
    fn a_delay_that_comes_and_goes_is_told_by_its_median() {
        let begun = Instant::now();
        let mut datagrams = sent(begun, |_| true);
        for datagram in &mut datagrams {
            let stands = (datagram.sent - begun).as_secs().is_multiple_of(2);
            datagram.arrivals[0] += Duration::from_millis(if stands { 50 } else { 1 });
        }
        let takes = |ms| Behaviour { takes: Some((Duration::from_millis(ms), Duration::ZERO)), lost: None };
        let verdict = |stood, ms| judge(&datagrams, &turns(begun), stood, takes(ms), "there")[0].0;
        assert_eq!((verdict(true, 50), verdict(false, 0)), (Verdict::Pass, Verdict::Pass));
        assert_eq!((verdict(true, 80), verdict(false, 50)), (Verdict::Fail, Verdict::Fail));
    }
}

//! A network fault under watch, from before it strikes until it is shown to have healed: its effect as soon as there is enough
//! to tell, all that was seen while it stood, and that it has gone.
//!
//! Owns when there is enough; what is sent is `ways::probing`'s business.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fabric::{CountGuard, FabricError, PairCounters, Path};
use history::{FaultId, Receipt, Verdict};
use paper::RequestedNetwork;

use crate::datagrams::named;
use crate::datagrams::probing::{Occasion, Probing, Stood};
use crate::looks::{Look, show};
use crate::stations::Station;

/// How often it is looked whether there is enough.
const OFTEN: Duration = Duration::from_millis(40);
/// How long a first answer is waited for.
const PATIENCE: Duration = Duration::from_secs(8);
/// The same where a fault comes and goes.
const PATIENCE_IN_TURNS: Duration = Duration::from_secs(25);
/// How long datagrams that were sent are waited for, beyond what their way takes.
const LATENESS: Duration = Duration::from_millis(350);

/// What a fault is to show.
pub(crate) struct Shown {
    pub(crate) number: FaultId,
    /// When it was imposed, on the run's clock,
    pub(crate) effect_s: f64,
    /// since when datagrams have been sent,
    pub(crate) sent_from: Instant,
    /// and when it began to be imposed.
    pub(crate) struck: Instant,
    /// The network as asked for before it,
    pub(crate) before: Arc<RequestedNetwork>,
    /// and with it.
    pub(crate) with: Arc<RequestedNetwork>,
    /// What else shows it.
    pub(crate) looks: Vec<Look>,
    /// Its directions that nothing can show.
    pub(crate) unseen: Vec<(Path, Path)>,
    /// Whether it cuts ways that must have been open.
    pub(crate) cuts: bool,
    /// What comes after it.
    pub(crate) changes: Changes,
}

/// Changes of the network, and losses of power, since a moment: what is measured after one belongs to another network.
#[derive(Debug, Clone)]
pub(crate) struct Changes {
    number: Arc<AtomicU64>,
    before: u64,
}

impl Changes {
    /// From now on; `number` counts all of a run.
    pub(crate) fn from_now(number: &Arc<AtomicU64>) -> Changes {
        Changes { number: number.clone(), before: number.load(Ordering::Acquire) }
    }

    /// Whether there were any.
    pub(crate) fn have_come(&self) -> bool {
        self.number.load(Ordering::Acquire) != self.before
    }
}

/// A network fault under watch.
pub(crate) struct Watched {
    /// The datagrams.
    pub(crate) probing: Probing,
    /// When it stands.
    pub(crate) stood: Stood,
    /// What the network counts while it stands.
    pub(crate) counts: Option<Result<CountGuard, FabricError>>,
    /// When it began to be lifted.
    pub(crate) mended: Mutex<Option<Instant>>,
    /// Whether it has been told that it took effect, or not.
    pub(crate) is_told: AtomicBool,
    /// Whether whoever was to tell that has ended without.
    pub(crate) is_untold: AtomicBool,
    /// What it is to show.
    pub(crate) shown: Shown,
}

/// What the network counted on each way, or why that is not known.
pub(crate) type Counted = Result<Vec<PairCounters>, String>;

/// Tells whether a fault took effect; who waits for that waits no more once this is gone.
pub(crate) struct FirstAnswer(pub(crate) Arc<Watched>);

impl FirstAnswer {
    /// See [`Watched::show_effect`].
    pub(crate) fn give(
        self,
        told: impl Fn(FaultId, Option<f64>, Receipt),
        tell: Option<impl Fn(&str, &[Station], &RequestedNetwork)>,
    ) {
        self.0.show_effect(told, tell);
    }
}

impl Drop for FirstAnswer {
    fn drop(&mut self) {
        self.0.is_untold.store(true, Ordering::Release);
    }
}

impl Watched {
    /// Nothing more is waited for: the run is over.
    pub(crate) fn give_up(&self) {
        self.mended.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(Instant::now);
    }

    fn mended(&self) -> Option<Instant> {
        *self.mended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fault begins to be lifted at `at`: what shows that it has gone is sent as fast as at first.
    pub(crate) fn mend(&self, at: Instant, now: &RequestedNetwork) {
        *self.mended.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
        self.probing.resume(now);
    }

    /// Under the lock, because who mends the fault at the same time wants fast datagrams from then on: slowed down after that,
    /// they would be too few to show that it has gone.
    fn slow_down_unless_mended(&self) {
        let mended = self.mended.lock().unwrap_or_else(PoisonError::into_inner);
        if mended.is_none() {
            self.probing.slow_down();
        }
    }

    fn is_flapping(&self) -> bool {
        matches!(self.stood, Stood::InTurns(_))
    }

    /// Tells as soon as it can whether the fault took effect, then sends seldom; `tell` tells of the round trips.
    pub(crate) fn show_effect(
        &self,
        told: impl Fn(FaultId, Option<f64>, Receipt),
        tell: Option<impl Fn(&str, &[Station], &RequestedNetwork)>,
    ) {
        let mut receipt = self.first_answer();
        doubt(&mut receipt, &self.shown.unseen);
        if receipt.evidence.is_empty() && self.shown.looks.is_empty() {
            receipt.verdict = Verdict::Unknown;
            receipt.evidence.push("no evidence: there is no node or client at both ends".to_owned());
        }
        if self.shown.cuts {
            for (verdict, sentence) in self.probing.judge_before(self.shown.sent_from, self.shown.struck) {
                receipt.verdict = receipt.verdict.and(verdict);
                receipt.evidence.push(sentence);
            }
        }
        if !self.shown.looks.is_empty() {
            let mut seen = self.probing.while_paused(|| show(self.probing.stations(), &self.shown.looks));
            self.doubt_moved(&mut seen, self.probing.stations(), &self.shown.looks);
            doubt_what_changed(&mut seen, self.shown.changes.have_come());
            if self.mended().is_some() {
                receipt.verdict = receipt.verdict.and(Verdict::Unknown);
                let told = "the fault was healed before its rate, queue or packet size was measured; make it last longer";
                receipt.evidence.push(told.to_owned());
            } else {
                receipt.verdict = receipt.verdict.and(seen.verdict);
                receipt.evidence.extend(seen.evidence);
            }
        }
        if receipt.evidence.is_empty() {
            receipt.verdict = Verdict::Unknown;
            let why = "no evidence: no packet waits in a queue where nothing on the way has a rate";
            receipt.evidence.push(why.to_owned());
        }
        told(self.shown.number, Some(self.shown.effect_s), receipt);
        self.is_told.store(true, Ordering::Release);
        if let Some(tell) = tell.filter(|_| self.mended().is_none()) {
            tell("is active", self.probing.stations(), &self.shown.with);
        }
        while self.mended().is_none() {
            if self.probing.has_enough(Occasion::Stands(&self.stood), Instant::now(), false) {
                self.slow_down_unless_mended();
            }
            std::thread::sleep(OFTEN);
        }
    }

    fn first_answer(&self) -> Receipt {
        let begun = Instant::now();
        let patience = if self.is_flapping() { PATIENCE_IN_TURNS } else { PATIENCE };
        let between = Occasion::Between(&self.stood, &self.shown.before);
        loop {
            let (now, mended) = (Instant::now(), self.mended());
            let until = mended.unwrap_or(now);
            let is_over =
                begun.elapsed() > patience || mended.is_some_and(|mended| mended.elapsed() > LATENESS);
            let stands = Occasion::Stands(&self.stood);
            let has_enough = self.probing.has_enough(stands, until, true)
                && (!self.is_flapping() || self.probing.has_enough(between, until, true));
            if has_enough || is_over {
                let mut receipt = self.probing.judge(stands, until, None, true);
                if self.is_flapping() {
                    let gone = self.probing.judge(between, until, None, true);
                    receipt.verdict = receipt.verdict.and(gone.verdict);
                    receipt.evidence.extend(gone.evidence);
                }
                // What is in doubt may be clear with more.
                if is_over || receipt.verdict != Verdict::Unknown {
                    return receipt;
                }
            }
            std::thread::sleep(OFTEN);
        }
    }

    /// What was seen all the time that the fault stood.
    pub(crate) fn show_stood(&self, until: Instant, counted: Option<&Counted>) -> Receipt {
        std::thread::sleep(self.probing.longest_way() + LATENESS);
        let is = |flag: &AtomicBool| flag.load(Ordering::Acquire);
        while !is(&self.is_told) && !is(&self.is_untold) {
            std::thread::sleep(OFTEN);
        }
        let pairs = counted.and_then(|counted| counted.as_deref().ok());
        let mut receipt = self.probing.judge(Occasion::Stands(&self.stood), until, pairs, false);
        if let Some(Err(why)) = counted {
            receipt.verdict = receipt.verdict.and(Verdict::Unknown);
            receipt.evidence.push(format!("the fabric's counters could not be read: {why}"));
        }
        for sentence in &mut receipt.evidence {
            sentence.insert_str(0, "throughout the fault: ");
        }
        if !is(&self.is_told) {
            receipt.verdict = receipt.verdict.and(Verdict::Unknown);
            receipt.evidence.push("the effect probe ended early".to_owned());
        }
        receipt
    }

    /// Whether it has gone, from the moment when it had been lifted; `anew` are datagrams between the places that have power
    /// now, where those of the fault have lost an end.
    pub(crate) fn show_healed(
        &self,
        anew: Option<&Probing>,
        from: Instant,
        (now, changes): (&RequestedNetwork, &Changes),
        (stations, looks, unseen): (&[Station], &[Look], &[(Path, Path)]),
    ) -> Receipt {
        let begun = Instant::now();
        let probing = anew.unwrap_or(&self.probing);
        let healed = Occasion::Healed(from, now);
        let mut receipt = loop {
            let is_over = begun.elapsed() > PATIENCE;
            if is_over || probing.has_enough(healed, Instant::now(), true) {
                let receipt = probing.judge(healed, Instant::now(), None, true);
                if is_over || receipt.verdict != Verdict::Unknown {
                    break receipt;
                }
            }
            std::thread::sleep(OFTEN);
        };
        probing.pause();
        let mut seen = show(stations, looks);
        self.doubt_moved(&mut seen, stations, looks);
        doubt_what_changed(&mut seen, changes.have_come());
        receipt.verdict = receipt.verdict.and(seen.verdict);
        receipt.evidence.extend(seen.evidence);
        doubt(&mut receipt, unseen);
        if anew.is_none() {
            // The datagrams of the fault know nothing of a place that has had no power until now.
            let since: Vec<_> =
                self.shown.unseen.iter().filter(|one| !unseen.contains(one)).cloned().collect();
            doubt(&mut receipt, &since);
        }
        if receipt.evidence.is_empty() {
            receipt.verdict = Verdict::Unknown;
            receipt.evidence.push("no evidence that it healed".to_owned());
        }
        receipt
    }

    /// What was sent to a node that was moved meanwhile says nothing against the network.
    fn doubt_moved(&self, seen: &mut Receipt, stations: &[Station], looks: &[Look]) {
        let ends: BTreeSet<usize> = looks.iter().flat_map(|look| [look.from, look.to]).collect();
        doubt_what_moved(seen, &self.probing.moved_among(stations, &ends));
    }
}

/// A failure beside nodes that were moved leaves doubt.
fn doubt_what_moved(seen: &mut Receipt, moved: &[&str]) {
    seen.doubt_failure(!moved.is_empty(), || {
        let names = moved.join(" and ");
        format!(
            "a migration stunned or moved {names} before the rate, queue or packet size was measured: this is no evidence against the fault"
        )
    });
}

/// A failure after a further change leaves doubt.
fn doubt_what_changed(seen: &mut Receipt, has_changed: bool) {
    seen.doubt_failure(has_changed, || {
        "another fault of the network or of a host's power began or ended before the rate, queue or packet size was \
         measured: this is no evidence against the fault"
            .to_owned()
    });
}

/// Directions that nothing can show leave a receipt in doubt.
fn doubt(receipt: &mut Receipt, unseen: &[(Path, Path)]) {
    for (from, to) in unseen {
        let way = format!("from {} to {}", named(from), named(to));
        receipt.verdict = receipt.verdict.and(Verdict::Unknown);
        receipt
            .evidence
            .push(format!("no evidence {way}: there are no two places with power to probe between"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagrams::{first_stations, without_stations};

    #[test]
    fn a_direction_without_a_station_is_named_and_leaves_the_receipt_in_doubt() {
        let stations = ["dc1", "dc2"].map(Station::of_clients);
        let place = |name: &str| vec![name.to_owned()];
        let directions = [(place("dc1"), place("dc2")), (place("dc1"), place("dc3"))];
        let told = |directions: &[(Path, Path)]| {
            let mut receipt =
                Receipt { verdict: Verdict::Pass, evidence: vec!["the delay is seen".to_owned()] };
            doubt(&mut receipt, &without_stations(&stations, directions));
            receipt
        };
        assert_eq!(told(&directions[..1]).verdict, Verdict::Pass);
        let receipt = told(&directions);
        assert_eq!(receipt.verdict, Verdict::Unknown);
        assert!(receipt.evidence[1].starts_with("no evidence from dc1 to dc3: "), "{receipt:?}");
        assert_eq!(receipt.evidence.len(), 2);
        // A place that has one station alone has none to send to itself.
        assert_eq!(told(&[(place("dc1"), place("dc1"))]).verdict, Verdict::Unknown);
    }

    #[test]
    fn a_rate_that_is_not_seen_beside_a_migration_leaves_doubt_and_without_one_it_fails() {
        let told = |verdict: Verdict, moved: &[&str]| {
            let mut seen = Receipt { verdict, evidence: Vec::new() };
            doubt_what_moved(&mut seen, moved);
            (seen.verdict, seen.evidence.len())
        };
        assert_eq!(told(Verdict::Fail, &["n1"]), (Verdict::Unknown, 1));
        assert_eq!(told(Verdict::Fail, &[]), (Verdict::Fail, 0));
        assert_eq!(told(Verdict::Pass, &["n1"]), (Verdict::Pass, 0));
    }

    #[test]
    fn a_rate_that_is_not_seen_after_another_fault_struck_leaves_doubt() {
        let number = Arc::<AtomicU64>::default();
        let changes = Changes::from_now(&number);
        let told = |verdict: Verdict| {
            let mut seen = Receipt { verdict, evidence: Vec::new() };
            doubt_what_changed(&mut seen, changes.have_come());
            (seen.verdict, seen.evidence.len())
        };
        assert_eq!(told(Verdict::Fail), (Verdict::Fail, 0));
        number.fetch_add(1, Ordering::AcqRel);
        assert_eq!(told(Verdict::Fail), (Verdict::Unknown, 1));
        assert_eq!(told(Verdict::Pass), (Verdict::Pass, 0));
    }

    #[test]
    fn a_direction_into_a_part_of_its_own_place_is_probed_from_the_rest_of_it() {
        let mut leader = Station::of_clients("dc1");
        leader.path = ["dc1", "a", "h1", "n1"].map(str::to_owned).to_vec();
        let (region, host) = (leader.path[..1].to_vec(), leader.path[..3].to_vec());
        // `between: [dc1, leader]`, where the leader is the first of the region's stations.
        let directions = [(region.clone(), host.clone()), (host.clone(), region.clone())];
        let both = [leader, Station::of_clients("dc1")];
        assert_eq!(first_stations(&both, &region, &host), Some((1, 0)));
        assert_eq!(first_stations(&both, &host, &region), Some((0, 1)));
        assert!(without_stations(&both, &directions).is_empty());
        assert_eq!(without_stations(&both[..1], &directions), directions);
    }
}

//! The canary of each volume: what its marks have to look like after a power-off, and the sentence that says whether they do.
//!
//! Owns the nonces, what was planted before which power-off, and the judgement. The disk's own account of what it lost is
//! not asked. Writing the marks and looking at them is the init's work (`lab::canary`).

use std::io;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use faults::Finding;
use history::Verdict;
use lab::canary::{Mark, Marks, Order, Seen};
use lab::protocol::FileAction;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::whereabouts::Whereabouts;

/// How long an init may take to write marks or to look at them: it asks a disk that may not answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The same just before a power-off while something stands that may hold the volume up: the power-off must not come late
/// for it.
const PATIENCE_WITH_EXCUSE: Duration = Duration::from_millis(300);

/// The same just before a fault of disks or of the network.
const PATIENCE_FOR_A_FAULT: Duration = Duration::from_secs(1);

/// What a kind of volume does at a power-off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeKind {
    /// It loses all that was not synced.
    Virtual,
    /// The same, but the last write may survive in part.
    Torn,
    /// A plain directory: it loses nothing.
    Directory,
}

impl VolumeKind {
    /// Of volumes as they are, whatever was asked for.
    #[must_use]
    pub fn of(volumes: scenario::Volumes) -> VolumeKind {
        match volumes {
            scenario::Volumes::Virtual => VolumeKind::Virtual,
            scenario::Volumes::Torn => VolumeKind::Torn,
            scenario::Volumes::Directory => VolumeKind::Directory,
        }
    }
}

/// Why marks may be missing or look otherwise than they should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excused {
    /// In words: `a disk under its volume stalls`.
    pub why: String,
    /// Whether what was synced may be gone too. Where not, it explains only that no marks could be written.
    pub loses_synced: bool,
}

/// What stands at this moment that excuses marks. None where nothing does.
pub type Excuse = Arc<dyn Fn() -> Option<Excused> + Send + Sync>;
/// Who is told what the marks show.
pub type Tell = Arc<dyn Fn(Finding) + Send + Sync>;

/// What waits for the next look.
struct Pending {
    /// Nonces of the boot and of the power-off; or why nothing was planted.
    planted: Result<(u64, u64), String>,
    /// Where the volume's unsynced data was when they were planted, where that was before the power-off.
    since: Option<Whereabouts>,
    excused: Option<Excused>,
    excuse: Excuse,
    tell: Tell,
}

#[derive(Default)]
struct State {
    /// Nonce of the marks written at the present boot; or why there are none.
    prepared: Option<Result<u64, String>>,
    /// Marks of this boot that were changed before a fault which may hold the volume up.
    early: Option<Pending>,
    pending: Option<Pending>,
}

impl State {
    /// What the present look is for.
    fn take(&mut self) -> Option<Pending> {
        let early = self.early.take();
        self.pending.take().or(early)
    }
}

/// The canary of one volume.
pub struct Canary {
    node: String,
    kind: VolumeKind,
    /// Whether marks are synced just before a power-off too. On a mirrored volume a sync may wait for a copy that has just
    /// lost its own power, and the second of two power-offs would come late.
    syncs: bool,
    chance: Mutex<ChaCha8Rng>,
    /// Held by whoever writes marks.
    writing: Mutex<()>,
    state: Mutex<State>,
}

impl std::fmt::Debug for Canary {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Canary")
            .field("node", &self.node)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl Canary {
    /// Of a node's volume; its nonces come from the seed.
    #[must_use]
    pub fn new(node: &str, kind: VolumeKind, syncs: bool, seed: u64) -> Canary {
        let state = Mutex::default();
        Canary {
            node: node.to_owned(),
            kind,
            syncs,
            chance: Mutex::new(ChaCha8Rng::seed_from_u64(seed)),
            writing: Mutex::default(),
            state,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writing(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn nonce(&self) -> u64 {
        self.chance.lock().unwrap_or_else(PoisonError::into_inner).next_u64()
    }

    /// A boot has begun: what the last one left is looked at, then the marks of this boot are written. `forced` says why the
    /// volume may lack what was synced, where it was opened so.
    pub fn boots(&self, node: &Arc<lab::Node>, forced: Option<&str>) {
        self.look(node, forced);
        self.prepare(node, PATIENCE);
    }

    fn prepare(&self, node: &Arc<lab::Node>, patience: Duration) {
        let _turn = self.writing();
        let boot = self.nonce();
        let prepared = order(node, Order::Prepare { boot }, patience);
        let mut state = self.state();
        state.prepared = Some(prepared.map(|_| boot).map_err(|error| error.to_string()));
        state.early = None;
    }

    /// A fault is about to strike that may hold the volume up: its marks are changed while they can be. What ends this boot is
    /// judged by them, be it a power-off or the platform. The finding goes to whoever asks for the power-off, else to `tell`.
    pub fn plant_early(&self, node: &Arc<lab::Node>, since: Whereabouts, excuse: Excuse, tell: Tell) {
        let _turn = self.writing();
        let boot = match &*self.state() {
            State { prepared: Some(Ok(boot)), early: None, .. } => *boot,
            _ => return,
        };
        let fault = self.nonce();
        let changed = order(node, Order::Plant { boot, fault, syncs: self.syncs }, PATIENCE_FOR_A_FAULT);
        let mut state = self.state();
        match changed {
            Ok(_) => {
                let (planted, since) = (Ok((boot, fault)), Some(since));
                state.early = Some(Pending { planted, since, excused: None, excuse, tell });
            }
            // Nobody knows which of them were changed, and none can be changed twice.
            Err(error) => state.prepared = Some(Err(error.to_string())),
        }
    }

    /// What might have held the volume up is over: marks that were changed for it are made anew.
    pub fn renew(&self, node: &Arc<lab::Node>) {
        if self.state().early.is_some() {
            self.prepare(node, PATIENCE_FOR_A_FAULT);
        }
    }

    /// Its node is about to end, its volume's data being there: marks that may have become durable meanwhile show nothing.
    pub fn ends(&self, now: &Whereabouts) {
        let mut state = self.state();
        let holds = |planted: &Pending| planted.since.as_ref().is_none_or(|since| since.holds_still(now));
        state.early = state.early.take().filter(holds);
        if let Some(pending) = state.pending.as_mut().filter(|pending| !holds(pending)) {
            let why = "since the marks were written a component of the volume has caught up or become primary, or more has waited for \
                       a sync than the volume remembers";
            pending.planted = Err(why.to_owned());
        }
    }

    /// Its power is about to be cut. What the marks show at the next look is told to `tell`.
    pub fn plant(&self, node: &Arc<lab::Node>, excuse: Excuse, tell: Tell) {
        let _turn = self.writing();
        let (prepared, early) = {
            let mut state = self.state();
            (state.prepared.take(), state.early.take())
        };
        let prepared = prepared.unwrap_or_else(|| Err("none were written at boot".to_owned()));
        let excused = excuse();
        let patience = if excused.is_some() { PATIENCE_WITH_EXCUSE } else { PATIENCE };
        let since = early.as_ref().and_then(|early| early.since.clone());
        let planted = prepared.and_then(|boot| {
            if let Some(early) = early {
                return early.planted;
            }
            let fault = self.nonce();
            let planted = order(node, Order::Plant { boot, fault, syncs: self.syncs }, patience);
            planted.map(|_| (boot, fault)).map_err(|error| error.to_string())
        });
        self.state().pending = Some(Pending { planted, since, excused, excuse, tell });
    }

    /// Hosts of copies of its volume are about to lose their power, and its own is not: a mark for the copies is written,
    /// unless one was before the fault that stands and may hold the volume up. Returns the nonces of the boot and of the
    /// power-off.
    ///
    /// # Errors
    /// Why there is none.
    pub fn plant_for_copies(
        &self,
        node: &Arc<lab::Node>,
        now: &Whereabouts,
        standing: Option<Excused>,
    ) -> Result<(u64, u64), String> {
        if let Some(early) = &self.state().early
            && early.since.as_ref().is_none_or(|since| since.holds_still(now))
        {
            return early.planted.clone();
        }
        // What waits for a disk would hold the power-off up, and have it come at another moment than was asked for.
        if let Some(excused) = standing {
            return Err(format!("none was written for it: {}", excused.why));
        }
        let prepared = self.state().prepared.clone();
        let boot = prepared.unwrap_or_else(|| Err("none were written at boot".to_owned()))?;
        let fault = self.nonce();
        let planted = order(node, Order::PlantForCopies { boot, fault }, PATIENCE);
        planted.map(|_| (boot, fault)).map_err(|error| error.to_string())
    }

    /// What a copy shows that had been seen to have the mark, once its host has lost its power.
    #[must_use]
    pub fn judge_copy(&self, copy: &str, marks: Result<&Marks, &String>) -> Finding {
        judge(copy, self.kind, marks, None)
    }

    /// Whether something was planted that nobody has looked for yet, the node being off or not.
    #[must_use]
    pub fn is_pending(&self, is_off: bool) -> bool {
        let state = self.state();
        state.pending.is_some() || (is_off && state.early.is_some())
    }

    /// Looks at what was planted, if anything was, and tells what it shows.
    pub fn look(&self, node: &Arc<lab::Node>, forced: Option<&str>) {
        let Some(pending) = self.state().take() else { return };
        let marks = pending.planted.clone().and_then(|(boot, fault)| {
            let seen =
                order(node, Order::Look { boot, fault }, PATIENCE).map_err(|error| error.to_string())?;
            let mut marks: Marks = serde_json::from_str(&seen).map_err(|error| error.to_string())?;
            if !self.syncs {
                marks.retain(|mark, _| *mark == Mark::Kept || !mark.is_synced());
            }
            Ok(marks)
        });
        let forced = forced.map(|why| Excused { why: why.to_owned(), loses_synced: true });
        let excuses: Vec<Excused> =
            [pending.excused, (pending.excuse)(), forced].into_iter().flatten().collect();
        let excuse = excuses.iter().find(|excused| marks.is_err() || excused.loses_synced);
        let excuse = excuse.map(|excused| excused.why.as_str());
        let judged = judge(&self.node, self.kind, marks.as_ref(), excuse);
        (pending.tell)(Finding { node: Some(self.node.clone()), ..judged });
    }

    /// What was planted cannot be looked for.
    pub fn give_up(&self, why: &str) {
        let Some(pending) = self.state().take() else { return };
        (pending.tell)(self.doubt(&format!("the marks on its volume were not checked: {why}")));
    }

    /// Its power is about to be cut, and nothing could be planted.
    #[must_use]
    pub fn not_planted(&self, why: &str) -> Finding {
        self.doubt(&format!("no mark was written on its volume: {why}"))
    }

    fn doubt(&self, why: &str) -> Finding {
        let sentence = format!("{}: {why} (canary)", self.node);
        let node = Some(self.node.clone());
        Finding { node, verdict: Verdict::Unknown, sentence, lab_lost_synced: false }
    }
}

/// Has the init do it, and waits no longer than that.
fn order(node: &Arc<lab::Node>, order: Order, patience: Duration) -> io::Result<String> {
    let (answer, answered) = sync_channel(1);
    let node = node.clone();
    std::thread::Builder::new().name("canary".to_owned()).spawn(move || {
        // Nobody listens any more when it took too long.
        let _ = answer.send(node.file(Path::new(""), FileAction::Canary { order }));
    })?;
    match answered.recv_timeout(patience) {
        Ok(done) => done,
        Err(RecvTimeoutError::Timeout) => {
            let seconds = patience.as_secs_f64();
            Err(io::Error::new(io::ErrorKind::TimedOut, format!("the volume did not answer for {seconds} s")))
        }
        Err(RecvTimeoutError::Disconnected) => {
            Err(io::Error::other("the thread that queried the node panicked"))
        }
    }
}

/// How many marks look how.
struct Tally {
    synced: usize,
    synced_there: usize,
    unsynced: usize,
    unsynced_there: usize,
    unsynced_back: usize,
    /// Of each torn mark, the sectors that survived and all it has.
    torn: Vec<(usize, usize)>,
    /// Whether a write that may have been torn survived whole: it looks like one that was not rolled back.
    write_survived: bool,
    /// Whether nothing is as it was before but what may never have reached the volume.
    none_back: bool,
}

impl Tally {
    fn of(marks: &Marks) -> Tally {
        let of = |is_synced| marks.iter().filter(move |(mark, _)| mark.is_synced() == is_synced);
        let count = |is_synced, seen| of(is_synced).filter(|(_, other)| **other == seen).count();
        let torn = |(_, seen): (&Mark, &Seen)| match seen {
            Seen::Torn { after, of } => Some((*after, *of)),
            _ => None,
        };
        let is_write = |mark: &Mark| matches!(mark, Mark::Overwritten | Mark::Mapped);
        Tally {
            synced: of(true).count(),
            synced_there: count(true, Seen::After),
            unsynced: of(false).count(),
            unsynced_there: count(false, Seen::After),
            unsynced_back: count(false, Seen::Before),
            torn: of(false).filter_map(torn).collect(),
            write_survived: of(false).any(|(mark, seen)| is_write(mark) && *seen == Seen::After),
            none_back: !of(false).any(|(mark, seen)| *mark != Mark::Mapped && *seen == Seen::Before),
        }
    }

    fn kept(&self, excuse: Option<&str>) -> String {
        let all = counted(self.synced, "synced mark");
        match excuse {
            _ if self.synced_there == self.synced => format!("{all} there"),
            Some(excuse) => format!("{} of {all} there ({excuse})", self.synced_there),
            None => format!("{} of {all} there", self.synced_there),
        }
    }

    /// What a plain directory shows, which loses nothing.
    fn on_a_directory(&self) -> (Verdict, String) {
        let all = self.synced_there == self.synced && self.unsynced_there == self.unsynced;
        let (verdict, lost) = match all {
            true => (Verdict::Pass, "which loses nothing"),
            false => (Verdict::Unknown, "which should lose nothing, and did"),
        };
        let (kept, there) = (self.kept(None), self.unsynced_there);
        let unsynced = counted(self.unsynced, "unsynced mark");
        (verdict, format!("{kept}, and {there} of {unsynced}; its volume is a plain directory, {lost}"))
    }

    /// What stayed and should not have. Where writes are torn, one of them may have survived, in part or whole.
    fn stayed(&self, kind: VolumeKind, kept: &str) -> Option<String> {
        let stayed = self.unsynced_there + self.torn.len();
        let may_stay = kind == VolumeKind::Torn && (self.write_survived || !self.torn.is_empty());
        if stayed <= usize::from(may_stay) {
            return None;
        }
        let what = if self.none_back { "nothing was rolled back" } else { "not all was rolled back" };
        let unsynced = counted(self.unsynced, "unsynced mark");
        Some(format!("{kept}, but {stayed} of {unsynced} there as well: {what}"))
    }

    /// What is missing, or not as it was before, and should be.
    fn missing(&self, kept: &str) -> Option<String> {
        let is_accounted_for = self.unsynced_back + self.unsynced_there + self.torn.len() == self.unsynced;
        if self.synced_there < self.synced {
            Some(kept.to_owned())
        } else {
            let spoilt = "but the rollback of the unsynced marks did not restore the previous content";
            (!is_accounted_for).then(|| format!("{kept}, {spoilt}"))
        }
    }

    fn gone(&self) -> String {
        let survived = match (self.torn.first(), self.unsynced_there) {
            (Some((after, of)), _) => format!("; of the last write {after} of {of} sectors survived"),
            (None, 0) => String::new(),
            (None, _) => "; the last write survived whole".to_owned(),
        };
        let gone = self.unsynced - self.unsynced_there - self.torn.len();
        format!("{} gone{survived}", counted(gone, "unsynced mark"))
    }
}

/// What is to be said of a copy that no mark can have reached, with why.
#[must_use]
pub fn not_yet_on_copy(copy: &str, why: &str) -> Finding {
    let sentence = format!("{copy}: no mark was written for it: {why} (canary)");
    Finding { node: None, verdict: Verdict::Pass, sentence, lab_lost_synced: false }
}

/// What the marks show. An excuse says why what was synced may be gone.
fn judge(node: &str, kind: VolumeKind, marks: Result<&Marks, &String>, excuse: Option<&str>) -> Finding {
    let finding = |verdict, sentence: String| Finding {
        node: None,
        verdict,
        sentence: format!("{node}: {sentence} (canary)"),
        lab_lost_synced: false,
    };
    let marks = match (marks, excuse) {
        (Ok(marks), _) => Tally::of(marks),
        // What was on the volume before nothing could be written any more may have stayed.
        (Err(why), Some(excuse)) => {
            return finding(Verdict::Unknown, format!("the marks could not be read: {why}; {excuse}"));
        }
        (Err(why), None) => return finding(Verdict::Unknown, format!("the marks could not be read: {why}")),
    };
    if kind == VolumeKind::Directory {
        let (verdict, sentence) = marks.on_a_directory();
        return Finding { lab_lost_synced: marks.synced_there < marks.synced, ..finding(verdict, sentence) };
    }
    let kept = marks.kept(excuse);
    if let Some(stayed) = marks.stayed(kind, &kept) {
        return finding(Verdict::Fail, stayed);
    }
    if let Some(missing) = marks.missing(&kept).filter(|_| excuse.is_none()) {
        let blame = "the lab lost data that it must keep, so missing data may be the lab's fault";
        return Finding { lab_lost_synced: true, ..finding(Verdict::Unknown, format!("{missing}: {blame}")) };
    }
    finding(Verdict::Pass, format!("{kept}, {}", marks.gone()))
}

/// `4 synced marks are`.
fn counted(count: usize, one: &str) -> String {
    if count == 1 { format!("1 {one} is") } else { format!("{count} {one}s are") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNCED: [Mark; 4] = [Mark::Kept, Mark::Synced, Mark::SyncedName, Mark::SyncedRename];
    const UNSYNCED: [Mark; 6] =
        [Mark::Overwritten, Mark::Mapped, Mark::Appended, Mark::Created, Mark::Renamed, Mark::Removed];

    /// Marks as they should look after a power-off, but for these.
    fn marks(but: &[(Mark, Seen)]) -> Marks {
        let synced = SYNCED.into_iter().map(|mark| (mark, Seen::After));
        let unsynced = UNSYNCED.into_iter().map(|mark| (mark, Seen::Before));
        synced.chain(unsynced).chain(but.iter().copied()).collect()
    }

    fn check(
        kind: VolumeKind,
        but: &[(Mark, Seen)],
        excuse: Option<&str>,
        expected: (Verdict, &str),
    ) -> Finding {
        let found = judge("n1", kind, Ok(&marks(but)), excuse);
        assert_eq!((found.verdict, found.sentence.as_str()), expected, "{but:?}");
        found
    }

    const TORN: Seen = Seen::Torn { after: 3, of: 8 };

    #[test]
    fn what_was_synced_is_there_and_what_was_not_is_gone() {
        let whole = "n1: 4 synced marks are there, 6 unsynced marks are gone (canary)";
        check(VolumeKind::Virtual, &[], None, (Verdict::Pass, whole));
        check(VolumeKind::Torn, &[], None, (Verdict::Pass, whole));
        let torn = "n1: 4 synced marks are there, 5 unsynced marks are gone; of the last write 3 of 8 sectors survived (canary)";
        check(VolumeKind::Torn, &[(Mark::Overwritten, TORN)], None, (Verdict::Pass, torn));
        let whole =
            "n1: 4 synced marks are there, 5 unsynced marks are gone; the last write survived whole (canary)";
        check(VolumeKind::Torn, &[(Mark::Overwritten, Seen::After)], None, (Verdict::Pass, whole));
    }

    #[test]
    fn one_unsynced_mark_that_stayed_is_enough_to_say_that_the_rollback_was_skipped() {
        for mark in UNSYNCED {
            let one = "n1: 4 synced marks are there, but 1 of 6 unsynced marks are there as well: not all was rolled back (canary)";
            check(VolumeKind::Virtual, &[(mark, Seen::After)], None, (Verdict::Fail, one));
            // A disk fault or a promotion by force excuses what is gone, never what stayed.
            check(VolumeKind::Virtual, &[(mark, Seen::After)], Some("why"), (Verdict::Fail, one));
        }
        let one = "n1: 4 synced marks are there, but 1 of 6 unsynced marks are there as well: not all was rolled back (canary)";
        check(VolumeKind::Virtual, &[(Mark::Overwritten, TORN)], None, (Verdict::Fail, one));
        let two = "n1: 4 synced marks are there, but 2 of 6 unsynced marks are there as well: not all was rolled back (canary)";
        check(
            VolumeKind::Torn,
            &[(Mark::Overwritten, TORN), (Mark::Mapped, TORN)],
            None,
            (Verdict::Fail, two),
        );
        check(
            VolumeKind::Torn,
            &[(Mark::Overwritten, TORN), (Mark::Created, Seen::After)],
            None,
            (Verdict::Fail, two),
        );
        // Names are not torn.
        check(VolumeKind::Torn, &[(Mark::Created, Seen::After)], None, (Verdict::Fail, one));
        let all: Vec<(Mark, Seen)> = UNSYNCED.into_iter().map(|mark| (mark, Seen::After)).collect();
        let nothing = "n1: 4 synced marks are there, but 6 of 6 unsynced marks are there as well: nothing was rolled back (canary)";
        let unmapped = "n1: 4 synced marks are there, but 5 of 6 unsynced marks are there as well: nothing was rolled back (canary)";
        for kind in [VolumeKind::Virtual, VolumeKind::Torn] {
            check(kind, &all, None, (Verdict::Fail, nothing));
            let but_mapped = [&all[..], &[(Mark::Mapped, Seen::Before)]].concat();
            check(kind, &but_mapped, None, (Verdict::Fail, unmapped));
        }
        let kept = "n1: 4 synced marks are there, and 6 of 6 unsynced marks are; its volume is a plain directory, which loses nothing (canary)";
        check(VolumeKind::Directory, &all, None, (Verdict::Pass, kept));
    }

    #[test]
    fn a_synced_mark_that_is_gone_is_the_labs_loss_and_not_the_databases() {
        for mark in SYNCED {
            for seen in [Seen::Before, Seen::Neither, TORN] {
                let lost = "n1: 3 of 4 synced marks are there: the lab lost data that it must keep, so missing \
                    data may be the lab's fault (canary)";
                assert!(
                    check(VolumeKind::Virtual, &[(mark, seen)], None, (Verdict::Unknown, lost))
                        .lab_lost_synced
                );
                let excused = "n1: 3 of 4 synced marks are there (why), 6 unsynced marks are gone (canary)";
                assert!(
                    !check(VolumeKind::Virtual, &[(mark, seen)], Some("why"), (Verdict::Pass, excused))
                        .lab_lost_synced
                );
            }
        }
        let spoilt = "n1: 4 synced marks are there, but the rollback of the unsynced marks did not restore the previous content: \
            the lab lost data that it must keep, so missing data may be the lab's fault (canary)";
        assert!(
            check(VolumeKind::Virtual, &[(Mark::Renamed, Seen::Neither)], None, (Verdict::Unknown, spoilt))
                .lab_lost_synced
        );
    }

    #[test]
    fn marks_that_could_not_be_had_leave_it_unknown_whatever_explains_it() {
        let why = "Input/output error".to_owned();
        let found = judge("n1", VolumeKind::Virtual, Err(&why), None);
        assert_eq!(
            (found.verdict, found.sentence.as_str(), found.lab_lost_synced),
            (Verdict::Unknown, "n1: the marks could not be read: Input/output error (canary)", false)
        );
        let found = judge("n1", VolumeKind::Virtual, Err(&why), Some("a disk fault stands there"));
        let sentence =
            "n1: the marks could not be read: Input/output error; a disk fault stands there (canary)";
        assert_eq!((found.verdict, found.sentence.as_str()), (Verdict::Unknown, sentence));
    }
}

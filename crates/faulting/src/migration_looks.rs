//! What shows that a node was moved live: its processes stood still, nobody answered meanwhile, its packets go to the other host
//! now, and a connection that the lab holds to it has lived through it.
//!
//! Nothing here asks the platform where the node is. Processes are read from `/proc` outside the node, the network is asked by
//! probes and by the fabric's count of packets between places.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fabric::CountGuard;
use history::{HostId, Receipt, Verdict};
use lab::round_trip::End;
use lab::{KeptConnection, attachment, probe};
use platform::{Datacentre, MigrationWatch, Vm};

use crate::guest_clock::GuestClock;
use crate::process_looks::{Before, Onlooker, Table, processes};

/// Between two echo requests while the node stands still.
const ECHO_EVERY: Duration = Duration::from_millis(20);
/// How long an answer may take, beside the site's longest round trip.
const ANSWER: Duration = Duration::from_millis(500);
/// How long the lab's own connection is waited for: a packet that was lost is sent again within that time.
const KEPT_PATIENCE: Duration = Duration::from_secs(5);
/// How long a stun is held up at most, beside the site's longest round trip, until one echo request has been waited for: on a busy
/// machine the thread that sends it has to wait for a processor first. Shorter than what clients put up with by default.
const FIRST_ECHO_WITHIN: Duration = Duration::from_secs(1);
/// How many echo requests show where packets go.
const ECHOES: usize = 3;

/// Who looks on.
pub(crate) struct MigrationLooks {
    datacentre: Arc<Datacentre>,
    onlooker: Onlooker,
    before: Before,
    place: String,
    round_trip: Duration,
    /// Moments at which what is measured across belongs to none.
    changes: Arc<AtomicU64>,
    /// Set when the migration is not wanted any more.
    called_off: Arc<CallOff>,
    /// Its wall clock, where that stands still with it.
    guest_clock: Option<Arc<GuestClock>>,
    seen: Mutex<Seen>,
}

/// When a migration is to be called off.
#[derive(Debug, Default)]
pub(crate) struct CallOff(Mutex<Option<Instant>>);

impl CallOff {
    /// After so long.
    pub(crate) fn after(&self, patience: Duration) {
        let mut deadline = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = Instant::now() + patience;
        *deadline = Some(deadline.map_or(at, |earlier| earlier.min(at)));
    }

    fn is_due(&self) -> bool {
        let deadline = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// What was seen.
#[derive(Default)]
struct Seen {
    /// Paths of the host that it leaves and of the one that it goes to.
    hosts: Option<[String; 2]>,
    kept: Option<Result<KeptConnection, String>>,
    /// Counts the packets to the node at either host.
    counts: Option<CountGuard>,
    /// Before it was moved.
    before: Option<Arrivals>,
    /// Where it was stopped, and where it was about to go on.
    still: Vec<Result<Table, String>>,
    silence: Option<Silence>,
    runs_again: bool,
    /// Of the lab's own connection, afterwards.
    answer: Option<Result<Duration, String>>,
}

/// Echo requests while it stands still. Dropping it ends them: a migration that is given up in a stun has nobody who does.
struct Silence {
    is_over: OverWhenDropped,
    /// How many have been waited for.
    sent: Arc<AtomicUsize>,
    thread: std::thread::JoinHandle<Result<(usize, usize), String>>,
}

/// Whether it is over, which it is once this is dropped.
struct OverWhenDropped(Arc<AtomicBool>);

impl OverWhenDropped {
    fn end(&self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Drop for OverWhenDropped {
    fn drop(&mut self) {
        self.end();
    }
}

impl Silence {
    /// Lets one be waited for to its end where none has been.
    fn end(&self, round_trip: Duration) {
        let deadline = Instant::now() + FIRST_ECHO_WITHIN + 2 * round_trip;
        let is_to_come = || self.sent.load(Ordering::Acquire) == 0 && !self.thread.is_finished();
        while is_to_come() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.is_over.end();
    }
}

/// How many packets reached the node at either host, and the round trip of one of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Arrivals {
    left: u64,
    new: u64,
    round_trip: Option<Duration>,
}

impl MigrationLooks {
    /// None where no clients stand anywhere.
    pub(crate) fn new(
        datacentre: &Arc<Datacentre>,
        onlooker: Onlooker,
        longest_delay: Duration,
        (changes, called_off, guest_clock): (Arc<AtomicU64>, Arc<CallOff>, Option<Arc<GuestClock>>),
    ) -> Option<MigrationLooks> {
        let place = datacentre.client_places.keys().next()?.clone();
        let before = onlooker.look_before();
        before.let_go_of_the_connection();
        Some(MigrationLooks {
            datacentre: datacentre.clone(),
            onlooker,
            before,
            place,
            round_trip: longest_delay * 2,
            changes,
            called_off,
            guest_clock,
            seen: Mutex::default(),
        })
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn vm(&self) -> &Vm {
        &self.onlooker.vm
    }

    fn node(&self) -> &str {
        self.vm().name()
    }

    fn clients(&self) -> Option<&OwnedFd> {
        Some(self.datacentre.client_places.get(&self.place)?.namespace())
    }

    /// A connection from the clients' place to a port of the lab's own on the node.
    fn connect(&self) -> Result<KeptConnection, String> {
        let clients = self.datacentre.client_places.get(&self.place).ok_or("there are no clients")?;
        let node = self.vm().namespace().ok_or("the node has no power")?;
        let from = End { namespace: clients.namespace(), address: clients.address() };
        let to = End { namespace: &node, address: self.vm().address() };
        KeptConnection::open(from, to, KEPT_PATIENCE + self.round_trip).map_err(|error| error.to_string())
    }

    /// Counts what comes to the node at the one host and at the other.
    fn count(&self, from: HostId, to: HostId) -> Option<CountGuard> {
        let at = |host: HostId| {
            let mut path = self.datacentre.hosts[host].path.clone();
            path.push(self.node().to_owned());
            (Vec::new(), path)
        };
        self.datacentre.fabric.count(vec![at(from), at(to)]).ok()
    }

    /// Sends a few echo requests to the node, and counts where packets to it have gone meanwhile.
    fn arrivals(&self, counts: &CountGuard) -> Option<Arrivals> {
        let clients = self.clients()?;
        let earlier = counts.counted().ok()?;
        let (address, patience) = (self.vm().address(), ANSWER + self.round_trip);
        let echoes = attachment::on_own_thread(|| {
            attachment::enter(clients).ok()?;
            let all = (0..ECHOES).map(|_| probe::echo(address, patience, patience).ok().flatten());
            all.fold(None, |shortest, echo| shortest.into_iter().chain(echo).min())
        });
        let now = counts.counted().ok()?;
        let came = |end: usize| Some(now.get(end)?.packets - earlier.get(end)?.packets);
        Some(Arrivals { left: came(0)?, new: came(1)?, round_trip: echoes.ok()? })
    }

    /// Echo requests one after the other, until `is_over` is set; how many were sent and how many answered before that.
    fn listen(&self) -> Option<Silence> {
        let (clients, address) = (self.clients()?.try_clone().ok()?, self.vm().address());
        let patience = ECHO_EVERY + self.round_trip;
        let (is_over, sent) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let (over, count) = (is_over.clone(), sent.clone());
        let listen = move || {
            let told = |error: io::Error| error.to_string();
            attachment::enter(&clients).map_err(told)?;
            let mut answered = 0;
            while !over.load(Ordering::Acquire) {
                let echo = probe::echo(address, ECHO_EVERY, patience).map_err(told)?;
                // One that may have come when it ran again says nothing.
                if !over.load(Ordering::Acquire) {
                    answered += usize::from(echo.is_some());
                    count.fetch_add(1, Ordering::AcqRel);
                }
            }
            Ok((count.load(Ordering::Acquire), answered))
        };
        let thread = std::thread::Builder::new().name("silence".to_owned()).spawn(listen).ok()?;
        Some(Silence { is_over: OverWhenDropped(is_over), sent, thread })
    }

    fn still(&self) -> Result<Table, String> {
        self.onlooker.targets_now(&self.before)
    }

    /// Whether the node was moved, by all that was seen.
    pub(crate) fn judge_move(&self) -> Receipt {
        let mut receipt = self.judge_what_was_seen();
        if let Some(of_clock) = self.guest_clock.as_ref().and_then(|clock| clock.look()) {
            receipt.verdict = receipt.verdict.and(of_clock.verdict);
            receipt.evidence.extend(of_clock.evidence);
        }
        receipt
    }

    fn judge_what_was_seen(&self) -> Receipt {
        let mut seen = self.seen();
        let mut receipt = Receipt { verdict: Verdict::Pass, evidence: Vec::new() };
        let mut note = |(verdict, what): (Verdict, String)| {
            receipt.verdict = receipt.verdict.and(verdict);
            receipt.evidence.push(what);
        };
        let Some([from, to]) = seen.hosts.clone() else {
            note((Verdict::Fail, format!("{} was not moved", self.node())));
            return receipt;
        };
        note(judge_still(self.node(), &seen.still));
        let silence = seen.silence.take().map(|silence| {
            silence.is_over.end();
            silence.thread.join().unwrap_or_else(|_| Err("the probe panicked".to_owned()))
        });
        let answered_before = seen.before.is_some_and(|before| before.round_trip.is_some());
        note(judge_silence(self.node(), &self.place, silence, answered_before));
        let after = seen.counts.as_ref().and_then(|counts| self.arrivals(counts));
        note(judge_place(self.node(), (&from, &to), seen.before, after));
        note(judge_kept((self.node(), &self.place), seen.kept.as_ref(), seen.answer.as_ref()));
        receipt
    }

    /// Whether the node runs again.
    pub(crate) fn judge_return(&self, patience: Duration) -> Receipt {
        let last = self.seen().still.last().cloned().and_then(Result::ok).unwrap_or_default();
        self.onlooker.look_at_waking(&self.before, &last, patience)
    }

    /// Whether it has run again on the other host.
    pub(crate) fn has_run_again(&self) -> bool {
        self.seen().runs_again
    }
}

impl MigrationWatch for MigrationLooks {
    fn goes_on(&self) -> bool {
        !self.called_off.is_due()
    }

    fn begins(&self, from: HostId, to: HostId) {
        let names = [from, to].map(|host| self.datacentre.hosts[host].name());
        let (kept, counts) = (self.connect(), self.count(from, to));
        let before = counts.as_ref().and_then(|counts| self.arrivals(counts));
        let mut seen = self.seen();
        (seen.hosts, seen.kept, seen.counts, seen.before) = (Some(names), Some(kept), counts, before);
    }

    fn stunned(&self) {
        self.guest_clock.iter().for_each(|clock| clock.stop());
        self.changes.fetch_add(1, Ordering::AcqRel);
        let silence = self.listen();
        let still = self.still();
        let mut seen = self.seen();
        seen.silence = silence;
        seen.still.push(still);
    }

    fn arrived(&self) {
        let mut seen = self.seen();
        if let Some(silence) = &seen.silence {
            silence.end(self.round_trip);
        }
        seen.still.push(self.still());
        self.guest_clock.iter().for_each(|clock| clock.go_on());
    }

    fn runs_again(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        let mut seen = self.seen();
        seen.runs_again = true;
        let answer = match seen.kept.as_mut() {
            Some(Ok(kept)) => Some(kept.exchange().map_err(in_words)),
            _ => None,
        };
        seen.answer = answer;
    }
}

/// Why a connection gave no answer.
fn in_words(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("no answer within {} s", KEPT_PATIENCE.as_secs())
        }
        _ => error.to_string(),
    }
}

fn judge_still(node: &str, looks: &[Result<Table, String>]) -> (Verdict, String) {
    let (Some(Ok(first)), Some(Ok(last))) = (looks.first(), looks.last()) else {
        let why = looks.iter().find_map(|look| look.as_ref().err().cloned());
        let why = why.unwrap_or_else(|| format!("the processes of {node} were not observed"));
        return (Verdict::Unknown, why);
    };
    if looks.len() < 2 || first.is_empty() {
        return (Verdict::Unknown, format!("the processes of {node} were not observed during the stun"));
    }
    let running = [first, last].into_iter().flat_map(Table::values).find(|seen| !seen.is_stopped());
    if let Some(running) = running {
        return (Verdict::Fail, format!("{} of {node} did not stop during the stun", running.program));
    }
    let ticks = |table: &Table| table.values().map(|seen| seen.cpu_ticks).sum::<u64>();
    if first.keys().ne(last.keys()) || ticks(first) != ticks(last) {
        return (Verdict::Fail, format!("processes of {node} began, ended or used CPU time during the stun"));
    }
    let what = format!(
        "{} of {node} were stopped at the start and at the end of the stun, and used no CPU time between",
        processes(first.len())
    );
    (Verdict::Pass, what)
}

fn judge_silence(
    node: &str,
    place: &str,
    silence: Option<Result<(usize, usize), String>>,
    answered_before: bool,
) -> (Verdict, String) {
    match silence {
        None => (Verdict::Unknown, format!("the silence of {node} was not measured")),
        Some(Err(why)) => (Verdict::Unknown, format!("{node} could not be probed during the stun: {why}")),
        Some(Ok((sent, answered))) if answered > 0 => (
            Verdict::Fail,
            format!("{node} answered {answered} of {sent} echo requests from {place} during the stun"),
        ),
        Some(Ok((0, _))) => (
            Verdict::Unknown,
            format!(
                "no echo request from {place} reached its timeout during the stun: the machine is too busy, \
                 or `stun` is too short"
            ),
        ),
        Some(Ok(_)) if !answered_before => {
            (Verdict::Unknown, format!("{node} did not answer {place} before the migration either"))
        }
        Some(Ok((sent, _))) => {
            (Verdict::Pass, format!("it answered none of {sent} echo requests from {place} during the stun"))
        }
    }
}

fn judge_place(
    node: &str,
    (from, to): (&str, &str),
    before: Option<Arrivals>,
    after: Option<Arrivals>,
) -> (Verdict, String) {
    let (Some(before), Some(after)) = (before, after) else {
        return (Verdict::Unknown, format!("the packets to {node} could not be counted"));
    };
    let ms = |time: Option<Duration>| {
        time.map_or("silence".to_owned(), |time| format!("{:.1} ms", time.as_secs_f64() * 1e3))
    };
    let what = format!(
        "packets to {node}: before {} to {from} and {} to {to} (round trip {}), after it {} and {} (round trip {})",
        before.left,
        before.new,
        ms(before.round_trip),
        after.left,
        after.new,
        ms(after.round_trip)
    );
    let is_moved = before.left > 0 && before.new == 0 && after.left == 0 && after.new > 0;
    if is_moved { (Verdict::Pass, what) } else { (Verdict::Fail, what) }
}

fn judge_kept(
    (node, place): (&str, &str),
    kept: Option<&Result<KeptConnection, String>>,
    answer: Option<&Result<Duration, String>>,
) -> (Verdict, String) {
    let what = format!("an existing connection from {place} to {node}");
    match (kept, answer) {
        (_, Some(Ok(took))) => {
            (Verdict::Pass, format!("{what} still answers after {:.1} ms", took.as_secs_f64() * 1e3))
        }
        (_, Some(Err(why))) => (Verdict::Fail, format!("{what} did not survive the migration: {why}")),
        (Some(Err(why)), None) => (Verdict::Unknown, format!("{what} could not be opened: {why}")),
        (_, None) => (Verdict::Unknown, format!("{what} was not tested")),
    }
}

#[cfg(test)]
mod tests {
    use lab::process_table::{Identity, Seen};

    use super::*;

    fn table(state: char, cpu_ticks: u64, pids: &[u32]) -> Result<Table, String> {
        let one = |pid: &u32| {
            let seen = Seen {
                program: "postgres".to_owned(),
                parent: 1,
                is_of_init: true,
                states: vec![state],
                cpu_ticks,
            };
            (Identity { pid: *pid, began_ticks: 1 }, seen)
        };
        Ok(pids.iter().map(one).collect())
    }

    #[test]
    fn a_node_that_ran_on_or_is_another_afterwards_was_not_stunned() {
        let of = |looks: &[Result<Table, String>]| judge_still("n1", looks).0;
        let still = || table('T', 5, &[10, 11]);
        assert_eq!(of(&[still(), still()]), Verdict::Pass);
        assert_eq!(of(&[still(), table('S', 5, &[10, 11])]), Verdict::Fail);
        assert_eq!(of(&[still(), table('T', 6, &[10, 11])]), Verdict::Fail);
        assert_eq!(of(&[still(), table('T', 5, &[10, 12])]), Verdict::Fail);
        assert_eq!(of(&[still()]), Verdict::Unknown);
        assert_eq!(of(&[still(), Err("no".to_owned())]), Verdict::Unknown);
        assert_eq!(of(&[]), Verdict::Unknown);
    }

    #[test]
    fn silence_counts_only_where_somebody_asked_and_was_answered_before() {
        let of = |silence, before| judge_silence("n1", "dc1", silence, before).0;
        assert_eq!(of(Some(Ok((3, 0))), true), Verdict::Pass);
        assert_eq!(of(Some(Ok((3, 1))), true), Verdict::Fail);
        assert_eq!(of(Some(Ok((3, 0))), false), Verdict::Unknown);
        assert_eq!(of(Some(Ok((0, 0))), true), Verdict::Unknown);
        assert_eq!(of(None, true), Verdict::Unknown);
    }

    #[test]
    fn a_stun_lasts_until_one_echo_request_of_a_slow_prober_has_been_waited_for() {
        let (is_over, sent) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let count = sent.clone();
        let slow = move || {
            std::thread::sleep(10 * ECHO_EVERY);
            count.fetch_add(1, Ordering::AcqRel);
            Ok((1, 0))
        };
        let over = OverWhenDropped(is_over.clone());
        let silence = Silence { is_over: over, sent, thread: std::thread::spawn(slow) };
        silence.end(Duration::ZERO);
        assert_eq!(silence.sent.load(Ordering::Acquire), 1);
        assert!(is_over.load(Ordering::Acquire));
        silence.thread.join().expect("it ends").expect("it probed");
    }

    #[test]
    fn the_echo_requests_of_a_stun_end_with_a_migration_that_is_given_up() {
        let is_over = Arc::<AtomicBool>::default();
        let theirs = is_over.clone();
        let asks = move || {
            while !theirs.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok((0, 0))
        };
        let thread = std::thread::spawn(asks);
        let silence = Silence { is_over: OverWhenDropped(is_over.clone()), sent: Arc::default(), thread };
        drop(silence);
        assert!(is_over.load(Ordering::Acquire));
    }

    #[test]
    fn a_node_is_elsewhere_when_its_packets_go_there_and_nowhere_else() {
        let arrivals = |left, new| Some(Arrivals { left, new, round_trip: None });
        let of = |before, after| judge_place("n1", ("a", "b"), before, after).0;
        assert_eq!(of(arrivals(3, 0), arrivals(0, 3)), Verdict::Pass);
        assert_eq!(of(arrivals(3, 0), arrivals(3, 0)), Verdict::Fail);
        assert_eq!(of(arrivals(3, 0), arrivals(1, 3)), Verdict::Fail);
        assert_eq!(of(arrivals(0, 3), arrivals(0, 3)), Verdict::Fail);
        assert_eq!(of(None, arrivals(0, 3)), Verdict::Unknown);
    }
}

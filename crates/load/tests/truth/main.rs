//! The truth test: figures of the generator against a server whose service times are known, because it writes down
//! itself when it answered what.
//!
//! The truth is what the server really did, so that the test is about measuring. What lies between a server's stamp and
//! the client's is the machine's: the time until a thread that is woken runs. A witness, a thread that does nothing but
//! sleep and look how late it woke, tells how long that is while we measure; two such delays, one each way, are allowed
//! beside the 1 % and 20 microseconds. Answers that arrive together are taken one after another, each for what an
//! operation costs the generator's thread by the kernel's account: the clients of a closed loop with one service time are
//! in step, and the last of them waits for all others. A machine can still spoil a try: one that is off is repeated, a few
//! times. A generator that measures wrongly is off in every one.
//!
//! A program of its own, with one measurement at a time: other tests beside it would be its busy machine.

#[path = "../load/real_loads.rs"]
mod real_loads;
mod server;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use load::{Clock, Endpoint, LoadHandle, LoadPlan, OnThread, Step, start};
use measure::{Histogram, interval};
use server::{Answered, Service, TimedServer};

/// How often a busy machine may spoil the measurement.
const TRIES: usize = 5;

/// From when all clients are there to the zero: they hear of it before.
const LEAD: Duration = Duration::from_millis(100);

/// Long against what a busy machine puts between the two stamps.
const TIME: Duration = Duration::from_millis(50);

/// Where the kernel kept the generator from running for longer than this though it had work, in every try, nothing can be
/// told about the generator: ten operations in a row that it was not there for are the 99th percentile of a thousand.
const KEPT_WAITING_MAX: Duration = Duration::from_millis(20);

/// How long the kernel kept the generator waiting, in each measurement so far.
static KEPT_WAITING: Mutex<Vec<Duration>> = Mutex::new(Vec::new());

/// What the kernel says of a thread of this process; the first two figures of proc_pid_schedstat.
#[derive(Clone, Copy, Default)]
struct Account {
    /// How long it has run.
    ran: Duration,
    /// How long it has been kept waiting for a processor.
    waited: Duration,
}

impl Account {
    fn of(thread: i32) -> Self {
        let account =
            std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).unwrap_or_default();
        let mut figures =
            account.split_whitespace().map_while(|figure| figure.parse().ok().map(Duration::from_nanos));
        Account { ran: figures.next().unwrap_or_default(), waited: figures.next().unwrap_or_default() }
    }

    fn since(self, earlier: Account) -> Self {
        Account {
            ran: self.ran.saturating_sub(earlier.ran),
            waited: self.waited.saturating_sub(earlier.waited),
        }
    }
}

/// One measurement at a time: two would be each other's busy machine.
static ALONE: Mutex<()> = Mutex::new(());

const PERCENTILES: [f64; 3] = [0.5, 0.99, 0.999];

/// What the generator said: percentiles of an operation, microseconds.
struct Measured {
    operations: BTreeMap<String, Histogram<u64>>,
    zero: Instant,
    ended: Instant,
    answered: Vec<Answered>,
    /// How late woken threads ran, seconds, in order.
    wake_delays_s: Vec<f64>,
    /// What an operation cost the generator's thread, microseconds of a processor.
    cost_us: f64,
}

/// Sleeps again and again until told to stop, and notes how late it woke.
fn witness(stop: &AtomicBool) -> Vec<f64> {
    nix::sys::prctl::set_timerslack(1).expect("a timer without slack");
    let mut delays_s = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let until = Instant::now() + Duration::from_millis(2);
        std::thread::sleep(Duration::from_millis(2));
        delays_s.push(until.elapsed().as_secs_f64());
    }
    delays_s.sort_by(f64::total_cmp);
    delays_s
}

/// Until so many clients have connected; a load that has ended or stands still must not keep the test for ever.
fn wait_for_clients(load: &LoadHandle, clients: usize) {
    let patience = Instant::now() + Duration::from_secs(60);
    while load.muster().connected() < clients {
        let error = load.muster().first_error();
        assert!(Instant::now() < patience && !load.is_finished(), "not all clients connect: {error:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn run(service: Service, clients: u32, rate_per_s: Option<f64>, seconds: u64) -> Measured {
    let server = TimedServer::start(service);
    let endpoint = Endpoint { node: "n1".into(), address: server.address().into() };
    let plan = LoadPlan {
        name: "truth".to_owned(),
        steps: vec![Step { from_s: 0.0, clients, rate_per_s }],
        first_client: 0,
        seed: 5,
        connect_timeout: Duration::from_secs(20),
        ..real_loads::plan_at("ledger", &BTreeMap::new(), clients, vec![endpoint])
    };
    let over = Arc::new(AtomicBool::new(false));
    let seen_over = Arc::clone(&over);
    let witness = std::thread::spawn(move || witness(&seen_over));
    let (sink, batches) = channel();
    let thread = Arc::new(AtomicI32::new(0));
    let told_thread = Arc::clone(&thread);
    let on_thread: OnThread = Box::new(move || {
        told_thread.store(nix::unistd::gettid().as_raw(), Ordering::Relaxed);
        Ok(())
    });
    let clock = Clock::set_later();
    let load = start(plan, clock.clone(), on_thread, sink);
    // The loop begins with everybody there, and the server knows no operation before the zero.
    wait_for_clients(&load, clients as usize);
    let zero = Instant::now() + LEAD;
    server.set_zero(zero);
    clock.set_zero(zero);
    // What it waits for while it connects is no part of the measurement.
    std::thread::sleep(zero.saturating_duration_since(Instant::now()));
    let before = Account::of(thread.load(Ordering::Relaxed));
    let mut account = Account::default();
    let mut operations: BTreeMap<String, Histogram<u64>> = BTreeMap::new();
    let mut stopped = false;
    while let Ok(batch) = batches.recv() {
        for (name, measured) in &batch.interval.operations {
            let merged = operations.entry(name.clone()).or_insert_with(interval::new_histogram);
            merged.add(&measured.histogram).expect("wide enough");
            assert_eq!(measured.error_count(), 0, "{name}: {:?}", measured.errors);
        }
        if batch.interval.second + 1 >= seconds && !stopped {
            account = Account::of(thread.load(Ordering::Relaxed)).since(before);
            KEPT_WAITING.lock().unwrap_or_else(PoisonError::into_inner).push(account.waited);
            load.stop();
            stopped = true;
        }
    }
    load.join().expect("ended well");
    let ended = Instant::now();
    over.store(true, Ordering::Relaxed);
    let wake_delays_s = witness.join().expect("witness");
    let answered = server.finish();
    let cost_us = account.ran.as_secs_f64() * 1e6 / answered.len().max(1) as f64;
    Measured { operations, zero, ended, answered, wake_delays_s, cost_us }
}

/// A percentile as `measure` defines it: the smallest value that at least this share does not exceed.
fn percentile_us(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1] * 1e6
}

/// Percentiles of an operation that are off, in words; and a note of all on the test's output. So many answers can arrive
/// `together`.
fn off(what: &str, run: &Measured, operation: &str, mut truth_s: Vec<f64>, together: u32) -> Vec<String> {
    let measured = &run.operations[operation];
    truth_s.sort_by(f64::total_cmp);
    let in_a_row_us = run.cost_us * f64::from(together);
    let mut off = Vec::new();
    for share in PERCENTILES {
        let (seen, true_us) = (measured.value_at_quantile(share) as f64, percentile_us(&truth_s, share));
        let wake_us = percentile_us(&run.wake_delays_s, share);
        let (percent, count) = (share * 100.0, truth_s.len());
        let line = format!(
            "{what} p{percent}: measured {seen:.0} us, truth {true_us:.0} us, wake-up {wake_us:.0} us, one after another \
             {in_a_row_us:.0} us ({count})"
        );
        eprintln!("{line}");
        // Never shorter than the truth by more than the histogram's resolution.
        if seen < true_us - 0.001 * true_us - 20.0
            || seen > 1.01 * true_us + 20.0 + 2.0 * wake_us + in_a_row_us
        {
            off.push(line);
        }
    }
    if measured.len() as usize != truth_s.len() {
        off.push(format!("{what}: {} operations measured, {} answered", measured.len(), truth_s.len()));
    }
    off
}

/// Runs until a try is right; what was off in the last when none is.
fn check(tries: impl Fn() -> Vec<String>) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut last = Vec::new();
    for _ in 0..TRIES {
        last = tries();
        if last.is_empty() {
            return;
        }
    }
    let waited = KEPT_WAITING.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let ours = &waited[waited.len() - TRIES..];
    if ours.iter().all(|waited| *waited > KEPT_WAITING_MAX) {
        eprintln!(
            "skipped: truth test: the machine was too busy: it kept the generator waiting for {ours:?}"
        );
        return;
    }
    panic!("off in each of {TRIES} tries, kept waiting for {ours:?}; in the last: {}", last.join("; "));
}

/// What each operation of an open loop truly took: from when it was due, by the rate alone, to when the server answered.
/// The server's n-th answer in the order of its questions belongs to the n-th operation due.
fn response_truth_s(run: &Measured, rate_per_s: f64) -> Vec<f64> {
    // Not one operation more than were due: those after the end would be of nobody's asking.
    let ran_s = run.ended.saturating_duration_since(run.zero).as_secs_f64();
    assert!(run.answered.len() as f64 <= ran_s * rate_per_s, "{} answered in {ran_s} s", run.answered.len());
    let mut answered = run.answered.clone();
    answered.sort_by_key(|answer| answer.asked);
    let due = |number: usize| run.zero + Duration::from_secs_f64((number + 1) as f64 / rate_per_s);
    answered
        .iter()
        .enumerate()
        .map(|(number, answer)| answer.answered.saturating_duration_since(due(number)).as_secs_f64())
        .collect()
}

fn service_truth_s(run: &Measured) -> Vec<f64> {
    run.answered.iter().map(|answer| (answer.answered - answer.asked).as_secs_f64()).collect()
}

#[test]
fn a_closed_loop_tells_the_service_times_of_a_server_that_knows_them() {
    for service in [
        Service::constant(TIME),
        Service::exponential(TIME),
        Service::constant(TIME).with_stall(Duration::from_secs(1), Duration::from_secs(1)),
    ] {
        check(|| {
            let clients = 48;
            let run = run(service.clone(), clients, None, 3);
            let together = if service.keeps_clients_in_step() { clients } else { 1 };
            off(&format!("closed, {service:?}"), &run, "insert", service_truth_s(&run), together)
        });
    }
}

#[test]
fn an_open_loop_tells_how_long_operations_took_from_when_they_were_due() {
    let rate = 300.0;
    for service in [Service::constant(TIME), Service::exponential(TIME)] {
        check(|| {
            let run = run(service.clone(), 120, Some(rate), 3);
            let what = format!("open, {service:?}");
            let mut all = off(&what, &run, "insert", response_truth_s(&run, rate), 1);
            all.extend(off(&format!("{what}, service"), &run, "insert (service)", service_truth_s(&run), 1));
            all
        });
    }
}

#[test]
fn a_stall_of_a_second_stands_in_the_p99_of_an_open_loop_as_theory_says_and_would_be_missed_by_service_times()
{
    let (rate, seconds, clients) = (200.0, 6, 4);
    let (stall, time) = (Duration::from_secs(1), Duration::from_millis(5));
    let service = Service::constant(time).with_stall(Duration::from_secs(2), stall);
    check(|| {
        // Few connections: nearly all operations due in the stall wait for one of them.
        let run = run(service.clone(), clients, Some(rate), seconds);
        let response = &run.operations["insert"];
        let mut all = off("open, stalled", &run, "insert", response_truth_s(&run, rate), 1);
        // One in `seconds` is due while nothing is answered. One due x seconds into the stall waits for its end, and then
        // for those due before it, which leave the queue as fast as the connections allow: 1 - x + x * rate / capacity.
        // 1 % of the run is due in the first 0.01 * seconds of the stall.
        let capacity_per_s = f64::from(clients) / time.as_secs_f64();
        let x = 0.01 * seconds as f64;
        let theory_us = 1e6 * (stall.as_secs_f64() - x * (1.0 - rate / capacity_per_s) + time.as_secs_f64());
        let (p99, service_p99) =
            (response.value_at_quantile(0.99), run.operations["insert (service)"].value_at_quantile(0.99));
        if (p99 as f64 - theory_us).abs() > 0.02 * theory_us {
            all.push(format!("p99 {p99} us, theory {theory_us} us"));
        }
        // The planted defect: who times from the sending sees next to nothing of it.
        if service_p99 > 100_000 {
            all.push(format!("p99 of the service times {service_p99} us"));
        }
        all
    });
}

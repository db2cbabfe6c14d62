//! Clients connect before the run's clock has a zero, and those that cannot are known.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use load::{Batch, Clock, LoadHandle, LoadPlan, prepare, start};

use crate::real_loads::server::{self, Server};
use crate::real_loads::{self, here, wait};

fn plan(clients: u32, server: &Server) -> LoadPlan {
    let minute = Duration::from_secs(60);
    let plan = real_loads::plan("kv", &BTreeMap::new(), clients, &[("n1", server)]);
    LoadPlan { timeout: minute, connect_timeout: minute, ..plan }
}

/// A load whose clock has no zero yet.
fn begin(plan: &LoadPlan, clock: &Clock) -> (LoadHandle, Receiver<Batch>) {
    prepare(plan, here(), &|_| {}).expect("tables");
    let (sink, batches) = channel();
    (start(plan.clone(), clock.clone(), here(), sink), batches)
}

/// Waits for what must come; a load that has ended or stands still must not keep the test for ever.
fn wait_until(load: &LoadHandle, is_so: impl Fn(&LoadHandle) -> bool) {
    let patience = Instant::now() + Duration::from_secs(120);
    while !is_so(load) {
        let (connected, error) = (load.muster().connected(), load.muster().first_error());
        assert!(Instant::now() < patience && !load.is_finished(), "{connected} connected; {error:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn clients_wait_with_their_sessions_until_the_clock_has_a_zero() {
    let Some(programs) = server::programs() else { return };
    let server = wait(Server::start(&programs, &[]));
    let clock = Clock::set_later();
    let (load, batches) = begin(&plan(100, &server), &clock);
    wait_until(&load, |load| load.muster().connected() == 100);
    assert!(batches.try_recv().is_err(), "a second ended before the first began");
    clock.set_zero(Instant::now());
    let first = batches.recv().expect("a batch");
    assert_eq!(first.interval.second, 0);
    assert!(!first.history.is_empty());
    assert!(first.history.iter().all(|operation| operation.invoked_s >= 0.0));
    load.stop();
    load.join().expect("a good end");
}

#[test]
fn a_full_server_is_known_before_the_load_begins() {
    let Some(programs) = server::programs() else { return };
    // Of 200 sessions.
    let server = wait(Server::start(&programs, &[]));
    let clock = Clock::set_later();
    let (load, batches) = begin(&plan(230, &server), &clock);
    wait_until(&load, |load| load.muster().connected() == 200 && load.muster().first_error().is_some());
    let error = load.muster().first_error().expect("refused");
    assert_eq!(error.code.as_deref(), Some("53300"), "{error}");
    assert_eq!(load.muster().connected(), 200);
    // Told to stop before the zero: nothing was asked, and it ends.
    load.stop();
    load.join().expect("a good end");
    assert!(batches.iter().all(|batch| batch.history.is_empty()));
}

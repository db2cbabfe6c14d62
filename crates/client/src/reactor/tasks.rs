//! Futures that run beside each other on one thread, and how they are woken, from this thread or another.
//!
//! Owns the futures and the queue of those that can go on. A future is woken by putting its number into the queue, once
//! however often it is woken before its turn.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Weak;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

use super::Core;

/// The number of the future that the loop was started for.
pub(super) const MAIN: usize = usize::MAX;

thread_local! {
    /// Which loop this thread runs; 0 for none.
    static HERE: Cell<u64> = const { Cell::new(0) };
    static READY: RefCell<VecDeque<usize>> = const { RefCell::new(VecDeque::new()) };
}

/// Loops that have been started in this process.
static LOOPS: AtomicU64 = AtomicU64::new(0);

/// The first future that can go on, taken from the queue.
pub(super) fn next_ready() -> Option<usize> {
    READY.with_borrow_mut(VecDeque::pop_front)
}

/// Whether any future can go on.
pub(super) fn any_ready() -> bool {
    READY.with_borrow(|ready| !ready.is_empty())
}

/// A loop as its wakers know it, from whichever thread.
pub(super) struct Home {
    number: u64,
    /// Woken from other threads.
    woken: Mutex<Vec<usize>>,
    /// Wakes the loop from its sleep.
    bell: OwnedFd,
}

impl Home {
    pub(super) fn of_this_thread(bell: OwnedFd) -> Arc<Self> {
        let number = LOOPS.fetch_add(1, Ordering::Relaxed) + 1;
        HERE.set(number);
        Arc::new(Self { number, woken: Mutex::default(), bell })
    }

    /// The thread runs this loop no more.
    pub(super) fn leave(&self) {
        HERE.set(0);
        READY.with_borrow_mut(VecDeque::clear);
    }

    /// Queues what other threads have woken.
    pub(super) fn answer_bell(&self) {
        let woken = std::mem::take(&mut *self.woken.lock().unwrap_or_else(PoisonError::into_inner));
        READY.with_borrow_mut(|ready| ready.extend(woken));
    }

    fn wake(&self, number: usize) {
        // A thread that is ending has let go of its queue; its loop has ended before.
        if HERE.try_with(Cell::get) == Ok(self.number) {
            READY.with_borrow_mut(|ready| ready.push_back(number));
            return;
        }
        self.woken.lock().unwrap_or_else(PoisonError::into_inner).push(number);
        // Full after 2^64 - 2 rings without an answer: it is ringing then.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }
}

/// One future as its waker knows it.
pub(super) struct Handle {
    number: usize,
    home: Arc<Home>,
    queued: AtomicBool,
}

impl Handle {
    pub(super) fn of_main(home: &Arc<Home>) -> Arc<Self> {
        Arc::new(Self { number: MAIN, home: Arc::clone(home), queued: AtomicBool::new(false) })
    }

    /// From now on it can be queued again.
    pub(super) fn is_polled(&self) {
        self.queued.store(false, Ordering::Release);
    }
}

impl Wake for Handle {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            self.home.wake(self.number);
        }
    }
}

type Work = Pin<Box<dyn Future<Output = ()>>>;

/// A future at rest, with what wakes it.
struct Resting {
    work: Work,
    handle: Arc<Handle>,
    waker: Waker,
}

enum Place {
    Resting(Resting),
    /// It is being polled.
    Taken,
    Ended,
}

/// All futures but the main one, by number. Numbers are not used again: a load's clients live as long as it does.
#[derive(Default)]
pub(super) struct Tasks(RefCell<Vec<Place>>);

impl Tasks {
    /// Takes a future in; it is polled in its turn.
    pub(super) fn add(&self, work: Work, home: &Arc<Home>) -> Arc<Handle> {
        let mut places = self.0.borrow_mut();
        let handle =
            Arc::new(Handle { number: places.len(), home: Arc::clone(home), queued: AtomicBool::new(false) });
        let waker = Waker::from(Arc::clone(&handle));
        waker.wake_by_ref();
        places.push(Place::Resting(Resting { work, handle: Arc::clone(&handle), waker }));
        handle
    }

    /// Polls a future, unless it has ended.
    pub(super) fn poll(&self, number: usize) {
        let taken = match self.0.borrow_mut().get_mut(number) {
            Some(place @ Place::Resting(_)) => std::mem::replace(place, Place::Taken),
            _ => return,
        };
        let Place::Resting(mut resting) = taken else { return };
        resting.handle.is_polled();
        let ended = resting.work.as_mut().poll(&mut Context::from_waker(&resting.waker)).is_ready();
        if let Some(place) = self.0.borrow_mut().get_mut(number) {
            match place {
                // Ended from within.
                Place::Ended => {}
                _ if ended => *place = Place::Ended,
                _ => {
                    *place = Place::Resting(resting);
                    return;
                }
            }
        }
        // Dropped here, with no place borrowed: what it owns may end other tasks.
        drop(resting);
    }

    /// Drops a future, which is polled no more.
    fn end(&self, number: usize) {
        let ended = self.0.borrow_mut().get_mut(number).map(|place| std::mem::replace(place, Place::Ended));
        drop(ended);
    }

    /// Drops all futures.
    pub(super) fn end_all(&self) {
        let mut number = 0;
        while number < self.0.borrow().len() {
            self.end(number);
            number += 1;
        }
    }
}

/// A future that runs beside others. Dropping this ends it.
#[must_use = "a task ends when this is dropped"]
pub struct Task {
    handle: Arc<Handle>,
    core: Weak<Core>,
}

impl Task {
    pub(super) fn new(handle: Arc<Handle>, core: Weak<Core>) -> Self {
        Self { handle, core }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(core) = self.core.upgrade() {
            core.tasks.end(self.handle.number);
        }
    }
}

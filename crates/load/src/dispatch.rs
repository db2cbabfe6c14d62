//! Open loop: hands each operation, at the moment it is due, to a client that is free, or keeps it until one is.
//!
//! Owns the queue between the two and the timer. How late the generator itself was is told apart from how long an
//! operation had to wait for a free connection: the first is our fault, the second is what an open loop is for.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use rand_chacha::ChaCha8Rng;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::pace::Arrivals;
use crate::shared::Shared;

/// Operations that are due and clients that are free; one of the two is empty.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// When each was due, and whether no client was free then.
    due: RefCell<VecDeque<(Instant, bool)>>,
    free: RefCell<VecDeque<Waker>>,
}

impl Queue {
    /// The moment the next operation was due; waits until there is one.
    pub(crate) async fn next(&self) -> Due {
        let mut listed = false;
        std::future::poll_fn(|context| {
            let mut free = self.free.borrow_mut();
            if listed {
                // Woken by something else, this client is on the list still. Left there, it would be woken for an
                // operation while it is busy with another, and a free client would sleep on.
                free.retain(|known| !known.will_wake(context.waker()));
            }
            if let Some((moment, waited)) = self.due.borrow_mut().pop_front() {
                return Poll::Ready(Due { moment, waited });
            }
            free.push_back(context.waker().clone());
            listed = true;
            Poll::Pending
        })
        .await
    }

    /// An operation is due.
    fn push(&self, moment: Instant) {
        let client = self.free.borrow_mut().pop_front();
        self.due.borrow_mut().push_back((moment, client.is_none()));
        if let Some(client) = client {
            client.wake();
        }
    }

    /// Operations that are due and have no client yet.
    pub(crate) fn backlog(&self) -> usize {
        self.due.borrow().len()
    }
}

/// An operation of an open loop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Due {
    /// When it was due.
    pub(crate) moment: Instant,
    /// Whether it had to wait for a free client.
    pub(crate) waited: bool,
}

/// Puts operations into the queue as they become due, until dropped.
pub(crate) async fn dispatch(
    shared: Rc<Shared>,
    mut arrivals: Arrivals,
    mut rng: ChaCha8Rng,
) -> io::Result<()> {
    let timer = Timer::new()?;
    while let Some(due_s) = arrivals.next_s(&mut rng) {
        let Some(moment) =
            Duration::try_from_secs_f64(due_s).ok().and_then(|after| shared.zero.checked_add(after))
        else {
            return Ok(());
        };
        timer.wait_until(moment).await?;
        shared.queue.push(moment);
    }
    std::future::pending().await
}

/// A timer of the kernel's, precise to microseconds; the event loop's own counts milliseconds.
struct Timer(AsyncFd<KernelTimer>);

/// The timer as the event loop wants to know it.
struct KernelTimer(TimerFd);

impl AsFd for KernelTimer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for KernelTimer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Timer {
    fn new() -> io::Result<Self> {
        let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        // SAFETY: the descriptor is the timer's own, which the registration owns and never replaces.
        let registered = unsafe { AsyncFd::register_with_interest(KernelTimer(timer), Interest::READABLE) };
        Ok(Self(registered?))
    }

    /// Returns at once for a moment that has passed.
    async fn wait_until(&self, moment: Instant) -> io::Result<()> {
        let now = Instant::now();
        if moment <= now {
            return Ok(());
        }
        let expiration = Expiration::OneShot((moment - now).into());
        self.0.get_ref().0.set(expiration, TimerSetTimeFlags::empty())?;
        loop {
            let mut ready = self.0.readable().await?;
            ready.clear_ready();
            // Readiness may be left from the timer's last setting.
            if Instant::now() >= moment {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
        tokio::task::LocalSet::new().block_on(&runtime, future)
    }

    #[test]
    fn an_operation_wakes_a_free_client_even_after_another_took_one_out_of_turn() {
        wait(async {
            let queue = Rc::new(Queue::default());
            let now = Instant::now();
            let (poke, mut poked) = tokio::sync::watch::channel(0);
            let first = {
                let queue = Rc::clone(&queue);
                // Polled again whenever it is poked, as a client is by alarms of its own.
                tokio::task::spawn_local(async move {
                    let mut next = std::pin::pin!(queue.next());
                    loop {
                        tokio::select! {
                            biased;
                            due = &mut next => break due,
                            _ = poked.changed() => {}
                        }
                    }
                })
            };
            tokio::task::yield_now().await;
            let second = {
                let queue = Rc::clone(&queue);
                tokio::task::spawn_local(async move { (queue.next().await, queue.next().await) })
            };
            tokio::task::yield_now().await;
            // The second is at the end of the list; the first takes its turn by the poke.
            poke.send_replace(1);
            for _ in 0..3 {
                queue.push(now);
                tokio::task::yield_now().await;
            }
            let (first, second) = tokio::join!(first, second);
            let (first, second) = (first.expect("first"), second.expect("second"));
            assert!(!first.waited && !second.0.waited);
            assert_eq!(queue.backlog(), 0);
        });
    }

    #[test]
    fn an_operation_without_a_free_client_is_known_to_have_waited() {
        wait(async {
            let queue = Queue::default();
            let now = Instant::now();
            queue.push(now);
            queue.push(now);
            assert_eq!(queue.backlog(), 2);
            assert!(queue.next().await.waited && queue.next().await.waited);
        });
    }

    #[test]
    fn the_timer_never_goes_off_early_whatever_it_was_set_to_before() {
        wait(async {
            let timer = Timer::new().expect("timer");
            for gap_us in [500, 0, 1_500, 1, 700, 90] {
                let moment = Instant::now() + Duration::from_micros(gap_us);
                timer.wait_until(moment).await.expect("waits");
                assert!(Instant::now() >= moment, "{gap_us}");
            }
        });
    }
}

//! The event loop of a thread: many sessions' futures, their sockets and their alarms, at little more than the kernel's
//! own cost.
//!
//! Owns when a future is polled, when the thread sleeps and what wakes it. The load shares the machine with the database
//! that it measures, so that this loop stands where a general one did: a round polls whoever can go on, sends what they
//! have asked in one go ([`outbox`]) and waits for all sockets at once. Knows nothing of protocols.

mod outbox;
mod sockets;
mod tasks;
mod timers;

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::time::Timespec;

pub(crate) use outbox::{Fate, LARGEST_LETTER_BYTES, Letter, post};
pub use sockets::Socket;
use sockets::Sockets;
pub use tasks::Task;
use tasks::{Handle, Home, Tasks};
use timers::Timers;
pub(crate) use timers::after;
pub use timers::{Elapsed, Sleep, sleep, sleep_until, timeout};

/// Futures polled before sockets are looked at again, however many more could go on: two that wake each other must not
/// keep all others from their answers.
const POLLS_A_ROUND: usize = 1_024;
/// Events taken from the kernel at once; more stay there until the next round.
const EVENTS_A_ROUND: usize = 256;

/// What the kernel calls the two descriptors that are no sockets.
const BELL: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;

thread_local! {
    static CORE: RefCell<Option<Rc<Core>>> = const { RefCell::new(None) };
}

/// The loop of this thread.
struct Core {
    epoll: Rc<OwnedFd>,
    home: Arc<Home>,
    tasks: Tasks,
    timers: Timers,
    sockets: Sockets,
}

/// Runs `future` to its end, and beside it whatever is [`spawn`]ed until then; what has not ended by then is dropped.
///
/// # Errors
/// When the kernel gives the thread no event loop, or the thread runs one already.
pub fn block_on<F: Future>(future: F) -> io::Result<F::Output> {
    let installed = Installed::new()?;
    installed.0.run(pin!(future))
}

/// Runs `future` beside the one that [`block_on`] was given, for as long as the [`Task`] is kept.
///
/// # Panics
/// Outside [`block_on`].
pub fn spawn(future: impl Future<Output = ()> + 'static) -> Task {
    let core = core();
    let handle = core.tasks.add(Box::pin(future), &core.home);
    Task::new(handle, Rc::downgrade(&core))
}

/// Lets others go first, and the sockets be looked at.
pub async fn yield_now() {
    let mut yielded = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The loop that runs this thread's futures.
fn core() -> Rc<Core> {
    match CORE.with_borrow(Option::clone) {
        Some(core) => core,
        None => panic!(
            "sockets, alarms and tasks need the thread's event loop: call this within reactor::block_on"
        ),
    }
}

/// As long as this lives, the thread has its loop.
struct Installed(Rc<Core>);

impl Installed {
    fn new() -> io::Result<Self> {
        if CORE.with_borrow(Option::is_some) {
            return Err(io::Error::other("the thread runs an event loop already"));
        }
        let epoll = Rc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?);
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let timers = Timers::new()?;
        for (descriptor, name) in [(bell.as_fd(), BELL), (timers.as_fd(), TIMER)] {
            epoll::add(&epoll, descriptor, EventData::new_u64(name), EventFlags::IN | EventFlags::ET)?;
        }
        let sockets = Sockets::new(Rc::clone(&epoll));
        let core = Rc::new(Core {
            epoll,
            home: Home::of_this_thread(bell),
            tasks: Tasks::default(),
            timers,
            sockets,
        });
        outbox::install();
        CORE.set(Some(Rc::clone(&core)));
        Ok(Self(core))
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        // Futures let go of their alarms and sockets, which look for the loop.
        self.0.tasks.end_all();
        outbox::remove();
        CORE.take();
        self.0.home.leave();
    }
}

impl Core {
    fn run<F: Future>(&self, mut main: Pin<&mut F>) -> io::Result<F::Output> {
        let handle = Handle::of_main(&self.home);
        let waker = Waker::from(Arc::clone(&handle));
        waker.wake_by_ref();
        let mut events = Vec::with_capacity(EVENTS_A_ROUND);
        loop {
            for _ in 0..POLLS_A_ROUND {
                let Some(number) = tasks::next_ready() else { break };
                if number != tasks::MAIN {
                    self.tasks.poll(number);
                    continue;
                }
                handle.is_polled();
                if let Poll::Ready(output) = main.as_mut().poll(&mut Context::from_waker(&waker)) {
                    return Ok(output);
                }
            }
            outbox::flush();
            self.timers.arm()?;
            self.wait(&mut events, !tasks::any_ready())?;
        }
    }

    /// Takes in what has happened; `sleeps` until something does.
    fn wait(&self, events: &mut Vec<Event>, sleeps: bool) -> io::Result<()> {
        events.clear();
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        match epoll::wait(&self.epoll, spare_capacity(events), (!sleeps).then_some(&at_once)) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        }
        for event in events.iter() {
            match event.data.u64() {
                BELL => self.home.answer_bell(),
                TIMER => self.timers.went_off(),
                place => self.sockets.happened(place, event.flags),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

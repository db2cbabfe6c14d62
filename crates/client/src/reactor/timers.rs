//! Alarms, precise to what the kernel's own timers are, and what is made of them: sleeping, giving up in time.
//!
//! Owns their order and the one kernel timer they share. It is set only when an alarm is earlier than what it is set to,
//! which costs a session that is answered in time nothing.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use super::{CORE, core};

/// Stands for a moment that the clock cannot tell.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// All alarms of a loop.
pub(super) struct Timers {
    kernel: OwnedFd,
    /// What the kernel's timer is set to.
    set_to: Cell<Option<Instant>>,
    /// By moment; the number keeps those of one moment apart.
    alarms: RefCell<BTreeMap<(Instant, u64), Rc<Alarm>>>,
    numbers: Cell<u64>,
}

/// An alarm that is set.
struct Alarm {
    waker: RefCell<Waker>,
    went_off: Cell<bool>,
}

impl Timers {
    pub(super) fn new() -> io::Result<Self> {
        let kernel =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        let (set_to, alarms, numbers) = (Cell::default(), RefCell::default(), Cell::default());
        Ok(Self { kernel, set_to, alarms, numbers })
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.kernel.as_fd()
    }

    /// Sets the kernel's timer for the earliest alarm.
    pub(super) fn arm(&self) -> io::Result<()> {
        let alarms = self.alarms.borrow();
        let Some(((earliest, _), _)) = alarms.first_key_value() else { return Ok(()) };
        if self.set_to.get().is_some_and(|set_to| set_to <= *earliest) {
            return Ok(());
        }
        // Zero would unset it.
        let wait = earliest.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let it_value = Timespec::try_from(wait).map_err(io::Error::other)?;
        let setting = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        timerfd_settime(&self.kernel, TimerfdTimerFlags::empty(), &setting)?;
        self.set_to.set(Some(*earliest));
        Ok(())
    }

    /// Wakes those whose moment has come.
    pub(super) fn went_off(&self) {
        self.set_to.set(None);
        let now = Instant::now();
        while let Some(alarm) = self.take_due(now) {
            alarm.went_off.set(true);
            alarm.waker.borrow().wake_by_ref();
        }
    }

    fn take_due(&self, now: Instant) -> Option<Rc<Alarm>> {
        let mut alarms = self.alarms.borrow_mut();
        let first = alarms.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    fn set(&self, moment: Instant, waker: &Waker) -> ((Instant, u64), Rc<Alarm>) {
        let number = self.numbers.get();
        self.numbers.set(number + 1);
        let alarm = Rc::new(Alarm { waker: RefCell::new(waker.clone()), went_off: Cell::new(false) });
        self.alarms.borrow_mut().insert((moment, number), Rc::clone(&alarm));
        ((moment, number), alarm)
    }

    /// Whether no alarm is set.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.alarms.borrow().is_empty()
    }

    fn unset(&self, key: &(Instant, u64)) {
        self.alarms.borrow_mut().remove(key);
    }
}

/// Waits until a moment; made by [`sleep_until`].
#[must_use = "a future does nothing unless it is awaited"]
pub struct Sleep {
    moment: Instant,
    set: Option<((Instant, u64), Rc<Alarm>)>,
}

/// Waits until `moment`; never ends earlier.
pub fn sleep_until(moment: Instant) -> Sleep {
    Sleep { moment, set: None }
}

/// Waits for so long; never ends earlier.
pub fn sleep(length: Duration) -> Sleep {
    sleep_until(after(Instant::now(), length))
}

/// The moment so long after another; a hundred years after it where the clock does not reach further.
pub(crate) fn after(moment: Instant, length: Duration) -> Instant {
    moment.checked_add(length).unwrap_or_else(|| moment + FOR_EVER)
}

impl Sleep {
    /// Moves it to another moment.
    pub(crate) fn reset(&mut self, moment: Instant) {
        self.unset();
        self.moment = moment;
    }

    /// Whether it is set for this moment or an earlier one and has not gone off; it then wakes this task.
    pub(crate) fn will_wake_by(&self, moment: Instant, context: &Context<'_>) -> bool {
        let Some((_, alarm)) = &self.set else { return false };
        if self.moment > moment || alarm.went_off.get() {
            return false;
        }
        alarm.waker.borrow_mut().clone_from(context.waker());
        true
    }

    /// See [`Future::poll`].
    pub(crate) fn poll_over(&mut self, context: &Context<'_>) -> Poll<()> {
        if self.will_wake_by(self.moment, context) {
            return Poll::Pending;
        }
        // Gone off, or not set yet.
        self.set = None;
        if Instant::now() >= self.moment {
            return Poll::Ready(());
        }
        self.set = Some(core().timers.set(self.moment, context.waker()));
        Poll::Pending
    }

    fn unset(&mut self) {
        if let Some((key, alarm)) = self.set.take()
            && !alarm.went_off.get()
        {
            CORE.with_borrow(|core| core.as_ref().map(|core| core.timers.unset(&key)));
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.poll_over(context)
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.unset();
    }
}

/// The time was up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not done in time")]
pub struct Elapsed;

/// Carries `future` on for so long at most.
///
/// # Errors
/// When it has not ended by then.
pub async fn timeout<F: Future>(limit: Duration, future: F) -> Result<F::Output, Elapsed> {
    let mut future = pin!(future);
    let mut over = sleep(limit);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Ok(output)),
        Poll::Pending => over.poll_over(context).map(|()| Err(Elapsed)),
    })
    .await
}

//! The system calls of the thread that carries packets: waiting, reading, writing, and the clock.
//!
//! Decides nothing and keeps nothing.

use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use nix::sys::epoll::{Epoll, EpollEvent, EpollTimeout};
use nix::time::{ClockId, clock_gettime};

/// Waits for events, no longer than so many nanoseconds.
pub(super) fn wait_for(epoll: &Epoll, events: &mut [EpollEvent], wait_ns: Option<u64>) -> nix::Result<usize> {
    // The plain call is the cheaper one, but its time-out counts whole milliseconds, far too coarse for a delay.
    match wait_ns {
        None => epoll.wait(events, EpollTimeout::NONE),
        Some(0) => epoll.wait(events, EpollTimeout::ZERO),
        Some(wait_ns) => wait_exactly(epoll, events, wait_ns),
    }
}

fn wait_exactly(epoll: &Epoll, events: &mut [EpollEvent], wait_ns: u64) -> nix::Result<usize> {
    let timeout = libc::timespec {
        tv_sec: (wait_ns / 1_000_000_000) as i64,
        tv_nsec: (wait_ns % 1_000_000_000) as i64,
    };
    // SAFETY: `events` is live and as long as said; EpollEvent is a transparent epoll_event; the time-out is a live
    // timespec; a null signal mask changes nothing.
    let ready = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll.0.as_raw_fd(),
            events.as_mut_ptr().cast::<libc::epoll_event>(),
            events.len() as libc::c_int,
            &raw const timeout,
            std::ptr::null::<libc::sigset_t>(),
            8usize,
        )
    };
    match nix::Error::result(ready) {
        Err(nix::Error::ENOSYS) => wait_the_old_way(epoll, events, &timeout),
        ready => ready.map(|ready| usize::try_from(ready).unwrap_or(0)),
    }
}

/// The same before Linux 5.11: one call to wait, one to ask.
fn wait_the_old_way(
    epoll: &Epoll,
    events: &mut [EpollEvent],
    timeout: &libc::timespec,
) -> nix::Result<usize> {
    let mut watched = libc::pollfd { fd: epoll.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: `watched` is a live local and one of its kind; so is the time-out; a null signal mask changes nothing.
    let ready = unsafe { libc::ppoll(&raw mut watched, 1, timeout, std::ptr::null()) };
    if nix::Error::result(ready)? == 0 {
        return Ok(0);
    }
    epoll.wait(events, EpollTimeout::ZERO)
}

/// Reads one frame; none where there is none, or the descriptor is at its end.
pub(super) fn read(descriptor: RawFd, buffer: &mut [u8]) -> Option<usize> {
    // SAFETY: the descriptor is owned by the carrier and open; the buffer is live and as long as said.
    let length = unsafe { libc::read(descriptor, buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(length).ok().filter(|length| *length > 0)
}

/// Writes one frame; whether it was taken.
pub(super) fn write(descriptor: RawFd, frame: &[u8]) -> bool {
    // SAFETY: the descriptor is owned by the carrier and open; the frame is live and as long as said.
    let length = unsafe { libc::write(descriptor, frame.as_ptr().cast(), frame.len()) };
    length >= 0
}

/// The monotonic clock.
pub(super) fn now_ns() -> u64 {
    read_ns(ClockId::CLOCK_MONOTONIC)
}

/// A clock.
pub(super) fn read_ns(clock: ClockId) -> u64 {
    clock_gettime(clock).map_or(0, |now| u64::try_from(Duration::from(now).as_nanos()).unwrap_or(u64::MAX))
}

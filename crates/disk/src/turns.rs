//! How long a thread that serves a volume has a processor before others get it.
//!
//! Whoever waits for a disk waits for the disk's thread as well, while programs with long turns have the processors. A
//! thread with short turns is given a processor sooner after it has been woken, and no larger share (sched(7), EEVDF). It
//! needs no privilege. Kernels before 6.12 know no turns; there nothing changes.

use std::io;

/// The shortest turn that the kernel grants.
const TURN_NS: u64 = 100_000;

/// The calling thread has short turns from here on, and so have the threads that it starts.
pub(crate) fn be_short() {
    // What cannot be had only costs time.
    if let Ok(mut attributes) = attributes()
        && i32::try_from(attributes.sched_policy) == Ok(libc::SCHED_OTHER)
    {
        attributes.sched_runtime = TURN_NS;
        // SAFETY: sched_setattr(2) of the calling thread reads the structure, which says how long it is.
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    }
}

/// How the calling thread is scheduled.
fn attributes() -> io::Result<libc::sched_attr> {
    // SAFETY: plain numbers, for which zero is a value.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    let bytes = size_of::<libc::sched_attr>();
    // SAFETY: sched_getattr(2) of the calling thread writes as many bytes as it is told at most.
    let read = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, bytes, 0) };
    if read == 0 { Ok(attributes) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_short_turns_and_passes_them_on_to_those_it_starts() {
        let turn_ns = || attributes().map_or(0, |attributes| attributes.sched_runtime);
        if turn_ns() == 0 {
            eprintln!("skipped: short turns: this kernel does not say how long a turn is");
            return;
        }
        assert_ne!(turn_ns(), TURN_NS);
        let inherited = std::thread::spawn(move || {
            be_short();
            std::thread::spawn(turn_ns).join().expect("its turn")
        });
        assert_eq!(inherited.join().expect("what it passed on"), TURN_NS);
    }
}

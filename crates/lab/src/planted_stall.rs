//! The planted stall: the lab stands still for a while, and whoever watches over it has to notice.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long a planted stall lasts.
const STALL: Duration = Duration::from_secs(5);

/// Stops the lab's first process, the only child of `supervisor`, and lets it go on a few seconds later.
pub fn stop_for_a_while(supervisor: u32) {
    let children = std::fs::read_to_string(format!("/proc/{supervisor}/task/{supervisor}/children"));
    let first = children.ok().and_then(|all| all.split_whitespace().next()?.parse().ok());
    let Some(pid) = first.map(Pid::from_raw) else { return };
    // A lab that has ended meanwhile stands still by itself.
    let _ = kill(pid, Signal::SIGSTOP);
    std::thread::spawn(move || {
        std::thread::sleep(STALL);
        let _ = kill(pid, Signal::SIGCONT);
    });
}

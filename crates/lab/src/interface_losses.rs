//! Packets that a place's kernel threw away because the queue of an interface was full: whoever reads the interface came too
//! late. No network of the lab has seen them.
//!
//! Source: Linux `Documentation/networking/statistics.rst`.

use std::io;
use std::os::fd::OwnedFd;

use crate::attachment::{enter, on_own_thread};
use crate::interface::{INTERFACE_NAME, KERNEL_INTERFACE_NAME};

/// Where "drop" stands among the counts of a line: after eight of what was received come bytes, packets and errors of what
/// was sent.
const DROPPED_SENDING: usize = 11;

/// How many packets a place has lost on their way into its interfaces, since they were made.
///
/// # Errors
/// When its network namespace cannot be entered or its counts cannot be read.
pub fn lost_on_the_way_in(namespace: &OwnedFd) -> io::Result<u64> {
    let counts = on_own_thread(|| {
        enter(namespace)?;
        std::fs::read_to_string("/proc/thread-self/net/dev")
    })
    .map_err(io::Error::other)??;
    dropped_sending(&counts)
        .ok_or_else(|| io::Error::other(format!("{INTERFACE_NAME} is not in /proc/net/dev")))
}

/// Of the place's first interface, and of its second where it has one.
fn dropped_sending(counts: &str) -> Option<u64> {
    let of = |name| counts.lines().find(|line| is_of(line, name)).and_then(dropped_sending_of_line);
    Some(of(INTERFACE_NAME)? + of(KERNEL_INTERFACE_NAME).unwrap_or(0))
}

fn is_of(line: &str, name: &str) -> bool {
    line.trim_start().strip_prefix(name).is_some_and(|rest| rest.starts_with(':'))
}

/// The same of the interface that a line is about.
pub(crate) fn dropped_sending_of_line(line: &str) -> Option<u64> {
    let (_, counts) = line.split_once(':')?;
    counts.split_whitespace().nth(DROPPED_SENDING)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_dropped_while_sending_is_told_apart_from_what_was_dropped_while_receiving() {
        let counts = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     100       1    2    3    4     5          6         7      200       8    9   10   11    12      13         14
  eth0:     101      21   22   23   24    25         26        27      201      28   29   30   31    32      33         34
";
        assert_eq!(dropped_sending(counts), Some(30));
        let second = "  eth1: 0 0 0 0 0 0 0 0 0 0 0 5 0 0 0 0\n";
        assert_eq!(dropped_sending(&[counts, second].concat()), Some(35));
        assert_eq!(dropped_sending("    lo: 1 2 3"), None);
    }
}

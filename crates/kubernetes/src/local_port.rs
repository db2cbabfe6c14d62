//! A port of this machine for a forward: below those that the kernel gives to outgoing connections, so that no client of ours
//! has it while nobody listens there.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// The kernel's range for outgoing connections, see ip(7).
const RANGE_FILE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
/// Its first port where nobody says otherwise.
const USUAL_FIRST: u16 = 32_768;
/// Not below this: services have their ports there.
const LOWEST: u16 = 20_000;
/// Not from here on: a cluster's node ports, which this machine may have as well.
const NODE_PORTS: u16 = 30_000;
/// How many ports are tried.
const TRIES: u32 = 200;

/// Ports of one process, and of several at the same time, are not tried in the same order.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A port that nobody has at the moment; none where the kernel's range leaves no room.
pub(crate) fn free() -> Option<u16> {
    let range = candidates(&fs::read_to_string(RANGE_FILE).unwrap_or_default());
    let count = u32::from(range.end - range.start);
    let begin = process::id().wrapping_mul(7919);
    let candidate = |_| {
        let step = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let offset = u16::try_from(step.checked_rem(count)?).ok()?;
        Some(range.start + offset)
    };
    (0..TRIES).filter_map(candidate).find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
}

/// The ports that may be taken, by what the kernel says of its own; empty where its own leave none.
fn candidates(range: &str) -> Range<u16> {
    let first = range.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(USUAL_FIRST);
    LOWEST..first.clamp(LOWEST, NODE_PORTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_none_that_the_kernel_gives_to_outgoing_connections() {
        assert_eq!(candidates("32768\t60999\n"), 20_000..30_000);
        assert_eq!(candidates("25000\t60999\n"), 20_000..25_000);
        assert!(candidates("1024\t65535\n").is_empty());
        assert_eq!(candidates(""), 20_000..30_000);
    }

    #[test]
    fn two_ports_in_a_row_differ() {
        let (one, other) = (free(), free());
        assert!(one != other || one.is_none(), "{one:?}");
    }
}

//! How much memory a node's processes hold, and how much of it they write: what a live migration has to copy, and to copy again.
//!
//! What they hold is the anonymous memory of each and the largest shared mapping of any (proc_pid_status(5)). What they write is
//! counted as what they hand to the kernel in write calls, `wchar` in proc_pid_io(5): in a virtual machine every such byte dirties
//! a page of the guest. What a process changes in its own memory alone is not seen, unless it makes it grow: the kernel's own
//! count of it (soft-dirty bits) is not built into every kernel.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use crate::process_table::{self, Identity};

/// A node's memory at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeMemory {
    /// What its processes hold.
    pub held_bytes: u64,
    /// What each has written since it began.
    written_bytes: BTreeMap<Identity, u64>,
}

impl NodeMemory {
    /// Of the processes of a PID namespace.
    ///
    /// # Errors
    /// When `/proc` cannot be listed, or does not tell what processes write.
    pub fn of(pid_namespace: u64) -> io::Result<NodeMemory> {
        let mut memory = NodeMemory::default();
        let mut largest_shared = 0;
        for identity in process_table::look(pid_namespace)?.into_keys() {
            let read = |file: &str| fs::read_to_string(format!("/proc/{}/{file}", identity.pid));
            // A process that ends while we look holds nothing.
            let Ok(status) = read("status") else { continue };
            let io = match read("io") {
                Ok(io) => io,
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
                Err(_) => continue,
            };
            memory.held_bytes += number(&status, "RssAnon:") << 10;
            let shared = number(&status, "RssShmem:") + number(&status, "RssFile:");
            largest_shared = largest_shared.max(shared << 10);
            memory.written_bytes.insert(identity, number(&io, "wchar:"));
        }
        memory.held_bytes += largest_shared;
        Ok(memory)
    }

    /// What was written since an earlier moment, and what it holds more than then. What a process wrote that has ended meanwhile is
    /// not known.
    #[must_use]
    pub fn dirtied_since(&self, earlier: &NodeMemory) -> u64 {
        let before = |identity: &Identity| earlier.written_bytes.get(identity).copied().unwrap_or(0);
        let written: u64 =
            self.written_bytes.iter().map(|(identity, bytes)| bytes.saturating_sub(before(identity))).sum();
        written + self.held_bytes.saturating_sub(earlier.held_bytes)
    }
}

/// The number in the line that begins with `name`; 0 where there is no such line.
fn number(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_ascii_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(held_bytes: u64, written: &[(u32, u64)]) -> NodeMemory {
        let of = |(pid, bytes): &(u32, u64)| (Identity { pid: *pid, began_ticks: 1 }, *bytes);
        NodeMemory { held_bytes, written_bytes: written.iter().map(of).collect() }
    }

    #[test]
    fn what_is_dirtied_is_what_was_written_and_what_is_held_more() {
        let before = memory(100, &[(1, 50), (2, 70)]);
        assert_eq!(before.dirtied_since(&before), 0);
        assert_eq!(memory(130, &[(1, 60), (3, 5)]).dirtied_since(&before), 10 + 5 + 30);
        // One that ended took what it held with it.
        assert_eq!(memory(40, &[(1, 50)]).dirtied_since(&before), 0);
    }

    #[test]
    fn numbers_are_read_by_their_names() {
        assert_eq!(number("rchar: 7\nwchar: 12\nsyscw: 3\n", "wchar:"), 12);
        assert_eq!(number("RssAnon:\t     128 kB\nRssShmem:\t  4 kB\n", "RssAnon:"), 128);
        assert_eq!(number("", "wchar:"), 0);
    }
}

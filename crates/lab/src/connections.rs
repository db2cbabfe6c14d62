//! The TCP connections of a node as its own kernel lists them, and how many of them were ever cut off.
//!
//! Evidence for what must leave connections alone. Sources: proc(5), `/proc/PID/net/tcp` and `tcp6`; RFC 2012 and RFC 4022,
//! `tcpEstabResets` in `/proc/PID/net/snmp`.

use std::collections::BTreeSet;
use std::fs;
use std::io;

/// A connection that stands, told from a later one between the same ports by its socket.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Connection {
    local: String,
    remote: String,
    socket: u64,
}

/// All connections of a network namespace at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Connections {
    /// Those that stand and lead elsewhere.
    pub standing: BTreeSet<Connection>,
    /// How many were cut off since the namespace was made, by a reset or because nobody answered.
    pub cut_off: u64,
}

impl Connections {
    /// Of the network namespace of the process with this number.
    ///
    /// # Errors
    /// When its files in `/proc` cannot be read: it has ended.
    pub fn of(pid: u32) -> io::Result<Connections> {
        let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/net/{file}"));
        let mut standing = standing(&read("tcp")?);
        // Without IPv6 there is no such file.
        standing.append(&mut self::standing(&read("tcp6").unwrap_or_default()));
        Ok(Connections { standing, cut_off: cut_off(&read("snmp")?) })
    }

    /// How many of these still stand later.
    #[must_use]
    pub fn surviving(&self, later: &Connections) -> usize {
        self.standing.intersection(&later.standing).count()
    }
}

/// The connections that stand, `01` in the fourth column, of which both ends are not the same address.
fn standing(table: &str) -> BTreeSet<Connection> {
    let connection = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, local, remote, "01", _, _, _, _, _, socket, ..] = fields.as_slice() else { return None };
        let is_within = local.split(':').next() == remote.split(':').next();
        let socket = socket.parse().ok()?;
        (!is_within).then(|| Connection { local: (*local).to_owned(), remote: (*remote).to_owned(), socket })
    };
    table.lines().skip(1).filter_map(connection).collect()
}

/// `EstabResets` of the two lines that begin with `Tcp:`, names and numbers.
fn cut_off(snmp: &str) -> u64 {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let (Some(names), Some(numbers)) = (lines.next(), lines.next()) else { return 0 };
    let mut pairs = names.split_ascii_whitespace().zip(numbers.split_ascii_whitespace());
    pairs.find(|(name, _)| *name == "EstabResets").and_then(|(_, number)| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100020A:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77 1 0 100 0 0 10 0
   1: 0100020A:1538 0100030A:9C40 01 00000000:00000000 00:00000000 00000000     0        0 78 1 0 20 4 30 10 -1
   2: 0100020A:1538 0100020A:9C41 01 00000000:00000000 00:00000000 00000000     0        0 79 1 0 20 4 30 10 -1
   3: 0100020A:1538 0100030A:9C42 08 00000000:00000000 00:00000000 00000000     0        0 80 1 0 20 4 30 10 -1
";

    #[test]
    fn what_listens_closes_or_stays_within_is_no_connection_that_stands() {
        let sockets: Vec<u64> = standing(TABLE).iter().map(|connection| connection.socket).collect();
        assert_eq!(sockets, [78]);
    }

    #[test]
    fn another_socket_between_the_same_ports_is_another_connection() {
        let of = |table: &str| Connections { standing: standing(table), cut_off: 0 };
        assert_eq!(of(TABLE).surviving(&of(TABLE)), 1);
        assert_eq!(of(TABLE).surviving(&of(&TABLE.replace(" 78 ", " 99 "))), 0);
    }

    #[test]
    fn connections_that_were_cut_off_are_counted_by_the_kernel() {
        let snmp = "Ip: Forwarding\nIp: 1\nTcp: RtoAlgorithm EstabResets CurrEstab\nTcp: 1 42 7\n";
        assert_eq!((cut_off(snmp), cut_off("")), (42, 0));
        let own = Connections::of(std::process::id()).expect("our own");
        assert!(own.standing.len() < 100_000);
    }
}

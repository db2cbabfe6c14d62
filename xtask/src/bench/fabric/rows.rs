//! From readings to the table: what is held beside what, and what is good enough.

use super::measures::RATES;
use super::toxiproxy::NAME;
use super::{OTHERS_BUSY, Readings};
use crate::bench::table::{Goal, Row};

/// Where there is nothing to stand beside.
const NO_PEER: &str = "no peer";

/// Readings as rows are made of them.
struct Sheet<'a> {
    readings: &'a Readings,
    pairs: usize,
    /// The peer's name, and why it is missing if it is.
    peer: String,
}

/// Every row of which something was measured.
pub fn rows(readings: &Readings, pairs: usize, why_no_peer: Option<&str>) -> Vec<Row> {
    let peer = match why_no_peer {
        None => NAME.to_owned(),
        // One line, as a table's cell must be.
        Some(why) => format!("{NAME} (not to be had: {})", why.lines().next().unwrap_or_default()),
    };
    let sheet = Sheet { readings, pairs, peer };
    let was_measured = |row: &Row| row.ours.is_some() || row.theirs.is_some();
    let mut rows = Vec::new();
    rows.extend(sheet.round_trip_rows());
    rows.extend(sheet.stream_rows());
    rows.extend(sheet.kernel_path_rows());
    rows.extend(sheet.small_packet_rows());
    rows.extend(sheet.lateness_rows());
    rows.extend(sheet.rate_rows());
    rows.extend(sheet.crowd_rows());
    rows.retain(was_measured);
    rows
}

impl Sheet<'_> {
    fn reading(&self, name: &str, pair: usize) -> Option<f64> {
        self.readings.get(name)?.get(&pair).copied()
    }

    /// One reading beside another.
    fn beside(
        &self,
        what: &str,
        unit: &str,
        ours: &str,
        peer: &str,
        theirs: Option<&str>,
        goal: Option<Goal>,
    ) -> Row {
        let pairs: Vec<_> = (0..self.pairs)
            .map(|pair| (self.reading(ours, pair), theirs.and_then(|theirs| self.reading(theirs, pair))))
            .collect();
        Row::of_readings(what, peer, unit, &pairs, goal)
    }

    /// What ours adds to its ground beside what toxiproxy adds to its own.
    fn added(&self, what: &str, ours: &str, figure: &str, goal: Option<Goal>) -> Row {
        let less = |of: &str, ground: &str, pair| {
            Some(
                self.reading(&format!("{of} {figure}"), pair)?
                    - self.reading(&format!("{ground} {figure}"), pair)?,
            )
        };
        let pairs: Vec<_> = (0..self.pairs)
            .map(|pair| (less(ours, "veth", pair), less("toxiproxy", "loopback", pair)))
            .collect();
        Row::of_readings(what, &self.peer, "us", &pairs, goal)
    }

    fn round_trip_rows(&self) -> Vec<Row> {
        let (p50, p99) = ("round trip p50 us", "round trip p99 us");
        let (ours, plain) = (format!("fabric {p50}"), format!("veth {p50}"));
        let halting = |whose: &str| format!("halting {whose} {p50}");
        vec![
            self.beside("1-byte round trip, p50", "us", &ours, "veth pair", Some(&plain), None),
            self.added("added to a round trip, p50", "fabric", p50, Some(Goal::OursAtMost(16.0))),
            self.added("added, busy polling, p50", "busy fabric", p50, Some(Goal::OursAtMost(6.0))),
            self.beside(
                "1-byte round trip, processors that sleep when idle, p50",
                "us",
                &halting("fabric"),
                "veth pair",
                Some(&halting("veth")),
                None,
            ),
            self.added("added to a round trip, p99", "fabric", p99, None),
            self.added("added, busy polling, p99", "busy fabric", p99, None),
        ]
    }

    fn stream_rows(&self) -> Vec<Row> {
        let speed = "throughput Gbit/s";
        let (ours, plain) = (format!("fabric {speed}"), format!("veth {speed}"));
        let (theirs, cpu) = (format!("toxiproxy {speed}"), "toxiproxy CPU s per GB");
        let least = Some(Goal::RatioAtLeast(0.6));
        vec![
            self.beside("one TCP stream", "Gbit/s", &ours, "veth pair", Some(&plain), least),
            self.beside("one TCP stream", "Gbit/s", &ours, &self.peer, Some(&theirs), None),
            self.beside(
                "CPU of the carrier per GB",
                "s",
                "fabric CPU s per GB",
                &self.peer,
                Some(cpu),
                Some(Goal::OursAtMost(0.3)),
            ),
        ]
    }

    /// The kernel's own path beside the veth pair that a packet cannot do without.
    fn kernel_path_rows(&self) -> Vec<Row> {
        let more = |what: &str, figure: &str, goal| {
            let of = |pair| {
                let plain = self.reading(&format!("veth {figure}"), pair)?;
                Some(self.reading(&format!("kernel path {figure}"), pair)? - plain)
            };
            let pairs: Vec<_> = (0..self.pairs).map(|pair| (of(pair), None)).collect();
            Row::of_readings(what, NO_PEER, "us", &pairs, goal)
        };
        let most = Some(Goal::OursAtMost(4.0));
        let beside = |what: &str, unit: &str, figure: &str, goal| {
            let (ours, plain) = (format!("kernel path {figure}"), format!("veth {figure}"));
            self.beside(what, unit, &ours, "veth pair", Some(&plain), goal)
        };
        vec![
            more("kernel's path: added to a round trip, p50", "round trip p50 us", most),
            more("kernel's path: added to a round trip, p99", "round trip p99 us", None),
            more("kernel's path: CPU added to a small packet, a flood", "flood machine us a packet", most),
            beside(
                "kernel's path: one TCP stream",
                "Gbit/s",
                "throughput Gbit/s",
                Some(Goal::RatioAtLeast(0.8)),
            ),
            beside("kernel's path: packets carried in a flood", "1/s", "flood packets a second", None),
        ]
    }

    fn small_packet_rows(&self) -> Vec<Row> {
        let most = Some(Goal::OursAtMost(5.0));
        let theirs = "toxiproxy round trip CPU us a packet";
        vec![
            self.beside(
                "CPU per small packet, one at a time",
                "us",
                "fabric round trip CPU us a packet",
                &self.peer,
                Some(theirs),
                most,
            ),
            self.beside(
                "the same, busy polling",
                "us",
                "busy fabric round trip CPU us a packet",
                &self.peer,
                Some(theirs),
                None,
            ),
            self.beside(
                "CPU per small packet, a flood",
                "us",
                "fabric flood CPU us a packet",
                NO_PEER,
                None,
                most,
            ),
            self.beside(
                "packets carried in a flood",
                "1/s",
                "fabric flood packets a second",
                NO_PEER,
                None,
                None,
            ),
        ]
    }

    fn lateness_rows(&self) -> Vec<Row> {
        let row = |share: &str, most: f64| {
            let name = |whose: &str| format!("{whose} lateness {share} ms");
            let what = format!("lateness of a 50 ms delay, {share}");
            self.beside(
                &what,
                "ms",
                &name("fabric"),
                &self.peer,
                Some(&name("toxiproxy")),
                Some(Goal::OursAtMost(most)),
            )
        };
        vec![row("p50", 0.1), row("p99", 0.5)]
    }

    fn rate_rows(&self) -> Vec<Row> {
        let row = |rate: &str| {
            let name = |whose: &str| format!("{whose} error at {rate} percent");
            let what = format!("error of a limit of {rate}");
            self.beside(
                &what,
                "%",
                &name("fabric"),
                &self.peer,
                Some(&name("toxiproxy")),
                Some(Goal::OursAtMost(2.0)),
            )
        };
        RATES.iter().map(|rate| row(rate.name)).collect()
    }

    fn crowd_rows(&self) -> Vec<Row> {
        let alone =
            |what: &str, unit: &str, name: &str, goal| self.beside(what, unit, name, NO_PEER, None, goal);
        vec![
            alone("200 hosts, all to all: packets", "packets", "fabric all-to-all packets", None),
            alone(
                "of these lost",
                "packets",
                "fabric all-to-all lost packets",
                Some(Goal::EachOfOursAtMost(0.0)),
            ),
            alone("1000 hosts up", "s", "fabric thousand hosts up s", Some(Goal::OursAtMost(3.0))),
            alone("1000 hosts let go", "s", "fabric thousand hosts let go s", None),
            alone("1000 hosts gone from the kernel", "s", "fabric thousand hosts gone s", None),
            alone("processor time that others took meanwhile", "%", OTHERS_BUSY, None),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn readings(rows: &[(&str, &[f64])]) -> Readings {
        let by_pair = |values: &[f64]| values.iter().copied().enumerate().collect::<BTreeMap<_, _>>();
        rows.iter().map(|(name, values)| ((*name).to_owned(), by_pair(values))).collect()
    }

    #[test]
    fn what_is_added_is_taken_within_pairs() {
        let readings = readings(&[
            ("fabric round trip p50 us", &[30.0, 60.0]),
            ("veth round trip p50 us", &[20.0, 50.0]),
            ("toxiproxy round trip p50 us", &[70.0, 110.0]),
            ("loopback round trip p50 us", &[20.0, 60.0]),
        ]);
        let rows = rows(&readings, 2, None);
        let row = rows.iter().find(|row| row.what == "added to a round trip, p50").expect("a row");
        assert_eq!(row.ours.map(|ours| (ours.min, ours.max)), Some((10.0, 10.0)));
        assert_eq!(row.theirs.map(|theirs| theirs.median), Some(50.0));
        assert_eq!(row.met, Some(true));
    }

    #[test]
    fn a_peer_that_is_not_there_leaves_its_columns_empty_and_says_why() {
        let readings = readings(&[("fabric lateness p50 ms", &[0.2]), ("fabric lateness p99 ms", &[0.3])]);
        let rows = rows(&readings, 1, Some("start go: no such file\nmore"));
        assert_eq!(rows.len(), 2, "nothing else was measured");
        assert!(rows[0].peer.contains("start go: no such file") && rows[0].theirs.is_none());
        assert_eq!((rows[0].met, rows[1].met), (Some(false), Some(true)));
    }
}

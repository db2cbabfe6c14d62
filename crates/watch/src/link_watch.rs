//! What each link carries, second by second: into `links.csv` as it happens, and drawn together for the result.
//!
//! Owns the sampling; the fabric counts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fabric::{Fabric, LinkCounters};
use results::LinkResult;

use crate::each_second::Seconds;
use crate::file_watch::{FileWatch, Rows, WatchError};

/// Name of the file in the run directory.
pub const LINKS_FILE: &str = "links.csv";
/// Its first line; the report reads it.
const HEADER: &str = "t_s,link,packets,bytes,dropped_packets,utilisation,waiting_bytes";

/// The running watch. Dropping it ends it.
pub struct LinkWatch(FileWatch<Vec<LinkResult>>);

impl LinkWatch {
    /// Watches from `zero` on, the moment the loads begin.
    ///
    /// # Errors
    /// When the file or the thread cannot be made.
    pub fn start(fabric: Arc<Fabric>, directory: &Path, zero: Instant) -> Result<LinkWatch, WatchError> {
        let job = move |rows: Rows, seconds: Seconds| watch(&fabric, rows, seconds);
        FileWatch::start("links", (directory.join(LINKS_FILE), HEADER), zero, job).map(LinkWatch)
    }

    /// Ends it, and says what each link carried.
    ///
    /// # Errors
    /// When something could not be written or asked for: the figures are not complete then.
    pub fn finish(self) -> Result<Vec<LinkResult>, WatchError> {
        self.0.finish()
    }
}

fn watch(fabric: &Fabric, mut rows: Rows, mut seconds: Seconds) -> Result<Vec<LinkResult>, WatchError> {
    let look = || fabric.link_counters().map_err(|error| WatchError::Gone(format!("links: {error}")));
    seconds.begin();
    let mut watched = Watched::new(look()?);
    for (second, elapsed) in seconds {
        for (link, row) in watched.take(look()?, elapsed) {
            let utilisation = row.utilisation.map_or_else(String::new, |share| format!("{share:.4}"));
            rows.add(format_args!(
                "{second},{link},{},{},{},{utilisation},{}",
                row.packets, row.bytes, row.dropped_packets, row.waiting_bytes
            ))?;
        }
        rows.flush()?;
    }
    Ok(watched.results.into_values().collect())
}

/// One link in one second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Row {
    packets: u64,
    bytes: u64,
    dropped_packets: u64,
    /// Share of the time it was sending; only where it has a rate.
    utilisation: Option<f64>,
    waiting_bytes: u64,
}

struct Watched {
    before: BTreeMap<String, LinkCounters>,
    results: BTreeMap<String, LinkResult>,
    /// How long each rated link was there and how long it was sending.
    busy: BTreeMap<String, (Duration, Duration)>,
}

impl Watched {
    fn new(before: BTreeMap<String, LinkCounters>) -> Watched {
        Watched { before, results: BTreeMap::new(), busy: BTreeMap::new() }
    }

    /// What each link that is there did since the last time, `elapsed` ago.
    fn take(&mut self, now: BTreeMap<String, LinkCounters>, elapsed: Duration) -> Vec<(String, Row)> {
        let mut rows = Vec::with_capacity(now.len());
        for (name, counters) in &now {
            // A link that has counted less than before is another one of the same name.
            let before = self.before.get(name).filter(|before| {
                before.taken_packets <= counters.taken_packets
                    && before.taken_bytes <= counters.taken_bytes
                    && before.busy_ns <= counters.busy_ns
            });
            let before = before.copied().unwrap_or_default();
            let busy = Duration::from_nanos(counters.busy_ns - before.busy_ns).min(elapsed);
            let row = Row {
                packets: counters.taken_packets - before.taken_packets,
                bytes: counters.taken_bytes - before.taken_bytes,
                dropped_packets: counters.dropped_packets.saturating_sub(before.dropped_packets),
                utilisation: counters
                    .rate_bits_per_s
                    .filter(|_| !elapsed.is_zero())
                    .map(|_| busy.as_secs_f64() / elapsed.as_secs_f64()),
                waiting_bytes: counters.waiting_bytes,
            };
            self.add(name, counters, row, (elapsed, busy));
            rows.push((name.clone(), row));
        }
        self.before = now;
        rows
    }

    fn add(&mut self, name: &str, counters: &LinkCounters, row: Row, (elapsed, busy): (Duration, Duration)) {
        let result = self.results.entry(name.to_owned()).or_insert_with(|| LinkResult {
            name: name.to_owned(),
            rate_bits_per_s: counters.rate_bits_per_s,
            ..LinkResult::default()
        });
        result.packets += row.packets;
        result.bytes += row.bytes;
        result.dropped_packets += row.dropped_packets;
        result.waiting_bytes_max = result.waiting_bytes_max.max(row.waiting_bytes);
        if let Some(share) = row.utilisation {
            let times = self.busy.entry(name.to_owned()).or_default();
            *times = (times.0 + elapsed, times.1 + busy);
            result.utilisation = Some(times.1.as_secs_f64() / times.0.as_secs_f64());
            result.utilisation_max = Some(result.utilisation_max.unwrap_or_default().max(share));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(bytes: u64, busy_ms: u64, rate_bits_per_s: Option<u64>) -> BTreeMap<String, LinkCounters> {
        let link = LinkCounters {
            rate_bits_per_s,
            taken_packets: bytes / 100,
            taken_bytes: bytes,
            busy_ns: busy_ms * 1_000_000,
            ..LinkCounters::default()
        };
        BTreeMap::from([("edge".to_owned(), link)])
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn each_second_counts_for_itself_and_the_totals_add_up() {
        let mut watched = Watched::new(counters(1_000, 100, Some(8)));
        let first = watched.take(counters(3_000, 600, Some(8)), SECOND);
        assert_eq!((first[0].1.bytes, first[0].1.utilisation), (2_000, Some(0.5)));
        let second = watched.take(counters(4_000, 700, Some(8)), SECOND);
        assert_eq!((second[0].1.packets, second[0].1.utilisation), (10, Some(0.1)));
        let total = &watched.results["edge"];
        assert_eq!((total.bytes, total.packets), (3_000, 30));
        assert!((total.utilisation.unwrap_or_default() - 0.3).abs() < 1e-9);
        assert_eq!(total.utilisation_max, Some(0.5));
    }

    #[test]
    fn a_link_without_a_rate_has_no_utilisation() {
        let mut watched = Watched::new(BTreeMap::new());
        assert_eq!(watched.take(counters(500, 0, None), SECOND)[0].1.utilisation, None);
        assert_eq!(watched.results["edge"].utilisation, None);
    }

    #[test]
    fn a_link_that_comes_again_under_its_name_starts_from_nothing() {
        let mut watched = Watched::new(counters(10_000, 900, Some(8)));
        let row = watched.take(counters(200, 10, Some(8)), SECOND)[0].1;
        assert_eq!((row.bytes, row.packets), (200, 2));
        // Within the same second it may take more packets than the one before, and smaller ones.
        let mut small = counters(100, 20, Some(8));
        small.values_mut().for_each(|link| link.taken_packets = 5);
        let row = watched.take(small, SECOND)[0].1;
        assert_eq!((row.bytes, row.packets), (100, 5));
    }
}

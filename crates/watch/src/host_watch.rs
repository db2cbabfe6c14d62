//! What each host does, second by second, into `hosts.csv` as it happens: the processors that its nodes use, and what its disks
//! hand out and make durable.
//!
//! Owns the sampling. `/proc` counts the CPU time, the disks count their traffic. A node counts on the host it is on when a
//! second ends.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use disk::DiskTraffic;
use platform::Datacentre;

use crate::each_second::Seconds;
use crate::file_watch::{FileWatch, Rows, WatchError};

/// Name of the file in the run directory.
const HOSTS_FILE: &str = "hosts.csv";
/// Its first line; the report reads it.
const HEADER: &str = "t_s,host,processors,read_bytes,durable_bytes,syncs";

/// The running watch. Dropping it ends it.
pub struct HostWatch(FileWatch<()>);

impl HostWatch {
    /// Watches from `zero` on, the moment the loads begin.
    ///
    /// # Errors
    /// When the file or the thread cannot be made.
    pub fn start(
        datacentre: Arc<Datacentre>,
        directory: &Path,
        zero: Instant,
    ) -> Result<HostWatch, WatchError> {
        let job = move |rows: Rows, seconds: Seconds| watch(&datacentre, rows, seconds);
        FileWatch::start("hosts", (directory.join(HOSTS_FILE), HEADER), zero, job).map(HostWatch)
    }

    /// Ends it.
    ///
    /// # Errors
    /// When something could not be written or read: the file is not complete then.
    pub fn finish(self) -> Result<(), WatchError> {
        self.0.finish()
    }
}

fn watch(datacentre: &Datacentre, mut rows: Rows, mut seconds: Seconds) -> Result<(), WatchError> {
    let look = || Counts::of(datacentre).map_err(|error| WatchError::Gone(format!("hosts: {error}")));
    seconds.begin();
    let mut before = look()?;
    for (second, elapsed) in seconds {
        let now = look()?;
        for (host, name) in datacentre.hosts.iter().map(|host| host.name()).enumerate() {
            let row = now.row(&before, host, elapsed);
            rows.add(format_args!(
                "{second},{name},{:.3},{},{},{}",
                row.processors, row.disks.read_bytes, row.disks.durable_bytes, row.disks.syncs
            ))?;
        }
        before = now;
        rows.flush()?;
    }
    Ok(())
}

/// What was counted up to a moment.
struct Counts {
    /// Of each node: the host it is on, and its CPU time.
    nodes: Vec<(usize, Duration)>,
    /// Of each host.
    disks: Vec<DiskTraffic>,
}

/// A host in a second.
#[derive(Debug, PartialEq)]
struct Row {
    processors: f64,
    disks: DiskTraffic,
}

impl Counts {
    fn of(datacentre: &Datacentre) -> std::io::Result<Counts> {
        let cpu = datacentre.cpu_by_vm()?;
        Ok(Counts {
            nodes: datacentre.vms.iter().map(|vm| vm.host()).zip(cpu).collect(),
            disks: (0..datacentre.hosts.len()).map(|host| datacentre.disks.traffic_of(host)).collect(),
        })
    }

    fn row(&self, before: &Counts, host: usize, elapsed: Duration) -> Row {
        let used: Duration = self
            .nodes
            .iter()
            .zip(&before.nodes)
            .filter(|((on, _), _)| *on == host)
            // Between a boot's end and its last account a node may seem to have used less.
            .map(|((_, now), (_, before))| now.saturating_sub(*before))
            .sum();
        let (now, then) = (self.disks[host], before.disks[host]);
        Row {
            processors: if elapsed.is_zero() { 0.0 } else { used.as_secs_f64() / elapsed.as_secs_f64() },
            disks: DiskTraffic {
                read_bytes: now.read_bytes - then.read_bytes,
                durable_bytes: now.durable_bytes - then.durable_bytes,
                syncs: now.syncs - then.syncs,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_counts_on_the_host_it_is_on_and_one_whose_account_goes_back_counts_nothing() {
        let traffic = |durable_bytes| DiskTraffic { durable_bytes, ..DiskTraffic::default() };
        let second = Duration::from_secs;
        let before = Counts {
            nodes: vec![(0, second(5)), (0, second(1)), (1, second(9))],
            disks: vec![traffic(10), traffic(0)],
        };
        let now = Counts {
            nodes: vec![(0, second(6)), (1, second(2)), (1, second(8))],
            disks: vec![traffic(40), traffic(2)],
        };
        let row = |host| now.row(&before, host, second(2));
        assert_eq!(row(0), Row { processors: 0.5, disks: traffic(30) });
        assert_eq!(row(1), Row { processors: 0.5, disks: traffic(2) });
    }
}

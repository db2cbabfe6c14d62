//! What each host does, second by second, into `hosts.csv` as it happens: the processors that its nodes use, the memory that they
//! hold, and what its disks hand out and make durable.
//!
//! Owns the sampling. `/proc` counts the CPU time and the memory, the disks count their traffic. A node counts on the host it is on
//! when a second ends. Its control group is not asked for its memory: not every lab has one, and it counts the files in the
//! kernel's memory, too.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use disk::DiskTraffic;
use history::{HostId, PerHost};
use lab::accounting::NamespaceUse;
use platform::Datacentre;

use crate::each_second::Seconds;
use crate::file_watch::{FileWatch, Rows, WatchError};

/// Name of the file in the run directory.
const HOSTS_FILE: &str = "hosts.csv";
/// Its first line; the report reads it.
const HEADER: &str = "t_s,host,processors,read_bytes,durable_bytes,syncs,memory_bytes";

/// The running watch. Dropping it ends it.
pub struct HostWatch(FileWatch<Option<u64>>);

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

    /// Ends it, and says how much memory all nodes held at most, bytes; none where no second has passed.
    ///
    /// # Errors
    /// When something could not be written or read: the file is not complete then.
    pub fn finish(self) -> Result<Option<u64>, WatchError> {
        self.0.finish()
    }
}

fn watch(datacentre: &Datacentre, mut rows: Rows, mut seconds: Seconds) -> Result<Option<u64>, WatchError> {
    let look = || Counts::of(datacentre).map_err(|error| WatchError::Gone(format!("hosts: {error}")));
    seconds.begin();
    let mut before = look()?;
    let mut memory_bytes_max: Option<u64> = None;
    for (second, elapsed) in seconds {
        let now = look()?;
        for (host, of) in datacentre.hosts.numbered() {
            let name = of.name();
            let Row { processors, memory_bytes, disks } = now.row(&before, host, elapsed);
            rows.add(format_args!(
                "{second},{name},{processors:.3},{},{},{},{memory_bytes}",
                disks.read_bytes, disks.durable_bytes, disks.syncs
            ))?;
        }
        memory_bytes_max = memory_bytes_max.max(Some(now.nodes.iter().map(|node| node.memory_bytes).sum()));
        before = now;
        rows.flush()?;
    }
    Ok(memory_bytes_max)
}

/// What was counted up to a moment.
struct Counts {
    nodes: Vec<NodeCounts>,
    /// Of each host.
    disks: PerHost<DiskTraffic>,
}

/// A node at that moment.
struct NodeCounts {
    /// The host it is on.
    host: HostId,
    cpu: Duration,
    memory_bytes: u64,
}

/// A host in a second.
#[derive(Debug, PartialEq)]
struct Row {
    processors: f64,
    memory_bytes: u64,
    disks: DiskTraffic,
}

impl Counts {
    fn of(datacentre: &Datacentre) -> std::io::Result<Counts> {
        let nodes = datacentre.vms.iter().map(|vm| vm.host()).zip(datacentre.use_by_vm()?);
        let of = |(host, used): (HostId, NamespaceUse)| {
            let (cpu, memory_bytes) = (used.cpu, used.memory_bytes());
            NodeCounts { host, cpu, memory_bytes }
        };
        Ok(Counts {
            nodes: nodes.map(of).collect(),
            disks: datacentre.hosts.ids().map(|host| datacentre.disks.traffic_of(host)).collect(),
        })
    }

    fn row(&self, before: &Counts, host: HostId, elapsed: Duration) -> Row {
        let on_host = || self.nodes.iter().zip(&before.nodes).filter(move |(now, _)| now.host == host);
        // Between a boot's end and its last account a node may seem to have used less.
        let used: Duration = on_host().map(|(now, before)| now.cpu.saturating_sub(before.cpu)).sum();
        let memory_bytes: u64 = on_host().map(|(now, _)| now.memory_bytes).sum();
        let (now, then) = (self.disks[host], before.disks[host]);
        Row {
            processors: if elapsed.is_zero() { 0.0 } else { used.as_secs_f64() / elapsed.as_secs_f64() },
            memory_bytes,
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
        let node = |host: usize, cpu_s, memory_bytes| NodeCounts {
            host: HostId::new(host),
            cpu: second(cpu_s),
            memory_bytes,
        };
        let before = Counts {
            nodes: vec![node(0, 5, 100), node(0, 1, 200), node(1, 9, 400)],
            disks: vec![traffic(10), traffic(0)].into(),
        };
        let now = Counts {
            nodes: vec![node(0, 6, 101), node(1, 2, 202), node(1, 8, 404)],
            disks: vec![traffic(40), traffic(2)].into(),
        };
        let row = |host| now.row(&before, HostId::new(host), second(2));
        assert_eq!(row(0), Row { processors: 0.5, memory_bytes: 101, disks: traffic(30) });
        assert_eq!(row(1), Row { processors: 0.5, memory_bytes: 606, disks: traffic(2) });
    }
}

//! What passes between the outer process and the lab's supervisor: orders in, news out; JSON, one message a line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use engine::System;
use faults::Planted;
use history::{Event, Verdict};
use lab::MACHINE_FOLDERS;
use lab::protocol::{CLUSTER, ShownPrograms, WholeSystem};
use serde::{Deserialize, Serialize};

/// Everything the supervisor needs, sent as its first line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Orders {
    /// Holdfast's version.
    pub holdfast: String,
    /// The resolved scenario as YAML.
    pub scenario: String,
    pub seed: u64,
    /// When the run began, RFC 3339.
    pub started_at: String,
    /// The run directory, absolute.
    pub run_directory: PathBuf,
    /// Name of the run, unique on this machine while it lasts.
    pub run_name: String,
    /// The database's programs; of a cluster that exists none are needed.
    #[serde(default)]
    pub installation: InstallationOrders,
    /// The programs that nodes are upgraded to, where the schedule does that.
    #[serde(default)]
    pub upgrade: Option<InstallationOrders>,
    /// The folder of the programs of a cluster that runs the database in pods, where one does.
    #[serde(default)]
    pub cluster_programs: Option<PathBuf>,
    /// The folder of the client program's driver, where one was installed.
    #[serde(default)]
    pub driver: Option<PathBuf>,
    /// Facts about the machine.
    pub machine: BTreeMap<String, String>,
    /// Faults are announced but not carried out: shows that a run whose faults have no effect is not passed.
    pub prevent_faults: bool,
    /// Lies planted by a test; empty in every honest run.
    #[serde(default)]
    pub planted: Planted,
    /// Leave the lab up at the end until told to stop.
    pub keep: bool,
    /// What packets are to be written down of, by name.
    #[serde(default)]
    pub captures: Vec<String>,
    /// The name under which somebody confirmed that a cluster which exists may be broken.
    #[serde(default)]
    pub confirmed: Option<String>,
    /// What the nodes' volumes begin with, and what becomes of them.
    #[serde(default)]
    pub volumes: VolumeOrders,
}

impl Orders {
    /// The programs that nodes are shown: those they begin with, and those they are upgraded to.
    #[must_use]
    pub fn shown_to_nodes(&self) -> Vec<ShownPrograms> {
        let both = [Some(&self.installation), self.upgrade.as_ref()];
        let cluster = self.cluster_programs.iter();
        let cluster = cluster.map(|folder| ShownPrograms {
            outside: folder.clone(),
            inside: PathBuf::from(CLUSTER),
            system: None,
        });
        both.into_iter().filter_map(|programs| programs?.shown_to_nodes()).chain(cluster).collect()
    }
}

/// What the nodes' volumes begin with, and what becomes of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VolumeOrders {
    /// They begin empty, and go with the lab.
    #[default]
    New,
    /// They begin empty. Once the loads' tables are on them they are remembered, and no run is made.
    Remember,
    /// They begin as they were remembered. After the run it is told whether they can be returned for another one.
    Return,
}

/// The database's programs, as found outside.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallationOrders {
    /// The folder of its programs.
    pub bin: PathBuf,
    pub version: String,
    /// How it was come by, in words.
    pub origin: String,
    /// Where its libraries are, when they are not found by themselves.
    pub library_path: Option<PathBuf>,
    /// The folder that holds all of it, or its one program.
    pub root: PathBuf,
    /// Programs by name that need not lie in `bin`.
    #[serde(default)]
    pub programs: BTreeMap<String, PathBuf>,
    /// The other path under which nodes must be shown that folder, because their user cannot reach it.
    #[serde(default)]
    pub shown_at: Option<PathBuf>,
    /// The system that lies in that folder, where nodes need it in place of the machine's.
    #[serde(default)]
    pub system: Option<System>,
}

impl InstallationOrders {
    /// Whether it is one program, in a folder with others that are not of it.
    #[must_use]
    pub fn is_one_program(&self) -> bool {
        self.root.parent() == Some(&self.bin)
    }

    /// What of it nodes are shown: nothing where it lies among the machine's programs, which they see anyway.
    #[must_use]
    pub fn shown_to_nodes(&self) -> Option<ShownPrograms> {
        let is_the_machines = MACHINE_FOLDERS.iter().any(|folder| self.bin.starts_with(folder));
        let inside = match (&self.shown_at, self.root.file_name()) {
            (Some(folder), Some(name)) if self.is_one_program() => folder.join(name),
            (Some(folder), _) => folder.clone(),
            (None, _) if is_the_machines => return None,
            (None, _) => self.root.clone(),
        };
        let system = self.system.as_ref().map(|system| WholeSystem { folder: system.folder.clone() });
        Some(ShownPrograms { outside: self.root.clone(), inside, system })
    }

    /// Whether nodes thereby see what is at `path`.
    #[must_use]
    pub fn shows_to_nodes(&self, path: &Path) -> bool {
        self.shown_to_nodes().is_some_and(|shown| path.starts_with(shown.outside))
    }
}

/// The line that asks a run to end early, in order.
pub const INTERRUPT: &str = "interrupt";

/// What the supervisor says while it works.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "news", rename_all = "kebab-case")]
pub enum News {
    /// Something happened; it stands in `events.jsonl` as well.
    Event {
        /// What.
        #[serde(flatten)]
        event: Event,
    },
    /// How the loads are doing, once a second.
    Pulse(Pulse),
    /// Tables are being made; told each second, and not in `events.jsonl`.
    Preparing {
        /// The step, as the workload tells it.
        what: String,
        /// Seconds since the load's tables were begun.
        for_s: u64,
    },
    /// The lab is kept up for a person to look around.
    Kept {
        /// The nodes that have power.
        nodes: Vec<String>,
        /// Hosts, and places where clients stand.
        others: Vec<String>,
    },
    /// The volumes were remembered, and the lab ends.
    Remembered,
    /// A run on returned volumes is over, and its nodes are off.
    Emptied {
        /// What of the lab is not as it was at the start, in words; its volumes serve no other run where there is anything.
        doubts: Vec<String>,
    },
    /// The run is over and its result written.
    Finished { verdict: Verdict },
    /// The lab could not do its job.
    Failed {
        /// The error with its causes, one line.
        why: String,
    },
}

/// How the loads are doing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Pulse {
    /// The second just over.
    pub t_s: u64,
    /// Seconds the whole schedule takes.
    pub of_s: u64,
    pub phase: String,
    /// Faults standing, in words.
    pub standing: Vec<String>,
    /// Each load.
    pub loads: Vec<LoadPulse>,
}

/// How one load is doing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadPulse {
    /// Its name.
    pub load: String,
    /// Transactions in that second.
    pub transactions: u64,
    /// Errors in that second.
    pub errors: u64,
    /// 99th percentile of the transaction's latency in that second, microseconds.
    pub p99_us: u64,
    /// Whether the load's rate asked for nothing that was not done.
    #[serde(default)]
    pub nothing_due: bool,
}

#[cfg(test)]
mod tests {
    use lab::protocol::{PROGRAMS, UPGRADE};

    use super::*;

    fn check((bin, root): (&str, &str), shown_at: Option<&str>, expected: Option<(&str, &str)>) {
        let orders = InstallationOrders {
            bin: bin.into(),
            version: "1".to_owned(),
            origin: String::new(),
            library_path: None,
            root: root.into(),
            programs: BTreeMap::new(),
            shown_at: shown_at.map(PathBuf::from),
            system: None,
        };
        let programs = |(outside, inside): (&str, &str)| ShownPrograms {
            outside: outside.into(),
            inside: inside.into(),
            system: None,
        };
        assert_eq!(orders.shown_to_nodes(), expected.map(programs), "{bin}");
    }

    #[test]
    fn nodes_are_shown_the_database_and_nothing_beside_it() {
        check(("/usr/lib/postgresql/15/bin", "/usr/lib/postgresql/15"), None, None);
        check(("/opt/pg/bin", "/opt/pg"), None, Some(("/opt/pg", "/opt/pg")));
        check(("/c/etcd-3/usr/bin", "/c/etcd-3"), Some(PROGRAMS), Some(("/c/etcd-3", PROGRAMS)));
        check(("/c/etcd-4/usr/bin", "/c/etcd-4"), Some(UPGRADE), Some(("/c/etcd-4", UPGRADE)));
        check(
            ("/mine", "/mine/holdfast"),
            Some(PROGRAMS),
            Some(("/mine/holdfast", "/run/node/programs/holdfast")),
        );
    }

    #[test]
    fn an_image_is_shown_as_a_system_in_whose_folder_programs_start() {
        let system = System { folder: "/opt/thing".into(), ..System::default() };
        let (bin, root) = ("/c/thing-1/root/usr/bin".into(), "/c/thing-1/root".into());
        let orders = InstallationOrders {
            bin,
            root,
            shown_at: Some(PROGRAMS.into()),
            system: Some(system),
            ..InstallationOrders::default()
        };
        let shown = ShownPrograms {
            outside: "/c/thing-1/root".into(),
            inside: PROGRAMS.into(),
            system: Some(WholeSystem { folder: "/opt/thing".into() }),
        };
        assert_eq!(orders.shown_to_nodes(), Some(shown));
    }
}

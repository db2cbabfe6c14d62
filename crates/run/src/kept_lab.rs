//! A lab that is kept: volumes with a snapshot of a database that is loaded and has ended in order, which one run after
//! another begins with.
//!
//! Owns which scenarios can have one, and where the volumes are between two runs: in the directory of the lab that made them,
//! from which they are lent to a run's. Whichever of the two they are in has a janitor, so that they go with whoever is killed.
//! What a snapshot is `disk` knows; the runs are `launch`'s.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use lab::janitor::{Janitor, log_path, volumes_path};
use scenario::{Scenario, Volumes};

use crate::directory::RunDirectory;

/// Why every run boots a lab of its own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotKept {
    /// There is no lab.
    #[error("the database runs on a cluster that exists")]
    External,
    /// Volumes without snapshots.
    #[error("its volumes are plain directories")]
    Directories,
    /// Volumes with components on several hosts.
    #[error("its volumes are mirrored")]
    Mirrored,
    /// A cluster that runs the database in pods, and would have to be made again as well.
    #[error("the database runs in pods of a cluster")]
    Pods,
    /// An engine that cannot start again as a whole.
    #[error("{engine} cannot be started again as a whole")]
    Engine {
        /// Its name.
        engine: String,
    },
}

/// Whether the runs of a scenario can begin with the volumes of one lab.
///
/// # Errors
/// Why not.
pub fn may_be_kept(scenario: &Scenario) -> Result<(), NotKept> {
    if scenario.cluster.is_some() {
        return Err(NotKept::External);
    }
    if scenario.database.volumes == Volumes::Directory {
        return Err(NotKept::Directories);
    }
    if scenario.database.storage.as_ref().is_some_and(scenario::Storage::is_mirrored) {
        return Err(NotKept::Mirrored);
    }
    if scenario.database.on.kubernetes().is_some() {
        return Err(NotKept::Pods);
    }
    let engine = scenario.database.engine;
    match engine::registry::of(engine).is_ok_and(|engine| engine.resumes()) {
        true => Ok(()),
        false => Err(NotKept::Engine { engine: engine.name.to_owned() }),
    }
}

/// The volumes of a lab that has ended. Dropping it removes them.
#[derive(Debug)]
pub struct KeptLab {
    // Order matters: the janitor waits for the lock.
    directory: RunDirectory,
    /// The lab's own log, locked as if the lab lived: whoever removes what gone labs left keeps away.
    lock: File,
    janitor: Janitor,
}

impl KeptLab {
    /// The lab that has just ended in this directory.
    pub(crate) fn new(directory: RunDirectory, janitor: Janitor) -> io::Result<KeptLab> {
        let lock = File::open(log_path(directory.path()))?;
        lock.try_lock()?;
        Ok(KeptLab { directory, lock, janitor })
    }

    /// Its directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Lends its volumes to a run, whose janitor must be there already.
    pub(crate) fn lend(&self, run: &RunDirectory) -> io::Result<()> {
        fs::rename(volumes_path(self.path()), volumes_path(run.path()))
    }

    /// Takes them back. The run's lab must have ended, and its janitor must not have been sent to work.
    pub(crate) fn take_back(&self, run: &RunDirectory) -> io::Result<()> {
        fs::rename(volumes_path(run.path()), volumes_path(self.path()))
    }

    /// Removes it. Returns what could not be removed, in words.
    #[must_use]
    pub fn end(self) -> Vec<String> {
        let KeptLab { directory, lock, janitor } = self;
        drop(lock);
        drop(janitor);
        directory.left_behind()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(database: &str, expected: &str) {
        let text = format!(
            "name: k\nsite: {{ regions: {{ dc1: {{ zones: {{ a: {{ hosts: 3 }} }} }} }} }}\ndatabase: {database}\n\
             loads: [{{ workload: register, clients: 1 }}]\nschedule: [{{ phase: baseline, for: 1s }}]\n"
        );
        let source = scenario::Source { name: "k.yaml".to_owned(), text };
        let scenario = scenario::parse(&source, &[]).unwrap_or_else(|error| panic!("{database}: {error}"));
        let told = may_be_kept(&scenario).map_or_else(|why| why.to_string(), |()| "kept".to_owned());
        assert_eq!(told, expected, "{database}");
    }

    #[test]
    fn a_lab_is_kept_where_volumes_have_snapshots_and_the_engine_starts_again_from_them() {
        check("{ engine: control, nodes: 3 }", "kept");
        check("{ engine: postgres, nodes: 3, volumes: torn }", "kept");
        check("{ engine: postgres, nodes: 3, volumes: directory }", "its volumes are plain directories");
        check("{ engine: postgres, nodes: 3, storage: { replicas: 2 } }", "its volumes are mirrored");
        check("{ engine: postgres, nodes: 3, on: kubernetes }", "the database runs in pods of a cluster");
        check("{ engine: etcd, nodes: 3 }", "etcd cannot be started again as a whole");
    }
}

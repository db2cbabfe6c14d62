//! What earlier runs have left whose janitors were killed as well: volumes in their run directories, control groups.
//!
//! Owns how a run that is gone is told from one that lives: a lab has its log locked from its birth to its end, and whoever
//! can lock it knows that there is none. Everything else in a run directory stays.
//!
//! A lab whose starter was killed a moment ago still has its lock: it is waited for.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::cgroup;
use crate::entrance;
use crate::janitor::{log_path, remove_volumes, volumes_path, wait_for_the_lab};
use crate::open_directory::OpenDirectory;

/// Folders below the one given that run directories lie in: `SCENARIO/TIME`, and of a matrix or of repetitions
/// `SCENARIO/TIME/cells/CELL/RUN`.
const DEPTH_MAX: usize = 5;

/// How long labs that are ending are waited for, all together.
const PATIENCE: Duration = Duration::from_secs(10);

/// Removes what runs have left that are gone: control groups, and the volumes in the run directories below `out`. Returns
/// what could not be removed, in words.
#[must_use]
pub fn remove(out: &Path) -> Vec<String> {
    let deadline = Instant::now() + PATIENCE;
    let mut failed = Vec::new();
    remove_below(out, 0, deadline, &mut failed);
    cgroup::remove_abandoned(deadline);
    failed
}

fn remove_below(folder: &Path, depth: usize, deadline: Instant, failed: &mut Vec<String>) {
    // A link is not of a run: what it leads to is somebody's.
    let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    if depth > 0 && is_folder(&volumes_path(folder)) {
        if let Err(error) = remove_abandoned_volumes(folder, deadline) {
            failed.push(format!("volumes of an earlier run in {}: {error}", folder.display()));
        }
        return;
    }
    if depth == DEPTH_MAX {
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        // A link, such as `latest`, is none of it.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_below(&entry.path(), depth + 1, deadline, failed);
        }
    }
}

/// Does nothing where a lab lives, or where no lab of the caller's ever was.
fn remove_abandoned_volumes(run_directory: &Path, deadline: Instant) -> io::Result<()> {
    let open = OpenDirectory::open(run_directory)?;
    let path = open.path();
    let Ok(log) = File::open(log_path(&path)) else { return Ok(()) };
    if fs::metadata(&path)?.uid() != nix::unistd::geteuid().as_raw() {
        return Ok(());
    }
    match entrance::starter_lives(&path) {
        // Its lab may have ended: the volumes are the starter's, which takes those of a kept lab back.
        Some(true) => return Ok(()),
        Some(false) => wait_for_the_lab(&log, deadline),
        None => {}
    }
    if log.try_lock().is_err() {
        return Ok(());
    }
    // Where it stays, it leads nowhere: its process is gone.
    let _ = entrance::withdraw(&path);
    remove_volumes(&volumes_path(&path), deadline)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A run directory with a volume, and its log.
    fn run(out: &Path, name: &str) -> (PathBuf, File) {
        let path = out.join(name);
        fs::create_dir_all(volumes_path(&path).join("n1")).expect("a folder");
        fs::write(volumes_path(&path).join("n1/file"), "x").expect("a file");
        fs::create_dir_all(log_path(&path).parent().expect("a folder")).expect("a folder");
        let log = File::create(log_path(&path)).expect("a log");
        (volumes_path(&path), log)
    }

    #[test]
    fn volumes_of_runs_that_are_gone_are_removed_and_no_others() {
        let out = tempfile::tempdir().expect("a folder");
        let (living, log) = run(out.path(), "a/living");
        log.try_lock().expect("a lock");
        let (gone, _) = run(out.path(), "a/gone");
        let (cell, _) = run(out.path(), "matrix/time/cells/1/run-1");
        let outside = tempfile::tempdir().expect("a folder");
        let (linked, _) = run(outside.path(), "b/linked");
        std::os::unix::fs::symlink(outside.path().join("b"), out.path().join("b")).expect("a link");
        std::os::unix::fs::symlink(&linked, gone.join("n1/link")).expect("a link");
        let strange = out.path().join("c/mine");
        fs::create_dir_all(volumes_path(&strange)).expect("a folder");
        assert_eq!(remove(out.path()), Vec::<String>::new());
        assert!(!gone.exists() && !cell.exists());
        assert!(living.join("n1/file").exists() && linked.join("n1/file").exists());
        assert!(volumes_path(&strange).exists(), "no run was ever there");
        drop(log);
        assert_eq!(remove(out.path()), Vec::<String>::new());
        assert!(!living.exists());
    }

    #[test]
    fn volumes_of_a_lab_that_has_ended_are_its_starters_as_long_as_that_lives() {
        let out = tempfile::tempdir().expect("a folder");
        let (ended, _) = run(out.path(), "a/ended");
        let directory = out.path().join("a/ended");
        entrance::announce(&directory, std::process::id()).expect("announced");
        assert_eq!(remove(out.path()), Vec::<String>::new());
        assert!(ended.exists());
        entrance::withdraw(&directory).expect("withdrawn");
        assert_eq!(remove(out.path()), Vec::<String>::new());
        assert!(!ended.exists());
    }

    #[test]
    fn a_lab_whose_starter_was_killed_is_waited_for() {
        let out = tempfile::tempdir().expect("a folder");
        let (ending, log) = run(out.path(), "a/ending");
        log.try_lock().expect("a lock");
        let mut supervisor = std::process::Command::new("sleep").arg("60").spawn().expect("a process");
        let directory = out.path().join("a/ending");
        entrance::announce(&directory, supervisor.id()).expect("announced");
        assert_eq!(entrance::starter_lives(&directory), Some(true), "this process lives");
        let _ = (supervisor.kill(), supervisor.wait());
        let file = directory.join("lab.json");
        let lab: serde_json::Value = serde_json::from_slice(&fs::read(&file).expect("read")).expect("JSON");
        let gone = serde_json::json!({ "supervisor": lab["supervisor"], "starter": lab["supervisor"] });
        fs::write(&file, gone.to_string()).expect("written");
        std::thread::scope(|scope| {
            let removal = scope.spawn(|| remove(out.path()));
            std::thread::sleep(Duration::from_millis(60));
            assert!(ending.exists() && !removal.is_finished(), "its lock is held");
            drop(log);
            assert_eq!(removal.join().expect("it ends"), Vec::<String>::new());
        });
        assert!(!ending.exists() && !file.exists());
    }
}

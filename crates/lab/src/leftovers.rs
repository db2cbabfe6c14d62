//! What earlier runs have left whose janitors were killed as well: volumes in their run directories, control groups.
//!
//! Owns how a run that is gone is told from one that lives: a lab has its log locked from its birth to its end, and whoever
//! can lock it knows that there is none. Everything else in a run directory stays.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use crate::cgroup;
use crate::janitor::{OpenDirectory, log_path, remove_volumes, volumes_path};

/// Folders below the one given that run directories lie in: `SCENARIO/TIME`, and of a matrix `SCENARIO/TIME/cells/CELL`.
const DEPTH_MAX: usize = 4;

/// Removes what runs have left that are gone: control groups, and the volumes in the run directories below `out`. Returns
/// what could not be removed, in words.
#[must_use]
pub fn remove(out: &Path) -> Vec<String> {
    cgroup::remove_abandoned();
    let mut failed = Vec::new();
    remove_below(out, 0, &mut failed);
    failed
}

fn remove_below(folder: &Path, depth: usize, failed: &mut Vec<String>) {
    if depth > 0 && volumes_path(folder).is_dir() {
        if let Err(error) = remove_abandoned_volumes(folder) {
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
            remove_below(&entry.path(), depth + 1, failed);
        }
    }
}

/// Does nothing where a lab lives, or where no lab of the caller's ever was.
fn remove_abandoned_volumes(run_directory: &Path) -> io::Result<()> {
    let open = OpenDirectory::open(run_directory)?;
    let path = open.path();
    let Ok(log) = File::open(log_path(&path)) else { return Ok(()) };
    let is_ours = fs::metadata(&path)?.uid() == nix::unistd::geteuid().as_raw();
    if !is_ours || log.try_lock().is_err() {
        return Ok(());
    }
    // Where it stays, it leads nowhere: its process is gone.
    let _ = crate::entrance::withdraw(&path);
    remove_volumes(&volumes_path(&path), Instant::now())
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
        let (cell, _) = run(out.path(), "matrix/time/cells/one");
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
}

//! Receipts of upgrades: which installation's files a node's processes run from and have open.
//!
//! Files are told by device and inode, so that it does not matter under which path a node finds them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use history::{Receipt, Verdict};
use lab::process_table::{FileIdentity, files_of};

use super::{Before, Onlooker};

/// The programs that nodes begin with and those that they are upgraded to.
#[derive(Debug, Clone)]
pub struct Upgrade {
    from: InstalledFiles,
    to: InstalledFiles,
}

/// What is installed of one version.
#[derive(Debug, Clone)]
pub struct InstalledFiles {
    version: String,
    files: BTreeSet<FileIdentity>,
}

impl InstalledFiles {
    /// The programs by name where they are known so, otherwise all in `bin`; and, where `root` is a folder of its own around
    /// `bin`, all that lies in it.
    #[must_use]
    pub fn of(
        version: &str,
        programs: &BTreeMap<String, PathBuf>,
        bin: &Path,
        root: &Path,
    ) -> InstalledFiles {
        let mut files: BTreeSet<FileIdentity> =
            programs.values().filter_map(|path| FileIdentity::of(path).ok()).collect();
        if root != bin && root.is_dir() {
            add_all_in(root, &mut files);
        } else if programs.is_empty() {
            add_all_in(bin, &mut files);
        }
        InstalledFiles { version: version.to_owned(), files }
    }
}

fn add_all_in(folder: &Path, files: &mut BTreeSet<FileIdentity>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => add_all_in(&entry.path(), files),
            Ok(kind) if kind.is_file() => files.extend(FileIdentity::of(&entry.path()).ok()),
            _ => {}
        }
    }
}

impl Upgrade {
    /// From one version to another. What both have in common, such as the machine's Java, tells nothing.
    #[must_use]
    pub fn new(mut from: InstalledFiles, mut to: InstalledFiles) -> Upgrade {
        let common: BTreeSet<FileIdentity> = from.files.intersection(&to.files).copied().collect();
        from.files.retain(|file| !common.contains(file));
        to.files.retain(|file| !common.contains(file));
        Upgrade { from, to }
    }

    /// In words: `3.4.23 to 3.5.1`.
    #[must_use]
    pub fn in_words(&self) -> String {
        format!("{} to {}", self.from.version, self.to.version)
    }

    /// What it shows that these processes have these files.
    fn judge(&self, node: &str, processes: &BTreeMap<String, BTreeSet<FileIdentity>>) -> Receipt {
        let with = |files: &BTreeSet<FileIdentity>| {
            let has = |(program, of): (&String, &BTreeSet<FileIdentity>)| {
                (!of.is_disjoint(files)).then(|| program.clone())
            };
            processes.iter().filter_map(has).collect::<Vec<String>>()
        };
        let (old, new) = (with(&self.from.files), with(&self.to.files));
        let (from, to) = (&self.from.version, &self.to.version);
        let (verdict, what) = match (old.as_slice(), new.as_slice()) {
            ([], []) => {
                (Verdict::Unknown, format!("no process of {node} has a file of {from} or of {to} open"))
            }
            ([], new) => (
                Verdict::Pass,
                format!("{} on {node} runs from the files of {to}, not of {from}", new.join(", ")),
            ),
            (old, _) => {
                (Verdict::Fail, format!("{} on {node} runs from the files of {from}", old.join(", ")))
            }
        };
        Receipt { verdict, evidence: vec![what] }
    }
}

impl Onlooker {
    /// Whether the processes that were not there before run from the files of the new version.
    pub(crate) fn look_at_release(&self, before: &Before, upgrade: &Upgrade) -> Receipt {
        match self.table() {
            Err(why) => Receipt { verdict: Verdict::Unknown, evidence: vec![why] },
            Ok(table) => {
                let mut files: BTreeMap<String, BTreeSet<FileIdentity>> = BTreeMap::new();
                for (process, seen) in table.iter().filter(|(of, _)| !before.targets.contains_key(of)) {
                    files.entry(seen.program.clone()).or_default().extend(files_of(*process));
                }
                upgrade.judge(self.node(), &files)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &Path, name: &str) -> FileIdentity {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, name).expect("a file");
        FileIdentity::of(&path).expect("its identity")
    }

    #[test]
    fn a_node_is_upgraded_when_its_processes_have_files_of_the_new_version_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        let (java, old, new) =
            (file(path, "java"), file(path, "3.4/lib/db.jar"), file(path, "3.5/lib/db.jar"));
        let installed = |version: &str| {
            let programs = BTreeMap::from([("java".to_owned(), path.join("java"))]);
            InstalledFiles::of(version, &programs, &path.join(version).join("lib"), &path.join(version))
        };
        let upgrade = Upgrade::new(installed("3.4"), installed("3.5"));
        assert_eq!(upgrade.in_words(), "3.4 to 3.5");
        let check = |files: &[FileIdentity], verdict: Verdict, evidence: &str| {
            let processes = BTreeMap::from([("java".to_owned(), files.iter().copied().collect())]);
            let receipt = upgrade.judge("n1", &processes);
            assert_eq!((receipt.verdict, receipt.evidence.join("")), (verdict, evidence.to_owned()));
        };
        check(&[java, new], Verdict::Pass, "java on n1 runs from the files of 3.5, not of 3.4");
        check(&[java, old], Verdict::Fail, "java on n1 runs from the files of 3.4");
        check(&[new, old], Verdict::Fail, "java on n1 runs from the files of 3.4");
        check(&[java], Verdict::Unknown, "no process of n1 has a file of 3.4 or of 3.5 open");
    }

    #[test]
    fn a_program_among_others_of_the_machine_is_told_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let (etcd, other) = (file(folder.path(), "etcd"), file(folder.path(), "other"));
        let programs = BTreeMap::from([("etcd".to_owned(), folder.path().join("etcd"))]);
        let installed = InstalledFiles::of("3.4", &programs, folder.path(), folder.path());
        assert!(installed.files.contains(&etcd) && !installed.files.contains(&other));
        let installed = InstalledFiles::of("15", &BTreeMap::new(), folder.path(), folder.path());
        assert!(installed.files.contains(&etcd) && installed.files.contains(&other));
    }
}

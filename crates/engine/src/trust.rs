//! Whether a folder is in the caller's hands alone: nobody else can put a program or a link into it.
//!
//! Owns the rule, for the cache directory and for run directories. Source: path_resolution(7), inode(7) for the sticky bit.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Write permission of the owner's group, and of everybody.
const GROUP_WRITE: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
/// Who can write here can remove and rename only what is their own.
const STICKY: u32 = 0o1000;

/// Somebody else can write in a folder.
#[derive(Debug, thiserror::Error)]
pub enum Untrusted {
    /// It belongs to somebody else.
    #[error("{path} belongs to user {owner}, who could put anything there: run as that user")]
    Owner {
        /// The folder.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// Its mode lets others write.
    #[error("{path} can be written to by others (mode {mode:04o}): `chmod go-w {path}`")]
    Mode {
        /// The folder, or one above it.
        path: PathBuf,
        mode: u32,
    },
    /// It could not be made or looked at.
    #[error("{path}: {source}")]
    File {
        /// The folder, or one above it.
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
}

/// Makes a folder with those above it, for the caller alone to write in, and checks it.
///
/// # Errors
/// As [`check`], and when it cannot be made.
pub fn make_folder(path: &Path) -> Result<(), Untrusted> {
    let made = DirBuilder::new().recursive(true).mode(0o755).create(path);
    made.map_err(|source| Untrusted::File { path: path.to_owned(), source })?;
    check(path)
}

/// Checks a folder, where it is there, and the way to it. The folder must belong to the caller, to root, or to the user for
/// whom root acts by sudo(8), and nobody else may write in it, nor in a folder above it, unless that one is sticky.
///
/// # Errors
/// What is wrong, and what to do.
pub fn check(path: &Path) -> Result<(), Untrusted> {
    check_up_to_root(path, false)
}

/// The same for a folder of programs that are run. Those above it, too, must belong to one of these: whoever owns a folder can
/// put another in the place of what is in it.
///
/// # Errors
/// As [`check`].
pub fn check_programs(path: &Path) -> Result<(), Untrusted> {
    check_up_to_root(path, true)
}

fn check_up_to_root(path: &Path, owners_above: bool) -> Result<(), Untrusted> {
    let at = |path: &Path, source| Untrusted::File { path: path.to_owned(), source };
    let path = match fs::canonicalize(path) {
        Ok(path) => path,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(at(path, error)),
    };
    let caller = Caller::now();
    for folder in path.ancestors() {
        let facts = fs::metadata(folder).map_err(|error| at(folder, error))?;
        let is_trusted = match folder == path {
            true => caller.trusts(facts.uid()),
            false => !owners_above || caller.trusts(facts.uid()) || caller.is_outside(facts.uid()),
        };
        if !is_trusted {
            return Err(Untrusted::Owner { path: folder.to_owned(), owner: facts.uid() });
        }
        let is_above_and_sticky = folder != path && facts.mode() & STICKY != 0;
        if caller.lets_others_write(&facts) && !is_above_and_sticky {
            return Err(Untrusted::Mode { path: folder.to_owned(), mode: facts.mode() & 0o7777 });
        }
    }
    Ok(())
}

/// Who asks.
struct Caller {
    user: u32,
    group: u32,
    /// For whom root acts.
    behind: Option<u32>,
    /// The number that stands for every user outside the user namespace, where the caller is in one of its own: root among them,
    /// who owns the machine's folders.
    outside: Option<u32>,
}

impl Caller {
    fn now() -> Caller {
        let (user, group) = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
        let behind = std::env::var("SUDO_UID").ok().and_then(|text| text.parse().ok());
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let maps_all = read("/proc/self/uid_map").split_whitespace().eq(["0", "0", "4294967295"]);
        let outside = read("/proc/sys/kernel/overflowuid").trim().parse().ok().filter(|_| !maps_all);
        Caller { user, group, behind: behind.filter(|_| user == 0), outside }
    }

    /// Whether it may be root outside, as far as can be told from inside a user namespace.
    fn is_outside(&self, user: u32) -> bool {
        Some(user) == self.outside
    }

    fn trusts(&self, user: u32) -> bool {
        user == 0 || user == self.user || Some(user) == self.behind
    }

    fn lets_others_write(&self, folder: &Metadata) -> bool {
        if folder.mode() & OTHERS_WRITE != 0 {
            return true;
        }
        folder.mode() & GROUP_WRITE != 0 && folder.gid() != 0 && !self.is_alone_in(folder.gid())
    }

    /// Whether a group is the caller's own, as many distributions make one for each user, who then has a umask of 002.
    fn is_alone_in(&self, group: u32) -> bool {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        group == self.group && has_one_user(group, self.user, &read("/etc/passwd"), &read("/etc/group"))
    }
}

/// Whether `user` and nobody else is in the group, by the text of `/etc/passwd` and `/etc/group`.
fn has_one_user(group: u32, user: u32, passwd: &str, groups: &str) -> bool {
    let number = |field: Option<&&str>| field.and_then(|text| text.parse::<u32>().ok());
    let mut own_name = None;
    for line in passwd.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        if number(fields.get(2)) == Some(user) {
            own_name = fields.first().copied();
        } else if number(fields.get(3)) == Some(group) {
            return false;
        }
    }
    let members = groups.lines().map(|line| line.split(':').collect::<Vec<&str>>());
    let mut members = members.filter(|fields| number(fields.get(2)) == Some(group));
    members.next().is_some_and(|fields| {
        let listed = fields.get(3).copied().unwrap_or_default().split(',');
        listed.filter(|name| !name.is_empty()).all(|name| Some(name) == own_name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn check_modes(above: u32, own: u32, expected: Option<u32>) {
        let folder = tempfile::tempdir().expect("a folder");
        let (above_path, path) = (folder.path().join("above"), folder.path().join("above/own"));
        make_folder(&path).expect("made");
        for (path, mode) in [(&path, own), (&above_path, above)] {
            fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("permissions");
        }
        let found = match check(&path) {
            Ok(()) => None,
            Err(Untrusted::Mode { mode, .. }) => Some(mode),
            Err(other) => panic!("{other}"),
        };
        assert_eq!(found, expected, "{above:o} {own:o}");
    }

    #[test]
    fn a_folder_that_others_can_write_in_is_refused_and_so_is_one_below_it_unless_it_is_sticky() {
        check_modes(0o755, 0o755, None);
        check_modes(0o755, 0o700, None);
        check_modes(0o755, 0o777, Some(0o777));
        check_modes(0o755, 0o1777, Some(0o1777));
        check_modes(0o777, 0o755, Some(0o777));
        check_modes(0o1777, 0o755, None);
    }

    #[test]
    fn a_folder_of_somebody_else_is_refused() {
        if !nix::unistd::geteuid().is_root() {
            eprintln!("skipped: a_folder_of_somebody_else_is_refused: only root can give a folder away");
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        std::os::unix::fs::chown(folder.path(), Some(65_534), None).expect("given away");
        assert!(matches!(check(folder.path()), Err(Untrusted::Owner { owner: 65_534, .. })));
        // Whoever owns the folder above can put another program in the place of what is below.
        let below = folder.path().join("own");
        fs::create_dir(&below).expect("a folder");
        check(&below).expect("results may lie there");
        match check_programs(&below) {
            Err(Untrusted::Owner { owner: 65_534, path }) => {
                assert_eq!(Some(path), folder.path().canonicalize().ok());
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_nobody_elses() {
        check(Path::new("/no/such/folder")).expect("nothing to object to");
    }

    #[test]
    fn a_group_is_private_when_nobody_else_is_in_it() {
        let passwd =
            "root:x:0:0::/root:/bin/sh\na:x:1000:1000::/homes/a:/bin/sh\nb:x:1001:100::/homes/b:/bin/sh\n";
        let groups = "root:x:0:\na:x:1000:\nusers:x:100:\nshared:x:50:a,b\nown:x:51:a\n";
        let check =
            |group, expected| assert_eq!(has_one_user(group, 1000, passwd, groups), expected, "{group}");
        check(1000, true);
        check(51, true);
        check(50, false);
        check(100, false);
        check(7, false);
    }
}

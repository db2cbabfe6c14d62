//! A program of an image, run outside of any lab to say its version.
//!
//! Owns what it is run in; that there is an end to it is the work of `run_to_end`. It sees the image alone, read-only, no
//! network, and none of this machine's processes, so that whoever made the image learns and changes nothing here. Its
//! libraries are the image's.
//!
//! Two sets of namespaces lie in each other. In the outer one, whose root the caller is, the image's folder is
//! mounted over itself, read-only. In the inner one the program runs with that folder for its root, as nobody:
//! whoever is root in a namespace can leave such a root by making another one below it, chroot(2), and nobody can.
//! Nor can a program that has another root than its mount namespace make itself root of a user namespace,
//! user_namespaces(7).

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program of util-linux that makes namespaces.
const UNSHARE: &str = "unshare";
/// The program of util-linux that mounts.
const MOUNT: &str = "mount";
/// What runs the steps in the outer namespaces.
const SHELL: &str = "/bin/sh";
/// The outer namespaces.
const OUTER: [&str; 4] = ["--user", "--map-root-user", "--mount", "--"];
/// The steps in them. What the steps need comes as arguments: nothing of an image becomes a word of the script.
const STEPS: &str = r#"mount=$1 unshare=$2 root=$3
shift 3
"$mount" --bind "$root" "$root" && "$mount" -o remount,bind,ro "$root" || exit
exec "$unshare" --user --map-user=65534 --map-group=65534 --mount --mount-proc --net --ipc --pid --fork --kill-child \
    --root "$root" --wd / -- "$@""#;

/// A command for a program of the image that is unpacked in `root`; its path is one in the image.
pub(crate) fn enclosed(root: &Path, program: &Path) -> Result<Command, String> {
    let paths = env::var_os("PATH").unwrap_or_default();
    let needed = |name: &str| {
        let why =
            || format!("the programs of an image are run with `{name}` (util-linux), which is not there");
        found_in(&paths, name).ok_or_else(why)
    };
    let (unshare, mount) = (needed(UNSHARE)?, needed(MOUNT)?);
    let mut command = Command::new(&unshare);
    command.args(OUTER).args([SHELL, "-c", STEPS, SHELL]).arg(mount).arg(unshare).arg(root).arg(program);
    Ok(command)
}

/// A program on a search path. It is looked for here, since the command has another environment than ours.
fn found_in(paths: &OsStr, program: &str) -> Option<PathBuf> {
    let absolute = env::split_paths(paths).filter(|folder| folder.is_absolute());
    absolute.map(|folder| folder.join(program)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Output;

    use super::*;
    use crate::run_to_end::version_output;

    /// A folder with a shell and `cat` and the libraries that they need, and a file; nothing where what they need
    /// cannot be learned.
    fn system() -> Option<tempfile::TempDir> {
        let folder = tempfile::tempdir().expect("a folder");
        let copy = |path: &str| {
            let inside = folder.path().join(path.trim_start_matches('/'));
            fs::create_dir_all(inside.parent().expect("a folder")).expect("a folder");
            fs::copy(path, &inside).expect("copied");
        };
        for program in ["/bin/sh", "/bin/cat"] {
            let told = Command::new("ldd").arg(program).output().ok()?;
            let told = String::from_utf8_lossy(&told.stdout).into_owned();
            told.split_whitespace().filter(|word| word.starts_with('/')).for_each(copy);
            copy(program);
        }
        for name in ["proc", "below"] {
            fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        fs::write(folder.path().join("mark"), "of the image").expect("written");
        Some(folder)
    }

    /// What a script says in such a system; why not, where that cannot be tried.
    fn said(script: &str) -> Result<Output, String> {
        let system = system().ok_or("no ldd")?;
        let mut command = enclosed(system.path(), Path::new("/bin/sh"))?;
        command.env_clear().env("PATH", "/bin").args(["-c", script]);
        let output = version_output(&mut command).map_err(|error| error.to_string())?;
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        // What stands in the way of the namespaces themselves.
        match words.contains("unshare failed") || words.contains("mount: ") {
            true => Err(words),
            false => Ok(output),
        }
    }

    #[test]
    fn a_program_of_an_image_sees_the_image_read_only_and_no_network() {
        let test = "a_program_of_an_image_sees_the_image_read_only_and_no_network";
        let script = "cat /mark; echo; cat /proc/1/stat; cat /proc/self/net/route; \
                      (echo x > /mark) 2>/dev/null && echo written || echo refused";
        let output = match said(script) {
            Ok(output) => output,
            Err(why) => return eprintln!("skipped: {test}: {why}"),
        };
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines: Vec<&str> = told.lines().collect();
        let [mark, process, routes @ .., refusal] = lines.as_slice() else {
            panic!("the mark, its own process, routes, the refusal: {told}");
        };
        assert_eq!(*mark, "of the image");
        assert!(process.starts_with("1 (sh) "), "it is alone: {told}");
        // Some kernels print the heading without a route, some nothing.
        assert!(routes.iter().all(|line| line.starts_with("Iface")), "there is no route: {told}");
        assert_eq!(*refusal, "refused");
    }

    #[test]
    fn a_program_of_an_image_has_no_power_to_leave_it() {
        let test = "a_program_of_an_image_has_no_power_to_leave_it";
        match said("while read name value; do echo $name$value; done < /proc/self/status") {
            Ok(output) => {
                let told = String::from_utf8_lossy(&output.stdout).into_owned();
                assert!(told.contains("CapEff:0000000000000000"), "{told}");
                assert!(told.contains("CapPrm:0000000000000000"), "{told}");
            }
            Err(why) => eprintln!("skipped: {test}: {why}"),
        }
    }

    #[test]
    fn a_program_that_is_not_in_the_image_is_told_by_its_name() {
        let test = "a_program_that_is_not_in_the_image_is_told_by_its_name";
        if let Err(why) = said("true") {
            return eprintln!("skipped: {test}: {why}");
        }
        let empty = tempfile::tempdir().expect("a folder");
        fs::create_dir(empty.path().join("proc")).expect("a folder");
        let mut command = enclosed(empty.path(), Path::new("/bin/cat")).expect("as before");
        let output = version_output(command.env_clear()).expect("run");
        assert!(!output.status.success());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("/bin/cat"), "{told}");
    }

    #[test]
    fn a_program_is_found_in_the_first_folder_that_has_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        for path in [&one, &two] {
            fs::create_dir(path).expect("a folder");
        }
        fs::write(two.join("unshare"), "").expect("a file");
        let paths = env::join_paths([Path::new("."), &one, &two]).expect("a search path");
        assert_eq!(found_in(&paths, "unshare"), Some(two.join("unshare")));
        assert_eq!(found_in(&paths, "none"), None);
    }
}

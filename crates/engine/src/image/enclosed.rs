//! A program of an image, run outside of any lab to say its version.
//!
//! Owns what it is run in: namespaces of its own, with the image for its root. It sees the image alone, no network, and none
//! of this machine's processes, so that whoever made the image learns and changes nothing here. Its libraries are the image's.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program of util-linux that makes namespaces.
const UNSHARE: &str = "unshare";
/// Namespaces of every kind that matters, and in them root, who is nobody else's.
const NAMESPACES: [&str; 8] =
    ["--user", "--map-root-user", "--mount", "--mount-proc", "--net", "--ipc", "--pid", "--fork"];

/// A command for a program of the image that is unpacked in `root`; its path is one in the image.
pub(crate) fn enclosed(root: &Path, program: &Path) -> Result<Command, String> {
    let paths = env::var_os("PATH").unwrap_or_default();
    let unshare = found_in(&paths, UNSHARE)
        .ok_or("the programs of an image are run with `unshare` (util-linux), which is not there")?;
    let mut command = Command::new(unshare);
    command.args(NAMESPACES).arg("--root").arg(root).args(["--wd", "/", "--"]).arg(program);
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

    use super::*;
    use crate::run_to_end::run;

    #[test]
    fn a_program_of_an_image_sees_the_image_and_no_network() {
        let test = "a_program_of_an_image_sees_the_image_and_no_network";
        // This machine's own root is an image like another.
        let mut command = match enclosed(Path::new("/"), Path::new("/bin/cat")) {
            Ok(command) => command,
            Err(why) => return eprintln!("skipped: {test}: {why}"),
        };
        match run(command.env_clear().args(["/proc/self/stat", "/proc/self/net/route"])) {
            Ok(told) => {
                assert!(told.starts_with("1 (cat) "), "it is alone: {told}");
                assert_eq!(told.lines().count(), 2, "a heading and no route: {told}");
            }
            Err(why) => return eprintln!("skipped: {test}: {why}"),
        }
        let empty = tempfile::tempdir().expect("a folder");
        fs::create_dir(empty.path().join("proc")).expect("a folder");
        let mut command = enclosed(empty.path(), Path::new("/bin/cat")).expect("as before");
        let told = run(&mut command).expect_err("there is no program in the image");
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

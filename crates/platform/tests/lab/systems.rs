//! A node that has a system of its own, as an image brings one.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use lab::protocol::{PROGRAMS, ShownPrograms, WholeSystem};

use crate::test_lab::{TestLab, shell};

/// The programs of the system.
const IN_IT: [&str; 2] = ["/bin/sh", "/bin/cat"];

/// A folder with these programs and the libraries that they need, and nothing else of the machine; nothing where what
/// they need cannot be learned.
fn system(test_lab: &TestLab) -> Option<PathBuf> {
    let folder = test_lab.folder.join("system");
    let copy = |path: &str| {
        let inside = folder.join(path.trim_start_matches('/'));
        fs::create_dir_all(inside.parent().expect("a folder")).expect("a folder");
        fs::copy(path, &inside).expect("copied");
    };
    for program in IN_IT {
        let told = Command::new("ldd").arg(program).output().ok().filter(|output| output.status.success())?;
        let told = String::from_utf8_lossy(&told.stdout).into_owned();
        told.split_whitespace().filter(|word| word.starts_with('/')).for_each(copy);
        copy(program);
    }
    for name in ["etc", "srv", "run", "var/lib", "var/tmp"] {
        fs::create_dir_all(folder.join(name)).expect("a folder");
    }
    for (name, content) in
        [("etc/mark", "of the image"), ("etc/hosts", ""), ("start.sh", ""), ("run/mark", "")]
    {
        fs::write(folder.join(name), content).expect("written");
    }
    symlink("etc", folder.join("settings")).expect("a link");
    let opened = Command::new("chmod").args(["-R", "a+rX"]).arg(&folder).status().expect("chmod");
    assert!(opened.success());
    Some(folder)
}

pub fn a_node_sees_its_own_system(test_lab: &TestLab) {
    let Some(folder) = system(test_lab) else {
        let test = "a_node_with_a_system_of_its_own_sees_that_and_not_the_machine_s";
        return eprintln!("skipped: {test}: no ldd");
    };
    let programs = ShownPrograms {
        outside: folder,
        inside: PathBuf::from(PROGRAMS),
        system: Some(WholeSystem { folder: PathBuf::from("/srv") }),
    };
    let (node, _port) = test_lab.boot_on("n1", 1, programs);
    assert_eq!(shell(&node, "cat /settings/mark"), "of the image");
    assert_eq!(shell(&node, &format!("cat {PROGRAMS}/etc/mark")), "of the image");
    assert_eq!(shell(&node, "pwd").trim(), "/srv");
    let names = shell(&node, "cat /etc/hosts");
    assert!(names.contains(" n1\n"), "its own names lie over the image's: {names}");
    let is_there =
        |path: &str| shell(&node, &format!("[ -e {path} ] && echo yes || echo no")).trim() == "yes";
    for path in ["/start.sh", "/var/lib", "/var/tmp", "/run/node/volume", "/proc/self", "/dev/null"] {
        assert!(is_there(path), "{path}");
    }
    for path in ["/bin/date", "/usr/bin/env", "/run/mark"] {
        assert!(!is_there(path), "{path}");
    }
    let refused = "(echo x > /etc/mark) 2>/dev/null && echo written || echo refused";
    assert_eq!(shell(&node, refused).trim(), "refused");
}

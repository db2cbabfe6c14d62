//! The browser in which reports are looked at: found, or installed where that is ours to do.

use std::path::Path;
use std::process::Command;

use crate::Outcome;

/// Names under which it goes.
const NAMES: &[&str] = &["chromium", "chromium-browser", "google-chrome"];
/// The distribution's package.
const PACKAGE: &str = "chromium";

/// Makes sure that it is there. Only root may install packages, and only root of a machine with apt is asked to.
pub fn make_sure() -> Outcome {
    if let Some(found) = find() {
        println!("{found}");
        return Outcome::Passed;
    }
    if !nix::unistd::geteuid().is_root() || !on_path("apt-get") {
        return Outcome::Skipped(format!(
            "not found; the report is not looked at in a browser; install the package {PACKAGE}"
        ));
    }
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").args(arguments);
        command.status().is_ok_and(|status| status.success())
    };
    let installed = apt(&["update", "--quiet"])
        && apt(&["install", "--yes", "--quiet", "--no-install-recommends", PACKAGE])
        && find().is_some();
    if installed {
        Outcome::Passed
    } else {
        Outcome::Skipped(format!("not found, and apt-get could not install the package {PACKAGE}"))
    }
}

fn find() -> Option<&'static str> {
    NAMES.iter().find(|name| on_path(name)).copied()
}

fn on_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder: std::path::PathBuf| Path::new(&folder).join(name).is_file())
}

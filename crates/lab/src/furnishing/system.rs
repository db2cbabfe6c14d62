//! A whole system, unpacked from an image, which a place sees in place of the machine's files.
//!
//! Owns what of it is shown: every folder and file that lies at its top, read-only, but for those that a place has of
//! its own. Nothing is copied and nothing laid over another: many places see the same files, and none can write to
//! them.

use std::ffi::OsString;
use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use super::{FurnishingError, PROCESSORS, make_folder, show_read_only, take};

/// What a place has of its own, whatever a system brings: devices, processes, memory, names.
const OWN: [&str; 5] = ["dev", "proc", "run", "sys", "tmp"];
/// The one folder of which only a part is the place's own.
const SHARED: &str = "var";
/// That part: links to the place's own memory.
const OWN_OF_SHARED: [&str; 3] = ["lock", "run", "tmp"];

/// Shows the system that lies in an open folder.
pub(super) fn show_system(folder: &OwnedFd) -> Result<(), FurnishingError> {
    let folder = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    let root = Path::new("/");
    for name in names_in(&folder)? {
        if name == SHARED {
            continue;
        }
        if !OWN.iter().any(|own| name == *own) {
            show_read_only(&folder.join(&name), &root.join(&name))?;
        }
    }
    let (shared, inside) = (folder.join(SHARED), root.join(SHARED));
    make_folder(&inside)?;
    // A link would lead to a folder that is shown already, or to nothing.
    if fs::symlink_metadata(&shared).is_ok_and(|facts| facts.is_dir()) {
        for name in names_in(&shared)? {
            if !OWN_OF_SHARED.iter().any(|own| name == *own) {
                show_read_only(&shared.join(&name), &inside.join(&name))?;
            }
        }
    }
    // How many processors there are is the machine's affair.
    show_read_only(Path::new(PROCESSORS), Path::new(PROCESSORS))
}

fn names_in(folder: &Path) -> Result<Vec<OsString>, FurnishingError> {
    let step = || folder.display().to_string();
    let mut names = Vec::new();
    for entry in take(step(), fs::read_dir(folder))? {
        names.push(take(step(), entry)?.file_name());
    }
    Ok(names)
}

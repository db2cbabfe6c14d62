//! Single files of a node's volume, written and read by its init for the lab.
//!
//! The lab cannot do that itself: it may be the one who serves the volume, and a process that uses a file system that it
//! serves cannot always be killed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Component, Path};

use crate::protocol::{Answer, FileAction, NODE_USER, VOLUME};

/// Does it, and tells how it went.
pub(crate) fn answer(number: u64, path: &Path, action: &FileAction, users_mapped: bool) -> Answer {
    match act(path, action, users_mapped) {
        Ok(content) => Answer::FileDone { number, content },
        Err(error) => Answer::FileFailed { number, error: error.raw_os_error(), why: error.to_string() },
    }
}

fn act(path: &Path, action: &FileAction, users_mapped: bool) -> io::Result<String> {
    if !path.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a path within the volume"));
    }
    let path = Path::new(VOLUME).join(path);
    match action {
        FileAction::Write { content } => write(&path, content, users_mapped).map(|()| String::new()),
        FileAction::Read => fs::read_to_string(path),
        FileAction::Remove => {
            fs::remove_file(&path)?;
            sync_folder_of(&path).map(|()| String::new())
        }
        FileAction::Forget => forget(&path).map(|()| String::new()),
        FileAction::Find => Ok(if path.try_exists()? { "yes".to_owned() } else { String::new() }),
    }
}

fn write(path: &Path, content: &str, users_mapped: bool) -> io::Result<()> {
    let unfinished = path.with_extension("unfinished");
    let mut file = File::create(&unfinished)?;
    file.write_all(content.as_bytes())?;
    if users_mapped {
        std::os::unix::fs::fchown(&file, Some(NODE_USER), Some(NODE_USER))?;
    }
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    sync_folder_of(path)
}

/// Pages that are mapped or being written stay, as they do for everybody who asks so.
fn forget(path: &Path) -> io::Result<()> {
    let kind = fs::symlink_metadata(path)?.file_type();
    if kind.is_dir() {
        for entry in fs::read_dir(path)? {
            match forget(&entry?.path()) {
                // Removed since it was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => other?,
            }
        }
    } else if kind.is_file() {
        let file = File::open(path)?;
        nix::fcntl::posix_fadvise(&file, 0, 0, nix::fcntl::PosixFadviseAdvice::POSIX_FADV_DONTNEED)?;
    }
    Ok(())
}

fn sync_folder_of(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

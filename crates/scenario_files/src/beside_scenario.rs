//! Files that a scenario names: read once, before anything starts.
//!
//! Owns which of them may be read: a path within the scenario's folder leads to a regular file in that folder, through no link
//! that leaves it; an absolute path or one with `..`, which only the command line can give, leads wherever its user means.

use std::io;
use std::path::{Component, Path, PathBuf};

use history::whole_file::{self, Link, WholeFileError};
use scenario::MOST_BYTES;

/// Why a file that a scenario names cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum BesideError {
    /// It cannot be read.
    #[error("{path}: {source}", path = .path.display())]
    Unreadable {
        path: PathBuf,
        /// The system refuses it, or it is no such file as is read.
        source: WholeFileError,
    },
    /// A link leads out of the scenario's folder.
    #[error("{path}: it points to {target}, outside the scenario's folder; copy the file into that folder, or name it on the command line with --set", path = .path.display(), target = .target.display())]
    Outside {
        path: PathBuf,
        /// Where it leads.
        target: PathBuf,
    },
}

/// The text of a file that may be read. `written` is its path as the scenario has it, which begins at `folder`.
///
/// # Errors
/// When it cannot be read or may not be.
pub fn read_text(written: &str, folder: &Path) -> Result<String, BesideError> {
    let path = folder.join(written);
    let unreadable = |source| BesideError::Unreadable { path: path.clone(), source };
    let io = |error: io::Error| unreadable(error.into());
    let stays =
        Path::new(written).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let mut target = path.clone();
    if stays {
        target = path.canonicalize().map_err(io)?;
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        if !target.starts_with(folder.canonicalize().map_err(io)?) {
            return Err(BesideError::Outside { path: path.clone(), target });
        }
    }
    // What was found has no link in it any more; one that is put there meanwhile is not followed.
    let link = if stays { Link::Refused } else { Link::Followed };
    whole_file::read_text(&target, link, MOST_BYTES as u64).map_err(unreadable)
}

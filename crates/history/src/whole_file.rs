//! Files read whole and written whole, beside people and programs that may mean harm.
//!
//! Read: only regular files, so that no FIFO keeps anybody waiting and no device is read without end, and only up to a
//! length that the caller states. Written: under another name first and synced, so that a reader, or a machine that lost
//! power, sees the old content or the new. What stands in the files is the callers'.

use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// What is done with a symbolic link in the place of the file. Links among the folders before it are always followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Followed: the user named the path.
    Followed,
    /// Refused: the path lies in a folder that somebody else may have filled.
    Refused,
}

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum WholeFileError {
    /// The system's own words.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is something else.
    #[error("it is {0}, not a regular file")]
    NotRegular(&'static str),
    /// It is longer than any such file.
    #[error("it is longer than {most_bytes} bytes, the most that is read")]
    TooLong {
        /// The limit.
        most_bytes: u64,
    },
    /// It is no text.
    #[error("byte {valid_up_to} is not UTF-8; save the file as UTF-8")]
    NotText {
        /// The first byte that is wrong, from 0.
        valid_up_to: usize,
    },
}

impl WholeFileError {
    /// Whether there is nothing of this name.
    #[must_use]
    pub fn is_absence(&self) -> bool {
        matches!(self, WholeFileError::Io(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory))
    }
}

/// Opens a regular file for reading.
///
/// # Errors
/// When it is not there, may not be read, or is no regular file.
pub fn open(path: &Path, link: Link) -> Result<File, WholeFileError> {
    let metadata = match link {
        Link::Followed => fs::metadata(path),
        Link::Refused => fs::symlink_metadata(path),
    };
    // Looked at before it is opened: the opening alone does something to some devices.
    regular(metadata?.file_type())?;
    let no_link = if link == Link::Refused { libc::O_NOFOLLOW } else { 0 };
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | no_link;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    // And after: it may have been exchanged meanwhile.
    regular(file.metadata()?.file_type())?;
    Ok(file)
}

fn regular(kind: FileType) -> Result<(), WholeFileError> {
    let what = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => "a directory",
        kind if kind.is_symlink() => "a symbolic link",
        kind if kind.is_fifo() => "a FIFO",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    };
    Err(WholeFileError::NotRegular(what))
}

/// Reads a file of at most so many bytes.
///
/// # Errors
/// As [`open`], and when it is longer or cannot be read.
pub fn read(path: &Path, link: Link, most_bytes: u64) -> Result<Vec<u8>, WholeFileError> {
    let mut content = Vec::new();
    // The length that the file states may change, and in /proc it is nought.
    open(path, link)?.take(most_bytes.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 > most_bytes {
        return Err(WholeFileError::TooLong { most_bytes });
    }
    Ok(content)
}

/// The same, of a text.
///
/// # Errors
/// As [`read`], and when it is not UTF-8.
pub fn read_text(path: &Path, link: Link, most_bytes: u64) -> Result<String, WholeFileError> {
    String::from_utf8(read(path, link, most_bytes)?)
        .map_err(|error| WholeFileError::NotText { valid_up_to: error.utf8_error().valid_up_to() })
}

/// Puts a file in its place: all of it, durable, or not at all. What stood there, were it a link, is replaced.
///
/// # Errors
/// When it cannot be written.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    write_durably(path, content, File::sync_all)
}

/// `sync` makes what it is given durable: the content before it has its name, the folder afterwards.
fn write_durably(path: &Path, content: &[u8], sync: impl Fn(&File) -> io::Result<()>) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    let unfinished = path.with_file_name(format!(".{name}.unfinished"));
    let written = write_new(&unfinished, content);
    let written = written.and_then(|file| sync(&file)).and_then(|()| fs::rename(&unfinished, path));
    if written.is_err() {
        // The write's own failure is what the caller must hear of; a file that was never made cannot be removed.
        let _ = fs::remove_file(&unfinished);
    }
    written?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    sync(&File::open(folder)?)
}

/// Never through what somebody else put under that name.
fn write_new(path: &Path, content: &[u8]) -> io::Result<File> {
    let create = || OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = match create() {
        // Left by a process that was killed, or laid there.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            create()?
        }
        other => other?,
    };
    file.write_all(content)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(path: &Path, link: Link) -> String {
        read_text(path, link, 10).unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn regular_files_up_to_the_limit_are_read_and_nothing_else_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("ten"), "0123456789").expect("written");
        fs::write(at("eleven"), "0123456789a").expect("written");
        fs::write(at("latin"), b"caf\xe9").expect("written");
        std::os::unix::fs::symlink(at("ten"), at("link")).expect("a link");
        std::os::unix::fs::symlink(at("nowhere"), at("loose")).expect("a link");
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).expect("a socket");
        let made = std::process::Command::new("mkfifo").arg(at("fifo")).status().expect("mkfifo");
        assert!(made.success());
        let check =
            |name: &str, link: Link, expected: &str| assert_eq!(told(&at(name), link), expected, "{name}");
        check("ten", Link::Refused, "0123456789");
        check("link", Link::Followed, "0123456789");
        check("link", Link::Refused, "it is a symbolic link, not a regular file");
        check("eleven", Link::Refused, "it is longer than 10 bytes, the most that is read");
        check("latin", Link::Refused, "byte 3 is not UTF-8; save the file as UTF-8");
        check("fifo", Link::Followed, "it is a FIFO, not a regular file");
        check("socket", Link::Followed, "it is a socket, not a regular file");
        check(".", Link::Followed, "it is a directory, not a regular file");
        check("loose", Link::Followed, "No such file or directory (os error 2)");
        assert_eq!(told(Path::new("/dev/zero"), Link::Followed), "it is a device, not a regular file");
        // Regular and of no length, by what the system says of it.
        assert!(told(Path::new("/proc/self/smaps"), Link::Followed).contains("longer than 10 bytes"));
        assert!(open(&at("loose"), Link::Followed).expect_err("nothing").is_absence());
    }

    #[test]
    fn what_is_written_replaces_a_link_and_goes_through_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("mine"), "mine").expect("written");
        for trap in ["result.json", ".result.json.unfinished"] {
            std::os::unix::fs::symlink(at("mine"), at(trap)).expect("a link");
        }
        write(&at("result.json"), b"{}").expect("written");
        assert_eq!(told(&at("result.json"), Link::Refused), "{}");
        assert_eq!(told(&at("mine"), Link::Refused), "mine");
        let left = fs::read_dir(folder.path()).expect("listed").count();
        assert_eq!(left, 2, "an unfinished file was left");
        assert!(write(&at("missing/result.json"), b"{}").is_err());
    }

    #[test]
    fn content_is_durable_before_it_has_its_name_and_the_folder_afterwards() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("result.json");
        fs::write(&path, "old").expect("written");
        let synced = std::cell::RefCell::new(Vec::new());
        let sync = |file: &File| -> io::Result<()> {
            let is_folder = file.metadata()?.is_dir();
            let unfinished = fs::read_to_string(path.with_file_name(".result.json.unfinished")).ok();
            synced.borrow_mut().push((is_folder, told(&path, Link::Refused), unfinished));
            Ok(())
        };
        write_durably(&path, b"new", sync).expect("written");
        let content = (false, "old".to_owned(), Some("new".to_owned()));
        assert_eq!(synced.into_inner(), [content, (true, "new".to_owned(), None)]);
        // What could not be made durable does not take the place of what is.
        let failed = write_durably(&path, b"newer", |_| Err(io::ErrorKind::StorageFull.into()));
        assert_eq!(failed.expect_err("no room").kind(), io::ErrorKind::StorageFull);
        assert_eq!(told(&path, Link::Refused), "new");
        assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 1);
    }
}

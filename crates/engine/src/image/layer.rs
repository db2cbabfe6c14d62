//! A layer of an image: an archive of what it adds, and marks for what it hides of the layers below.
//!
//! Owns how a layer is packed, that it is the one meant, and the marks. Where its files go is `inside`'s.
//!
//! A layer is read twice. The first time its content is summed up and its marks are noted; only when the sum is right
//! is anything removed or written. The second time it is summed up again: what was written is what was proven. The
//! marks come first whatever their place in the archive: they mean the layers below, never what the same layer adds.
//!
//! Source: OCI image specification 1.1, "Image layer filesystem changeset".

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use flate2::read::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};

use super::error::ImageError;
use super::gauge::{Gauge, Metered};
use super::inside::Root;
use crate::checksum::{Checksum, Summed};

/// What the name of a mark begins with; the name of what it hides follows.
const MARK: &[u8] = b".wh.";
/// What follows where all of the folder is hidden.
const ALL: &[u8] = b".wh..opq";
/// Marks of a layer at most: they are kept until the whole layer is proven.
const MOST_MARKS: usize = 100_000;
/// Bytes of a path at most, its end counted, path_resolution(7).
const MOST_OF_A_PATH: usize = 4096;
/// How a stream of gzip begins, RFC 1952.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// How a frame of zstd begins, RFC 8878.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// A file's mode where the archive does not say.
const USUAL_MODE: u32 = 0o644;

/// An archive as it is read: on an account, and summed up.
type Stream = Summed<Metered>;

/// A layer in a file.
#[derive(Debug)]
pub(crate) struct Layer {
    /// Where the archive lies, packed as it came.
    pub(crate) path: PathBuf,
    /// The SHA-256 of the archive in it, once that is unpacked.
    pub(crate) content: Checksum,
}

/// What a mark hides.
#[derive(Debug, PartialEq, Eq)]
enum Hidden {
    /// What lies at the path.
    One(PathBuf),
    /// All that lies in the folder.
    AllIn(PathBuf),
    /// Nothing: it is a mark of another kind.
    Nothing,
}

impl Layer {
    /// Puts it on those that were put there before.
    pub(crate) fn put_on(&self, root: &Root, gauge: &Rc<Gauge>) -> Result<(), ImageError> {
        for hidden in self.proven(gauge)? {
            match hidden {
                Hidden::One(path) => root.hide(&path)?,
                Hidden::AllIn(folder) => root.hide_all_in(&folder)?,
                Hidden::Nothing => {}
            }
        }
        let found = unpack(&self.path, root, gauge)?;
        self.compare(found)
    }

    /// What it hides, once it has shown to be the layer that is meant.
    fn proven(&self, gauge: &Rc<Gauge>) -> Result<Vec<Hidden>, ImageError> {
        let mut all_hidden = Vec::new();
        // Nothing of it is kept yet.
        let found = walk(&self.path, &gauge.copy(), |entry| {
            if let Some(hidden) = hidden_by(&entry.path()?)? {
                all_hidden.push(hidden);
            }
            if all_hidden.len() > MOST_MARKS {
                return Err(Trouble::Image(ImageError::TooMany { most: MOST_MARKS as u64 }));
            }
            Ok(())
        })?;
        self.compare(found)?;
        Ok(all_hidden)
    }

    fn compare(&self, found: Checksum) -> Result<(), ImageError> {
        ImageError::unless_equal(found, &self.content, "a layer of the image, unpacked,")
    }
}

/// Unpacks an archive, but for its marks; the checksum of what was unpacked.
pub(crate) fn unpack(path: &Path, root: &Root, gauge: &Rc<Gauge>) -> Result<Checksum, ImageError> {
    walk(path, gauge, |entry| {
        let named = entry.path()?.into_owned();
        match hidden_by(&named)? {
            Some(_) => Ok(()),
            None => put(entry, &named, root),
        }
    })
}

/// Shows every entry of the archive in a file, in their order; the checksum of the whole.
fn walk(
    path: &Path,
    gauge: &Rc<Gauge>,
    mut visit: impl FnMut(&mut Entry<'_, Stream>) -> Result<(), Trouble>,
) -> Result<Checksum, ImageError> {
    let told = |source: io::Error| gauge.blame(path, source);
    let mut archive: Archive<Stream> =
        Archive::new(Summed::new(Metered::new(opened(path)?, Rc::clone(gauge))));
    {
        let mut entries = archive.entries().map_err(told)?;
        loop {
            gauge.begin_head();
            let Some(entry) = entries.next() else { break };
            let mut entry = entry.map_err(told)?;
            gauge.end_head();
            gauge.count(entry.size(), entry.header().entry_type() == EntryType::GNUSparse).map_err(told)?;
            if entry.path_bytes().len() >= MOST_OF_A_PATH {
                return Err(ImageError::LongHead { most: MOST_OF_A_PATH as u64 });
            }
            match visit(&mut entry) {
                Ok(()) => {}
                // A file that cannot be written on may be one that cannot be read on.
                Err(Trouble::Image(error)) => return Err(gauge.limit().unwrap_or(error)),
                Err(Trouble::Archive(source)) => return Err(told(source)),
            }
            // What is left of its content is no part of the next one's head.
            io::copy(&mut entry, &mut io::sink()).map_err(told)?;
        }
    }
    gauge.end_head();
    // An archive may end before its file does.
    archive.into_inner().of_all().map_err(told)
}

/// What went wrong with an entry.
enum Trouble {
    Image(ImageError),
    Archive(io::Error),
}

impl From<ImageError> for Trouble {
    fn from(error: ImageError) -> Trouble {
        Trouble::Image(error)
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Trouble {
        Trouble::Archive(error)
    }
}

fn put(entry: &mut Entry<'_, Stream>, named: &Path, root: &Root) -> Result<(), Trouble> {
    let kind = entry.header().entry_type();
    // Old archives tell a folder by a slash behind its name.
    let is_folder = kind == EntryType::Directory || entry.path_bytes().ends_with(b"/");
    let target: Option<PathBuf> = entry.link_name()?.map(|target| target.into_owned());
    match (kind, target) {
        (EntryType::Directory | EntryType::Regular, _) if is_folder => root.make_folder(named)?,
        (EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse, _) => {
            root.require_room_for(entry.size())?;
            let mode = entry.header().mode().unwrap_or(USUAL_MODE);
            // No file system keeps times without an end.
            let modified_s = entry.header().mtime().unwrap_or(0).min(u64::from(u32::MAX));
            let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(modified_s);
            root.write(named, mode, modified, entry)?;
        }
        (EntryType::Symlink, Some(target)) => root.link(named, &target)?,
        (EntryType::Link, Some(target)) => root.name_again(named, &target)?,
        // Devices and pipes are not made; whoever needs one has the node's own.
        _ => {}
    }
    Ok(())
}

/// What an entry of this name hides; `None` where it is no mark.
fn hidden_by(path: &Path) -> Result<Option<Hidden>, ImageError> {
    let name = path.file_name().map(OsStr::as_bytes).unwrap_or_default();
    let Some(hidden) = name.strip_prefix(MARK) else { return Ok(None) };
    let folder = path.parent().unwrap_or(Path::new(""));
    Ok(Some(match hidden {
        ALL => Hidden::AllIn(folder.to_owned()),
        b"" | b"." | b".." => return Err(ImageError::Outside { path: path.to_owned() }),
        // The marks of a file system that is no longer used.
        _ if hidden.starts_with(MARK) => Hidden::Nothing,
        _ => Hidden::One(folder.join(OsStr::from_bytes(hidden))),
    }))
}

/// The archive in a file, whichever way that is packed.
fn opened(path: &Path) -> Result<Box<dyn Read>, ImageError> {
    let at = |source| ImageError::File { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(at)?;
    let mut beginning = Vec::new();
    file.by_ref().take(ZSTD.len() as u64).read_to_end(&mut beginning).map_err(at)?;
    file.rewind().map_err(at)?;
    let reader: Box<dyn Read> = if beginning.starts_with(&GZIP) {
        Box::new(MultiGzDecoder::new(file))
    } else if beginning.starts_with(&ZSTD) {
        Box::new(zstd::stream::read::Decoder::new(file).map_err(at)?)
    } else {
        Box::new(BufReader::new(file))
    };
    Ok(reader)
}

#[cfg(test)]
mod tests;

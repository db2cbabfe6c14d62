//! A layer of an image: an archive of what it adds, and marks for what it hides of the layers below.
//!
//! Owns how a layer is packed, that it is the one meant, and the marks. Where its files go is `inside`'s.
//!
//! A layer is read twice. The first time its content is summed up and its marks are noted; only when the sum is right is
//! anything removed or written. The marks come first whatever their place in the archive: they mean the layers below, never
//! what the same layer adds.
//!
//! Source: OCI image specification 1.1, "Image layer filesystem changeset".

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use flate2::read::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};

use super::checksum::{Checksum, Summed};
use super::error::ImageError;
use super::inside::Root;

/// What the name of a mark begins with; the name of what it hides follows.
const MARK: &[u8] = b".wh.";
/// What follows where all of the folder is hidden.
const ALL: &[u8] = b".wh..opq";
/// How a stream of gzip begins, RFC 1952.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// How a frame of zstd begins, RFC 8878.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// A file's mode where the archive does not say.
const USUAL_MODE: u32 = 0o644;

/// A layer in a file.
#[derive(Debug)]
pub(crate) struct Layer {
    /// The file.
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
    pub(crate) fn put_on(&self, root: &Root) -> Result<(), ImageError> {
        for hidden in self.proven()? {
            match hidden {
                Hidden::One(path) => root.hide(&path)?,
                Hidden::AllIn(folder) => root.hide_all_in(&folder)?,
                Hidden::Nothing => {}
            }
        }
        unpack(&self.path, root)
    }

    /// What it hides, once it has shown to be the layer that is meant.
    fn proven(&self) -> Result<Vec<Hidden>, ImageError> {
        let at = |source| ImageError::File { path: self.path.clone(), source };
        let mut archive = Archive::new(Summed::new(opened(&self.path)?));
        let mut all_hidden = Vec::new();
        for entry in archive.entries().map_err(at)? {
            let entry = entry.map_err(at)?;
            all_hidden.extend(hidden_by(&entry.path().map_err(at)?)?);
        }
        // An archive may end before its file does.
        let found = archive.into_inner().of_all().map_err(at)?;
        if found != self.content {
            let (what, expected) = ("a layer of the image, unpacked,".to_owned(), self.content.clone());
            return Err(ImageError::Checksum { what, expected, found });
        }
        Ok(all_hidden)
    }
}

/// Unpacks an archive, but for its marks.
pub(crate) fn unpack(path: &Path, root: &Root) -> Result<(), ImageError> {
    let at = |source| ImageError::File { path: path.to_owned(), source };
    let mut archive = Archive::new(opened(path)?);
    for entry in archive.entries().map_err(at)? {
        let mut entry = entry.map_err(at)?;
        let named = entry.path().map_err(at)?.into_owned();
        if hidden_by(&named)?.is_none() {
            put(&mut entry, &named, root).map_err(|error| match error {
                Trouble::Image(error) => error,
                Trouble::Archive(source) => at(source),
            })?;
        }
    }
    Ok(())
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

fn put<R: Read>(entry: &mut Entry<'_, R>, named: &Path, root: &Root) -> Result<(), Trouble> {
    let kind = entry.header().entry_type();
    // Old archives tell a folder by a slash behind its name.
    let is_folder = kind == EntryType::Directory || entry.path_bytes().ends_with(b"/");
    let target = entry.link_name()?.map(|target| target.into_owned());
    match (kind, target) {
        (EntryType::Directory | EntryType::Regular, _) if is_folder => root.make_folder(named)?,
        (EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse, _) => {
            let mode = entry.header().mode().unwrap_or(USUAL_MODE);
            // No file system keeps times without an end.
            let modified_s = entry.header().mtime().unwrap_or(0).min(u64::from(u32::MAX));
            root.write(named, mode, SystemTime::UNIX_EPOCH + Duration::from_secs(modified_s), entry)?;
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
mod tests {
    use std::fs;

    use super::super::made::{Made, gzipped, link, tar, zstandard};
    use super::*;

    /// What is there once these layers were put on each other.
    fn layered(layers: &[Vec<u8>]) -> (tempfile::TempDir, Result<(), String>) {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Root::make(folder.path().join("root")).expect("a root");
        for (number, packed) in layers.iter().enumerate() {
            let path = folder.path().join(number.to_string());
            fs::write(&path, packed).expect("written");
            let content = Checksum::of(opened(&path).expect("opened")).expect("read");
            if let Err(error) = (Layer { path, content }).put_on(&root) {
                return (folder, Err(error.to_string()));
            }
        }
        (folder, Ok(()))
    }

    fn there(folder: &tempfile::TempDir, path: &str) -> bool {
        fs::symlink_metadata(folder.path().join("root").join(path)).is_ok()
    }

    #[test]
    fn a_layer_is_read_however_it_is_packed() {
        let layer = tar(&[Made::file("x", "1")]);
        for packed in [layer.clone(), gzipped(&layer), zstandard(&layer)] {
            let (folder, done) = layered(&[packed]);
            assert_eq!(done, Ok(()));
            assert_eq!(fs::read_to_string(folder.path().join("root/x")).expect("there"), "1");
        }
    }

    #[test]
    fn a_mark_hides_what_lies_below_and_not_what_its_own_layer_adds() {
        let below = tar(&[Made::file("a/x", ""), Made::file("a/y", ""), Made::file("b/x", ""), Made::file("b/c/y", "")]);
        let above = tar(&[
            Made::file("a/.wh.x", ""),
            Made::file("b/new", ""),
            Made::file("b/c/new", ""),
            Made::file("b/.wh..wh..opq", ""),
            Made::file("a/.wh..wh.plnk", ""),
            Made::file("none/.wh.x", ""),
        ]);
        let (folder, done) = layered(&[below, above]);
        assert_eq!(done, Ok(()));
        for (path, expected) in [
            ("a/x", false),
            ("a/y", true),
            ("b/x", false),
            ("b/c/y", false),
            ("b/new", true),
            ("b/c/new", true),
            ("a/.wh.x", false),
            ("b/.wh..wh..opq", false),
            ("none", false),
        ] {
            assert_eq!(there(&folder, path), expected, "{path}");
        }
    }

    #[test]
    fn a_mark_that_means_a_folder_above_is_refused() {
        for mark in [".wh.", ".wh..", ".wh...", "a/.wh..."] {
            let (_folder, done) = layered(&[tar(&[Made::file(mark, "")])]);
            assert_eq!(done, Err(format!("the image names `{mark}`, which leads out of it")));
        }
        let (folder, done) = layered(&[tar(&[link("a", "../..")]), tar(&[Made::file("a/.wh.0", "")])]);
        assert_eq!(done, Ok(()));
        assert!(folder.path().join("0").is_file(), "what lies outside is hidden from nobody");
    }

    #[test]
    fn devices_and_pipes_are_not_made_and_a_slash_makes_a_folder() {
        let of_kind = |name, kind| Made { name, kind, mode: 0o666, target: "", content: "" };
        let (folder, done) = layered(&[tar(&[
            of_kind("null", EntryType::Char),
            of_kind("disk", EntryType::Block),
            of_kind("pipe", EntryType::Fifo),
            Made::file("folder/", ""),
        ])]);
        assert_eq!(done, Ok(()));
        assert!(folder.path().join("root/folder").is_dir());
        assert_eq!(fs::read_dir(folder.path().join("root")).expect("a folder").count(), 1);
    }

    #[test]
    fn a_layer_that_is_not_the_one_meant_changes_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Root::make(folder.path().join("root")).expect("a root");
        let path = folder.path().join("layer");
        fs::write(&path, gzipped(&tar(&[Made::file("x", "")]))).expect("written");
        let content = Checksum::of(io::empty()).expect("read");
        let told = Layer { path, content }.put_on(&root).expect_err("another one").to_string();
        assert!(told.starts_with("a layer of the image, unpacked, has the SHA-256 sha256:"), "{told}");
        assert!(!there(&folder, "x"));
    }
}

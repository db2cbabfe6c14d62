//! The folder that an image is unpacked into: where a path of the image lies in it, and what may be put there.
//!
//! Owns that nothing is written outside of it and that no link in it leads out of it, whatever an image names. Which
//! layer puts what there is `layer`'s.
//!
//! A path of an image is meant where the image is the whole system: a link to `/etc/x` leads to the image's `/etc/x`.
//! Links are therefore followed here, by hand, and written so that they mean the same wherever the folder lies:
//! relative, and climbing no higher than the folder. A text that climbs at its beginning only, and not above the
//! folder, is left as it is. Any other is rewritten: `a/b/c -> ../../../etc/x` would leave the folder by one step,
//! and so would `c -> d/../../..` where `d` is a link. Since each link leads down once it has climbed, a chain of
//! them stays within as well.
//!
//! Nobody else writes into the folder meanwhile: it lies in the cache directory.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use nix::sys::statvfs::statvfs;

use super::error::ImageError;

/// As many links as the kernel follows on one path, path_resolution(7).
const LINKS_MAX: usize = 40;
/// What is left of a file's mode: whose it was is not kept, and who runs it gains nothing by it.
const MODE_KEPT: u32 = 0o755;
/// Every folder's mode.
const FOLDER_MODE: u32 = 0o755;
/// What is to be left of the disk, bytes: others write to it as well.
const LEFT_FREE_BYTES: u64 = 256 << 20;
/// Folders that a system has, which are mounted over or looked into.
const USUAL_FOLDERS: [&str; 6] = ["dev", "etc", "proc", "run", "sys", "tmp"];
/// Files that a node's own are put over.
const USUAL_FILES: [&str; 3] = ["etc/passwd", "etc/group", "etc/hosts"];

/// Where something lies in the folder: a path without links, `.` and `..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place(PathBuf);

/// The folder that an image is unpacked to. No path of the image leads out of it.
#[derive(Debug, Clone)]
pub(crate) struct Root {
    folder: PathBuf,
}

fn at<T>(path: &Path, result: io::Result<T>) -> Result<T, ImageError> {
    result.map_err(|source| ImageError::File { path: path.to_owned(), source })
}

impl Root {
    /// A folder that is there.
    pub(crate) fn new(folder: PathBuf) -> Root {
        Root { folder }
    }

    /// A new one.
    pub(crate) fn make(folder: PathBuf) -> Result<Root, ImageError> {
        at(&folder, fs::create_dir_all(&folder))?;
        Ok(Root { folder })
    }

    /// The path of a place.
    pub(crate) fn path(&self, place: &Place) -> PathBuf {
        self.folder.join(&place.0)
    }

    /// Where a path leads, links followed, its last part among them.
    pub(crate) fn find(&self, named: &Path) -> Result<Option<PathBuf>, ImageError> {
        Ok(self.walk(named, true, false)?.map(|place| self.path(&place)).filter(|path| path.exists()))
    }

    /// Refuses what would fill the disk.
    pub(crate) fn require_room_for(&self, bytes: u64) -> Result<(), ImageError> {
        let needed_bytes = bytes.saturating_add(LEFT_FREE_BYTES);
        let facts = at(&self.folder, statvfs(&self.folder).map_err(io::Error::from))?;
        let free_bytes = facts.blocks_available().saturating_mul(facts.fragment_size());
        // A file system that counts no blocks says nothing.
        if facts.blocks() > 0 && free_bytes < needed_bytes {
            return Err(ImageError::NoRoom { folder: self.folder.clone(), needed_bytes, free_bytes });
        }
        Ok(())
    }

    /// Removes what lies at a path, if anything does.
    pub(crate) fn hide(&self, named: &Path) -> Result<(), ImageError> {
        match self.walk(named, false, false)? {
            Some(place) if place.0.as_os_str().is_empty() => {
                Err(ImageError::Outside { path: named.to_owned() })
            }
            Some(place) => remove(&self.path(&place)),
            None => Ok(()),
        }
    }

    /// Removes all that lies in a folder, if it is there.
    pub(crate) fn hide_all_in(&self, named: &Path) -> Result<(), ImageError> {
        let Some(place) = self.walk(named, true, false)? else { return Ok(()) };
        let folder = self.path(&place);
        if !folder.is_dir() {
            return Ok(());
        }
        for entry in at(&folder, fs::read_dir(&folder))? {
            remove(&at(&folder, entry)?.path())?;
        }
        Ok(())
    }

    /// Makes a folder, if none is there.
    pub(crate) fn make_folder(&self, named: &Path) -> Result<(), ImageError> {
        let path = self.path(&self.make_place(named)?);
        match fs::symlink_metadata(&path) {
            Ok(facts) if facts.is_dir() => return Ok(()),
            Ok(_) => remove(&path)?,
            Err(_) => {}
        }
        at(&path, fs::create_dir(&path))?;
        at(&path, fs::set_permissions(&path, Permissions::from_mode(FOLDER_MODE)))
    }

    /// Writes a file.
    pub(crate) fn write(
        &self,
        named: &Path,
        mode: u32,
        modified: SystemTime,
        content: &mut dyn Read,
    ) -> Result<(), ImageError> {
        let Some(place) = self.clear(named)? else { return Ok(()) };
        let path = self.path(&place);
        let mut file = at(&path, File::options().write(true).create_new(true).mode(0o600).open(&path))?;
        at(&path, io::copy(content, &mut file))?;
        at(&path, file.set_permissions(Permissions::from_mode((mode & MODE_KEPT) | 0o600)))?;
        // Compiled Python knows its source by its time.
        at(&path, file.set_modified(modified))
    }

    /// Makes a link that means there what `target` means in the image.
    pub(crate) fn link(&self, named: &Path, target: &Path) -> Result<(), ImageError> {
        let Some(place) = self.clear(named)? else { return Ok(()) };
        let path = self.path(&place);
        at(&path, symlink(text_of_link(folder_of(&place), target), &path))
    }

    /// Makes a second name for what is there.
    pub(crate) fn name_again(&self, named: &Path, target: &Path) -> Result<(), ImageError> {
        let nothing = || ImageError::LinkToNothing { path: named.to_owned(), target: target.to_owned() };
        let first = self.walk(target, false, false)?.ok_or_else(nothing)?;
        let from = self.path(&first);
        let facts = fs::symlink_metadata(&from).map_err(|_| nothing())?;
        if self.walk(named, false, false)?.as_ref() == Some(&first) {
            return Ok(());
        }
        if facts.is_symlink() {
            // The same text would lead elsewhere from another folder.
            let text = at(&from, fs::read_link(&from))?;
            return self.link(named, &Path::new("/").join(meant(folder_of(&first), &text)));
        }
        let Some(second) = self.clear(named)? else { return Ok(()) };
        let to = self.path(&second);
        at(&to, fs::hard_link(&from, &to))
    }

    /// Makes what a system has, where the image left it out, and the folder that its programs start in.
    pub(crate) fn complete(&self, programs_start_in: &Path) -> Result<(), ImageError> {
        for folder in USUAL_FOLDERS {
            self.require_folder(Path::new(folder))?;
        }
        self.require_folder(programs_start_in)?;
        for file in USUAL_FILES {
            let file = Path::new(file);
            if self.find(file)?.is_none() {
                self.write(file, 0o644, SystemTime::now(), &mut io::empty())?;
            }
        }
        Ok(())
    }

    /// Makes a folder where there is none. A link to one will do.
    fn require_folder(&self, named: &Path) -> Result<(), ImageError> {
        match self.find(named)? {
            Some(path) if path.is_dir() => Ok(()),
            _ => self.make_folder(named),
        }
    }

    /// A place with nothing at it; nothing where the path is the image itself.
    fn clear(&self, named: &Path) -> Result<Option<Place>, ImageError> {
        let place = self.make_place(named)?;
        if place.0.as_os_str().is_empty() {
            return Ok(None);
        }
        remove(&self.path(&place))?;
        Ok(Some(place))
    }

    /// Where a path leads, the folders on the way made.
    fn make_place(&self, named: &Path) -> Result<Place, ImageError> {
        // With the folders made, the way leads to its end.
        Ok(self.walk(named, false, true)?.unwrap_or(Place(PathBuf::new())))
    }

    /// Goes a path part by part. `None` where a folder on the way is not there.
    fn walk(&self, named: &Path, follows_last: bool, makes: bool) -> Result<Option<Place>, ImageError> {
        let mut ahead: Vec<OsString> = parts(named)?.into_iter().rev().collect();
        let (mut here, mut links) = (PathBuf::new(), 0);
        while let Some(part) = ahead.pop() {
            if part == ".." {
                // As the kernel does it: nothing is above the root.
                here.pop();
                continue;
            }
            let next = here.join(&part);
            let path = self.folder.join(&next);
            let is_last = ahead.is_empty();
            match fs::symlink_metadata(&path) {
                Ok(facts) if facts.is_symlink() && (follows_last || !is_last) => {
                    links += 1;
                    if links > LINKS_MAX {
                        return Err(ImageError::Circle { path: named.to_owned() });
                    }
                    let target = at(&path, fs::read_link(&path))?;
                    if target.is_absolute() {
                        here = PathBuf::new();
                    }
                    ahead.extend(parts_of_link(&target).into_iter().rev());
                    continue;
                }
                Ok(_) => {}
                Err(error) if is_absence(&error) && is_last => {}
                Err(error) if is_absence(&error) && !makes => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    at(&path, fs::create_dir(&path))?;
                    at(&path, fs::set_permissions(&path, Permissions::from_mode(FOLDER_MODE)))?;
                }
                Err(source) => return Err(ImageError::File { path, source }),
            }
            here = next;
        }
        Ok(Some(Place(here)))
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn remove(path: &Path) -> Result<(), ImageError> {
    match fs::symlink_metadata(path) {
        Ok(facts) if facts.is_dir() => at(path, fs::remove_dir_all(path)),
        Ok(_) => at(path, fs::remove_file(path)),
        Err(error) if is_absence(&error) => Ok(()),
        Err(source) => Err(ImageError::File { path: path.to_owned(), source }),
    }
}

fn folder_of(place: &Place) -> &Path {
    place.0.parent().unwrap_or(Path::new(""))
}

/// The parts of a path of the image, from its root.
fn parts(named: &Path) -> Result<Vec<OsString>, ImageError> {
    let mut parts = Vec::new();
    for part in named.components() {
        match part {
            Component::Normal(part) => parts.push(part.to_owned()),
            Component::ParentDir => return Err(ImageError::Outside { path: named.to_owned() }),
            _ => {}
        }
    }
    Ok(parts)
}

/// The parts of a link's text, steps upwards among them.
fn parts_of_link(text: &Path) -> Vec<OsString> {
    let is_step = |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
    text.components().filter(is_step).map(|part| part.as_os_str().to_owned()).collect()
}

/// Where a link's text leads from a folder, from the root.
fn meant(folder: &Path, text: &Path) -> PathBuf {
    let mut meant = if text.is_absolute() { PathBuf::new() } else { folder.to_owned() };
    for part in text.components() {
        match part {
            Component::Normal(part) => meant.push(part),
            Component::ParentDir => {
                meant.pop();
            }
            _ => {}
        }
    }
    meant
}

/// The text of a link in `folder`, which means wherever the root lies what `target` means where it is the root.
fn text_of_link(folder: &Path, target: &Path) -> PathBuf {
    let depth = folder.components().count();
    let climbs = target.components().take_while(is_up).count();
    let climbs_later = target.components().skip(climbs).any(|part| is_up(&part));
    if target.is_relative() && climbs <= depth && !climbs_later {
        return target.to_owned();
    }
    let mut text = PathBuf::new();
    for _ in 0..depth {
        text.push("..");
    }
    for part in meant(folder, target).iter() {
        text.push(part);
    }
    if text.as_os_str().is_empty() { PathBuf::from(".") } else { text }
}

fn is_up(part: &Component<'_>) -> bool {
    matches!(part, Component::ParentDir)
}

#[cfg(test)]
mod tests;

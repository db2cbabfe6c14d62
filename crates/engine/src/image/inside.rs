//! The folder that an image is unpacked into: where a path of the image lies in it, and what may be put there.
//!
//! Owns that nothing is written outside of it and that no link in it leads out of it, whatever an image names. Which layer
//! puts what there is `layer`'s.
//!
//! A path of an image is meant where the image is the whole system: a link to `/etc/x` leads to the image's `/etc/x`. Links
//! are therefore followed here, by hand, and written so that they mean the same wherever the folder lies: relative, and
//! climbing no higher than the folder. A text that climbs at its beginning only, and not above the folder, is left as it is.
//! Any other is rewritten: `a/b/c -> ../../../etc/x` would leave the folder by one step, and so would `c -> d/../../..` where
//! `d` is a link. Since each link leads down once it has climbed, a chain of them stays within as well.
//!
//! Nobody else writes into the folder meanwhile: it lies in the cache directory.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use super::error::ImageError;

/// As many links as the kernel follows on one path, path_resolution(7).
const LINKS_MAX: usize = 40;
/// What is left of a file's mode: whose it was is not kept, and who runs it gains nothing by it.
const MODE_KEPT: u32 = 0o755;
/// Every folder's mode.
const FOLDER_MODE: u32 = 0o755;
/// Folders that a system has, which are mounted over or looked into.
const USUAL_FOLDERS: [&str; 6] = ["dev", "etc", "proc", "run", "sys", "tmp"];
/// Files that a node's own are put over.
const USUAL_FILES: [&str; 3] = ["etc/passwd", "etc/group", "etc/hosts"];

/// Where something lies in the folder: a path without links, `.` and `..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place(PathBuf);

/// The folder.
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
        let nothing =
            || ImageError::LinkToNothing { path: named.to_owned(), target: target.to_owned() };
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
        for folder in USUAL_FOLDERS.iter().map(Path::new).chain([programs_start_in]) {
            // A link to a folder will do.
            if !self.find(folder)?.is_some_and(|path| path.is_dir()) {
                self.make_folder(folder)?;
            }
        }
        for file in USUAL_FILES.map(Path::new) {
            if self.find(file)?.is_none() {
                self.write(file, 0o644, SystemTime::now(), &mut io::empty())?;
            }
        }
        Ok(())
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
            Component::ParentDir => drop(meant.pop()),
            _ => {}
        }
    }
    meant
}

/// The text of a link in `folder`, which means wherever the root lies what `target` means where it is the root.
fn text_of_link(folder: &Path, target: &Path) -> PathBuf {
    let depth = folder.components().count();
    let is_up = |part: &Component<'_>| *part == Component::ParentDir;
    let climbs = target.components().take_while(is_up).count();
    let only_climbs_at_first = !target.components().skip(climbs).any(|part| is_up(&part));
    if target.is_relative() && climbs <= depth && only_climbs_at_first {
        return target.to_owned();
    }
    let up = std::iter::repeat_n("..", depth).map(Path::new);
    let meant = meant(folder, target);
    let text: PathBuf = up.chain(meant.iter().map(Path::new)).collect();
    if text.as_os_str().is_empty() { PathBuf::from(".") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Root::make(folder.path().join("root")).expect("a root");
        (folder, root)
    }

    fn write(root: &Root, path: &str, content: &str) -> Result<(), String> {
        let written = root.write(Path::new(path), 0o4777, SystemTime::UNIX_EPOCH, &mut content.as_bytes());
        written.map_err(|error| error.to_string())
    }

    fn link(root: &Root, path: &str, target: &str) {
        root.link(Path::new(path), Path::new(target)).expect("a link");
    }

    #[test]
    fn a_path_that_climbs_out_is_refused_and_an_absolute_one_begins_at_the_image() {
        let (folder, root) = root();
        for path in ["../x", "a/../../x", "a/.."] {
            let told = format!("the image names `{path}`, which leads out of it");
            assert_eq!(write(&root, path, ""), Err(told));
        }
        write(&root, "/etc/x", "1").expect("written");
        assert_eq!(fs::read_to_string(folder.path().join("root/etc/x")).expect("there"), "1");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }

    #[test]
    fn a_file_written_through_a_link_that_leads_out_lands_in_the_image() {
        let (folder, root) = root();
        let outside = folder.path().join("outside");
        fs::create_dir(&outside).expect("a folder");
        link(&root, "up", "../..");
        link(&root, "there", &outside.display().to_string());
        link(&root, "deep/by/steps", "../../../../outside");
        for path in ["up/outside/1", "there/2", "deep/by/steps/3"] {
            write(&root, path, "").expect("written");
        }
        assert_eq!(fs::read_dir(&outside).expect("a folder").count(), 0);
        assert!(folder.path().join("root/outside/1").is_file(), "nothing is above the root");
        assert!(folder.path().join("root/outside/3").is_file());
        let there = folder.path().join("root").join(outside.strip_prefix("/").expect("absolute")).join("2");
        assert!(there.is_file());
    }

    #[test]
    fn links_lead_to_the_same_wherever_the_image_lies() {
        for (folder, target, text) in [
            ("usr/lib", "x.so.1", "x.so.1"),
            ("usr/lib", "../../etc/x", "../../etc/x"),
            ("usr/bin", "/etc/alternatives/java", "../../etc/alternatives/java"),
            ("usr", "../../../etc/x", "../etc/x"),
            ("usr", "x/../../../y", "../y"),
            ("", "/", "."),
            ("", "/usr/bin", "usr/bin"),
            ("a/b", "/", "../.."),
            ("a/b", "./../c", "../../a/c"),
        ] {
            assert_eq!(text_of_link(Path::new(folder), Path::new(target)), Path::new(text), "{target}");
        }
    }

    #[test]
    fn a_second_name_of_a_link_leads_where_the_first_does() {
        let (folder, root) = root();
        write(&root, "etc/x", "1").expect("written");
        link(&root, "a/b/c", "../../etc/x");
        root.name_again(Path::new("d"), Path::new("a/b/c")).expect("a second name");
        assert_eq!(fs::read_link(folder.path().join("root/d")).expect("a link"), Path::new("etc/x"));
        root.name_again(Path::new("etc/y"), Path::new("/etc/x")).expect("a second name");
        root.name_again(Path::new("etc/y"), Path::new("etc/y")).expect("the same name");
        assert_eq!(fs::read_to_string(folder.path().join("root/etc/y")).expect("there"), "1");
        let nothing = root.name_again(Path::new("z"), Path::new("none")).expect_err("nothing").to_string();
        assert_eq!(nothing, "the image makes `z` a second name of `none`, which is not there");
    }

    #[test]
    fn what_is_put_where_something_is_replaces_it_and_links_are_not_written_through() {
        let (folder, root) = root();
        write(&root, "etc/x", "1").expect("written");
        link(&root, "y", "etc/x");
        write(&root, "y", "2").expect("written");
        write(&root, "etc", "3").expect("a file instead of a folder");
        assert_eq!(fs::read_to_string(folder.path().join("root/y")).expect("there"), "2");
        root.make_folder(Path::new("y")).expect("a folder instead of a file");
        assert!(folder.path().join("root/y").is_dir() && folder.path().join("root/etc").is_file());
    }

    #[test]
    fn no_file_runs_as_another_user_or_can_be_written_by_others() {
        let (folder, root) = root();
        write(&root, "x", "").expect("written");
        let mode = fs::metadata(folder.path().join("root/x")).expect("there").permissions().mode();
        assert_eq!(mode & 0o7777, 0o755);
    }

    #[test]
    fn links_that_lead_to_each_other_are_found_out() {
        let (_folder, root) = root();
        link(&root, "a", "b");
        link(&root, "b", "a");
        let told = "the image names `a/x`, whose links lead round in a circle".to_owned();
        assert_eq!(write(&root, "a/x", ""), Err(told));
    }

    #[test]
    fn an_image_with_nothing_in_it_becomes_one_with_the_places_of_a_system() {
        let (folder, root) = root();
        write(&root, "etc/passwd", "kept").expect("written");
        root.complete(Path::new("/opt/thing")).expect("completed");
        let at = |path: &str| folder.path().join("root").join(path);
        assert!(at("proc").is_dir() && at("opt/thing").is_dir() && at("etc/hosts").is_file());
        assert_eq!(fs::read_to_string(at("etc/passwd")).expect("there"), "kept");
    }
}

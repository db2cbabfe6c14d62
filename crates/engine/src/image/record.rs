//! What is known of an image once it is unpacked: where it came from, and how its programs run.
//!
//! Owns the note that lies beside it in the cache directory, and where programs of an image are looked for.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use capabilities::file::ImageSource;
use serde::{Deserialize, Serialize};

use super::documents::{Image, Start};
use super::error::ImageError;
use super::inside::Root;
use super::layout::{INDEX, SAVED};
use crate::checksum::Checksum;

/// The folder of what is unpacked, in a folder of the cache directory.
pub(crate) const ROOT: &str = "root";
/// The note beside it.
const NOTE: &str = "image.json";
/// The variable that says where programs are.
const PATH: &str = "PATH";

/// A system of its own, which programs need in place of the machine's: an image, as it says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct System {
    /// What it was fetched as, and the checksum of what that was.
    pub image: String,
    /// What its programs have in their environment.
    pub environment: BTreeMap<String, String>,
    /// The folder that they start in.
    pub folder: PathBuf,
    /// What it starts as, with the arguments that are always there.
    pub entry_point: Vec<String>,
    /// What follows if nobody says otherwise.
    pub command: Vec<String>,
}

impl System {
    fn of(image: &Image, source: &Source) -> System {
        let Start { env, entrypoint, cmd, working_dir } = image.start.clone();
        let variables = env.unwrap_or_default();
        let variables = variables.iter().filter_map(|variable| variable.split_once('='));
        System {
            image: format!("{} ({})", source.name, image.checksum),
            environment: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            folder: Path::new("/").join(working_dir.unwrap_or_default()),
            entry_point: entrypoint.unwrap_or_default(),
            command: cmd.unwrap_or_default(),
        }
    }

    /// Folders in which its programs are, the preferred one first, as they are named in it.
    fn folders(&self) -> Vec<PathBuf> {
        let searched = self.environment.get(PATH).map(String::as_str).unwrap_or_default();
        let mut folders: Vec<PathBuf> = searched.split(':').map(PathBuf::from).collect();
        for words in [&self.entry_point, &self.command] {
            folders.extend(words.first().and_then(|program| Some(Path::new(program).parent()?.to_owned())));
        }
        folders.push(self.folder.clone());
        // A path that begins nowhere means whichever folder a program happens to be in.
        folders.retain(|folder| folder.is_absolute());
        folders
    }
}

/// Where an image is from, to tell whether it is still the one that is meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Source {
    /// Its name, or the path of its file.
    pub(crate) name: String,
    /// The size and time of its file, where it is one that can be looked at.
    stamp: Option<String>,
}

impl Source {
    /// As an engine file in that folder has it.
    pub(crate) fn of(image: &ImageSource, folder: &Path) -> Source {
        match image {
            ImageSource::Registry(name) => Source { name: name.to_string(), stamp: None },
            ImageSource::File(path) => {
                let path = folder.join(path);
                let path = std::path::absolute(&path).unwrap_or(path);
                let looked_at = [path.join(INDEX), path.join(SAVED), path.clone()];
                let facts = looked_at.iter().find_map(|path| fs::metadata(path).ok());
                let stamp = facts
                    .map(|facts| format!("{} {}.{:09}", facts.size(), facts.mtime(), facts.mtime_nsec()));
                Source { name: path.display().to_string(), stamp }
            }
        }
    }

    /// A short name that others are unlikely to have.
    pub(crate) fn short(&self) -> String {
        let whole = format!("{} {}", self.name, self.stamp.as_deref().unwrap_or_default());
        Checksum::of_bytes(whole.as_bytes()).digits()[..8].to_owned()
    }

    /// Whether what was had from `earlier` is what would be had from here. A file that is gone has not changed.
    fn is_still(&self, earlier: &Source) -> bool {
        self.name == earlier.name && (self.stamp.is_none() || self.stamp == earlier.stamp)
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Note {
    source: Source,
    system: System,
}

/// An image in the cache directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unpacked {
    /// The folder that it is unpacked in.
    pub(crate) root: PathBuf,
    /// Where it is from.
    source: Source,
    /// How its programs run.
    pub(crate) system: System,
}

impl Unpacked {
    /// Notes beside an image what it is.
    pub(crate) fn note(tree: &Path, image: &Image, source: Source) -> Result<System, ImageError> {
        let note = Note { system: System::of(image, &source), source };
        let path = tree.join(NOTE);
        let written = serde_json::to_string_pretty(&note).map_err(std::io::Error::other);
        let written = written.and_then(|text| fs::write(&path, text));
        written.map_err(|source| ImageError::File { path, source })?;
        Ok(note.system)
    }

    /// The image in a folder of the cache directory, if there is one.
    pub(crate) fn in_tree(tree: &Path) -> Option<Unpacked> {
        let text = fs::read(tree.join(NOTE)).ok()?;
        let Note { source, system } = serde_json::from_slice(&text).ok()?;
        Some(Unpacked { root: tree.join(ROOT), source, system })
    }

    /// The image that a folder of programs belongs to, which lies in the cache directory.
    pub(crate) fn around(programs: &Path) -> Option<Unpacked> {
        let programs = programs.canonicalize().ok()?;
        let roots = programs.ancestors().filter(|folder| folder.file_name().is_some_and(|name| name == ROOT));
        // The outermost: what lies further in, the image may have written itself.
        roots.filter_map(Path::parent).filter_map(Unpacked::in_tree).last()
    }

    /// Whether it is from one of these.
    pub(crate) fn is_of(&self, sources: &[Source]) -> bool {
        sources.iter().any(|source| source.is_still(&self.source))
    }

    /// Folders in which its programs are, the preferred one first.
    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        let root = Root::new(self.root.clone());
        // What leads nowhere, or out of it, holds nothing.
        self.system.folders().iter().filter_map(|folder| root.find(folder).ok()?).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(environment: &str, entry_point: &str) -> Image {
        let start = Start {
            env: Some(vec![environment.to_owned(), "NOTHING".to_owned(), "A=b=c".to_owned()]),
            entrypoint: Some(vec![entry_point.to_owned()]),
            cmd: None,
            working_dir: Some("srv".to_owned()),
        };
        Image { checksum: Checksum::of(&b""[..]).expect("read"), start, layers: Vec::new() }
    }

    fn source(folder: &Path, path: &str) -> Source {
        Source::of(&ImageSource::File(path.to_owned()), folder)
    }

    #[test]
    fn programs_are_looked_for_where_the_image_says_and_within_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let tree = folder.path().canonicalize().expect("a path");
        for folder in ["opt/thing/bin", "srv", "entry", "relative"] {
            fs::create_dir_all(tree.join(ROOT).join(folder)).expect("a folder");
        }
        let image = image("PATH=/usr/bin:relative:/../../usr/bin:/opt/thing/bin", "/entry/start.sh");
        let noted = Unpacked::note(&tree, &image, source(&tree, "x.tar")).expect("noted");
        assert_eq!(noted.environment.get("A").map(String::as_str), Some("b=c"));
        let unpacked = Unpacked::in_tree(&tree).expect("an image");
        let root = tree.join(ROOT);
        assert_eq!(unpacked.folders(), ["opt/thing/bin", "entry", "srv"].map(|folder| root.join(folder)));
        assert_eq!(Unpacked::around(&root.join("opt/thing/bin")), Some(unpacked));
        assert_eq!(Unpacked::around(&tree), None);
    }

    #[test]
    fn what_an_image_is_stands_beside_it_and_not_in_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let tree = folder.path().canonicalize().expect("a path");
        let root = tree.join(ROOT);
        let programs = root.join("opt").join(ROOT).join("bin");
        fs::create_dir_all(&programs).expect("a folder");
        let image = image("PATH=/opt/root/bin", "/opt/root/bin/db");
        Unpacked::note(&tree, &image, source(&tree, "true.tar")).expect("noted");
        // The image brings a note of its own, which says that it is another.
        Unpacked::note(&root.join("opt"), &image, source(&tree, "forged.tar")).expect("noted");
        let found = Unpacked::around(&programs).expect("an image");
        assert_eq!((&found.root, found.source), (&root, source(&tree, "true.tar")));
    }

    #[test]
    fn a_file_that_has_changed_is_another_image_and_one_that_is_gone_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.tar");
        fs::write(&path, "1").expect("written");
        let unpacked = Unpacked {
            root: PathBuf::new(),
            source: source(folder.path(), "./x.tar"),
            system: System::default(),
        };
        let now = |path: &str| unpacked.is_of(&[source(folder.path(), path)]);
        assert!(now("x.tar"));
        assert!(!now("y.tar"));
        fs::write(&path, "12").expect("written");
        assert!(!now("x.tar"));
        fs::remove_file(&path).expect("removed");
        assert!(now("x.tar"));
        assert!(!unpacked.is_of(&[]));
    }
}

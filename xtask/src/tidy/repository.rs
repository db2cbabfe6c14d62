//! The repository's own text files. Leaves out what is built, recorded or fetched.

use std::fs;
use std::io;
use std::path::Path;

/// Its path within the repository, and all that is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFile {
    /// Its path, relative to the repository, with `/`.
    pub path: String,
    /// What it says.
    pub text: String,
}

/// Folders in which nothing is the repository's own.
const FOREIGN_FOLDERS: &[&str] = &[".git", "target", "runs", "corpus", "artifacts"];

/// All of them, in order of path. A file that is not UTF-8 is not text.
///
/// # Errors
/// When a folder or file cannot be read.
pub fn text_files(root: &Path) -> io::Result<Vec<TextFile>> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let kind = entry.file_type()?;
            let foreign = name.to_str().is_none_or(|name| FOREIGN_FOLDERS.contains(&name));
            if foreign {
                continue;
            }
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                let Ok(text) = String::from_utf8(fs::read(entry.path())?) else { continue };
                let path = entry.path();
                let path = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
                files.push(TextFile { path, text });
            }
        }
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

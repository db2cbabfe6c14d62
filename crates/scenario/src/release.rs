//! Which programs of a database are meant: a folder that is named, or any of a version.
//!
//! Owns reading both. Finding and installing them is the engine's work.

use serde::Serialize;

use crate::decode::Decoder;
use crate::rejection::Spanned;
use crate::tree::Node;
use crate::wording::shortened;

/// Which programs of a database are meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Release {
    /// Those in this folder, an absolute path.
    Folder(String),
    /// Those whose version begins with these numbers: `3.5`.
    Version(String),
}

impl Release {
    /// As it stands in a scenario.
    #[must_use]
    pub fn written(&self) -> &str {
        match self {
            Release::Folder(written) | Release::Version(written) => written,
        }
    }
}

/// Reads a folder.
pub(crate) fn folder(node: &Node, decoder: &mut Decoder) -> Option<Release> {
    let path = decoder.text(node, "the database's folder")?;
    if path.value.starts_with('/') && !path.value.contains(char::is_control) {
        return Some(Release::Folder(path.value));
    }
    decoder.findings.add(
        "bad-path",
        path.at,
        format!("`{}` is not an absolute path", shortened(&path.value)),
        "not absolute",
        "write the whole path of the folder with the database's programs, such as /usr/lib/postgresql/15/bin",
    );
    None
}

/// Reads a version.
pub(crate) fn version(node: &Node, decoder: &mut Decoder) -> Option<Release> {
    let version = decoder.text(node, "a version")?;
    let is_number = |number: &str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if version.value.split('.').all(is_number) && version.value.len() <= MOST_LETTERS {
        return Some(Release::Version(version.value));
    }
    refuse(&version, decoder);
    None
}

/// Reads either.
pub(crate) fn either(node: &Node, decoder: &mut Decoder) -> Option<Release> {
    match decoder.text(node, "a version or a folder")?.value.contains('/') {
        true => folder(node, decoder),
        false => version(node, decoder),
    }
}

/// More than any version has.
const MOST_LETTERS: usize = 40;

fn refuse(version: &Spanned<String>, decoder: &mut Decoder) {
    decoder.findings.add(
        "bad-version",
        version.at,
        format!("`{}` is not a version", shortened(&version.value)),
        "not numbers with dots between them",
        "write the numbers that the version begins with, such as 3.5 or 15.18",
    );
}

//! An object of a volume without its content, as a value: sent to another component, or written down for a snapshot.
//!
//! Owns how it is read off a volume, and how a whole name space is made of such values again.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use serde::{Deserialize, Serialize};

use crate::attributes::{Attributes, Kind};
use crate::tree::{Body, FileBody, Tree};

/// An object without its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Image {
    pub(crate) number: u64,
    pub(crate) kind: Kind,
    pub(crate) attributes: Attributes,
    pub(crate) extended: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) body: ImageBody,
}

/// What it consists of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ImageBody {
    File { size: u64 },
    Directory { names: Vec<(Vec<u8>, u64, Kind)> },
    SymbolicLink(Vec<u8>),
    Device(u32),
}

fn os(bytes: &[u8]) -> OsString {
    OsStr::from_bytes(bytes).to_owned()
}

impl Image {
    /// The object with this number; `None` when there is none.
    pub(crate) fn of(tree: &Tree, number: u64) -> Option<Image> {
        let inode = tree.get(number).ok()?;
        let bytes = |name: &OsString| name.as_bytes().to_vec();
        let body = match &inode.body {
            Body::File(file) => ImageBody::File { size: file.size },
            Body::Directory(entries) => {
                let kind_of = |number: u64| tree.get(number).map_or(Kind::File, |inode| inode.kind);
                let names = entries.iter().map(|(name, number)| (bytes(name), *number, kind_of(*number)));
                ImageBody::Directory { names: names.collect() }
            }
            Body::SymbolicLink(target) => ImageBody::SymbolicLink(bytes(target)),
            Body::Device(device) => ImageBody::Device(*device),
        };
        let extended = inode.extended.iter().map(|(name, value)| (bytes(name), value.clone())).collect();
        Some(Image { number, kind: inode.kind, attributes: inode.attributes, extended, body })
    }

    /// Its extended attributes.
    pub(crate) fn extended(&self) -> BTreeMap<OsString, Vec<u8>> {
        self.extended.iter().map(|(name, value)| (os(name), value.clone())).collect()
    }

    /// Its size, where it is a file.
    pub(crate) fn file_size(&self) -> Option<u64> {
        match self.body {
            ImageBody::File { size } => Some(size),
            _ => None,
        }
    }

    /// What it consists of, all of it durable.
    fn durable_body(&self) -> Body {
        match &self.body {
            ImageBody::File { size } => Body::File(FileBody::durable(*size)),
            ImageBody::Directory { names } => {
                Body::Directory(names.iter().map(|(name, number, _)| (os(name), *number)).collect())
            }
            ImageBody::SymbolicLink(target) => Body::SymbolicLink(OsString::from_vec(target.clone())),
            ImageBody::Device(device) => Body::Device(*device),
        }
    }
}

/// The name space of these objects, of which all is durable; none where a root directory is not among them, or a name leads
/// to none of them. New objects get numbers from `next` on.
pub(crate) fn tree_of(images: &[Image], next: u64) -> Option<Tree> {
    let root = images.iter().find(|image| image.number == crate::tree::ROOT)?;
    let mut tree = Tree::new(root.attributes);
    for image in images {
        tree.insert(Some(image.number), image.kind, image.attributes, image.durable_body());
        tree.get_mut(image.number).ok()?.extended = image.extended();
    }
    let is_there = |number: &u64| tree.get(*number).is_ok();
    let leads_nowhere = images.iter().any(|image| match &image.body {
        ImageBody::Directory { names } => !names.iter().all(|(_, number, _)| is_there(number)),
        _ => false,
    });
    if leads_nowhere || root.kind != Kind::Directory {
        return None;
    }
    tree.recount();
    tree.number_from(next);
    Some(tree)
}

//! Images, as container engines run them: fetched, proven and unpacked, so that their programs can be an engine's.
//!
//! Owns the way from what an engine file names to a folder in the cache directory. There is no container engine on
//! it. A node sees what is unpacked in place of the machine's files, which is the lab's work.
//!
//! `registry` and `layout` say where parts come from, `question` asks for one of them, `documents` says which they
//! are, `layer` and `inside` put them in place, `gauge` limits how much they take, `record` keeps what the image says
//! of itself, `enclosed` runs one of its programs outside of a lab.
//!
//! Whoever made an image may mean harm, and whoever serves it as well. What they can do is in `docs/design/images.md`.

mod documents;
mod enclosed;
mod error;
mod gauge;
mod inside;
mod layer;
mod layout;
#[cfg(test)]
pub(crate) mod made;
mod question;
mod record;
mod registry;

use std::fs;
use std::path::{Path, PathBuf};

use capabilities::file::ImageSource;

pub(crate) use enclosed::enclosed;
pub(crate) use error::ImageError;
pub(crate) use question::quoted;
pub use record::System;
pub(crate) use record::{Source, Unpacked};

use gauge::Gauge;
use inside::Root;

/// Fetches an image that an engine file in `folder` names, and unpacks it; the tree that it lies in.
pub(crate) fn with_image(
    image: &ImageSource,
    folder: &Path,
    megabytes: Option<u32>,
    staging: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, ImageError> {
    let (scratch, tree) = (staging.join("scratch"), staging.join("tree"));
    fs::create_dir_all(&scratch).map_err(|source| ImageError::File { path: scratch.clone(), source })?;
    // Before it is read: what is written meanwhile is another image.
    let source = Source::of(image, folder);
    let size = megabytes.map(|megabytes| format!(" ({megabytes} MB)")).unwrap_or_default();
    let gauge = Gauge::new(gauge::USUAL);
    let parts = match image {
        ImageSource::Registry(name) => {
            progress(&format!("downloading {name} with curl{size}"));
            registry::pull(name, &scratch, progress)?
        }
        ImageSource::File(path) => {
            progress(&format!("reading the image {}{size}", source.name));
            layout::open(&folder.join(path), &scratch, &gauge)?
        }
    };
    progress(&format!("unpacking {} layers", parts.layers.len()));
    let root = Root::make(tree.join(record::ROOT))?;
    for layer in &parts.layers {
        layer.put_on(&root, &gauge)?;
    }
    let system = Unpacked::note(&tree, &parts, source)?;
    root.complete(&system.folder)?;
    Ok(tree)
}

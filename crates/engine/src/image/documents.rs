//! The documents of an image: indexes of manifests, manifests, configurations; and the way through them to its parts.
//!
//! Owns which manifest is this machine's, and that every part is the one its manifest names. Where parts come from, a
//! registry or a folder, whoever asks knows.
//!
//! Source: OCI image specification 1.1; of what it took over, "Image Manifest Version 2, Schema 2" of the docker
//! registry.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::error::ImageError;
use super::gauge::USUAL;
use super::layer::Layer;
use crate::checksum::Checksum;

/// How large a document may be: what registries take at least, OCI distribution specification 1.1.
pub(crate) const MOST_BYTES: u64 = 4 << 20;
/// How many indexes may lie behind each other.
const MOST_INDEXES: usize = 4;
/// How many layers an image may have: twice what container engines take.
const MOST_LAYERS: usize = 256;
/// The system that runs here.
const LINUX: &str = "linux";
/// Says of what an index names that it is about another image, and none itself.
const ABOUT_ANOTHER: &str = "vnd.docker.reference.type";
/// What an index calls an image.
const NAME: &str = "org.opencontainers.image.ref.name";

/// This machine's architecture, as images have it.
pub(crate) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// How a document names another, or a layer.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Descriptor {
    /// The SHA-256 of its bytes as they are fetched.
    pub(crate) digest: Checksum,
    /// Its size in bytes.
    pub(crate) size: u64,
    platform: Option<Platform>,
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Clone, Deserialize)]
struct Platform {
    os: String,
    architecture: String,
    variant: Option<String>,
}

/// An index or a manifest.
#[derive(Debug, Deserialize)]
pub(crate) struct Document {
    manifests: Option<Vec<Descriptor>>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
}

/// What an image says of itself.
#[derive(Debug, Deserialize)]
pub(crate) struct Config {
    #[serde(default)]
    os: String,
    #[serde(default)]
    architecture: String,
    config: Option<Start>,
    rootfs: Layers,
}

#[derive(Debug, Deserialize)]
struct Layers {
    diff_ids: Vec<Checksum>,
}

/// How its programs are started.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Start {
    pub(crate) env: Option<Vec<String>>,
    pub(crate) entrypoint: Option<Vec<String>>,
    pub(crate) cmd: Option<Vec<String>>,
    pub(crate) working_dir: Option<String>,
}

/// A part of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// A manifest, or an index.
    Manifest,
    /// What the image starts: entry point, command, environment, working directory.
    Config,
    Layer {
        /// Which, from 1 on.
        number: usize,
        /// Of how many.
        of: usize,
    },
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Part::Manifest => f.write_str("a manifest of the image"),
            Part::Config => f.write_str("the configuration of the image"),
            Part::Layer { number, of } => write!(f, "layer {number} of {of} of the image"),
        }
    }
}

/// An image whose parts are in files, each the one meant.
#[derive(Debug)]
pub(crate) struct Image {
    /// What tells it from all others: the checksum of its manifest, or of its configuration where it has none.
    pub(crate) checksum: Checksum,
    /// How its programs are started.
    pub(crate) start: Start,
    /// Its layers, the lowest first.
    pub(crate) layers: Vec<Layer>,
}

/// Puts a part into a file, wherever it comes from.
pub(crate) type Fetch<'a> = dyn FnMut(&Descriptor, Part) -> Result<PathBuf, ImageError> + 'a;

/// Reads a document.
pub(crate) fn read<T: DeserializeOwned>(path: &Path, what: &'static str) -> Result<T, ImageError> {
    let at = |source| ImageError::File { path: path.to_owned(), source };
    let mut text = Vec::new();
    File::open(path).map_err(at)?.take(MOST_BYTES).read_to_end(&mut text).map_err(at)?;
    serde_json::from_slice(&text).map_err(|source| ImageError::Document { what, source })
}

/// The checksum of a file, which must be the one given.
pub(crate) fn verify(
    path: &Path,
    expected: &Checksum,
    what: impl std::fmt::Display,
) -> Result<(), ImageError> {
    ImageError::unless_equal(checksum_of(path)?, expected, what)
}

/// The checksum of a file.
pub(crate) fn checksum_of(path: &Path) -> Result<Checksum, ImageError> {
    let read = File::open(path).and_then(Checksum::of);
    read.map_err(|source| ImageError::File { path: path.to_owned(), source })
}

/// Goes from an index or a manifest, of this checksum, to all parts of the image.
pub(crate) fn follow(
    first: Document,
    checksum: Checksum,
    fetch: &mut Fetch<'_>,
) -> Result<Image, ImageError> {
    let (mut document, mut checksum) = (first, checksum);
    for _ in 0..MOST_INDEXES {
        match (document.manifests, document.config, document.layers) {
            (Some(manifests), None, None) => {
                let chosen = choose(&manifests)?;
                let path = verified(chosen, Part::Manifest, fetch)?;
                checksum = chosen.digest.clone();
                document = read(&path, "a manifest")?;
            }
            (None, Some(config), Some(layers)) => return assemble(checksum, &config, &layers, fetch),
            // One that is both would be read differently by different programs.
            _ => return Err(ImageError::Unclear { what: "a manifest" }),
        }
    }
    Err(ImageError::Endless)
}

fn verified(part: &Descriptor, kind: Part, fetch: &mut Fetch<'_>) -> Result<PathBuf, ImageError> {
    let path = fetch(part, kind)?;
    verify(&path, &part.digest, kind)?;
    Ok(path)
}

fn assemble(
    checksum: Checksum,
    config: &Descriptor,
    layers: &[Descriptor],
    fetch: &mut Fetch<'_>,
) -> Result<Image, ImageError> {
    // Before anything is fetched.
    limit(layers)?;
    let path = verified(config, Part::Config, fetch)?;
    let config: Config = read(&path, "the configuration")?;
    let contents = config.contents(layers.len())?;
    let mut paths = Vec::new();
    for (number, layer) in layers.iter().enumerate() {
        let part = Part::Layer { number: number + 1, of: layers.len() };
        paths.push(verified(layer, part, fetch)?);
    }
    Ok(config.image(checksum, paths.into_iter().zip(contents)))
}

/// Refuses more layers than an image has, and layers that are larger packed than they may be unpacked.
fn limit(layers: &[Descriptor]) -> Result<(), ImageError> {
    if layers.len() > MOST_LAYERS {
        return Err(ImageError::ManyLayers { listed: layers.len(), most: MOST_LAYERS });
    }
    let packed_bytes = layers.iter().fold(0_u64, |sum, layer| sum.saturating_add(layer.size));
    if packed_bytes > USUAL.bytes {
        return Err(ImageError::TooLarge { most: USUAL.bytes });
    }
    Ok(())
}

impl Config {
    /// What each of so many layers contains, if it runs here.
    pub(crate) fn contents(&self, listed: usize) -> Result<Vec<Checksum>, ImageError> {
        let runs_here = (self.os.is_empty() || self.os == LINUX)
            && (self.architecture.is_empty() || self.architecture == architecture());
        if !runs_here {
            let has = format!("{}/{}", self.os, self.architecture);
            return Err(ImageError::Platform { architecture: architecture(), has });
        }
        let named = self.rootfs.diff_ids.len();
        if listed > MOST_LAYERS {
            return Err(ImageError::ManyLayers { listed, most: MOST_LAYERS });
        }
        if named != listed {
            return Err(ImageError::Layers { listed, named });
        }
        Ok(self.rootfs.diff_ids.clone())
    }

    /// The image of these layers, each a file and its content.
    pub(crate) fn image(
        self,
        checksum: Checksum,
        layers: impl Iterator<Item = (PathBuf, Checksum)>,
    ) -> Image {
        let layers = layers.map(|(path, content)| Layer { path, content }).collect();
        Image { checksum, start: self.config.unwrap_or_default(), layers }
    }
}

/// What an index has for this machine.
fn choose(manifests: &[Descriptor]) -> Result<&Descriptor, ImageError> {
    let is_image = |one: &&Descriptor| {
        one.annotations.as_ref().is_none_or(|annotations| !annotations.contains_key(ABOUT_ANOTHER))
    };
    let images: Vec<&Descriptor> = manifests.iter().filter(is_image).collect();
    let runs_here = |one: &&&Descriptor| one.platform.as_ref().is_none_or(Platform::is_here);
    let mut fit: Vec<&Descriptor> = images.iter().filter(runs_here).copied().collect();
    // Of one architecture there may be builds for newer processors beside the one for all.
    if fit.iter().any(|one| !one.is_for_newer()) {
        fit.retain(|one| !one.is_for_newer());
    }
    match fit.as_slice() {
        [] => {
            let platforms = images.iter().filter_map(|one| one.platform.as_ref());
            let has: BTreeSet<String> = platforms.map(Platform::name).collect();
            let has: Vec<String> = has.into_iter().collect();
            let has = if has.is_empty() { "nothing".to_owned() } else { has.join(", ") };
            Err(ImageError::Platform { architecture: architecture(), has })
        }
        [first, others @ ..] if others.iter().all(|other| other.digest == first.digest) => Ok(*first),
        several => {
            let names: Vec<String> = several.iter().map(|one| one.name()).collect();
            Err(ImageError::Several { names: names.join(", ") })
        }
    }
}

impl Descriptor {
    fn name(&self) -> String {
        let named = self.annotations.as_ref().and_then(|annotations| annotations.get(NAME));
        named.cloned().unwrap_or_else(|| self.digest.to_string())
    }

    fn is_for_newer(&self) -> bool {
        let variant = self.platform.as_ref().and_then(|platform| platform.variant.as_deref());
        // Every 64-bit ARM is at least a v8.
        variant.is_some_and(|variant| variant != "v8")
    }
}

impl Platform {
    fn is_here(&self) -> bool {
        self.os == LINUX && self.architecture == architecture()
    }

    fn name(&self) -> String {
        format!("{}/{}", self.os, self.architecture)
    }
}

#[cfg(test)]
mod tests;

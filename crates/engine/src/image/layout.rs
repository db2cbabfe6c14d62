//! An image in files: an OCI layout, in a folder or in an archive, and what `docker save` writes.
//!
//! Owns where its parts lie there. What they are and whether they are the ones meant is `documents`'.
//!
//! Source: OCI image specification 1.1, "Image layout"; Docker's Engine API 1.25, "Image tarball format".

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde::Deserialize;

use super::documents::{self, Config, Document, Image, checksum_of, follow};
use super::error::ImageError;
use super::gauge::Gauge;
use super::inside::Root;
use super::layer;
use crate::checksum::Checksum;

/// The document a layout begins with.
pub(super) const INDEX: &str = "index.json";
/// The document that `docker save` begins with.
pub(super) const SAVED: &str = "manifest.json";
/// Where a layout has its parts.
const BLOBS: &str = "blobs/sha256";

/// An image as `docker save` lists it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Saved {
    config: String,
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

/// The image in a folder or an archive; an archive is unpacked into a folder below `scratch`, on the image's account.
pub(crate) fn open(path: &Path, scratch: &Path, gauge: &Rc<Gauge>) -> Result<Image, ImageError> {
    let facts = fs::metadata(path).map_err(|source| ImageError::File { path: path.to_owned(), source })?;
    let root = if facts.is_dir() {
        Root::new(path.to_owned())
    } else if facts.is_file() {
        let root = Root::make(scratch.join("archive"))?;
        layer::unpack(path, &root, gauge)?;
        root
    } else {
        // A pipe or a device might never end.
        return Err(ImageError::NoImage { path: path.to_owned() });
    };
    // Newer ones write both, and what the layout names is proven by its checksum.
    if let Some(index) = root.find(Path::new(INDEX))? {
        return from_layout(&index, &root);
    }
    match root.find(Path::new(SAVED))? {
        Some(list) => from_saved(path, &list, &root),
        None => Err(ImageError::NoImage { path: path.to_owned() }),
    }
}

fn from_layout(index: &Path, root: &Root) -> Result<Image, ImageError> {
    let checksum = checksum_of(index)?;
    let document: Document = documents::read(index, "the index")?;
    follow(document, checksum, &mut |part, _| there(&Path::new(BLOBS).join(part.digest.digits()), root))
}

fn from_saved(saved: &Path, list: &Path, root: &Root) -> Result<Image, ImageError> {
    let images: Vec<Saved> = documents::read(list, "manifest.json")?;
    let image = match images.as_slice() {
        [image] => image,
        [] => return Err(ImageError::NoImage { path: saved.to_owned() }),
        several => {
            let tags = several.iter().filter_map(|image| image.repo_tags.as_ref());
            let names: Vec<String> = tags.flatten().cloned().collect();
            return Err(ImageError::Several { names: names.join(", ") });
        }
    };
    let path = there(Path::new(&image.config), root)?;
    let checksum = checksum_of(&path)?;
    if let Some(expected) = named_by(&image.config) {
        documents::verify(&path, &expected, "the configuration of the image")?;
    }
    let config: Config = documents::read(&path, "the configuration")?;
    // What each layer contains is proven when it is unpacked.
    let contents = config.contents(image.layers.len())?;
    let mut layers: Vec<PathBuf> = Vec::new();
    for layer in &image.layers {
        layers.push(there(Path::new(layer), root)?);
    }
    Ok(config.image(checksum, layers.into_iter().zip(contents)))
}

fn there(named: &Path, root: &Root) -> Result<PathBuf, ImageError> {
    let missing = || io::Error::from(io::ErrorKind::NotFound);
    root.find(named)?.ok_or_else(|| ImageError::File { path: named.to_owned(), source: missing() })
}

/// The checksum in a configuration's name, which has one whoever wrote it: `12ab.json`, `blobs/sha256/12ab`,
/// `sha256:12ab`.
fn named_by(config: &str) -> Option<Checksum> {
    let name = config.rsplit(['/', ':']).next()?;
    Checksum::of_digits(name.strip_suffix(".json").unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::gauge::USUAL;
    use super::super::made::{self, Made, bytes, checksum, described, described_for, gzipped, layout, saved};
    use super::*;

    fn layer() -> Vec<u8> {
        made::tar(&[Made::file("opt/thing/bin/thing", "1")])
    }

    /// Opens and unpacks an image of that layer; its checksum's digits.
    fn opened(path: &Path) -> Result<String, String> {
        let scratch = tempfile::tempdir().expect("a folder");
        let gauge = Gauge::new(USUAL);
        let image = open(path, scratch.path(), &gauge).map_err(|error| error.to_string())?;
        assert_eq!(image.layers.len(), 1);
        assert_eq!(image.start.working_dir.as_deref(), Some("/opt/thing"));
        let root = Root::make(scratch.path().join("root")).expect("a root");
        image.layers[0].put_on(&root, &gauge).map_err(|error| error.to_string())?;
        assert!(scratch.path().join("root/opt/thing/bin/thing").is_file());
        Ok(image.checksum.digits().to_owned())
    }

    fn digits(part: &[u8]) -> Result<String, String> {
        Ok(checksum(part).digits().to_owned())
    }

    #[test]
    fn a_layout_is_read_in_a_folder_and_in_an_archive_and_so_is_what_docker_saves() {
        let folder = tempfile::tempdir().expect("a folder");
        let parts = made::image(&[layer()]);
        let at = |name: &str| folder.path().join(name);
        layout(&at("layout"), &parts, &[described(&parts.manifest)]);
        assert_eq!(opened(&at("layout")), digits(&parts.manifest));

        let saved = saved(&parts, &[layer()]);
        fs::write(at("saved.tar"), &saved).expect("written");
        fs::write(at("saved.tar.gz"), gzipped(&saved)).expect("written");
        for name in ["saved.tar", "saved.tar.gz"] {
            assert_eq!(opened(&at(name)), digits(&parts.config), "{name}");
        }

        let mut archive = tar::Builder::new(Vec::new());
        archive.append_dir_all(".", at("layout")).expect("written");
        fs::write(at("layout.tar"), archive.into_inner().expect("an archive")).expect("written");
        assert_eq!(opened(&at("layout.tar")), digits(&parts.manifest));
    }

    #[test]
    fn an_index_behind_the_index_leads_to_this_machine_s_manifest() {
        let folder = tempfile::tempdir().expect("a folder");
        let parts = made::image(&[layer()]);
        let manifests = [
            described_for(b"another", "linux", "s390x"),
            described_for(&parts.manifest, "linux", documents::architecture()),
        ];
        let inner = bytes(&json!({ "schemaVersion": 2, "manifests": manifests }));
        layout(folder.path(), &parts, &[described(&inner)]);
        fs::write(folder.path().join(BLOBS).join(checksum(&inner).digits()), &inner).expect("written");
        assert_eq!(opened(folder.path()), digits(&parts.manifest));
    }

    #[test]
    fn a_part_that_was_exchanged_is_found_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let parts = made::image(&[layer()]);
        for part in [&parts.manifest, &parts.config, &parts.layers[0]] {
            layout(folder.path(), &parts, &[described(&parts.manifest)]);
            let named = checksum(part);
            fs::write(folder.path().join(BLOBS).join(named.digits()), "{}").expect("written");
            let told = opened(folder.path()).expect_err("another part");
            let found = checksum(b"{}");
            assert!(told.contains(&format!("has the SHA-256 {found}, not {named}: it is damaged")), "{told}");
        }
    }

    #[test]
    fn a_saved_layer_that_was_exchanged_is_found_out_when_it_is_unpacked() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("saved.tar");
        let other = made::tar(&[Made::file("opt/thing/bin/thing", "2")]);
        fs::write(&path, saved(&made::image(&[layer()]), &[other])).expect("written");
        let told = opened(&path).expect_err("another layer");
        assert!(told.starts_with("a layer of the image, unpacked, has the SHA-256 "), "{told}");
    }

    #[test]
    fn what_is_no_image_or_names_a_file_outside_of_it_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let told = opened(folder.path()).expect_err("no image");
        let at = folder.path().display().to_string();
        assert_eq!(told, format!("{at} is no image: it has neither index.json nor manifest.json"));
        let told = opened(Path::new("/dev/zero")).expect_err("a device");
        assert_eq!(told, "/dev/zero is no image: it has neither index.json nor manifest.json");
        fs::write(folder.path().join(SAVED), "[]").expect("written");
        let told = opened(folder.path()).expect_err("an empty list");
        assert!(told.starts_with(&format!("{at} is no image: ")), "{told}");
        let list = json!([{ "Config": "../config.json", "Layers": [] }]);
        fs::write(folder.path().join(SAVED), bytes(&list)).expect("written");
        let told = opened(folder.path()).expect_err("outside");
        assert_eq!(told, "the image names `../config.json`, which leads out of it");
        let list =
            json!([{ "Config": "a", "RepoTags": ["a:1"], "Layers": [] }, { "Config": "b", "Layers": [] }]);
        fs::write(folder.path().join(SAVED), bytes(&list)).expect("written");
        let told = opened(folder.path()).expect_err("two images");
        assert!(told.starts_with("it holds several images (a:1)"), "{told}");
    }

    #[test]
    fn an_archive_writes_nothing_outside_of_the_folder_it_is_unpacked_in() {
        let folder = tempfile::tempdir().expect("a folder");
        let outside = folder.path().join("outside").display().to_string();
        let entries = [made::link("blobs", &outside), Made::file("blobs/x", "1"), Made::file("../y", "1")];
        let path = folder.path().join("image.tar");
        fs::write(&path, made::tar(&entries)).expect("written");
        let told = opened(&path).expect_err("it climbs");
        assert_eq!(told, "the image names `../y`, which leads out of it");
        assert!(!folder.path().join("outside").exists());
    }

    #[test]
    fn the_checksum_of_a_configuration_stands_in_its_name() {
        let digits = checksum(b"").digits().to_owned();
        for name in [format!("{digits}.json"), format!("blobs/sha256/{digits}"), format!("sha256:{digits}")] {
            assert_eq!(named_by(&name), Some(checksum(b"")), "{name}");
        }
        assert_eq!(named_by("config.json"), None);
    }
}

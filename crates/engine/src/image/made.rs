//! Images made for tests: archives, layouts, what `docker save` writes.
//!
//! Owns their bytes. Names are written as they stand, sound or not.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tar::{Builder, EntryType, Header};

use super::documents::architecture;
use crate::checksum::Checksum;

/// An entry of an archive.
pub(crate) struct Made<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: EntryType,
    pub(crate) mode: u32,
    pub(crate) target: &'a str,
    pub(crate) content: &'a str,
}

impl<'a> Made<'a> {
    /// A file, which may be run.
    pub(crate) fn file(name: &'a str, content: &'a str) -> Made<'a> {
        Made { name, kind: EntryType::Regular, mode: 0o755, target: "", content }
    }
}

pub(crate) fn link<'a>(name: &'a str, target: &'a str) -> Made<'a> {
    Made { name, kind: EntryType::Symlink, mode: 0o777, target, content: "" }
}

/// A second name of what the archive has under another.
pub(crate) fn second_name<'a>(name: &'a str, target: &'a str) -> Made<'a> {
    Made { name, kind: EntryType::Link, mode: 0o644, target, content: "" }
}

/// An entry of some kind, with nothing in it.
pub(crate) fn of_kind(name: &str, kind: EntryType) -> Made<'_> {
    Made { name, kind, mode: 0o666, target: "", content: "" }
}

/// An archive of a file that is one hole of so many bytes.
pub(crate) fn sparse(name: &str, hole_bytes: u64) -> Vec<u8> {
    let mut header = header_of(&of_kind(name, EntryType::GNUSparse));
    let fields = header.as_gnu_mut().expect("a header of that kind");
    fields.sparse[0].set_offset(hole_bytes);
    fields.sparse[0].set_length(0);
    fields.set_real_size(hole_bytes);
    header.set_cksum();
    let mut builder = Builder::new(Vec::new());
    builder.append(&header, std::io::empty()).expect("written");
    builder.into_inner().expect("an archive")
}

/// An archive of an empty file whose name does not fit into a header.
pub(crate) fn longer(name: &str) -> Vec<u8> {
    let mut header = header_of(&of_kind("", EntryType::Regular));
    let mut builder = Builder::new(Vec::new());
    builder.append_data(&mut header, name, std::io::empty()).expect("written");
    builder.into_inner().expect("an archive")
}

/// An archive. Its names may have 100 bytes.
pub(crate) fn tar(entries: &[Made<'_>]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for entry in entries {
        builder.append(&header_of(entry), entry.content.as_bytes()).expect("written");
    }
    builder.into_inner().expect("an archive")
}

fn header_of(entry: &Made<'_>) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(entry.kind);
    header.set_mode(entry.mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(entry.content.len() as u64);
    let fields = header.as_gnu_mut().expect("a header of that kind");
    fields.name[..entry.name.len()].copy_from_slice(entry.name.as_bytes());
    fields.linkname[..entry.target.len()].copy_from_slice(entry.target.as_bytes());
    header.set_cksum();
    header
}

pub(crate) fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("packed");
    encoder.finish().expect("packed")
}

pub(crate) fn zstandard(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).expect("packed")
}

pub(crate) fn checksum(bytes: &[u8]) -> Checksum {
    Checksum::of(bytes).expect("read")
}

/// An image: its parts by their checksums.
pub(crate) struct Parts {
    pub(crate) manifest: Vec<u8>,
    pub(crate) config: Vec<u8>,
    /// As they are packed.
    pub(crate) layers: Vec<Vec<u8>>,
}

/// An image of these layers, which are archives, for this machine.
pub(crate) fn image(layers: &[Vec<u8>]) -> Parts {
    let contents: Vec<Checksum> = layers.iter().map(|layer| checksum(layer)).collect();
    let config = json!({
        "architecture": architecture(),
        "os": "linux",
        "config": {
            "Env": ["PATH=/opt/thing/bin:/usr/bin", "THING_HOME=/opt/thing"],
            "Entrypoint": ["/opt/thing/start.sh"],
            "Cmd": ["--serve"],
            "WorkingDir": "/opt/thing",
        },
        "rootfs": { "type": "layers", "diff_ids": contents },
    });
    let config = bytes(&config);
    let layers: Vec<Vec<u8>> = layers.iter().map(|layer| gzipped(layer)).collect();
    let manifest = json!({
        "schemaVersion": 2,
        "config": described(&config),
        "layers": layers.iter().map(|layer| described(layer)).collect::<Vec<Value>>(),
    });
    Parts { manifest: bytes(&manifest), config, layers }
}

pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// How a manifest names a part.
pub(crate) fn described(part: &[u8]) -> Value {
    json!({ "mediaType": "application/octet-stream", "digest": checksum(part), "size": part.len() })
}

/// How an index names a manifest.
pub(crate) fn described_for(part: &[u8], os: &str, architecture: &str) -> Value {
    let mut described = described(part);
    described["platform"] = json!({ "os": os, "architecture": architecture });
    described
}

/// Writes an image as a layout, and the index given.
pub(crate) fn layout(folder: &Path, parts: &Parts, index: &[Value]) {
    let blobs = folder.join("blobs/sha256");
    fs::create_dir_all(&blobs).expect("a folder");
    for part in [&parts.manifest, &parts.config].into_iter().chain(&parts.layers) {
        fs::write(blobs.join(checksum(part).digits()), part).expect("written");
    }
    let index = json!({ "schemaVersion": 2, "manifests": index });
    fs::write(folder.join("index.json"), bytes(&index)).expect("written");
    fs::write(folder.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).expect("written");
}

/// What `docker save` wrote before it wrote layouts: its layers are archives as they are.
pub(crate) fn saved(parts: &Parts, layers: &[Vec<u8>]) -> Vec<u8> {
    let config = format!("{}.json", checksum(&parts.config).digits());
    let names: Vec<String> = (0..layers.len()).map(|number| format!("layer{number}/layer.tar")).collect();
    let manifest = json!([{ "Config": config, "RepoTags": ["thing:1.2"], "Layers": names }]).to_string();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    let mut files = vec![("manifest.json".to_owned(), manifest), (config, text(&parts.config))];
    files.extend(names.into_iter().zip(layers.iter().map(|layer| text(layer))));
    tar(&files.iter().map(|(name, content)| Made::file(name, content)).collect::<Vec<_>>())
}

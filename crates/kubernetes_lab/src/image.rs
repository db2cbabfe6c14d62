//! Images for a lab's cluster, made here: no registry is asked. Each is one static shell with its commands, and further files where it
//! needs any.
//!
//! Owns the archive's form, which is that of `docker save`: layers and settings under their checksums, and a list.

use std::collections::BTreeSet;
use std::io;

use serde_json::json;
use sha2::{Digest as _, Sha256};
use tar::{Builder, EntryType, Header};

use crate::pieces::{PAUSE_IMAGE, SHELL_IMAGE};

/// Folders that a container mounts something over, or that programs expect.
const FOLDERS: &[&str] =
    &["bin", "data", "dev", "etc", "lib", "lib64", "proc", "run", "sys", "usr", "usr/bin", "usr/sbin"];
/// Users that programs look up. Databases refuse to be root; 1000 is a lab node's ordinary user.
const USERS: &str =
    "root:x:0:0:root:/:/bin/sh\nnode:x:1000:1000:node:/data:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n";
const GROUPS: &str = "root:x:0:\nnode:x:1000:\nnogroup:x:65534:\n";
/// What the first container of a pod does: nothing, for 68 years.
const SLEEP: &[&str] = &["/bin/sleep", "2147483647"];

/// What all images have.
pub(crate) struct Shell {
    /// The static program.
    pub(crate) content: Vec<u8>,
    /// The names under which it is started.
    pub(crate) commands: Vec<String>,
}

/// A file of an image that is a program or belongs to one.
pub(crate) struct ImageFile {
    /// Relative to the image's root.
    pub(crate) path: String,
    pub(crate) content: Vec<u8>,
}

/// The archive of both images that every cluster needs.
///
/// # Errors
/// When a name is too long for the archive.
pub(crate) fn archive(shell: &Shell) -> io::Result<Vec<u8>> {
    archive_of(&layer(shell, &[])?, &[(PAUSE_IMAGE, SLEEP), (SHELL_IMAGE, &["/bin/sh"])])
}

/// The archive of one image that has these files besides.
///
/// # Errors
/// As [`archive`].
pub(crate) fn archive_with(shell: &Shell, name: &str, files: &[ImageFile]) -> io::Result<Vec<u8>> {
    archive_of(&layer(shell, files)?, &[(name, &["/bin/sh"])])
}

fn archive_of(layer: &[u8], images: &[(&str, &[&str])]) -> io::Result<Vec<u8>> {
    let sum = checksum(layer);
    let mut archive = Builder::new(Vec::new());
    let layer_name = format!("{sum}/layer.tar");
    put(&mut archive, &layer_name, layer, 0o644)?;
    let mut listed = Vec::new();
    for (image, command) in images {
        let settings = json!({
            "architecture": architecture(),
            "os": "linux",
            "config": { "Cmd": command, "Env": ["PATH=/bin:/usr/bin:/usr/sbin"] },
            "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{sum}")] },
            "history": [{ "created_by": "holdfast" }],
        });
        let settings = settings.to_string();
        let name = format!("{}.json", checksum(settings.as_bytes()));
        put(&mut archive, &name, settings.as_bytes(), 0o644)?;
        // The runtime puts the name of its usual registry before it.
        let tag = image.strip_prefix("docker.io/").unwrap_or(image);
        listed.push(json!({ "Config": name, "RepoTags": [tag], "Layers": [layer_name] }));
    }
    put(&mut archive, "manifest.json", json!(listed).to_string().as_bytes(), 0o644)?;
    archive.into_inner()
}

fn layer(shell: &Shell, files: &[ImageFile]) -> io::Result<Vec<u8>> {
    let mut layer = Builder::new(Vec::new());
    for folder in FOLDERS {
        put_folder(&mut layer, folder, 0o755)?;
    }
    let above = files.iter().filter_map(|file| Some(file.path.rsplit_once('/')?.0));
    for folder in above.filter(|folder| !FOLDERS.contains(folder)).collect::<BTreeSet<_>>() {
        put_folder(&mut layer, folder, 0o755)?;
    }
    put_folder(&mut layer, "tmp", 0o1777)?;
    put(&mut layer, "bin/busybox", &shell.content, 0o755)?;
    for file in files {
        put(&mut layer, &file.path, &file.content, 0o755)?;
    }
    for command in shell.commands.iter().filter(|command| *command != "busybox") {
        let mut link = header(EntryType::Symlink, 0, 0o777);
        layer.append_link(&mut link, format!("bin/{command}"), "busybox")?;
    }
    put(&mut layer, "etc/passwd", USERS.as_bytes(), 0o644)?;
    put(&mut layer, "etc/group", GROUPS.as_bytes(), 0o644)?;
    layer.into_inner()
}

fn put(archive: &mut Builder<Vec<u8>>, path: &str, content: &[u8], mode: u32) -> io::Result<()> {
    let mut header = header(EntryType::Regular, content.len() as u64, mode);
    archive.append_data(&mut header, path, content)
}

fn put_folder(archive: &mut Builder<Vec<u8>>, path: &str, mode: u32) -> io::Result<()> {
    let mut header = header(EntryType::Directory, 0, mode);
    archive.append_data(&mut header, format!("{path}/"), io::empty())
}

/// Without a time, so that the same files are the same archive.
fn header(kind: EntryType, size_bytes: u64, mode: u32) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(size_bytes);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}

fn checksum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// This machine's, as images call it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read as _;

    use super::*;

    fn shell(commands: &[&str]) -> Shell {
        Shell {
            content: b"a shell".to_vec(),
            commands: commands.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    fn entries(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut archive = tar::Archive::new(archive);
        let mut found = BTreeMap::new();
        for entry in archive.entries().expect("entries") {
            let mut entry = entry.expect("an entry");
            let name = entry.path().expect("a name").to_string_lossy().into_owned();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).expect("its content");
            found.insert(name, content);
        }
        found
    }

    #[test]
    fn the_archive_lists_both_images_and_has_what_it_lists() {
        let found = entries(&archive(&shell(&["busybox", "sh", "sleep"])).expect("an archive"));
        let listed: serde_json::Value = serde_json::from_slice(&found["manifest.json"]).expect("JSON");
        let listed = listed.as_array().expect("a list");
        let tags: Vec<_> = listed.iter().map(|image| image["RepoTags"][0].as_str()).collect();
        assert_eq!(tags, [Some("lab/pause:1"), Some("lab/shell:1")]);
        for image in listed {
            let config = image["Config"].as_str().expect("a name");
            let settings: serde_json::Value = serde_json::from_slice(&found[config]).expect("JSON");
            assert_eq!(config, format!("{}.json", checksum(&found[config])));
            let layer = &found[image["Layers"][0].as_str().expect("a name")];
            assert_eq!(settings["rootfs"]["diff_ids"][0], format!("sha256:{}", checksum(layer)));
        }
    }

    #[test]
    fn a_layer_has_the_shell_once_and_links_to_it_and_none_to_itself() {
        let layer = layer(&shell(&["busybox", "sh"]), &[]).expect("a layer");
        let found = entries(&layer);
        assert_eq!(found["bin/busybox"], b"a shell");
        assert_eq!(found["bin/sh"], b"");
        assert_eq!(found["etc/passwd"], USERS.as_bytes());
        let mut archive = tar::Archive::new(&layer[..]);
        let links = archive.entries().expect("entries").filter_map(|entry| {
            let entry = entry.expect("an entry");
            entry.link_name().expect("a link").map(|target| target.to_string_lossy().into_owned())
        });
        assert_eq!(links.collect::<Vec<_>>(), ["busybox"]);
    }

    #[test]
    fn the_same_shell_makes_the_same_archive() {
        let made = || archive(&shell(&["sh"])).expect("an archive");
        assert_eq!(made(), made());
    }

    #[test]
    fn an_image_of_a_program_has_it_and_its_libraries_in_their_folders() {
        let file =
            |path: &str, content: &[u8]| ImageFile { path: path.to_owned(), content: content.to_owned() };
        let files = [file("bin/ask", b"asks"), file("lib/deep/lib.so", b"helps")];
        let found =
            entries(&archive_with(&shell(&["sh"]), "docker.io/lab/ask:1", &files).expect("an archive"));
        let listed: serde_json::Value = serde_json::from_slice(&found["manifest.json"]).expect("JSON");
        assert_eq!(listed[0]["RepoTags"][0], "lab/ask:1");
        let inside = entries(&found[listed[0]["Layers"][0].as_str().expect("a name")]);
        assert_eq!(inside["bin/ask"], b"asks");
        assert_eq!(inside["lib/deep/lib.so"], b"helps");
        assert!(inside.contains_key("lib/deep/"), "{:?}", inside.keys());
    }
}

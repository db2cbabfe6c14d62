//! Layers put on each other: sound ones, and those of somebody who means harm.

use std::fs;

use super::super::gauge::{Limits, USUAL};
use super::super::made::{Made, gzipped, link, longer, of_kind, second_name, sparse, tar, zstandard};
use super::*;

/// What is there once these layers were put on each other.
fn layered(layers: &[Vec<u8>]) -> (tempfile::TempDir, Result<(), String>) {
    let (folder, done) = layered_within(USUAL, layers);
    (folder, done.map_err(|error| error.to_string()))
}

/// The same within limits.
fn layered_within(limits: Limits, layers: &[Vec<u8>]) -> (tempfile::TempDir, Result<(), ImageError>) {
    let folder = tempfile::tempdir().expect("a folder");
    let root = Root::make(folder.path().join("root")).expect("a root");
    let gauge = Gauge::new(limits);
    for (number, packed) in layers.iter().enumerate() {
        let path = folder.path().join(number.to_string());
        fs::write(&path, packed).expect("written");
        let content = Checksum::of(opened(&path).expect("opened")).expect("read");
        let layer = Layer { path, content };
        if let Err(error) = layer.put_on(&root, &gauge) {
            return (folder, Err(error));
        }
    }
    (folder, Ok(()))
}

fn there(folder: &tempfile::TempDir, path: &str) -> bool {
    fs::symlink_metadata(folder.path().join("root").join(path)).is_ok()
}

#[test]
fn a_layer_is_read_however_it_is_packed() {
    let layer = tar(&[Made::file("x", "1")]);
    for packed in [layer.clone(), gzipped(&layer), zstandard(&layer)] {
        let (folder, done) = layered(&[packed]);
        assert_eq!(done, Ok(()));
        assert_eq!(fs::read_to_string(folder.path().join("root/x")).expect("there"), "1");
    }
}

#[test]
fn a_mark_hides_what_lies_below_and_not_what_its_own_layer_adds() {
    let below =
        tar(&[Made::file("a/x", ""), Made::file("a/y", ""), Made::file("b/x", ""), Made::file("b/c/y", "")]);
    let above = tar(&[
        Made::file("a/.wh.x", ""),
        Made::file("b/new", ""),
        Made::file("b/c/new", ""),
        Made::file("b/.wh..wh..opq", ""),
        Made::file("a/.wh..wh.plnk", ""),
        Made::file("none/.wh.x", ""),
    ]);
    let (folder, done) = layered(&[below, above]);
    assert_eq!(done, Ok(()));
    for (path, expected) in [
        ("a/x", false),
        ("a/y", true),
        ("b/x", false),
        ("b/c/y", false),
        ("b/new", true),
        ("b/c/new", true),
        ("a/.wh.x", false),
        ("b/.wh..wh..opq", false),
        ("none", false),
    ] {
        assert_eq!(there(&folder, path), expected, "{path}");
    }
}

#[test]
fn a_mark_that_means_a_folder_above_is_refused() {
    for mark in [".wh.", ".wh..", ".wh...", "a/.wh..."] {
        let (_folder, done) = layered(&[tar(&[Made::file(mark, "")])]);
        assert_eq!(done, Err(format!("the image names `{mark}`, which leads out of it")));
    }
    let (folder, done) = layered(&[tar(&[link("a", "../..")]), tar(&[Made::file("a/.wh.0", "")])]);
    assert_eq!(done, Ok(()));
    assert!(folder.path().join("0").is_file(), "what lies outside is hidden from nobody");
}

#[test]
fn devices_and_pipes_are_not_made_and_a_slash_makes_a_folder() {
    let (folder, done) = layered(&[tar(&[
        of_kind("null", EntryType::Char),
        of_kind("disk", EntryType::Block),
        of_kind("pipe", EntryType::Fifo),
        Made::file("folder/", ""),
    ])]);
    assert_eq!(done, Ok(()));
    assert!(folder.path().join("root/folder").is_dir());
    assert_eq!(fs::read_dir(folder.path().join("root")).expect("a folder").count(), 1);
}

#[test]
fn a_second_name_of_what_lies_outside_is_refused() {
    let secret = tempfile::tempdir().expect("a folder");
    fs::write(secret.path().join("secret"), "1").expect("written");
    let absolute = secret.path().join("secret").display().to_string();
    let (_folder, done) = layered_within(USUAL, &[tar(&[second_name("x", &absolute)])]);
    assert!(matches!(done, Err(ImageError::LinkToNothing { .. })), "{done:?}");
    let (_folder, done) = layered_within(USUAL, &[tar(&[second_name("x", "../../secret")])]);
    assert!(matches!(done, Err(ImageError::Outside { .. })), "{done:?}");
    let outside = secret.path().display().to_string();
    let entries = [link("up", &outside), second_name("x", "up/secret")];
    let (_folder, done) = layered_within(USUAL, &[tar(&entries)]);
    assert!(matches!(done, Err(ImageError::LinkToNothing { .. })), "{done:?}");
}

#[test]
fn a_name_with_newlines_is_the_name_of_a_file() {
    let (folder, done) = layered(&[tar(&[Made::file("a\n../b", "1")])]);
    assert_eq!(done, Ok(()), "its parts are `a\n..` and `b`");
    assert_eq!(fs::read_to_string(folder.path().join("root/a\n../b")).expect("there"), "1");
    let (_folder, done) = layered(&[tar(&[Made::file("a\n/../b", "1")])]);
    assert_eq!(done, Err("the image names `a\\n/../b`, which leads out of it".to_owned()));
}

#[test]
fn a_hole_of_a_tebibyte_is_refused_before_it_is_written() {
    let (folder, done) = layered_within(USUAL, &[sparse("big", 1 << 40)]);
    assert!(matches!(done, Err(ImageError::TooLarge { .. })), "{done:?}");
    assert!(!there(&folder, "big"));
    let (folder, done) = layered(&[sparse("small", 5_000)]);
    assert_eq!(done, Ok(()));
    let facts = fs::metadata(folder.path().join("root/small")).expect("there");
    assert_eq!(facts.len(), 5_000);
}

#[test]
fn a_small_layer_that_unpacks_to_a_large_one_is_refused_before_it_is_written() {
    let zeros = "\0".repeat(200_000);
    let packed = gzipped(&tar(&[Made::file("first", ""), Made::file("zeros", &zeros)]));
    assert!(packed.len() < 5_000);
    let few = Limits { bytes: 100_000, ..USUAL };
    let (folder, done) = layered_within(few, &[packed]);
    assert!(matches!(done, Err(ImageError::TooLarge { most: 100_000 })), "{done:?}");
    assert!(!there(&folder, "first"));
    // Several layers share what one image may take.
    let half = tar(&[Made::file("half", &zeros[..40_000])]);
    let (_folder, done) = layered_within(few, &[half.clone(), half.clone(), half]);
    assert!(matches!(done, Err(ImageError::TooLarge { most: 100_000 })), "{done:?}");
}

#[test]
fn more_entries_than_an_image_has_are_refused() {
    let names: Vec<String> = (0..30).map(|number| format!("f{number}")).collect();
    let many: Vec<Made<'_>> = names.iter().map(|name| Made::file(name, "")).collect();
    let few = Limits { entries: 29, ..USUAL };
    let (folder, done) = layered_within(few, &[tar(&many)]);
    assert!(matches!(done, Err(ImageError::TooMany { most: 29 })), "{done:?}");
    assert!(!there(&folder, "f0"));
}

#[test]
fn a_name_that_would_fill_the_memory_is_not_read() {
    let few = Limits { head_bytes: 10_000, ..USUAL };
    let (_folder, done) = layered_within(few, &[longer(&"x".repeat(20_000))]);
    assert!(matches!(done, Err(ImageError::LongHead { most: 10_000 })), "{done:?}");
    let (_folder, done) = layered_within(few, &[longer(&"x/".repeat(2_500))]);
    assert!(matches!(done, Err(ImageError::LongHead { most: 4096 })), "{done:?}");
    let (folder, done) = layered_within(few, &[longer(&format!("{}y", "x/".repeat(100)))]);
    assert!(done.is_ok(), "{done:?}");
    assert!(there(&folder, &format!("{}y", "x/".repeat(100))));
}

#[test]
fn a_layer_that_is_cut_short_is_refused() {
    let whole = tar(&[Made::file("x", &"1".repeat(4_000))]);
    let (_folder, done) = layered_within(USUAL, &[whole[..2_048].to_vec()]);
    assert!(matches!(done, Err(ImageError::File { .. })), "{done:?}");
}

#[test]
fn a_layer_that_is_not_the_one_meant_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = Root::make(folder.path().join("root")).expect("a root");
    let path = folder.path().join("layer");
    fs::write(&path, gzipped(&tar(&[Made::file("x", "")]))).expect("written");
    let content = Checksum::of(io::empty()).expect("read");
    let layer = Layer { path, content };
    let told = layer.put_on(&root, &Gauge::new(USUAL)).expect_err("another one").to_string();
    assert!(told.starts_with("a layer of the image, unpacked, has the SHA-256 sha256:"), "{told}");
    assert!(!there(&folder, "x"));
}

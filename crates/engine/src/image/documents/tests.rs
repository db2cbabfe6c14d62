//! The way from an index or a manifest to the parts, and those that lead nowhere.

use serde_json::{Value, json};

use super::super::made::{described, described_for};
use super::*;

/// The content of the manifest that is chosen of an index, or why none is.
fn chosen(index: &[Value]) -> Result<String, String> {
    let manifests: Vec<Descriptor> = serde_json::from_value(json!(index)).expect("descriptors");
    choose(&manifests).map(|one| one.digest.to_string()).map_err(|error| error.to_string())
}

fn digest(part: &[u8]) -> Result<String, String> {
    Ok(Checksum::of(part).expect("read").to_string())
}

#[test]
fn of_several_platforms_this_machine_s_is_taken() {
    let index = [
        described_for(b"1", "windows", architecture()),
        described_for(b"2", LINUX, architecture()),
        described_for(b"3", LINUX, "s390x"),
        described_for(b"4", "unknown", "unknown"),
    ];
    assert_eq!(chosen(&index), digest(b"2"));
    let without = [index[0].clone(), index[2].clone()];
    let told =
        format!("the image has nothing for linux/{0}, only for linux/s390x, windows/{0}", architecture());
    assert_eq!(chosen(&without), Err(told));
}

#[test]
fn a_build_for_newer_processors_is_taken_only_where_there_is_no_other() {
    let mut newer = described_for(b"1", LINUX, architecture());
    newer["platform"]["variant"] = json!("v9");
    assert_eq!(chosen(&[newer.clone(), described_for(b"2", LINUX, architecture())]), digest(b"2"));
    assert_eq!(chosen(&[newer]), digest(b"1"));
}

#[test]
fn what_is_about_an_image_is_none_and_two_images_are_one_too_many() {
    let mut signature = described(b"1");
    signature["annotations"] = json!({ ABOUT_ANOTHER: "attestation-manifest" });
    assert_eq!(chosen(&[signature, described(b"2"), described(b"2")]), digest(b"2"));
    let mut named = described(b"1");
    named["annotations"] = json!({ NAME: "thing:1" });
    let told = format!(
        "it holds several images (thing:1, {}): write the one that is meant into a file of its own",
        Checksum::of(&b"2"[..]).expect("read")
    );
    assert_eq!(chosen(&[named, described(b"2")]), Err(told));
}

#[test]
fn a_document_that_is_an_index_and_a_manifest_is_refused() {
    let both = json!({ "manifests": [described(b"1")], "config": described(b"2"), "layers": [] });
    for document in [both, json!({ "schemaVersion": 1, "fsLayers": [] })] {
        let document: Document = serde_json::from_value(document).expect("a document");
        let checksum = Checksum::of(&b""[..]).expect("read");
        let told = follow(document, checksum, &mut |_, _| panic!("nothing is fetched"));
        assert!(matches!(told, Err(ImageError::Unclear { .. })), "{told:?}");
    }
}

/// The message about a manifest with such layers; none of them is fetched.
fn told_of(layers: &[Value]) -> String {
    let manifest = json!({ "config": described(b"1"), "layers": layers });
    let document: Document = serde_json::from_value(manifest).expect("a document");
    let checksum = Checksum::of(&b""[..]).expect("read");
    let told = follow(document, checksum, &mut |_, _| panic!("nothing is fetched"));
    told.expect_err("refused").to_string()
}

#[test]
fn a_manifest_with_more_or_larger_layers_than_an_image_has_is_refused_before_they_are_fetched() {
    let mut large = described(b"2");
    large["size"] = json!(1_u64 << 40);
    assert!(told_of(std::slice::from_ref(&large)).starts_with("the image takes more than the "));
    large["size"] = json!(u64::MAX);
    assert!(told_of(&[large.clone(), large]).starts_with("the image takes more than the "));
    let many = vec![described(b"2"); MOST_LAYERS + 1];
    assert_eq!(told_of(&many), "the manifest of the image has 257 layers; 256 are the most");
}

#[test]
fn indexes_that_lead_to_indexes_for_ever_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut inner = json!({ "manifests": [] }).to_string();
    let mut paths = Vec::new();
    for depth in 0..6 {
        let path = folder.path().join(depth.to_string());
        std::fs::write(&path, &inner).expect("written");
        paths.push((Checksum::of(inner.as_bytes()).expect("read"), path));
        inner = json!({ "manifests": [described(inner.as_bytes())] }).to_string();
    }
    let outer: Document = serde_json::from_str(&inner).expect("a document");
    let checksum = Checksum::of(inner.as_bytes()).expect("read");
    let told = follow(outer, checksum, &mut |part, _| {
        let known = paths.iter().find(|(checksum, _)| *checksum == part.digest);
        Ok(known.expect("one of them").1.clone())
    });
    assert!(matches!(told, Err(ImageError::Endless)), "{told:?}");
}

//! The licences of everything the program is made from, word for word, each text once.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context;

use crate::packages::Package;

/// How files with a licence, or with what it wants told, are named.
const BEGINNINGS: &[&str] = &["licen", "copying", "copyright", "notice", "unlicense"];
/// Between two texts.
const RULE: &str = "\n\n------------------------------------------------------------------------------\n\n";

/// The collection for the packages of others among `shipped`: what each declares, then the texts, each with the packages it
/// came with.
pub fn collected(shipped: &[&Package]) -> anyhow::Result<String> {
    let mut declared = String::from("What holdfast is made from, and the licence of each part.\n\n");
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in shipped.iter().filter(|package| package.source.is_some()) {
        let which = format!("{} {}", package.name, package.version);
        let expression = package.license_expression().unwrap_or_else(|| "no licence named".to_owned());
        let folder = package.manifest_path.parent().context("a package's folder")?;
        let found = texts_in(folder).with_context(|| folder.display().to_string())?;
        let without = if found.is_empty() { " (the package came without its text)" } else { "" };
        writeln!(declared, "{which}: {expression}{without}")?;
        for text in found {
            let packages = texts.entry(text).or_default();
            if !packages.contains(&which) {
                packages.push(which.clone());
            }
        }
    }
    for (text, packages) in texts {
        write!(declared, "{RULE}{}\n\n{text}\n", packages.join(", "))?;
    }
    Ok(declared)
}

/// The texts in a package's folder. One that is not UTF-8 is read as well as can be.
fn texts_in(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        if entry.path().is_file() && BEGINNINGS.iter().any(|beginning| name.starts_with(beginning)) {
            paths.push(entry.path());
        }
    }
    paths.sort();
    let read = |path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
    Ok(paths.into_iter().map(read).collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_several_packages_came_with_stands_there_once_with_all_their_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let package = |name: &str, files: &[(&str, &str)]| {
            let own = folder.path().join(name);
            fs::create_dir(&own).expect("a folder");
            for (file, text) in files {
                fs::write(own.join(file), text).expect("a file");
            }
            Package {
                id: name.to_owned(),
                name: name.to_owned(),
                version: "1.0.0".to_owned(),
                license: Some("MIT/Apache-2.0".to_owned()),
                manifest_path: own.join("Cargo.toml"),
                source: Some("somewhere".to_owned()),
            }
        };
        let one = package("one", &[("LICENSE-MIT", "Be kind.\n"), ("main.rs", "fn main() {}")]);
        let two = package("two", &[("license.txt", "Be kind.")]);
        let three = package("three", &[]);
        let text = collected(&[&one, &two, &three]).expect("a collection");
        assert_eq!(text.matches("Be kind.").count(), 1, "{text}");
        assert!(text.contains("one 1.0.0, two 1.0.0\n\nBe kind."), "{text}");
        assert!(
            text.contains("three 1.0.0: MIT OR Apache-2.0 (the package came without its text)"),
            "{text}"
        );
        assert!(!text.contains("fn main"), "{text}");
    }
}

//! What the program is made from, as a bill of materials in CycloneDX 1.5 (JSON).
//!
//! Own code, for `cargo metadata` and `Cargo.lock` say all that stands in it; the tools and crates that write it bring dozens
//! of packages. No time and no random number stand in it: the same commit gives the same file.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use serde_json::{Value, json};

use crate::packages::{Package, Packages};

/// The bill, `shipped` with the program first.
pub fn cyclonedx(
    packages: &Packages,
    shipped: &[&Package],
    version: &str,
    lock: &str,
) -> anyhow::Result<String> {
    let (program, parts) = shipped.split_first().context("a program")?;
    let sums = sums(lock);
    let within: BTreeSet<&str> = shipped.iter().map(|package| package.id.as_str()).collect();
    let needs = |package: &Package| -> Vec<String> {
        let needed = packages.needed_by(&package.id).filter(|id| within.contains(id));
        needed.filter_map(|id| packages.all.get(id)).map(address).collect()
    };
    let dependencies: Vec<Value> = shipped
        .iter()
        .map(|package| json!({ "ref": address(package), "dependsOn": needs(package) }))
        .collect();
    let components: Vec<Value> =
        parts.iter().map(|package| component(package, "library", &package.version, &sums)).collect();
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": component(program, "application", version, &sums) },
        "components": components,
        "dependencies": dependencies,
    });
    Ok(serde_json::to_string_pretty(&bill)? + "\n")
}

fn component(package: &Package, kind: &str, version: &str, sums: &BTreeMap<(&str, &str), &str>) -> Value {
    let mut component = json!({
        "type": kind,
        "bom-ref": address(package),
        "name": package.name,
        "version": version,
        "purl": address(package),
    });
    if let Some(expression) = package.license_expression() {
        component["licenses"] = json!([{ "expression": expression }]);
    }
    if let Some(sum) = sums.get(&(package.name.as_str(), package.version.as_str())) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
    }
    component
}

/// A package's address by the rules of package URLs: a version's `+` is written as `%2B`.
fn address(package: &Package) -> String {
    format!("pkg:cargo/{}@{}", package.name, package.version.replace('+', "%2B"))
}

/// Checksums in `Cargo.lock`, by name and version.
fn sums(lock: &str) -> BTreeMap<(&str, &str), &str> {
    let entries = lock.split("[[package]]").skip(1);
    let sum = |entry| Some(((value(entry, "name")?, value(entry, "version")?), value(entry, "checksum")?));
    entries.filter_map(sum).collect()
}

/// What stands in quotes behind `key = ` in an entry.
fn value<'a>(entry: &'a str, key: &str) -> Option<&'a str> {
    let after = |line: &'a str| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"');
    entry.lines().find_map(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = "version = 4\n\n[[package]]\nname = \"library\"\nversion = \"1.2.0+c.3\"\nsource = \"somewhere\"\n\
                        checksum = \"00ff\"\ndependencies = [\n \"below\",\n]\n\n[[package]]\nname = \"program\"\n\
                        version = \"1.2.0+c.3\"\n";

    #[test]
    fn a_bill_names_each_part_with_its_licence_its_checksum_and_what_it_needs() {
        let packages = crate::packages::tests::planted();
        let shipped = packages.shipped_with("program").expect("the program");
        let text = cyclonedx(&packages, &shipped, "1.2.0 (abc)", LOCK).expect("a bill");
        let bill: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(bill["metadata"]["component"]["version"], "1.2.0 (abc)");
        let library = &bill["components"][1];
        assert_eq!(library["purl"], "pkg:cargo/library@1.2.0%2Bc.3");
        assert_eq!(library["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(library["hashes"][0]["content"], "00ff");
        assert_eq!(bill["dependencies"][0]["dependsOn"][0], library["bom-ref"]);
        assert_eq!(bill["components"].as_array().map(Vec::len), Some(2));
    }
}

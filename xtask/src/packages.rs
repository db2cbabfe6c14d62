//! What the programs are made from: the packages of the workspace and of their dependencies, as `cargo metadata` describes them.
//!
//! Owns that description alone. Which licences are allowed is `tidy`'s, what is written for a release is `release`'s.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde::Deserialize;

/// What cargo says of a package that is built in.
#[derive(Debug, Clone, Deserialize)]
pub struct Package {
    /// What cargo calls it, and nothing else.
    pub id: String,
    pub name: String,
    pub version: String,
    /// Its licence as an SPDX expression, or what was written before there were any.
    pub license: Option<String>,
    /// Its `Cargo.toml`.
    pub manifest_path: PathBuf,
    /// Where it comes from; none for a package of the workspace.
    pub source: Option<String>,
}

impl Package {
    /// Its licence in the form that is in use today.
    #[must_use]
    pub fn license_expression(&self) -> Option<String> {
        self.license.as_ref().map(|license| license.replace('/', " OR "))
    }
}

/// All packages, and who needs whom.
#[derive(Debug)]
pub struct Packages {
    /// By their ids.
    pub all: BTreeMap<String, Package>,
    /// Ids of what each needs when it is built or run; not what only its tests need.
    needs: BTreeMap<String, BTreeSet<String>>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<EdgeKind>,
}

#[derive(Deserialize)]
struct EdgeKind {
    kind: Option<String>,
}

/// What cargo calls a dependency of tests alone.
const OF_TESTS: &str = "dev";

impl Packages {
    /// Those of the workspace at `root`, as they are used on the machine that `target` names.
    ///
    /// # Errors
    /// When cargo does not describe them.
    pub fn of(root: &Path, target: &str) -> anyhow::Result<Packages> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["metadata", "--format-version", "1", "--filter-platform", target]).current_dir(root);
        let output = command.output().context("start cargo metadata")?;
        ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
        Packages::read(&output.stdout)
    }

    fn read(json: &[u8]) -> anyhow::Result<Packages> {
        let metadata: Metadata = serde_json::from_slice(json).context("read cargo metadata")?;
        let shipped = |edge: &Edge| edge.dep_kinds.iter().any(|one| one.kind.as_deref() != Some(OF_TESTS));
        let needs = metadata.resolve.nodes.into_iter().map(|node| {
            let needed = node.deps.into_iter().filter(shipped).map(|edge| edge.pkg).collect();
            (node.id, needed)
        });
        Ok(Packages {
            needs: needs.collect(),
            all: metadata.packages.into_iter().map(|package| (package.id.clone(), package)).collect(),
        })
    }

    /// Ids of what a package needs itself.
    pub fn needed_by(&self, id: &str) -> impl Iterator<Item = &str> {
        self.needs.get(id).into_iter().flatten().map(String::as_str)
    }

    /// The package of the workspace with this name, and everything it is made from: itself first, then by name and version.
    ///
    /// # Errors
    /// When there is no such package.
    pub fn shipped_with(&self, name: &str) -> anyhow::Result<Vec<&Package>> {
        let ours = |package: &&Package| package.source.is_none() && package.name == name;
        let program = self.all.values().find(ours).with_context(|| format!("no package `{name}`"))?;
        let mut reached = BTreeSet::from([program.id.as_str()]);
        let mut open = vec![program.id.as_str()];
        while let Some(id) = open.pop() {
            for needed in self.needed_by(id) {
                if reached.insert(needed) {
                    open.push(needed);
                }
            }
        }
        reached.remove(program.id.as_str());
        let mut others: Vec<&Package> = reached.iter().filter_map(|id| self.all.get(*id)).collect();
        others.sort_by(|one, other| (&one.name, &one.version).cmp(&(&other.name, &other.version)));
        Ok(std::iter::once(program).chain(others).collect())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A program with a library, which needs another; a third serves tests alone.
    pub(crate) fn planted() -> Packages {
        let package = |name: &str, license: &str, source: &str| {
            format!(
                r#"{{"id": "{name}-id", "name": "{name}", "version": "1.2.0+c.3", "license": {license},
                    "manifest_path": "/nowhere/{name}/Cargo.toml", "source": {source}}}"#
            )
        };
        let foreign = r#""registry+somewhere""#;
        let packages = [
            package("program", r#""MIT OR Apache-2.0""#, "null"),
            package("library", r#""MIT/Apache-2.0""#, foreign),
            package("below", r#""GPL-3.0-only""#, foreign),
            package("tests", "null", foreign),
        ];
        let json = format!(
            r#"{{"packages": [{}], "resolve": {{"nodes": [
                {{"id": "program-id", "deps": [
                    {{"pkg": "library-id", "dep_kinds": [{{"kind": null}}, {{"kind": "dev"}}]}},
                    {{"pkg": "tests-id", "dep_kinds": [{{"kind": "dev"}}]}}]}},
                {{"id": "library-id", "deps": [{{"pkg": "below-id", "dep_kinds": [{{"kind": "build"}}]}}]}},
                {{"id": "below-id", "deps": []}},
                {{"id": "tests-id", "deps": []}}]}}}}"#,
            packages.join(", ")
        );
        Packages::read(json.as_bytes()).expect("packages")
    }

    #[test]
    fn a_program_is_shipped_with_all_it_is_made_from_and_not_with_what_tests_it() {
        let packages = planted();
        let shipped = packages.shipped_with("program").expect("the program");
        let names: Vec<&str> = shipped.iter().map(|package| package.name.as_str()).collect();
        assert_eq!(names, ["program", "below", "library"]);
        assert!(packages.shipped_with("library").is_err(), "a package of others is no program of ours");
    }
}

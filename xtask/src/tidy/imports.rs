//! Which crate of ours may import which, and who may use `anyhow`: the one table of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde::Deserialize;

use super::Violation;

/// A crate of ours and everything it depends on, in whatever way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crate {
    pub name: String,
    /// Its `Cargo.toml`, relative to the repository.
    pub manifest: String,
    /// Names of what it depends on.
    pub dependencies: BTreeSet<String>,
}

/// What a crate may import of ours.
enum May {
    /// These only, with a blank between them.
    Only(&'static str),
    /// All but `holdfast` and `xtask`, which nobody imports.
    Anything,
}

/// The whole rule. The reasons stand in `ARCHITECTURE.md`, under "Who may import whom".
const TABLE: &[(&str, May)] = &[
    ("yaml", May::Only("")),
    ("capabilities", May::Only("yaml")),
    ("history", May::Only("")),
    ("placement", May::Only("history")),
    ("scenario", May::Only("capabilities history placement yaml")),
    ("measure", May::Only("history")),
    ("check", May::Only("capabilities history")),
    ("faults", May::Only("history")),
    ("fabric", May::Only("")),
    ("disk", May::Only("")),
    ("clock", May::Only("")),
    ("lab", May::Only("clock")),
    ("engine", May::Only("capabilities control history rawio")),
    ("model", May::Only("history")),
    ("control", May::Only("")),
    ("rawio", May::Only("control")),
    ("client", May::Only("control history rawio")),
    ("workload", May::Only("capabilities client history yaml")),
    ("load", May::Only("capabilities client history measure workload")),
    ("agent", May::Only("client history load measure workload")),
    ("remote", May::Only("history yaml")),
    ("kubernetes", May::Only("")),
    ("kubernetes_lab", May::Only("engine kubernetes")),
    ("pods", May::Only("client faults history kubernetes remote scenario")),
    ("scenario_files", May::Only("capabilities history pods remote scenario workload")),
    ("scenario_agents", May::Only("agent history load pods remote scenario scenario_files")),
    ("strikes", May::Only("faults history load pods remote scenario scenario_files")),
    ("results", May::Only("check history measure")),
    ("atlas", May::Only("history results scenario")),
    ("report", May::Only("atlas history measure results scenario")),
    (
        "paper",
        May::Only("capabilities fabric faults history measure model placement results scenario workload"),
    ),
    ("storage", May::Only("disk faults history lab measure results scenario")),
    ("platform", May::Only("clock disk engine fabric faults history lab paper placement scenario storage")),
    ("faulting", May::Only("clock disk fabric faults history lab paper platform scenario storage")),
    ("watch", May::Only("disk engine fabric faults history lab load platform results scenario")),
    (
        "verdict",
        May::Only("capabilities check faults history load measure paper placement report results scenario"),
    ),
    ("run", May::Anything),
    ("holdfast", May::Anything),
    ("suite", May::Only("")),
    (
        "xtask",
        May::Only(
            "atlas capabilities check client clock disk engine fabric faults history kubernetes kubernetes_lab \
             lab measure model remote results scenario suite workload",
        ),
    ),
];

/// Programs, which nobody imports.
const PROGRAMS: &[&str] = &["holdfast", "suite", "xtask"];
/// Where errors end and may lose their type.
const MAY_USE_ANYHOW: &[&str] = &["holdfast", "suite", "xtask"];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
}

/// The workspace's crates as cargo reads them.
///
/// # Errors
/// When cargo does not describe the workspace.
pub fn crates_of(root: &Path) -> anyhow::Result<Vec<Crate>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--no-deps", "--format-version", "1"]).current_dir(root);
    let output = command.output().context("start cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Metadata = serde_json::from_slice(&output.stdout).context("read cargo metadata")?;
    let to_crate = |package: Package| Crate {
        name: package.name,
        manifest: Path::new(&package.manifest_path)
            .strip_prefix(root)
            .map_or(package.manifest_path.clone(), |path| path.to_string_lossy().into_owned()),
        dependencies: package.dependencies.into_iter().map(|dependency| dependency.name).collect(),
    };
    Ok(metadata.packages.into_iter().map(to_crate).collect())
}

/// Every import that the table does not allow.
#[must_use]
pub fn check(crates: &[Crate]) -> Vec<Violation> {
    let ours: BTreeSet<&str> = crates.iter().map(|krate| krate.name.as_str()).collect();
    let table: BTreeMap<&str, &May> = TABLE.iter().map(|(name, may)| (*name, may)).collect();
    let mut found = Vec::new();
    for krate in crates {
        let mut say = |message| found.push(Violation { path: krate.manifest.clone(), line: 1, message });
        let Some(may) = table.get(krate.name.as_str()) else {
            say(format!(
                "crate `{}` has no row in the import table; decide what it may import and add one to \
                 xtask/src/tidy/imports.rs and ARCHITECTURE.md",
                krate.name
            ));
            continue;
        };
        for dependency in krate.dependencies.iter().filter(|name| ours.contains(name.as_str())) {
            let allowed = match may {
                May::Only(names) => names.split(' ').any(|name| name == dependency.as_str()),
                May::Anything => !PROGRAMS.contains(&dependency.as_str()),
            };
            if !allowed {
                say(format!(
                    "`{}` may not import `{dependency}`; let `run` convert between the two, or move the shared type \
                     to `history`",
                    krate.name
                ));
            }
        }
        if krate.dependencies.contains("anyhow") && !MAY_USE_ANYHOW.contains(&krate.name.as_str()) {
            say(format!(
                "`{}` is a library: its errors are types of its own, by `thiserror`, not `anyhow`",
                krate.name
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn krate(name: &str, dependencies: &[&str]) -> Crate {
        Crate {
            name: name.to_owned(),
            manifest: format!("crates/{name}/Cargo.toml"),
            dependencies: dependencies.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    fn messages(crates: &[Crate]) -> Vec<String> {
        check(crates).into_iter().map(|violation| violation.message).collect()
    }

    #[test]
    fn a_check_that_knows_which_faults_ran_is_refused() {
        let found =
            messages(&[krate("check", &["history", "faults"]), krate("faults", &[]), krate("history", &[])]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("`check` may not import `faults`"), "{found:?}");
    }

    #[test]
    fn the_table_allows_what_it_names_and_whatever_is_not_ours() {
        assert_eq!(
            messages(&[krate("report", &["history", "serde"]), krate("history", &["zstd"])]),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_program_is_imported_by_nobody() {
        let found = messages(&[krate("run", &["holdfast"]), krate("holdfast", &["run", "anyhow"])]);
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn a_library_with_anyhow_and_a_crate_without_a_row_are_refused() {
        let found = messages(&[krate("lab", &["anyhow"]), krate("attic", &[])]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("`thiserror`") && found[1].contains("has no row"), "{found:?}");
    }
}

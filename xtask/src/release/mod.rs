//! `cargo xtask release`: a folder with everything that somebody needs who does not build the program.
//!
//! Owns which files there are and in which order they are made. How the program is built is `build`'s, what it is made from
//! is told by `materials` and `licences`, the sums are `checksums`'.

mod build;
mod checksums;
mod licences;
mod materials;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, ensure};

use crate::packages::Packages;

/// The folder, below that of build results.
const FOLDER: &str = "release-files";
/// The program's package.
const PROGRAM: &str = "holdfast";
/// The program's hidden door that writes man pages and completions (`holdfast/src/commands/manual.rs`).
const MANUAL_SUBCOMMAND: &str = "write-manual";
const OWN_LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// Whether known defects of dependencies were looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Advisories {
    LookedUp,
    NotLookedUp,
}

/// Makes the folder anew. `target` is what is built for: without it static, where that can be, else this machine.
///
/// # Errors
/// When a step fails; the folder is then not complete, and without checksums.
pub fn run(target: Option<String>) -> anyhow::Result<ExitCode> {
    let root = crate::repository_root();
    let folder = crate::target_directory().join(FOLDER);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let advisories = advisories(&root)?;
    let target = target.map_or_else(build::target, Ok)?;
    let packages = Packages::of(&root, &target)?;
    let shipped = packages.shipped_with(PROGRAM)?;
    let version = version(&root, &shipped[0].version)?;

    let program = build::build(&root, &target, &version)?;
    let copy = folder.join(PROGRAM);
    fs::copy(&program, &copy).with_context(|| format!("copy {}", program.display()))?;
    write_manual(&build::runs_here(&target, &copy)?, &folder)?;
    let lock = fs::read_to_string(root.join("Cargo.lock")).context("Cargo.lock")?;
    write(&folder, "sbom.cdx.json", &materials::cyclonedx(&packages, &shipped, &version, &lock)?)?;
    write(&folder, "LICENCES.txt", &licences::collected(&shipped)?)?;
    for file in OWN_LICENCES {
        fs::copy(root.join(file), folder.join(file)).context(file)?;
    }
    write(&folder, "ABOUT.txt", &about(&target, &version, advisories))?;
    let sums = checksums::of_folder(&folder)?;
    write(&folder, checksums::FILE, &sums)?;
    println!("{version} for {target}, {} files", sums.lines().count() + 1);
    if advisories == Advisories::NotLookedUp {
        println!(
            "ATTENTION: known defects of dependencies were NOT looked up: `cargo deny` is not installed"
        );
    }
    println!("{}", folder.display());
    Ok(ExitCode::SUCCESS)
}

fn write(folder: &Path, file: &str, text: &str) -> anyhow::Result<()> {
    fs::write(folder.join(file), text).with_context(|| file.to_owned())
}

/// Licences, sources and known defects by `cargo deny`, where it is installed. It needs the network.
fn advisories(root: &Path) -> anyhow::Result<Advisories> {
    let deny = |arguments: &[&str]| {
        let mut command = Command::new("cargo");
        command.arg("deny").args(arguments).current_dir(root).stdin(Stdio::null());
        command
    };
    let installed = deny(&["--version"]).output().context("cargo deny --version")?.status.success();
    if !installed {
        return Ok(Advisories::NotLookedUp);
    }
    let status = deny(&["check"]).status().context("cargo deny check")?;
    ensure!(status.success(), "cargo deny check: {status}: a dependency is refused; nothing is released");
    Ok(Advisories::LookedUp)
}

/// The package's version and the commit, as `--version` says them: `0.2.0 (1a2b3c4d5e6f)`.
fn version(root: &Path, package: &str) -> anyhow::Result<String> {
    let git = |arguments: &[&str]| -> anyhow::Result<String> {
        let output = Command::new("git").args(arguments).current_dir(root).output().context("start git")?;
        ensure!(output.status.success(), "git: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = if git(&["status", "--porcelain"])?.is_empty() { "" } else { ", changed" };
    Ok(format!("{package} ({commit}{changed})"))
}

/// Man pages and completions, by a program that runs here.
fn write_manual(program: &Path, folder: &Path) -> anyhow::Result<()> {
    let status = Command::new(program).arg(MANUAL_SUBCOMMAND).arg(folder).status().context("holdfast")?;
    ensure!(status.success(), "holdfast {MANUAL_SUBCOMMAND}: {status}");
    Ok(())
}

/// What the reader of the folder finds in it, and what was not done for it.
fn about(target: &str, version: &str, advisories: Advisories) -> String {
    let linked = if build::is_static(target) {
        "The program is linked statically: it needs no library of the machine."
    } else {
        "The program is linked to the C library: the machine needs the version it was built with, or a newer one."
    };
    let looked_up = match advisories {
        Advisories::LookedUp => "`cargo deny check` found none of them refused.",
        Advisories::NotLookedUp => "Their known defects were NOT looked up when this folder was made.",
    };
    format!(
        "holdfast {version} for {target}\n\n\
         {linked}\n\n\
         holdfast           the program: `install -m 755 holdfast /usr/local/bin/`, then `holdfast doctor`\n\
         man/man1/          `install -D -m 644 -t /usr/local/share/man/man1 man/man1/*`\n\
         completions/       holdfast.bash: into /usr/share/bash-completion/completions/ as `holdfast`\n\
         \x20                  _holdfast: into a folder of zsh's $fpath\n\
         \x20                  holdfast.fish: into ~/.config/fish/completions/\n\
         sbom.cdx.json      what it is made from, as CycloneDX\n\
         LICENCES.txt       the licences of that, word for word\n\
         LICENSE-*          its own, either as you choose\n\
         {sums}         `sha256sum --check {sums}` in this folder\n\n\
         It is made from the packages in sbom.cdx.json. {looked_up}\n",
        sums = checksums::FILE,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_says_so_when_known_defects_were_not_looked_up() {
        let about = about("x86_64-unknown-linux-gnu", "0.2.0 (abc)", Advisories::NotLookedUp);
        assert!(about.contains("NOT looked up") && about.contains("linked to the C library"), "{about}");
    }

    #[test]
    fn a_version_has_the_commit_it_was_built_from() {
        let version = version(&crate::repository_root(), "0.2.0").expect("a repository of git");
        let commit = version.strip_prefix("0.2.0 (").and_then(|rest| rest.get(..12));
        assert!(commit.is_some_and(|commit| commit.chars().all(|c| c.is_ascii_hexdigit())), "{version}");
    }
}

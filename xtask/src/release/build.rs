//! How the program is built for a release, and for which machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use super::PROGRAM;

/// The variable in which the program is given its version (`holdfast/src/arguments.rs`).
const VERSION_VARIABLE: &str = "HOLDFAST_VERSION";

/// What is built for when nobody says: static, where the toolchain can, else what this machine is.
///
/// The C library of GNU is never linked statically: name look-ups load its parts at run time, and its licence asks for more
/// than ours does.
pub fn target() -> anyhow::Result<String> {
    let architecture = std::env::consts::ARCH;
    let (musl, gnu) =
        (format!("{architecture}-unknown-linux-musl"), format!("{architecture}-unknown-linux-gnu"));
    if is_installed(&musl)? {
        return Ok(musl);
    }
    println!(
        "{musl} is not installed (`rustup target add {musl}`, and `musl-gcc`): not a static program, but {gnu}"
    );
    Ok(gnu)
}

/// Whether the standard library is there for a target.
fn is_installed(target: &str) -> anyhow::Result<bool> {
    let arguments = ["--print", "target-libdir", "--target", target];
    let output = Command::new("rustc").args(arguments).output().context("start rustc")?;
    ensure!(output.status.success(), "rustc: {}", String::from_utf8_lossy(&output.stderr));
    Ok(Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

/// Whether a program for it needs no library of the machine.
pub fn is_static(target: &str) -> bool {
    target.ends_with("-musl")
}

/// Builds the program, optimised, from the versions in `Cargo.lock` alone; where it lies.
pub fn build(root: &Path, target: &str, version: &str) -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["build", "--release", "--locked", "--package", PROGRAM, "--target", target];
    let mut command = Command::new(cargo);
    command.args(arguments).env(VERSION_VARIABLE, version).current_dir(root);
    let status = command.status().context("cargo build")?;
    ensure!(status.success(), "cargo build --release --target {target}: {status}");
    Ok(crate::target_directory().join(target).join("release").join(PROGRAM))
}

/// A program that says what the built one would say, and runs on this machine.
pub fn runs_here(target: &str, built: &Path) -> anyhow::Result<PathBuf> {
    let here = target.split('-').next() == Some(std::env::consts::ARCH);
    if here { Ok(built.to_owned()) } else { crate::program::build() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_of_this_build_is_installed_and_one_that_nobody_has_is_not() {
        let gnu = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let musl = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
        assert!(is_installed(&gnu).expect("rustc") || is_installed(&musl).expect("rustc"));
        assert!(!is_installed("s390x-unknown-linux-gnu").expect("rustc") || cfg!(target_arch = "s390x"));
    }
}

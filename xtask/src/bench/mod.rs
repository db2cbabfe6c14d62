//! Ours beside another's: measured in turn on the same machine by the same yardstick.
//!
//! Owns the measuring and the form of the result. What each bench compares stands in its own file.

pub mod check;
pub mod cpu_account;
pub mod disk;
pub mod fabric;
pub mod lab;
pub mod load;
pub mod load_alike;
pub mod load_many;
mod load_peers;
mod load_server;
mod load_sides;
mod packages;
pub mod paper;
mod shell_cluster;
pub mod table;

use std::path::PathBuf;
use std::process::Command;

/// Builds the program as it is shipped; where it lies.
fn build_holdfast() -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["build", "--release", "--quiet", "--package", "holdfast"];
    let status = Command::new(cargo).args(arguments).current_dir(crate::repository_root()).status()?;
    anyhow::ensure!(status.success(), "cargo build --release: {status}");
    Ok(crate::target_directory().join("release/holdfast"))
}

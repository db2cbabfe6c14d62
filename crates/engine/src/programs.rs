//! Programs that are no database, for the parts of a lab that stand beside it: unpacked from Debian's packages, or run to their end.
//!
//! Owns nothing of its own: it opens the ways by which databases are installed to whoever installs something else.

use std::path::Path;
use std::process::Command;

use crate::apt::Apt;
pub use crate::package::readable_by_all;
use crate::run_to_end;

/// Downloads packages with what they need and this machine does not have, and unpacks all of it into `tree`, without root.
/// `staging` is for what apt keeps meanwhile.
///
/// # Errors
/// apt's own last words.
pub fn unpack_debian(
    packages: &[&str],
    staging: &Path,
    tree: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<(), String> {
    let named: Vec<String> = packages.iter().map(|package| (*package).to_owned()).collect();
    let apt = Apt::new(staging)?;
    apt.update(progress)?;
    // What is installed already is no part of the plan; it is unpacked all the same, so that the tree is whole.
    let mut wanted = apt.planned(&named)?;
    wanted.extend(named);
    wanted.sort();
    wanted.dedup();
    progress(&format!("downloading {} packages with apt", wanted.len()));
    apt.fetch(&wanted, tree)
}

/// Runs a program to its end and returns what it said; its last words are the error.
///
/// # Errors
/// When it cannot be run, or fails.
pub fn run(command: &mut Command) -> Result<String, String> {
    run_to_end::run(command)
}

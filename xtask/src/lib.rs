//! The project's chores, as a library so that the tests can use them too.
//!
//! Owns how the whole project is tested ([`test`]), kept tidy ([`tidy`]), measured against others ([`bench`]), its checks shown
//! the defects that they must find ([`flaws`]), its lab made to lie ([`lies`]), and its engines put under the same faults
//! ([`atlas`]), and it disturbed in every way ([`campaign`]), its parsers fed by chance
//! ([`fuzz`]). Writes the reference pages from the registries ([`reference`]), and the
//! folder that a release is ([`release`]). A lab that a bench or a trial makes has its first process in [`first_process`].
//! Nothing that is shipped depends on this crate.

pub mod atlas;
pub mod bench;
pub mod campaign;
pub mod first_process;
pub mod flaws;
pub mod fuzz;
pub mod lies;
pub mod packages;
mod program;
pub mod reference;
pub mod release;
pub mod survival;
pub mod test;
pub mod tidy;
pub mod trial;

use std::path::{Path, PathBuf};

/// The top folder of the repository this program was built from.
#[must_use]
pub fn repository_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Where build results go.
#[must_use]
pub fn target_directory() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository_root().join("target"), PathBuf::from)
}

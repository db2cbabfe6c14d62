//! The project's chores, as a library so that the tests can use them too.
//!
//! Owns how the whole project is kept tidy ([`tidy`]), measured against others ([`bench`]), its checks shown
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
pub mod tidy;
pub mod trial;

pub use suite::{repository_root, target_directory};

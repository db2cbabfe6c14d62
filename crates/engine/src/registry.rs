//! The engines there are, one line each.
//!
//! Owns the list and the way from a name to an engine; the engines own everything else.

use std::path::Path;

use crate::control::{self, Control};
use crate::etcd::{self, Etcd};
use crate::installation::{Found, Installation};
use crate::none::{self, Volumes};
use crate::postgres::{self, Postgres};
use crate::{Configuration, Engine, EngineError, InstallError};

/// An engine as `holdfast list engines` shows it.
#[derive(Debug, Clone, Copy)]
pub struct EngineFacts {
    /// Its name in scenarios.
    pub name: &'static str,
    find: fn(Option<&Path>) -> Result<Installation, InstallError>,
    install: Installer,
    describe: fn() -> Vec<Found>,
    open: Opener,
}

type Installer = fn(&mut dyn FnMut(&str)) -> Result<Installation, InstallError>;
type Opener = fn(Installation, Configuration) -> Result<Box<dyn Engine>, EngineError>;

/// Every engine, by name.
pub const ENGINES: &[EngineFacts] = &[
    EngineFacts {
        name: control::NAME,
        find: control::find,
        install: control::install,
        describe: control::describe,
        open: |installation, configuration| Ok(Box::new(Control::new(&installation, configuration)?)),
    },
    EngineFacts {
        name: etcd::NAME,
        find: etcd::find,
        install: etcd::install,
        describe: etcd::describe,
        open: |installation, configuration| Ok(Box::new(Etcd::new(installation, configuration))),
    },
    EngineFacts {
        name: none::NAME,
        find: control::find,
        install: control::install,
        describe: none::describe,
        open: |installation, configuration| Ok(Box::new(Volumes::new(&installation, configuration)?)),
    },
    EngineFacts {
        name: postgres::NAME,
        find: postgres::find,
        install: postgres::install,
        describe: postgres::describe,
        open: |installation, configuration| Ok(Box::new(Postgres::new(installation, configuration)?)),
    },
];

/// The engine of that name.
///
/// # Errors
/// [`EngineError::UnknownEngine`], with the names there are.
pub fn named(name: &str) -> Result<&'static EngineFacts, EngineError> {
    ENGINES.iter().find(|entry| entry.name == name).ok_or_else(|| EngineError::UnknownEngine {
        name: name.to_owned(),
        known: ENGINES.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
    })
}

impl EngineFacts {
    /// One line about it.
    #[must_use]
    pub fn summary(&self) -> &'static str {
        capabilities::named(self.name).map_or("", |engine| engine.summary)
    }

    /// Finds the database on this machine: at the path given and nowhere else, or else in the usual places.
    ///
    /// # Errors
    /// [`InstallError::Explicit`] or [`InstallError::NotFound`].
    pub fn find(&self, explicit: Option<&Path>) -> Result<Installation, InstallError> {
        (self.find)(explicit)
    }

    /// Installs the database into the cache directory; `progress` is told each step in words.
    ///
    /// # Errors
    /// [`InstallError`], whose words say what to do instead.
    pub fn install(&self, progress: &mut dyn FnMut(&str)) -> Result<Installation, InstallError> {
        (self.install)(progress)
    }

    /// Everything found on this machine, usable or not, in the order in which it would be chosen.
    #[must_use]
    pub fn describe(&self) -> Vec<Found> {
        (self.describe)()
    }

    /// An engine over an installation.
    ///
    /// # Errors
    /// When a setting will not do.
    pub fn open(
        &self,
        installation: Installation,
        configuration: Configuration,
    ) -> Result<Box<dyn Engine>, EngineError> {
        (self.open)(installation, configuration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engines_are_those_whose_capabilities_are_known() {
        let mut known = capabilities::NAMES;
        known.sort_unstable();
        assert_eq!(ENGINES.iter().map(|entry| entry.name).collect::<Vec<_>>(), known);
        for entry in ENGINES {
            assert!(!entry.summary().is_empty(), "{}", entry.name);
        }
    }

    #[test]
    fn every_engine_is_found_by_its_name_and_others_are_refused() {
        for entry in ENGINES {
            assert_eq!(named(entry.name).map(|found| found.name).ok(), Some(entry.name));
        }
        let message = named("postgress").map(|_| ()).map_err(|error| error.to_string());
        assert_eq!(
            message,
            Err("no engine named `postgress`; there are: control, etcd, none, postgres".to_owned())
        );
    }
}

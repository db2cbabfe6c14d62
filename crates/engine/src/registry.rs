//! The engines there are: those written in Rust, one line each, and those that are files.
//!
//! Owns the way from what an engine can do to what finds, installs and runs it; the engines own everything else.

use std::path::Path;
use std::sync::LazyLock;

use capabilities::{Capabilities, EngineFile};

use crate::by_file::{self, ByFile, FileInPods};
use crate::control::{self, Control};
use crate::installation::{Found, Installation, cache_directory, newest_of};
use crate::none::{self, Volumes};
use crate::postgres::{self, Postgres};
use crate::{Configuration, Engine, EngineError, InPods, InstallError};

/// An engine as `holdfast list engines` shows it.
#[derive(Debug, Clone, Copy)]
pub struct EngineFacts {
    /// Its name in scenarios.
    pub name: &'static str,
    capabilities: &'static Capabilities,
    how: How,
}

#[derive(Debug, Clone, Copy)]
enum How {
    InRust(InRust),
    ByFile(&'static EngineFile),
}

/// What an engine written in Rust brings.
#[derive(Debug, Clone, Copy)]
struct InRust {
    name: &'static str,
    find: fn(Option<&Path>) -> Result<Installation, InstallError>,
    install_into: InstallerInto,
    install_version: VersionInstaller,
    cannot_be_upgraded: fn(&str, &str) -> Option<String>,
    describe: fn() -> Vec<Found>,
    open: Opener,
    /// None where it does not run in pods.
    open_in_pods: Option<PodOpener>,
}

type InstallerInto = fn(&Path, &mut dyn FnMut(&str)) -> Result<Installation, InstallError>;
type VersionInstaller = fn(&Path, &str, &mut dyn FnMut(&str)) -> Result<Installation, InstallError>;
type Opener = fn(Installation, Configuration) -> Result<Box<dyn Engine>, EngineError>;
type PodOpener = fn(Installation, Configuration) -> Result<Box<dyn InPods>, EngineError>;

/// The folder in the cache directory for what was installed because its version was asked for.
const VERSIONS: &str = "versions";

const IN_RUST: &[InRust] = &[
    InRust {
        name: control::NAME,
        find: control::find,
        install_into: |_, progress| control::install(progress),
        install_version: |_, wanted, _| Err(control::has_one_version(wanted)),
        cannot_be_upgraded: |_, _| None,
        describe: control::describe,
        open: |installation, configuration| Ok(Box::new(Control::new(&installation, configuration)?)),
        open_in_pods: None,
    },
    InRust {
        name: none::NAME,
        find: control::find,
        install_into: |_, progress| control::install(progress),
        install_version: |_, wanted, _| Err(control::has_one_version(wanted)),
        cannot_be_upgraded: |_, _| None,
        describe: none::describe,
        open: |installation, configuration| Ok(Box::new(Volumes::new(&installation, configuration)?)),
        open_in_pods: None,
    },
    InRust {
        name: postgres::NAME,
        find: postgres::find,
        install_into: postgres::install_into,
        install_version: postgres::install_version,
        cannot_be_upgraded: postgres::cannot_be_upgraded,
        describe: postgres::describe,
        open: |installation, configuration| Ok(Box::new(Postgres::new(installation, configuration)?)),
        open_in_pods: Some(|installation, configuration| {
            let admin = Box::new(postgres::TcpAdmin::new(configuration.port));
            Ok(Box::new(Postgres::with_admin(installation, configuration, admin)?))
        }),
    },
];

static ENGINES: LazyLock<Vec<EngineFacts>> = LazyLock::new(|| {
    let mut engines: Vec<EngineFacts> =
        capabilities::engines().iter().filter_map(|engine| of(engine).ok()).collect();
    engines.sort_by_key(|engine| engine.name);
    engines
});

/// Every engine that ships, by name.
#[must_use]
pub fn engines() -> &'static [EngineFacts] {
    &ENGINES
}

/// The engine of that name among those that ship.
///
/// # Errors
/// [`EngineError::UnknownEngine`], with the names there are.
pub fn named(name: &str) -> Result<EngineFacts, EngineError> {
    engines().iter().copied().find(|entry| entry.name == name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> EngineError {
    EngineError::UnknownEngine {
        name: name.to_owned(),
        known: engines().iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
    }
}

/// The engine that can do this, whether it ships or not.
///
/// # Errors
/// [`EngineError::UnknownEngine`] when it is neither a file nor written here.
pub fn of(capabilities: &'static Capabilities) -> Result<EngineFacts, EngineError> {
    let name = capabilities.name;
    let how = match capabilities.file {
        Some(file) => How::ByFile(file),
        None => {
            let known = IN_RUST.iter().find(|entry| entry.name == name);
            How::InRust(*known.ok_or_else(|| EngineError::UnknownEngine {
                name: name.to_owned(),
                known: IN_RUST.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
            })?)
        }
    };
    Ok(EngineFacts { name, capabilities, how })
}

impl EngineFacts {
    /// One line about it.
    #[must_use]
    pub fn summary(&self) -> &'static str {
        self.capabilities.summary
    }

    /// Whether a cluster of it that was ended in order on all nodes is known to start again in the same roles.
    #[must_use]
    pub fn resumes(&self) -> bool {
        // Of an engine file nobody has said in which order its nodes must start again.
        matches!(self.how, How::InRust(_))
    }

    /// What was tested of it, where it is a file.
    #[must_use]
    pub fn tested(&self) -> Option<String> {
        match self.how {
            How::ByFile(file) => Some(file.tested.to_string()),
            How::InRust(_) => None,
        }
    }

    /// Finds the database on this machine: at the path given and nowhere else, or else in the usual places.
    ///
    /// # Errors
    /// [`InstallError::Explicit`] or [`InstallError::NotFound`].
    pub fn find(&self, explicit: Option<&Path>) -> Result<Installation, InstallError> {
        match self.how {
            How::InRust(engine) => (engine.find)(explicit),
            How::ByFile(file) => by_file::find(file, explicit),
        }
    }

    /// Installs the database into the cache directory; `progress` is told each step in words.
    ///
    /// # Errors
    /// [`InstallError`], whose words say what to do instead.
    pub fn install(&self, progress: &mut dyn FnMut(&str)) -> Result<Installation, InstallError> {
        self.install_into(&cache_directory(|name| std::env::var_os(name))?, progress)
    }

    /// The same with another folder as the cache directory.
    ///
    /// # Errors
    /// As [`EngineFacts::install`].
    pub fn install_into(
        &self,
        cache: &Path,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Installation, InstallError> {
        match self.how {
            How::InRust(engine) => (engine.install_into)(cache, progress),
            How::ByFile(file) => by_file::install_into(file, None, cache, progress),
        }
    }

    /// The newest on this machine whose version begins with these numbers; where there is none it is installed, beside
    /// what is found where no version is asked for.
    ///
    /// # Errors
    /// As [`EngineFacts::install`].
    pub fn of_version(
        &self,
        wanted: &str,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Installation, InstallError> {
        if let Some(found) = newest_of(self.describe(), wanted) {
            return Ok(found);
        }
        let cache = cache_directory(|name| std::env::var_os(name))?.join(VERSIONS);
        match self.how {
            How::InRust(engine) => (engine.install_version)(&cache, wanted, progress),
            How::ByFile(file) => by_file::install_into(file, Some(wanted), &cache, progress),
        }
    }

    /// Why nodes of one version cannot go on with their data under another; none where nothing is known to be in the way.
    #[must_use]
    pub fn cannot_be_upgraded(&self, from: &str, to: &str) -> Option<String> {
        match self.how {
            How::InRust(engine) => (engine.cannot_be_upgraded)(from, to),
            // Its file does not say which versions may follow each other.
            How::ByFile(_) => None,
        }
    }

    /// Everything found on this machine, usable or not, in the order in which it would be chosen.
    #[must_use]
    pub fn describe(&self) -> Vec<Found> {
        match self.how {
            How::InRust(engine) => (engine.describe)(),
            How::ByFile(file) => by_file::describe(file),
        }
    }

    /// An engine over an installation, whose processes run in pods.
    ///
    /// # Errors
    /// [`EngineError::NotInPods`], [`EngineError::ImageInPods`]; when a setting will not do.
    pub fn open_in_pods(
        &self,
        installation: Installation,
        configuration: Configuration,
    ) -> Result<Box<dyn InPods>, EngineError> {
        let none = EngineError::NotInPods { engine: self.name };
        match self.how {
            How::InRust(engine) => engine.open_in_pods.ok_or(none)?(installation, configuration),
            How::ByFile(file) if file.pod_program().is_err() => Err(none),
            How::ByFile(_) if installation.system.is_some() => {
                Err(EngineError::ImageInPods { engine: self.name })
            }
            How::ByFile(file) => {
                let engine = ByFile::new(self.capabilities, file, installation, configuration);
                Ok(Box::new(FileInPods::new(engine)))
            }
        }
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
        match self.how {
            How::InRust(engine) => (engine.open)(installation, configuration),
            How::ByFile(file) => {
                Ok(Box::new(ByFile::new(self.capabilities, file, installation, configuration)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engines_are_those_whose_capabilities_are_known() {
        let mut known = capabilities::names().to_vec();
        known.sort_unstable();
        assert_eq!(engines().iter().map(|entry| entry.name).collect::<Vec<_>>(), known);
        for entry in engines() {
            assert!(!entry.summary().is_empty(), "{}", entry.name);
        }
    }

    #[test]
    fn every_engine_is_found_by_its_name_and_others_are_refused() {
        for entry in engines() {
            assert_eq!(named(entry.name).map(|found| found.name).ok(), Some(entry.name));
        }
        let message = named("postgress").map(|_| ()).map_err(|error| error.to_string());
        let known: Vec<&str> = engines().iter().map(|entry| entry.name).collect();
        assert_eq!(message, Err(format!("no engine named `postgress`; there are: {}", known.join(", "))));
    }
}

//! One file per command.

pub mod check;
pub mod compare;
pub mod doctor;
pub mod explain;
pub mod export;
pub mod inner;
pub mod list;
pub mod load;
pub mod predict;
pub mod report;
pub mod run;
pub mod schema;
pub mod shell;
pub mod verify;

use std::path::{Path, PathBuf};

use scenario::{Rejection, Source};

use crate::complained;
use crate::exit::{Exit, WRONG};

/// A scenario's text under the name the user gave it.
fn read_source(path: &Path) -> Result<Source, Exit> {
    let bytes = std::fs::read(path)
        .map_err(|error| Exit::wrong(anyhow::anyhow!("scenario {}: {error}", path.display())))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Exit::wrong(anyhow::anyhow!(
            "scenario {}: byte {at} is not UTF-8; save the file as UTF-8",
            path.display()
        ))
    })?;
    Ok(Source { name: path.display().to_string(), text })
}

/// Where the paths in a scenario's file begin.
fn folder_of(scenario: &Path) -> PathBuf {
    scenario.parent().map(Path::to_owned).unwrap_or_default()
}

/// Shows what is wrong with a scenario, with a caret at the place.
fn reject(rejection: Rejection) -> Exit {
    complained!("{}", format!("{:?}", miette::Report::new(rejection)).trim_end());
    Exit::Told(WRONG)
}

//! One file per command.

pub mod agent;
pub mod check;
pub mod compare;
pub mod doctor;
mod engine_matrix;
pub mod engines;
pub mod explain;
pub mod export;
pub mod faults;
pub mod heal;
pub mod inner;
pub mod list;
pub mod load;
pub mod manifests;
pub mod manual;
pub mod predict;
pub mod report;
pub mod run;
pub mod schema;
pub mod serve;
pub mod shell;
pub mod verify;

use std::path::{Path, PathBuf};

use history::visible::is_hidden;
use history::whole_file::{self, Link};
use miette::{GraphicalReportHandler, GraphicalTheme};
use scenario::{Matrix, Refusal, Rejection, Source};
use scenario_files::{PlanError, WorkloadError};

use crate::complained;
use crate::exit::{Exit, WRONG};
use crate::terminal::print_as_it_is;

/// A rejection longer than this shows lines that no person wrote; each is cut after so many characters then.
const LONGEST_REJECTION_BYTES: usize = 64 << 10;
const LONGEST_LINE: usize = 400;

/// A scenario's text under the name the user gave it.
fn read_source(path: &Path) -> Result<Source, Exit> {
    let text = whole_file::read_text(path, Link::Followed, scenario::MOST_BYTES as u64)
        .map_err(|error| Exit::wrong(anyhow::anyhow!("scenario {}: {error}", path.display())))?;
    Ok(Source { name: path.display().to_string(), text })
}

/// Where the paths in a scenario's file begin.
fn folder_of(scenario: &Path) -> PathBuf {
    scenario.parent().map(Path::to_owned).unwrap_or_default()
}

/// Refuses a `--set` that no run would see, because the matrix sets the same in every combination.
fn check_set(matrix: &Matrix, source: &Source, set: &[(String, String)]) -> Result<(), Exit> {
    let Some((path, _)) = set.iter().find(|(path, _)| matrix.replaces(path)) else { return Ok(()) };
    let message = format!("the matrix sets `{path}` in every combination, so no run has this value");
    let refusal = Refusal {
        code: "set-by-the-matrix",
        message: message.clone(),
        label: "used by none".to_owned(),
        help: "change the axis, as in `--set 'matrix.axes={ ... }'`, or leave this out".to_owned(),
    };
    Err(match scenario::point_at(source, set, path, refusal) {
        Some(rejection) => reject(rejection),
        None => Exit::wrong(anyhow::anyhow!(message)),
    })
}

/// Refuses a cell of a matrix whose workload cannot be had: with a caret where the mistake is in every cell, else by its label.
fn refused_cell(error: &WorkloadError, source: &Source, set: &[(String, String)], label: &str) -> Exit {
    let rejection = error.rejection_of_all(source, set);
    rejection.map_or_else(|| Exit::wrong(anyhow::anyhow!("{label}: {error}")), reject)
}

/// Shows what is wrong with a scenario, with a caret at the place. In colour, unless the scenario holds what a terminal
/// would carry out.
fn reject(rejection: Rejection) -> Exit {
    let mut plain = String::new();
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor());
    let drawn = handler.render_report(&mut plain, &rejection);
    if drawn.is_err() || plain.chars().any(is_hidden) || plain.len() > LONGEST_REJECTION_BYTES {
        for line in plain.lines() {
            complained!("{}", shortened(line));
        }
    } else {
        print_as_it_is(true, format!("{:?}", miette::Report::new(rejection)).trim_end());
    }
    Exit::Reported(WRONG)
}

/// Shows why neither a scenario nor the engine file it names can be used.
fn not_planned(error: PlanError) -> Exit {
    match error {
        PlanError::Rejected(rejection) => reject(*rejection),
        PlanError::Unreadable(_) => Exit::wrong(error),
    }
}

/// A line of which a reader still sees where it begins and that it goes on.
fn shortened(line: &str) -> String {
    match line.char_indices().nth(LONGEST_LINE) {
        Some((end, _)) => format!("{} ...", &line[..end]),
        None => line.to_owned(),
    }
}

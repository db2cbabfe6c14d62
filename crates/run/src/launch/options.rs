//! What is to be run and how, and what those who asked for it see and get.

use std::path::{Path, PathBuf};

use faults::Planted;
use history::Verdict;
use scenario::Source;

use crate::orders::News;

/// Where a run directory is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// `<scenario>/<timestamp>` below this folder, whose `latest` then points at it.
    Below(PathBuf),
    /// Here; it must not be there yet.
    At(PathBuf),
}

/// What is to be run, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// The scenario's text.
    pub source: Source,
    /// The folder of the scenario's file: where the paths in it begin.
    pub folder: PathBuf,
    /// `--set path=value`.
    pub overrides: Vec<(String, String)>,
    /// The seed; drawn when neither this nor the scenario gives one.
    pub seed: Option<u64>,
    /// Where the run directory is made.
    pub place: Placement,
    /// Leave the lab up at the end.
    pub keep: bool,
    /// Announce faults without carrying them out.
    pub prevent_faults: bool,
    /// Lies planted by a test; empty in every honest run.
    pub planted: Planted,
    /// What packets are to be written down of: nodes, places, links.
    pub captures: Vec<String>,
    /// The name under which somebody confirms that a cluster which exists may be broken: the scenario's.
    pub confirmed: Option<String>,
    /// This program's version.
    pub version: &'static str,
}

/// What the outer process reacts to.
#[derive(Debug)]
pub enum Message {
    /// A signal asks the run to end.
    Interrupt,
    /// The supervisor has news.
    News(Box<News>),
    /// The supervisor hung up.
    HungUp,
}

/// What the outer process shows.
#[derive(Debug)]
pub enum Show<'a> {
    /// A step before the lab is started.
    Step(&'a str),
    /// News of the lab.
    News(&'a News),
    /// What can be entered of a lab that is kept.
    Reach {
        /// The nodes that have power.
        nodes: &'a [String],
        /// Hosts, and places where clients stand.
        others: &'a [String],
        run_directory: &'a Path,
    },
    /// The run directory is known.
    Directory(&'a Path),
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The verdict; unknown when the run was cut short.
    pub verdict: Verdict,
    pub run_directory: PathBuf,
    /// Clean-up that failed, told beside whatever else there is to tell.
    pub left_behind: Vec<String>,
}

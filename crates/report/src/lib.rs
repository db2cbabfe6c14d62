//! Run directory to one self-contained HTML file. Reads nothing but the run directory.
//!
//! Owns how a run is told: the page, its charts, the drawing of the site, the closing lines for the terminal. Owns no
//! judgement: verdicts and figures come from `result.json`, except for a run that was killed before it had one.

mod chart;
mod charts;
mod derive;
mod evidence;
mod figure;
mod format;
mod links;
mod links_csv;
pub mod losses;
mod marks;
mod markup;
mod method;
mod page;
mod prediction;
pub mod result;
mod round_trips;
mod run_directory;
mod scale;
mod series;
mod site;
mod site_drawing;
mod story;
mod tables;
mod text;
mod timeline_csv;

pub use page::html;
pub use run_directory::{ReadError, RunDirectory, WriteError, read, write};
pub use text::text;
pub use timeline_csv::TimelineRow;

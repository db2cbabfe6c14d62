//! Run directories to self-contained HTML files: one run, or several beside each other. Reads nothing but run
//! directories.
//!
//! Owns how a run is told: the page, its charts, the drawing of the site, the closing lines for the terminal; and the
//! forms in which other programs read a run. Owns no judgement of a run: verdicts and figures come from `result.json`, except for a run that was killed before it had one.
//! Whether two runs differ by more than noise is told in [`compare`], by `measure`'s statistics.

mod catch_ups;
mod chart;
mod charts;
pub mod compare;
mod derive;
mod evidence;
pub mod export;
mod figure;
mod first_errors;
mod format;
mod interruption;
mod links;
mod links_csv;
pub mod live;
pub mod losses;
mod marks;
mod markup;
pub mod matrix;
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
mod site_links;
mod story;
mod sweep_curve;
mod tables;
mod text;
mod timeline_csv;
mod verdict_title;
mod volume_result;
mod volumes;

pub use format::count as with_thousands;
pub use page::html;
pub use run_directory::{ReadError, RunDirectory, WriteError, read, write};
pub use text::text;
pub use timeline_csv::TimelineRow;

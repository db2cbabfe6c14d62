//! Run directories to self-contained HTML files: one run, or several beside each other. Reads nothing but run
//! directories.
//!
//! Owns how a run is told: the page, its charts, the drawing of the site, the closing lines for the terminal; and the
//! forms in which other programs read a run. Owns no judgement of a run: verdicts and figures come from `result.json`, except for a run that was killed before it had one.
//! Whether two runs differ by more than noise is told in [`compare`], by `measure`'s statistics.

mod agents;
mod catch_ups;
mod chart;
mod charts;
pub mod compare;
mod evidence;
pub mod export;
mod figure;
mod first_errors;
mod format;
mod hosts;
mod interruption;
mod links;
pub mod live;
mod marks;
mod markup;
mod method;
mod migrations;
pub mod overview;
mod page;
mod pods;
mod prediction;
mod reproduction;
mod round_trips;
mod scale;
mod series;
mod site;
mod site_drawing;
mod site_links;
mod site_ways;
mod story;
mod sweep_curve;
mod tables;
mod text;
mod verdict_title;
mod volumes;
mod written;

pub use format::{count as with_thousands, counted};
pub use interruption::incomparable;
pub use migrations::migration_in_words;
pub use page::html;
pub use text::text;
pub use written::{WriteError, write};

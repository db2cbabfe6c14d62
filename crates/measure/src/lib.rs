//! Latency histograms, time lines, recovery times and doubts about a measurement.
//!
//! Owns figures and the files they stand in (`timeline.csv`, `timeline.hlog`). Reads no clock and opens no
//! file: times and streams are arguments. Latencies are microseconds, seconds are whole seconds on the run's
//! clock.

pub mod combined;
pub mod compare;
pub mod confidence;
pub mod csv;
mod distribution;
pub mod encoding;
pub mod figures;
pub mod hlog;
pub mod interval;
mod lines;
pub mod meanwhile;
pub mod recorder;
pub mod recovery;
pub mod restore;
pub mod thousands;
pub mod timeline;
pub mod waits;
pub mod warnings;

pub use compare::{Comparison, Finding, Sampling, compare};
pub use confidence::{Estimate, mean_over_seconds};
pub use csv::{CsvWriter, TimelineRow};
pub use distribution::{Better, Distribution};
pub use encoding::EncodingError;
/// The histogram every latency stands in.
pub use hdrhistogram::Histogram;

pub use figures::{Figures, LatencyFigures, OperationFigures};
pub use hlog::{HlogEntry, HlogError, HlogReader, HlogWriteError, HlogWriter};
pub use interval::{Interval, OperationInterval};
pub use lines::LineError;
pub use recorder::{OperationId, Recorder};
pub use restore::{RestoreError, Restored, restore};
pub use timeline::{Timeline, TimelineError};
pub use waits::{TakenWaits, Wait, Waits};
pub use warnings::Doubt;

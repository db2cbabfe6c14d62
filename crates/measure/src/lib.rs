//! Histograms, time lines, recovery times, comparisons; pure

pub mod recorder;
pub use recorder::{Interval, OperationId, OperationInterval, Recorder};

//! A second of a load as it travels: histograms in HdrHistogram's own compressed form, operations as they stand in a history.
//!
//! Nothing is summed up on the way: what comes out is what was recorded, count for count.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use history::{ErrorCounts, FaultId, FirstError, Operation};
use load::{Batch, FirstSuccess, OpenLoop};
use measure::encoding::{Encoder, decode};
use measure::{EncodingError, Histogram, Interval, OperationInterval, Wait};
use serde::{Deserialize, Serialize};

/// What does not travel.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BatchError {
    #[error(transparent)]
    Histogram(#[from] EncodingError),
    /// The text that a histogram travels as.
    #[error("histogram: {0}")]
    Text(#[from] base64::DecodeError),
}

/// One operation in one second.
#[derive(Debug, Serialize, Deserialize)]
struct OperationWords {
    histogram: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    errors: ErrorCounts,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    errors_indefinite: ErrorCounts,
    #[serde(default, skip_serializing_if = "is_zero")]
    retries: u64,
}

// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A stretch of time: from, to, and whether it was cut off by the end.
type WaitWords = (f64, f64, bool);

/// How well an open loop kept its rate.
#[derive(Debug, Serialize, Deserialize)]
struct OpenLoopWords {
    lateness: String,
    backlog: u64,
}

/// The first success after a fault.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct FirstSuccessWords {
    fault: FaultId,
    at_s: f64,
    after_s: f64,
}

impl From<FirstSuccess> for FirstSuccessWords {
    fn from(FirstSuccess { fault, at_s, after_s }: FirstSuccess) -> Self {
        FirstSuccessWords { fault, at_s, after_s }
    }
}

impl From<FirstSuccessWords> for FirstSuccess {
    fn from(FirstSuccessWords { fault, at_s, after_s }: FirstSuccessWords) -> Self {
        FirstSuccess { fault, at_s, after_s }
    }
}

/// A second of a load.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BatchWords {
    second: u64,
    operations: BTreeMap<String, OperationWords>,
    history: Vec<Operation>,
    waits: Vec<WaitWords>,
    quiet: Vec<WaitWords>,
    marked: Vec<FaultId>,
    first_success: Vec<FirstSuccessWords>,
    open_loop: Option<OpenLoopWords>,
    first_errors: Vec<FirstError>,
    failure: Option<String>,
}

fn packed(histogram: &Histogram<u64>, encoder: &mut Encoder) -> Result<String, BatchError> {
    if histogram.is_empty() {
        return Ok(String::new());
    }
    let mut bytes = Vec::new();
    encoder.encode(histogram, &mut bytes)?;
    Ok(STANDARD.encode(bytes))
}

fn unpacked(text: &str) -> Result<Histogram<u64>, BatchError> {
    if text.is_empty() {
        return Ok(measure::interval::new_histogram());
    }
    Ok(decode(&STANDARD.decode(text)?)?)
}

fn waits_told(waits: &[Wait]) -> Vec<WaitWords> {
    waits.iter().map(|wait| (wait.from_s, wait.to_s, wait.is_open)).collect()
}

fn waits_heard(waits: Vec<WaitWords>) -> Vec<Wait> {
    waits.into_iter().map(|(from_s, to_s, is_open)| Wait { from_s, to_s, is_open }).collect()
}

impl BatchWords {
    /// As it is told.
    ///
    /// # Errors
    /// When a histogram cannot be packed.
    pub(crate) fn of(batch: Batch, encoder: &mut Encoder) -> Result<BatchWords, BatchError> {
        let mut operations = BTreeMap::new();
        for (name, measured) in batch.interval.operations {
            let histogram = packed(&measured.histogram, encoder)?;
            let OperationInterval { errors, errors_indefinite, retries, .. } = measured;
            operations.insert(name, OperationWords { histogram, errors, errors_indefinite, retries });
        }
        let open_loop = match &batch.open_loop {
            Some(OpenLoop { lateness, backlog }) => {
                Some(OpenLoopWords { lateness: packed(lateness, encoder)?, backlog: *backlog })
            }
            None => None,
        };
        Ok(BatchWords {
            second: batch.interval.second,
            operations,
            history: batch.history,
            waits: waits_told(&batch.waits),
            quiet: waits_told(&batch.quiet),
            marked: batch.marked,
            first_success: batch.first_success.into_iter().map(FirstSuccessWords::from).collect(),
            open_loop,
            first_errors: batch.first_errors,
            failure: batch.failure,
        })
    }

    /// As it was recorded, of the load of this name.
    ///
    /// # Errors
    /// When a histogram is none.
    pub(crate) fn batch(self, load: &str) -> Result<Batch, BatchError> {
        let mut operations = BTreeMap::new();
        for (name, measured) in self.operations {
            let OperationWords { histogram, errors, errors_indefinite, retries } = measured;
            let histogram = unpacked(&histogram)?;
            operations.insert(name, OperationInterval { histogram, errors, errors_indefinite, retries });
        }
        let open_loop = match self.open_loop {
            Some(OpenLoopWords { lateness, backlog }) => {
                Some(OpenLoop { lateness: unpacked(&lateness)?, backlog })
            }
            None => None,
        };
        Ok(Batch {
            interval: Interval { load: load.to_owned(), second: self.second, operations },
            history: self.history,
            waits: waits_heard(self.waits),
            quiet: waits_heard(self.quiet),
            marked: self.marked,
            first_success: self.first_success.into_iter().map(Into::into).collect(),
            open_loop,
            first_errors: self.first_errors,
            failure: self.failure,
        })
    }
}

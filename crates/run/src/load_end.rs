//! How a load ended that nobody had told to.

use load::LoadError;
use results::EndedEarly;

/// What is told of this end.
pub(crate) fn ended_early(error: &LoadError) -> EndedEarly {
    let recorded = match error {
        LoadError::RecordsLost { .. } => false,
        LoadError::Elsewhere { recorded, .. } => *recorded,
        _ => true,
    };
    EndedEarly { why: error.to_string(), recorded }
}

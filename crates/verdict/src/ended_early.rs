//! A load that ended before it was told to: the load generator failed.
//!
//! Owns what is recorded of such an end. What checks say of such a load is `checks`' business, what becomes of figures is
//! `figures_in_doubt`'s.

use load::LoadError;
use results::EndedEarly;

/// What is told of this end.
#[must_use]
pub fn ended_early(error: &LoadError) -> EndedEarly {
    let recorded = match error {
        LoadError::RecordsLost { .. } => false,
        LoadError::Elsewhere { recorded, .. } => *recorded,
        _ => true,
    };
    EndedEarly { why: error.to_string(), recorded }
}

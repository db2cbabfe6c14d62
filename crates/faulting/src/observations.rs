//! What was seen, in words.

use history::Verdict;

/// What was seen: each sentence with what it shows.
pub(crate) type Observations = Vec<(Verdict, String)>;

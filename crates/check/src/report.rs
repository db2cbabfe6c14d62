//! What a check found.
//!
//! Owns the shape of a finding; each check fills it in.

use std::collections::BTreeMap;

use history::Verdict;
use serde::Serialize;

use crate::story::Story;

/// An acknowledged write that is not there at the end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LostWrite {
    /// The number that was inserted.
    pub value: u64,
    /// The load whose client inserted it.
    pub load: String,
    pub client: u64,
    /// When the insert was sent, seconds.
    pub invoked_s: f64,
    /// When it was acknowledged, seconds.
    pub completed_s: f64,
    /// The node that acknowledged it, when known.
    pub node: Option<String>,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The check's name: `ledger`, `tpcb-sums`.
    pub name: &'static str,
    /// How it came out.
    pub verdict: Verdict,
    /// The story: what was demanded, what was found, and up to five examples of what is wrong.
    pub explanation: String,
    /// Writes acknowledged: the ledger's inserts, or TPC-B's transactions.
    pub acknowledged: Option<u64>,
    /// Acknowledged and not there. At least so many when not everything could be judged; absent when none was
    /// found and not everything could be judged.
    pub lost: Option<u64>,
    /// Ledger: there and never asked for, known as `lost` is.
    pub invented: Option<u64>,
    /// Writes without a definite answer.
    pub indeterminate: Option<u64>,
    /// Further counts by name.
    pub counts: BTreeMap<String, i64>,
    /// Ledger: every lost write, in order of the time it was acknowledged. Empty where lost writes are only counted.
    pub lost_examples: Vec<LostWrite>,
    /// List-append: the strongest isolation levels that the history still allows, by name. More than one where none
    /// demands all that another does.
    pub strongest_levels: Vec<String>,
    /// Whether all that is wrong is that acknowledged writes are not there in the end.
    #[serde(skip)]
    pub only_misses: bool,
}

impl Report {
    /// A report that says nothing yet.
    pub(crate) fn new(name: &'static str) -> Self {
        Report {
            name,
            verdict: Verdict::Unknown,
            explanation: String::new(),
            acknowledged: None,
            lost: None,
            invented: None,
            indeterminate: None,
            counts: BTreeMap::new(),
            lost_examples: Vec::new(),
            strongest_levels: Vec::new(),
            only_misses: false,
        }
    }

    /// Takes over what the story adds up to; `otherwise` where it tells of nothing.
    pub(crate) fn conclude(&mut self, story: Story, otherwise: String) {
        self.only_misses = story.only_misses();
        (self.verdict, self.explanation) = story.conclude(otherwise);
    }

    pub(crate) fn count(&mut self, name: &str, count: usize) {
        self.counts.insert(name.to_owned(), i64::try_from(count).unwrap_or(i64::MAX));
    }
}

//! Best practice: recommendations of field reports and of the databases' own documentation, each a rule with an id, a
//! source and a remedy.
//!
//! Owns what a rule is and how it is applied. The rules are in `layout` and `storage` (what a scenario says) and `machine`
//! (what a machine says); where the facts come from is the caller's.

mod layout;
mod machine;
mod storage;

pub use layout::{EdgeFacts, LAYOUT_RULES, LayoutFacts, SyncFacts};
pub use machine::{DiskFacts, MACHINE_RULES, MachineFacts};
pub use storage::MirrorFacts;

/// What a rule finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// It is followed; what was found.
    Follows(String),
    /// It is not; what was found.
    Departs(String),
    /// It cannot be said, and why. Never taken for followed.
    Unknown(String),
    /// The rule speaks of something that is not here.
    DoesNotApply,
}

/// One recommendation.
#[derive(Debug, Clone, Copy)]
pub struct Rule<Facts: ?Sized> {
    /// Stable; `holdfast explain` knows it: `one-node-per-host`.
    pub id: &'static str,
    /// Who recommends it.
    pub source: &'static str,
    /// What to do where it is not followed.
    pub remedy: &'static str,
    /// Holds it against facts.
    pub judge: fn(&Facts) -> Judgement,
}

/// What a rule found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule's name.
    pub id: &'static str,
    /// Who recommends it.
    pub source: &'static str,
    /// What to do where it is not followed.
    pub remedy: &'static str,
    /// What was found.
    pub judgement: Judgement,
}

/// Applies rules in their order.
#[must_use]
pub fn apply<Facts: ?Sized>(rules: &[Rule<Facts>], facts: &Facts) -> Vec<Finding> {
    let finding = |rule: &Rule<Facts>| Finding {
        id: rule.id,
        source: rule.source,
        remedy: rule.remedy,
        judgement: (rule.judge)(facts),
    };
    rules.iter().map(finding).collect()
}

/// Followed or not, with what was found either way.
fn judged(follows: bool, found: String) -> Judgement {
    if follows { Judgement::Follows(found) } else { Judgement::Departs(found) }
}

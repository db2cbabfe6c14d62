//! Putting findings into sentences.
//!
//! Owns how many examples are told and how a list is worded. Each check words its own findings.

use history::Verdict;

/// How many examples of one kind of finding a story names.
const EXAMPLES_MAX: usize = 5;

/// A story in the making: sentences, and the verdict they add up to.
#[derive(Default)]
pub(crate) struct Story {
    failures: Vec<String>,
    /// How many of these are no more than acknowledged writes that are not there in the end.
    misses: usize,
    doubts: Vec<String>,
}

impl Story {
    /// Something was shown not to hold.
    pub(crate) fn fail(&mut self, sentence: String) {
        self.failures.push(sentence);
    }

    /// Acknowledged writes are not there in the end: they may be where nobody looked.
    pub(crate) fn miss(&mut self, sentence: String) {
        self.misses += 1;
        self.fail(sentence);
    }

    /// Whether all that was shown not to hold is that acknowledged writes are not there in the end.
    pub(crate) fn only_misses(&self) -> bool {
        self.fails() && self.misses == self.failures.len()
    }

    /// Whether something was shown not to hold so far.
    pub(crate) fn fails(&self) -> bool {
        !self.failures.is_empty()
    }

    /// Something could not be shown either way.
    pub(crate) fn doubt(&mut self, sentence: String) {
        self.doubts.push(sentence);
    }

    /// The verdict, and the story: failures first, then doubts; `otherwise` when there is neither.
    pub(crate) fn conclude(self, otherwise: String) -> (Verdict, String) {
        let verdict = match (self.failures.is_empty(), self.doubts.is_empty()) {
            (false, _) => Verdict::Fail,
            (true, false) => Verdict::Unknown,
            (true, true) => return (Verdict::Pass, otherwise),
        };
        let sentences: Vec<String> = self.failures.into_iter().chain(self.doubts).collect();
        (verdict, sentences.join(". "))
    }
}

/// A claim followed by its first examples: `2 inserts are lost: a; b`. Says how many more there are.
pub(crate) fn with_examples<'f, T: 'f>(
    claim: &str,
    found: impl IntoIterator<Item = &'f T, IntoIter: ExactSizeIterator>,
    tell: impl Fn(&T) -> String,
) -> String {
    let found = found.into_iter();
    let more = found.len().saturating_sub(EXAMPLES_MAX);
    let mut told: Vec<String> = found.take(EXAMPLES_MAX).map(tell).collect();
    if more > 0 {
        told.push(format!("and {more} more"));
    }
    format!("{claim}: {}", told.join("; "))
}

/// `1 insert`, `2 inserts`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

pub(crate) fn is_or_are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

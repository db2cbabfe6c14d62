//! Counts of tests, read from the lines that cargo's test programs print.

use std::collections::BTreeSet;
use std::fmt;

/// How many tests passed, failed, and could not be tried here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Passed, by the word of the test programs.
    pub passed: usize,
    /// Among these, tests that said that they were skipped, and then returned.
    pub returned: usize,
    pub failed: usize,
    /// Not tried: name and reason.
    pub skipped: BTreeSet<String>,
    /// Left out by `#[ignore]`; they are counted with the skipped.
    pub ignored: usize,
    /// Why tests failed, line by line.
    pub failures: Vec<String>,
}

impl Tally {
    /// Takes one line of output into account.
    pub fn read(&mut self, line: &str) {
        if let Some((passed, failed, ignored)) = result_line(line) {
            self.passed += passed;
            self.failed += failed;
            self.ignored += ignored;
        } else if let Some(what) = skipped_line(line) {
            // Subtracted only at the end: the word comes before its program's result line or after it.
            self.returned += usize::from(self.skip(what));
        }
    }

    /// Notes a skipped test, `NAME: reason`; false when that was known.
    pub fn skip(&mut self, what: &str) -> bool {
        self.skipped.insert(what.to_owned())
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.returned += other.returned;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.skipped.extend(other.skipped);
        self.failures.extend(other.failures);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let skipped = self.skipped.len() + self.ignored;
        let passed = self.passed.saturating_sub(self.returned);
        write!(f, "{passed} passed, {} failed, {skipped} skipped", self.failed)
    }
}

/// Passed, failed and ignored of `test result: ok. 3 passed; 0 failed; 1 ignored; ...`.
fn result_line(line: &str) -> Option<(usize, usize, usize)> {
    let counts = line.strip_prefix("test result: ")?.split_once(". ")?.1;
    let count = |word: &str| {
        let part = counts.split(';').find(|part| part.trim().ends_with(word))?;
        part.trim().split(' ').next()?.parse().ok()
    };
    Some((count(" passed")?, count(" failed")?, count(" ignored")?))
}

/// `NAME: reason` of `skipped: NAME: reason`.
pub fn skipped_line(line: &str) -> Option<&str> {
    let what = line.trim_start().strip_prefix("skipped: ")?;
    what.contains(": ").then_some(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(lines: &[&str]) -> String {
        let mut tally = Tally::default();
        lines.iter().for_each(|line| tally.read(line));
        tally.to_string()
    }

    #[test]
    fn result_lines_of_all_programs_are_summed() {
        let good =
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        let bad = "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        assert_eq!(tally(&[good, "test a ... ok", bad]), "4 passed, 2 failed, 1 skipped");
    }

    #[test]
    fn a_test_that_skips_itself_has_not_passed_and_counts_once() {
        let result =
            "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        let skipped = "skipped: boots_three_nodes: no /dev/net/tun";
        assert_eq!(tally(&[result, skipped, skipped]), "1 passed, 0 failed, 1 skipped");
    }

    #[test]
    fn a_skip_counts_the_same_before_the_result_line_as_after_it() {
        let result =
            "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        let skipped = "skipped: boots_three_nodes: no /dev/net/tun";
        assert_eq!(tally(&[skipped, result]), "1 passed, 0 failed, 1 skipped");
    }

    #[test]
    fn other_lines_count_nothing() {
        assert_eq!(
            tally(&["test result: nonsense", "skipped: three", "running 3 tests"]),
            "0 passed, 0 failed, 0 skipped"
        );
    }
}

//! A part of all tests, where all of them take longer than there is time, or several machines share them.
//!
//! Owns which tests it has: every so many of them, in the order of their names, so that each part has about as much of everything.

use std::collections::BTreeSet;
use std::str::FromStr;

use anyhow::{Context, bail, ensure};

/// The second of three, say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// From 1 on.
    number: usize,
    of: usize,
}

impl FromStr for Part {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Part> {
        let wanted = || format!("`{text}` is no part; write 2/3 for the second of three");
        let (number, of) = text.split_once('/').with_context(wanted)?;
        let (number, of) = (number.parse().with_context(wanted)?, of.parse().with_context(wanted)?);
        ensure!(1 <= number && number <= of, wanted());
        Ok(Part { number, of })
    }
}

impl Part {
    /// Names of the tests that it leaves out, of those that test programs list: `NAME: test`, a line each. All test programs take
    /// several names to skip, and some only one to run. Tests of the same name in several programs are in the same part.
    ///
    /// # Errors
    /// When no test is left.
    pub fn leaves_out(self, listed: &str) -> anyhow::Result<Vec<String>> {
        let names: BTreeSet<&str> = listed.lines().filter_map(|line| line.strip_suffix(": test")).collect();
        if names.len() < self.number {
            bail!("part {}/{} has no tests", self.number, self.of);
        }
        let of_others = |(place, _): &(usize, &str)| place % self.of != self.number - 1;
        Ok(names.into_iter().enumerate().filter(of_others).map(|(_, name)| name.to_owned()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_is_in_one_part_and_parts_are_about_as_large() {
        let listed =
            "\nc: test\nb::d: test\n\na: test\n3 tests, 0 benchmarks\nc: test\ne: test\nx: benchmark\n";
        let others = |text: &str| text.parse::<Part>().expect("a part").leaves_out(listed).expect("tests");
        assert_eq!(others("1/1"), Vec::<String>::new());
        assert_eq!(others("1/3"), ["b::d", "c"]);
        assert_eq!(others("2/3"), ["a", "c", "e"]);
        assert_eq!(others("3/3"), ["a", "b::d", "e"]);
    }

    #[test]
    fn what_is_no_part_is_refused_and_a_part_without_tests_does_not_stand_for_all() {
        for text in ["", "1", "0/2", "3/2", "1/0", "a/b", "1/2/3", "-1/2"] {
            assert!(text.parse::<Part>().is_err(), "{text}");
        }
        assert!("2/2".parse::<Part>().expect("a part").leaves_out("a: test\n").is_err());
    }
}

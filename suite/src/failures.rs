//! Why tests failed, read from the lines that cargo's test programs print, for the end of the output: what stands far above is
//! lost where a log is cut.

/// So many lines of a failure are told again.
const LINES: usize = 12;
/// So many characters of each.
const CHARACTERS: usize = 400;

/// What has been read so far.
#[derive(Debug, Default)]
pub struct Failures {
    within: bool,
    /// Lines that were taken of the last failure.
    taken: usize,
    /// The first lines of every failure.
    pub lines: Vec<String>,
}

impl Failures {
    /// Takes one line of output into account. A test program tells failures under `failures:`, each with a title, and then
    /// their names, again under `failures:`.
    pub fn read(&mut self, line: &str) {
        if line == "failures:" {
            self.within = !self.within;
            // Without a title nothing is taken.
            self.taken = LINES;
            return;
        }
        if line.starts_with("test result: ") {
            self.within = false;
        }
        let is_title = line.starts_with("---- ") && line.ends_with(" ----");
        if is_title {
            self.taken = 0;
        }
        if self.within && self.taken < LINES && !line.is_empty() {
            self.taken += 1;
            self.lines.push(line.chars().take(CHARACTERS).collect());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_every_failure_the_title_and_the_first_lines_are_kept_and_nothing_else() {
        let mut failures = Failures::default();
        let chatter = (0..50).map(|number| format!("{number}"));
        let before = ["test a ... FAILED", "successes:", "---- b stdout ----", "chatter", "failures:", ""];
        let a = ["---- a stdout ----", "", "panicked at a.rs:1:1:", "why"];
        let after = ["failures:", "    a", "test result: FAILED. 1 passed; 1 failed", "running 3 tests"];
        let lines = before.iter().chain(&a).map(ToString::to_string);
        for line in lines.chain(chatter).chain(after.iter().map(ToString::to_string)) {
            failures.read(&line);
        }
        assert_eq!(failures.lines[..3], ["---- a stdout ----", "panicked at a.rs:1:1:", "why"]);
        assert_eq!(failures.lines.len(), LINES);
        assert!(!failures.lines.iter().any(|line| line.contains("chatter") || line.contains("    a")));
    }

    #[test]
    fn a_program_that_died_among_its_failures_hides_none_of_the_next() {
        let mut failures = Failures::default();
        let lines =
            ["failures:", "---- a stdout ----", "why", "failures:", "    a", "test result: FAILED. 0 passed"];
        lines.iter().chain(&lines).for_each(|line| failures.read(line));
        assert_eq!(failures.lines, ["---- a stdout ----", "why", "---- a stdout ----", "why"]);
    }
}

//! Why tests failed, read from the lines that cargo's test programs print, for the end of the output: what stands far above is
//! lost where a log is cut.

/// Lines of a failure that are printed again at the end, at most.
const LINES: usize = 12;
/// Characters of each of them, at most.
const CHARACTERS: usize = 400;

/// What has been read so far.
#[derive(Debug, Default)]
pub struct Failures {
    within: bool,
    /// Lines that were taken of the last failure; all of them where no title has been read yet.
    taken: usize,
    /// The first lines of every failure.
    pub lines: Vec<String>,
}

impl Failures {
    /// Takes one line of output into account. A test program tells failures under `failures:`, each with a title, and then
    /// their names, again under `failures:`. One that dies tells no end.
    pub fn read(&mut self, line: &str) {
        match line {
            "failures:" => (self.within, self.taken) = (true, LINES),
            "successes:" => self.within = false,
            _ if line.starts_with("test result: ") => self.within = false,
            _ if line.starts_with("---- ") && line.ends_with(" ----") => self.taken = 0,
            _ => {}
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
        let died = ["failures:", "---- a stdout ----", "why"];
        let passed = ["successes:", "---- b stdout ----", "chatter", "test result: ok. 1 passed"];
        let next = [
            "failures:",
            "---- c stdout ----",
            "and why",
            "failures:",
            "    c",
            "test result: FAILED. 0 passed",
        ];
        died.iter().chain(&passed).chain(&died).chain(&next).for_each(|line| failures.read(line));
        let told =
            ["---- a stdout ----", "why", "---- a stdout ----", "why", "---- c stdout ----", "and why"];
        assert_eq!(failures.lines, told);
    }
}

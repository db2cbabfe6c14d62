//! What the probe says, and what it shows of a clock.

/// What the probe saw in one look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// The machine's clock just before, in nanoseconds since 1970.
    pub before_ns: i64,
    /// The node's clock.
    pub shown_ns: i64,
    /// The machine's clock just after.
    pub after_ns: i64,
}

impl Reading {
    /// The least and the most that the node's clock can have been ahead of the machine's.
    #[must_use]
    pub fn offset_ns(&self) -> (i64, i64) {
        (self.shown_ns.saturating_sub(self.after_ns), self.shown_ns.saturating_sub(self.before_ns))
    }

    /// The look that took least time of those that the probe's output tells of.
    #[must_use]
    pub fn narrowest(output: &str) -> Option<Reading> {
        let number = |text: &str| u64::from_str_radix(text, 16).ok().and_then(|ns| i64::try_from(ns).ok());
        let line = |line: &str| {
            let mut numbers = line.split(' ').map(number);
            let mut next = || numbers.next().flatten();
            Some(Reading { before_ns: next()?, shown_ns: next()?, after_ns: next()? })
        };
        let readings =
            output.lines().filter_map(line).filter(|reading| reading.before_ns <= reading.after_ns);
        readings.min_by_key(|reading| reading.after_ns - reading.before_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_look_counts() {
        let output = "0000000000000010 0000000000000100 0000000000000020\n\
                      0000000000000030 0000000000000101 0000000000000033\nnonsense\n";
        let reading = Reading::narrowest(output).expect("a reading");
        assert_eq!((reading.before_ns, reading.shown_ns, reading.after_ns), (0x30, 0x101, 0x33));
        assert_eq!(reading.offset_ns(), (0x101 - 0x33, 0x101 - 0x30));
        assert_eq!(Reading::narrowest("nonsense"), None);
    }
}

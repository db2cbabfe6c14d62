//! Positions in the write-ahead log and how they compare.
//!
//! Owns their notation (`16/B374D848`) and their order.

use std::fmt;
use std::str::FromStr;

/// A byte position in the write-ahead log of one time line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lsn(pub u64);

/// Not a position in the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a log position such as 16/B374D848")]
pub struct NotAnLsn(String);

impl FromStr for Lsn {
    type Err = NotAnLsn;

    fn from_str(text: &str) -> Result<Self, NotAnLsn> {
        // Eight digits at most on either side, and digits only: `from_str_radix` by itself would take a sign.
        let half = |digits: &str| {
            let plain =
                (1..=8).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            plain.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
        };
        let (high, low) = text.split_once('/').ok_or_else(|| NotAnLsn(text.to_owned()))?;
        match (half(high), half(low)) {
            (Some(high), Some(low)) => Ok(Lsn(high << 32 | low)),
            _ => Err(NotAnLsn(text.to_owned())),
        }
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xFFFF_FFFF)
    }
}

/// How far a standby has got: a later time line is ahead of an earlier one wherever it is, for it was begun by a
/// promotion after which nothing on the earlier one can have been acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The newest time line of which anything was received.
    pub time_line: u32,
    /// How far the log was received and flushed.
    pub flushed: Lsn,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on time line {}", self.flushed, self.time_line)
    }
}

/// The most advanced of those given; of equals, the first given.
pub fn most_advanced<'a>(positions: impl IntoIterator<Item = (&'a str, Position)>) -> Option<&'a str> {
    positions
        .into_iter()
        .reduce(|best, other| if other.1 > best.1 { other } else { best })
        .map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(positions: &[(&str, u32, &str)], expected: Option<&str>) {
        let parsed: Vec<(&str, Position)> = positions
            .iter()
            .map(|(name, time_line, text)| {
                let flushed = text.parse().unwrap_or_else(|error| panic!("{error}"));
                (*name, Position { time_line: *time_line, flushed })
            })
            .collect();
        assert_eq!(most_advanced(parsed), expected, "{positions:?}");
    }

    #[test]
    fn the_greatest_position_wins_by_number_and_not_by_text() {
        check(&[("n2", 1, "0/9000000"), ("n3", 1, "0/10000000")], Some("n3"));
        check(&[("n2", 1, "9/0"), ("n3", 1, "10/0")], Some("n3"));
        check(&[("n2", 1, "1/0"), ("n3", 1, "0/FFFFFFFF")], Some("n2"));
    }

    #[test]
    fn of_equals_the_first_given_wins() {
        check(&[("n3", 1, "0/3000000"), ("n2", 1, "0/3000000")], Some("n3"));
        check(&[("n2", 1, "0/3000000"), ("n3", 1, "0/3000000")], Some("n2"));
    }

    #[test]
    fn a_later_time_line_is_ahead_wherever_it_is() {
        check(&[("n2", 1, "0/9000000"), ("n3", 2, "0/5000000")], Some("n3"));
    }

    #[test]
    fn nobody_is_the_most_advanced_of_none() {
        check(&[], None);
    }

    #[test]
    fn what_is_not_a_position_is_refused() {
        for text in ["", "/", "0", "0/", "/0", "g/0", "+1/0", "0/-1", "123456789/0", "0/0/0", " 0/0"] {
            assert!(text.parse::<Lsn>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_position_reads_back_as_written(value: u64) {
            prop_assert_eq!(Lsn(value).to_string().parse(), Ok(Lsn(value)));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in ".*") {
            let _ = text.parse::<Lsn>();
        }
    }
}

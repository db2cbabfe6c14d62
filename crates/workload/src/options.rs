//! Options of a workload as text, by name, read into typed values.
//!
//! Owns how each kind of value is written and what is wrong with one that is not. Which options a workload has, and what
//! they are when absent, is the workload's own; the scenario language has checked most of it before, with a caret.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use crate::dialect::beginning;
use crate::workload::Statement;

/// Why a workload cannot be had as asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigurationError {
    /// No workload has this name.
    #[error("no workload is named {0:?}")]
    UnknownWorkload(String),
    /// The workload has no such option.
    #[error("workload {workload} has no option {option:?}")]
    UnknownOption {
        /// The workload.
        workload: String,
        /// The option.
        option: String,
    },
    /// An option's value does not fit.
    #[error("workload {workload}: option {option} cannot be {value:?}: {wanted}")]
    BadOption {
        /// The workload.
        workload: String,
        /// The option.
        option: String,
        /// What was given.
        value: String,
        /// What would fit.
        wanted: String,
    },
    /// A script cannot be read.
    #[error("workload {workload}: {source}")]
    Script {
        /// The workload.
        workload: String,
        /// What is wrong, with the line and a caret.
        source: Box<crate::script_error::ScriptError>,
    },
}

/// The levels of the option `isolation`, weakest first, by their names in SQL.
pub const ISOLATION_LEVELS: [&str; 3] = ["read-committed", "repeatable-read", "serializable"];

/// Reads the options of one workload; what nobody asked for is an error in the end.
pub(crate) struct Options<'o> {
    workload: &'static str,
    given: &'o BTreeMap<String, String>,
    asked: BTreeSet<String>,
}

impl<'o> Options<'o> {
    pub(crate) fn new(workload: &'static str, given: &'o BTreeMap<String, String>) -> Self {
        Options { workload, given, asked: BTreeSet::new() }
    }

    /// The option's text.
    pub(crate) fn text(&mut self, name: &str) -> Option<&'o str> {
        self.asked.insert(name.to_owned());
        self.given.get(name).map(String::as_str)
    }

    /// A whole number within bounds.
    pub(crate) fn count(
        &mut self,
        name: &str,
        absent: u64,
        bounds: RangeInclusive<u64>,
    ) -> Result<u64, ConfigurationError> {
        let Some(text) = self.text(name) else { return Ok(absent) };
        let wanted = || format!("it is a whole number from {} to {}", bounds.start(), bounds.end());
        text.parse()
            .ok()
            .filter(|count| bounds.contains(count))
            .ok_or_else(|| self.bad(name, text, &wanted()))
    }

    /// A decimal number within bounds.
    pub(crate) fn number(
        &mut self,
        name: &str,
        absent: f64,
        bounds: RangeInclusive<f64>,
    ) -> Result<f64, ConfigurationError> {
        let Some(text) = self.text(name) else { return Ok(absent) };
        let wanted = || format!("it is a number from {} to {}", bounds.start(), bounds.end());
        text.parse()
            .ok()
            .filter(|number| bounds.contains(number))
            .ok_or_else(|| self.bad(name, text, &wanted()))
    }

    /// A percentage, `95%`, as a share from 0 to 1.
    pub(crate) fn share(&mut self, name: &str, absent: f64) -> Result<f64, ConfigurationError> {
        let Some(text) = self.text(name) else { return Ok(absent) };
        let percent = text.strip_suffix('%').and_then(|number| number.trim_end().parse::<f64>().ok());
        percent
            .filter(|percent| (0.0..=100.0).contains(percent))
            .map(|percent| percent / 100.0)
            .ok_or_else(|| self.bad(name, text, "it is a percentage from 0% to 100%"))
    }

    /// One of a few words, by its place among them.
    pub(crate) fn word(
        &mut self,
        name: &str,
        absent: usize,
        words: &[&str],
    ) -> Result<usize, ConfigurationError> {
        let Some(text) = self.text(name) else { return Ok(absent) };
        let wanted = || format!("it is one of {}", words.join(", "));
        words.iter().position(|word| *word == text).ok_or_else(|| self.bad(name, text, &wanted()))
    }

    /// The statement that begins a transaction at the isolation level asked for; a plain `BEGIN`, which leaves the level
    /// to the database's settings, where none is.
    pub(crate) fn begin(&mut self) -> Result<Statement, ConfigurationError> {
        if self.text("isolation").is_none() {
            return Ok(Statement::fixed("BEGIN", "BEGIN"));
        }
        let level = ISOLATION_LEVELS[self.word("isolation", 0, &ISOLATION_LEVELS)?];
        let (sql, mysql) = beginning(level);
        Ok(Statement { name: "BEGIN".into(), sql: sql.into(), mysql: Some(mysql.into()), cql: None })
    }

    /// `on` or `off`.
    pub(crate) fn switch(&mut self, name: &str, absent: bool) -> Result<bool, ConfigurationError> {
        Ok(self.word(name, usize::from(absent), &["off", "on"])? == 1)
    }

    /// Names of the options given that begin so, in order, without that beginning.
    pub(crate) fn under(&mut self, prefix: &str) -> Vec<(&'o str, &'o str)> {
        let found: Vec<(&str, &str)> = self
            .given
            .iter()
            .filter_map(|(name, value)| Some((name.strip_prefix(prefix)?, value.as_str())))
            .collect();
        self.asked.extend(found.iter().map(|(name, _)| format!("{prefix}{name}")));
        found
    }

    pub(crate) fn bad(&self, name: &str, value: &str, wanted: &str) -> ConfigurationError {
        ConfigurationError::BadOption {
            workload: self.workload.to_owned(),
            option: name.to_owned(),
            value: value.to_owned(),
            wanted: wanted.to_owned(),
        }
    }

    /// The end of reading: what is given and was not asked for, the workload does not have.
    pub(crate) fn finish(self) -> Result<(), ConfigurationError> {
        match self.given.keys().find(|name| !self.asked.contains(*name)) {
            None => Ok(()),
            Some(option) => Err(ConfigurationError::UnknownOption {
                workload: self.workload.to_owned(),
                option: option.clone(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_do_not_fit_are_refused_with_what_would() {
        let check = |read: fn(&mut Options<'_>) -> Result<String, ConfigurationError>,
                     value: &str,
                     expected: &str| {
            let given = [("it".to_owned(), value.to_owned())].into();
            let mut options = Options::new("kv", &given);
            let seen = read(&mut options).unwrap_or_else(|error| error.to_string());
            assert_eq!(seen, expected);
        };
        let count = |options: &mut Options<'_>| Ok(options.count("it", 7, 1..=9)?.to_string());
        check(count, "9", "9");
        check(count, "10", "workload kv: option it cannot be \"10\": it is a whole number from 1 to 9");
        check(count, "-1", "workload kv: option it cannot be \"-1\": it is a whole number from 1 to 9");
        let share = |options: &mut Options<'_>| Ok(options.share("it", 0.5)?.to_string());
        check(share, "95%", "0.95");
        check(share, "0.95", "workload kv: option it cannot be \"0.95\": it is a percentage from 0% to 100%");
        check(share, "NaN%", "workload kv: option it cannot be \"NaN%\": it is a percentage from 0% to 100%");
        let switch = |options: &mut Options<'_>| Ok(options.switch("it", true)?.to_string());
        check(switch, "off", "false");
        check(switch, "yes", "workload kv: option it cannot be \"yes\": it is one of off, on");
    }

    #[test]
    fn an_option_that_nobody_asks_for_is_refused() {
        let given = [("reed".to_owned(), "1%".to_owned())].into();
        let mut options = Options::new("kv", &given);
        assert_eq!(options.share("read", 0.25), Ok(0.25));
        assert_eq!(options.finish().expect_err("unknown").to_string(), "workload kv has no option \"reed\"");
    }
}

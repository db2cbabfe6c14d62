//! Options of a workload as text, by name, read into typed values.
//!
//! Owns how each kind of value is written and what is wrong with one that is not. Which options a workload has, their
//! bounds and what they are when absent stands in [`capabilities::workloads`]; the scenario language has checked most of
//! it before, with a caret.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use capabilities::workloads;
use yaml::language::Shape;

use crate::dialect::beginning;
use crate::workload::Statement;

/// Why a workload cannot be had as asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigurationError {
    /// No workload has this name.
    #[error("no workload is named {0:?}; `holdfast list workloads` shows them")]
    UnknownWorkload(String),
    /// The workload has no such option.
    #[error("workload {workload} has no option {option:?}")]
    UnknownOption { workload: String, option: String },
    /// An option's value does not fit.
    #[error("workload {workload}: option {option} cannot be {value:?}: {wanted}")]
    BadOption {
        workload: String,
        option: String,
        /// What was given.
        value: String,
        /// What would fit.
        wanted: String,
    },
    /// A script cannot be read.
    #[error("workload {workload}: {source}")]
    Script {
        workload: String,
        /// What is wrong, with the line and a caret.
        source: Box<crate::script_error::ScriptError>,
    },
}

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

    /// The option's text, or what it is when absent.
    fn text_or_default(&mut self, name: &str) -> &'o str {
        let absent = workloads::default(self.workload, name);
        self.text(name).or(absent).unwrap_or_default()
    }

    /// A whole number within the option's bounds.
    pub(crate) fn count(&mut self, name: &str) -> Result<u64, ConfigurationError> {
        self.count_within(name, 0..=u64::MAX, "")
    }

    /// A whole number within the option's bounds and these, which follow from other options, as `because` says. When absent
    /// it is what it always is then, or the bound that is nearest to it.
    pub(crate) fn count_within(
        &mut self,
        name: &str,
        bounds: RangeInclusive<u64>,
        because: &str,
    ) -> Result<u64, ConfigurationError> {
        let (mut least, mut most) = (*bounds.start(), *bounds.end());
        if let Shape::Count { least: lowest, most: highest } = self.shape(name)? {
            (least, most) = (least.max(*lowest), most.min(*highest));
        }
        let Some(text) = self.text(name) else {
            let absent = workloads::default(self.workload, name).and_then(|absent| absent.parse().ok());
            return Ok(absent.unwrap_or(least).max(least).min(most));
        };
        text.parse().ok().filter(|count| (least..=most).contains(count)).ok_or_else(|| {
            self.bad(name, text, &format!("it is a whole number from {least} to {most}{because}"))
        })
    }

    /// A decimal number within bounds.
    pub(crate) fn number(
        &mut self,
        name: &str,
        bounds: RangeInclusive<f64>,
    ) -> Result<f64, ConfigurationError> {
        let text = self.text_or_default(name);
        let wanted = || format!("it is a number from {} to {}", bounds.start(), bounds.end());
        text.parse()
            .ok()
            .filter(|number| bounds.contains(number))
            .ok_or_else(|| self.bad(name, text, &wanted()))
    }

    /// A percentage, `95%`, as a share from 0 to 1.
    pub(crate) fn share(&mut self, name: &str) -> Result<f64, ConfigurationError> {
        let text = self.text_or_default(name);
        let percent = text.strip_suffix('%').and_then(|number| number.trim_end().parse::<f64>().ok());
        percent
            .filter(|percent| (0.0..=100.0).contains(percent))
            .map(|percent| percent / 100.0)
            .ok_or_else(|| self.bad(name, text, "it is a percentage from 0% to 100%"))
    }

    /// As [`Options::share`], of an option whose share when absent follows from others.
    pub(crate) fn share_or(&mut self, name: &str, absent: f64) -> Result<f64, ConfigurationError> {
        if self.text(name).is_none() { Ok(absent) } else { self.share(name) }
    }

    /// One of the option's words.
    pub(crate) fn word(&mut self, name: &str) -> Result<&'static str, ConfigurationError> {
        let text = self.text_or_default(name);
        let words = match self.shape(name)? {
            Shape::Word(words) => *words,
            _ => &[],
        };
        let wanted = || format!("it is one of {}", words.join(", "));
        words.iter().find(|word| **word == text).copied().ok_or_else(|| self.bad(name, text, &wanted()))
    }

    /// What the option holds.
    fn shape(&self, name: &str) -> Result<&'static Shape, ConfigurationError> {
        match workloads::option(self.workload, name) {
            Some(field) => Ok(&field.shape),
            None => Err(ConfigurationError::UnknownOption {
                workload: self.workload.to_owned(),
                option: name.to_owned(),
            }),
        }
    }

    /// The statement that begins a transaction at the isolation level asked for; a plain `BEGIN`, which leaves the level
    /// to the database's settings, where none is.
    pub(crate) fn begin(&mut self) -> Result<Statement, ConfigurationError> {
        if self.text("isolation").is_none() {
            return Ok(Statement::fixed("BEGIN", "BEGIN"));
        }
        let level = self.word("isolation")?;
        let (sql, mysql, standard) = beginning(level);
        Ok(Statement {
            name: "BEGIN".into(),
            sql: sql.into(),
            mysql: Some(mysql.into()),
            cql: None,
            standard: Some(standard.into()),
            only: None,
        })
    }

    /// `on` or `off`.
    pub(crate) fn switch(&mut self, name: &str) -> Result<bool, ConfigurationError> {
        Ok(self.word(name)? == "on")
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
                     (name, value): (&str, &str),
                     expected: &str| {
            let given = [(name.to_owned(), value.to_owned())].into();
            let mut options = Options::new("ycsb", &given);
            let seen = read(&mut options).unwrap_or_else(|error| error.to_string());
            assert_eq!(seen, expected);
        };
        let count = |options: &mut Options<'_>| Ok(options.count("fields")?.to_string());
        let whole = "it is a whole number from 1 to 100";
        check(count, ("fields", "9"), "9");
        check(count, ("read", "9%"), "10");
        check(count, ("fields", "101"), &format!("workload ycsb: option fields cannot be \"101\": {whole}"));
        check(count, ("fields", "-1"), &format!("workload ycsb: option fields cannot be \"-1\": {whole}"));
        let share = |options: &mut Options<'_>| Ok(options.share("hotspot_keys")?.to_string());
        let percent = "it is a percentage from 0% to 100%";
        check(share, ("hotspot_keys", "95%"), "0.95");
        for bad in ["0.95", "NaN%"] {
            let expected = format!("workload ycsb: option hotspot_keys cannot be \"{bad}\": {percent}");
            check(share, ("hotspot_keys", bad), &expected);
        }
        let switch = |options: &mut Options<'_>| Ok(options.switch("read_all_fields")?.to_string());
        check(switch, ("read_all_fields", "off"), "false");
        let expected = "workload ycsb: option read_all_fields cannot be \"yes\": it is one of on, off";
        check(switch, ("read_all_fields", "yes"), expected);
    }

    #[test]
    fn an_option_that_nobody_asks_for_is_refused() {
        let given = [("reed".to_owned(), "1%".to_owned())].into();
        let mut options = Options::new("kv", &given);
        assert_eq!(options.share("read"), Ok(0.0));
        assert_eq!(options.finish().expect_err("unknown").to_string(), "workload kv has no option \"reed\"");
    }
}

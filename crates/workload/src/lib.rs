//! What the clients ask, transaction by transaction; one file per workload, and one line here.
//!
//! Owns tables, statements and how a transaction is drawn from chance. Knows no protocol and no clock of the run:
//! it is written against `client`'s session traits, and `load` times and records it.

pub mod append;
pub mod bank;
mod cells;
mod dialect;
pub mod distribution;
pub mod iot;
mod key_value;
mod keyed_cells;
pub mod kv;
pub mod ledger;
mod loading;
mod options;
mod parallel;
mod random_text;
pub mod rawio;
pub mod register;
pub mod script;
mod script_error;
mod taken_key;
pub mod tpcb;
pub mod tpcc;
pub mod workload;
pub mod ycsb;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use crate::options::Options;

pub use options::ConfigurationError;
pub use workload::{
    Attempt, ClientState, Memory, Pauses, Request, Statement, StatementObserver, TableSetup, Workload,
};

type Made = Result<Arc<dyn Workload>, ConfigurationError>;

/// A workload by name, and how it is made with options.
type Entry = (&'static str, fn(&BTreeMap<String, String>) -> Made);

/// Every workload, in the order they are listed to people.
const WORKLOADS: &[Entry] = &[
    ("tpcb", |options| Ok(without_options(tpcb::Tpcb, options)?)),
    ("tpcc", |options| Ok(Arc::new(tpcc::Tpcc::configured(options)?))),
    ("ycsb", |options| Ok(Arc::new(ycsb::Ycsb::configured(options)?))),
    ("kv", |options| Ok(Arc::new(kv::Kv::configured(options)?))),
    ("iot", |options| Ok(Arc::new(iot::Iot::configured(options)?))),
    ("script", |options| Ok(Arc::new(script::Scripts::configured(options)?))),
    ("ledger", |options| Ok(without_options(ledger::Ledger, options)?)),
    ("append", |options| Ok(Arc::new(append::Append::configured(options)?))),
    ("bank", |options| Ok(Arc::new(bank::Bank::configured(options)?))),
    ("register", |options| Ok(Arc::new(register::Register::configured(options)?))),
    ("rawio", |options| Ok(Arc::new(rawio::Rawio::configured(options)?))),
];

fn without_options<W: Workload + 'static>(
    workload: W,
    given: &BTreeMap<String, String>,
) -> Result<Arc<W>, ConfigurationError> {
    Options::new(workload.name(), given).finish()?;
    Ok(Arc::new(workload))
}

/// Every workload as it is without options, in the order they are listed to people.
#[must_use]
pub fn all() -> &'static [Arc<dyn Workload>] {
    static ALL: LazyLock<Vec<Arc<dyn Workload>>> = LazyLock::new(|| {
        let none = BTreeMap::new();
        WORKLOADS.iter().filter_map(|(_, make)| make(&none).ok()).collect()
    });
    &ALL
}

/// The workload with this name, as it is without options.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static dyn Workload> {
    all().iter().map(AsRef::as_ref).find(|workload| workload.name() == name)
}

/// The workload with this name, with these options.
///
/// # Errors
/// When there is no such workload, or an option does not fit it.
pub fn configured(name: &str, options: &BTreeMap<String, String>) -> Made {
    match WORKLOADS.iter().find(|(known, _)| *known == name) {
        Some((_, make)) => make(options),
        None => Err(ConfigurationError::UnknownWorkload(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use capabilities::workloads::Timed;

    use super::*;

    #[test]
    fn what_a_database_of_the_standard_is_asked_has_nothing_of_another_dialect() {
        let understands = capabilities::Understands::of_the_standard();
        let foreign =
            ["ON CONFLICT", "ON DUPLICATE", "::", "LIMIT", "`", " value ", "(value", " key ", "(key"];
        let mut asked = 0;
        for workload in all().iter().filter(|workload| understands.workload(workload.name())) {
            for statement in workload.statements() {
                let Some(text) = statement.text(client::Dialect::Standard) else { continue };
                asked += 1;
                let found = foreign.iter().find(|words| text.contains(**words));
                assert_eq!(found, None, "{}: {text}", workload.name());
            }
        }
        assert!(asked > 20, "{asked}");
    }

    #[test]
    fn every_workload_is_found_by_its_own_name_and_no_other() {
        for workload in all() {
            let found = by_name(workload.name()).expect("listed");
            assert_eq!(found.name(), workload.name());
            assert!(!workload.facts().summary.is_empty() && !workload.statements().is_empty());
            if let Timed::These(names) = workload.facts().timed {
                assert_eq!(workload.statement_names(), names, "{}", workload.name());
            }
        }
        assert!(by_name("tpc-b").is_none());
        let told = |name: &str, option: &str| {
            let options = [(option.to_owned(), "1".to_owned())].into_iter().filter(|_| !option.is_empty());
            configured(name, &options.collect())
                .map_or_else(|error| error.to_string(), |found| found.name().to_owned())
        };
        for workload in all() {
            assert_eq!(told(workload.name(), ""), workload.name());
        }
        assert!(told("tpc-b", "").starts_with("no workload is named \"tpc-b\";"));
        assert_eq!(told("tpcb", "records"), "workload tpcb has no option \"records\"");
    }
}

//! Names and options that two crates must know alike, neither of which may import the other.

use std::collections::{BTreeMap, BTreeSet};

/// Every workload's options by their defaults, as the scenario language has them.
fn defaults(workload: &str) -> BTreeMap<String, String> {
    let options = scenario::catalogue::options(workload).into_iter();
    options.filter_map(|option| Some((option.name.to_owned(), option.default?.to_owned()))).collect()
}

#[test]
fn the_language_and_the_workloads_know_each_other_and_their_options() {
    let known: BTreeSet<&str> = workload::all().iter().map(|workload| workload.name()).collect();
    assert_eq!(known, scenario::catalogue::WORKLOADS.iter().copied().collect());
    for name in known {
        workload::configured(name, &defaults(name)).unwrap_or_else(|error| panic!("{error}"));
        for option in scenario::catalogue::options(name).iter().filter(|option| option.default.is_some()) {
            // Whoever does not know the option says so; whoever knows it finds nothing wrong but the value.
            let nonsense = [(option.name.to_owned(), "?".to_owned())].into();
            let told = workload::configured(name, &nonsense).err().expect("refused").to_string();
            assert!(told.contains("cannot be \"?\""), "{told}");
        }
    }
}

#[test]
fn the_language_and_the_control_database_know_the_same_flaws() {
    let flaws = control::flaw::FLAWS.iter().map(|(_, name, _)| *name);
    let known: Vec<&str> = std::iter::once("none").chain(flaws).collect();
    let control = capabilities::named(engine::control::NAME).expect("the engine");
    let capabilities::SettingForm::OneOf { name: "flaw", values } = control.settings else {
        panic!("{:?}", control.settings)
    };
    assert_eq!(values, known);
}

#[test]
fn the_levels_of_the_language_are_those_that_transactions_begin_at() {
    for name in ["append", "bank"] {
        let begun = |level: &str| {
            let workload = workload::configured(name, &[("isolation".to_owned(), level.to_owned())].into())?;
            let begins = |statement: &&workload::Statement| statement.sql.starts_with("BEGIN");
            let begin = workload.statements().iter().find(begins).map(|found| found.sql.to_string());
            Ok::<_, workload::ConfigurationError>(begin.unwrap_or_default())
        };
        assert_eq!(begun("repeatable-read").as_deref(), Ok("BEGIN ISOLATION LEVEL REPEATABLE READ"));
        assert!(begun("chaos").is_err());
    }
}

#[test]
fn every_workload_has_a_check() {
    for workload in workload::all() {
        assert!(check::registry::for_workload(workload.name()).count() > 0, "{}", workload.name());
    }
}

//! Any text as a file that a user writes: a scenario, an engine file, a script. Reading it must not panic, and a refusal must say
//! something and point into the text.

use std::collections::BTreeMap;

use scenario::{Scenario, Source, parse, to_yaml};
use workload::ConfigurationError;

/// A scenario, its first line as an override where it says so. What is accepted must survive being written back.
pub(super) fn scenario(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let overrides: Vec<(String, String)> = text
        .strip_prefix("# --set ")
        .and_then(|rest| rest.lines().next())
        .and_then(|line| line.split_once('='))
        .map(|(path, value)| (path.to_owned(), value.to_owned()))
        .into_iter()
        .collect();
    let source = Source { name: "fuzz.yaml".to_owned(), text };
    match parse(&source, &overrides) {
        Ok(scenario) => {
            let written = Source { name: "written.yaml".to_owned(), text: to_yaml(&scenario, 1) };
            let again = parse(&written, &[]).expect("what was written is read");
            assert_eq!(again, Scenario { seed: Some(1), ..scenario });
        }
        Err(rejection) => check_refusal(&rejection),
    }
}

/// An engine file.
pub(super) fn engine(bytes: &[u8]) {
    if let Err(rejection) = capabilities::file::read("fuzz.yaml", &String::from_utf8_lossy(bytes)) {
        check_refusal(&rejection);
    }
}

fn check_refusal(rejection: &scenario::Rejection) {
    assert!(!rejection.problems().is_empty());
    for problem in rejection.problems() {
        assert!(!problem.message().is_empty() && !problem.help().is_empty());
        let _ = problem.culprit();
    }
}

/// A script of statements.
pub(super) fn script(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let lines = text.matches('\n').count() + 1;
    let options = BTreeMap::from([("scripts.0.text".to_owned(), text)]);
    if let Err(ConfigurationError::Script { source, .. }) = workload::configured("script", &options).map(drop)
    {
        assert!(source.line <= lines, "{source}");
        assert!(!source.to_string().is_empty());
    }
}

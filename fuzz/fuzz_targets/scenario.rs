//! Any text as a scenario file, its first line as an override: reading it must not panic, a refusal must say something,
//! and what is accepted must survive being written back. Knows nothing of files or runs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use scenario::{Scenario, Source, parse, to_yaml};

fuzz_target!(|text: &str| {
    let source = Source { name: "fuzz.yaml".to_owned(), text: text.to_owned() };
    let overrides: Vec<(String, String)> = text
        .strip_prefix("# --set ")
        .and_then(|rest| rest.lines().next())
        .and_then(|line| line.split_once('='))
        .map(|(path, value)| (path.to_owned(), value.to_owned()))
        .into_iter()
        .collect();
    match parse(&source, &overrides) {
        Ok(scenario) => {
            let written = Source { name: "written.yaml".to_owned(), text: to_yaml(&scenario, 1) };
            let again = parse(&written, &[]).expect("what was written is read");
            assert_eq!(again, Scenario { seed: Some(1), ..scenario });
        }
        Err(rejection) => {
            for problem in rejection.problems() {
                assert!(!problem.message().is_empty() && !problem.help().is_empty());
                let _ = problem.culprit();
            }
        }
    }
});

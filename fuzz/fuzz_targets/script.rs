//! Any text as a script: reading it must not panic nor run for long, and a refusal must point into the text. Knows nothing
//! of files or databases.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use workload::ConfigurationError;

fuzz_target!(|text: &str| {
    let options = BTreeMap::from([("scripts.0.text".to_owned(), text.to_owned())]);
    if let Err(ConfigurationError::Script { source, .. }) = workload::configured("script", &options).map(drop) {
        assert!(source.line <= text.matches('\n').count() + 1, "{source}");
        assert!(!source.to_string().is_empty());
    }
});

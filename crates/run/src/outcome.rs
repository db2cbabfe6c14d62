//! From what the run has shown to `result.json`: the checks are made and told, then the result is drawn.
//!
//! Owns that events of checks are told before the record is said to be complete. What is judged, and how, is `verdict`'s.

use history::EventSink;
use results::RunResult;
use scenario::Scenario;
use verdict::{Checks, Planned, Shown};

use crate::chronicle::Chronicle;
use crate::directory::RunDirectory;
use crate::prepared::Prepared;

/// Has the run judged.
#[must_use]
pub fn draw(
    scenario: &Scenario,
    prepared: &Prepared,
    shown: &Shown,
    directory: &RunDirectory,
    chronicle: &Chronicle,
) -> RunResult {
    let planned = Planned {
        scenario,
        plans: &prepared.plans,
        facts: &prepared.facts,
        isolation: prepared.isolation,
        directory: directory.path(),
    };
    let checks = Checks::make(&planned, shown, &chronicle.events());
    checks.events().for_each(|event| chronicle.say(event));
    verdict::draw(&planned, shown, checks, &chronicle.events(), chronicle.failure())
}

//! `scenarios/rejected/`: each file is refused, with exactly the message beside it. `UPDATE_SNAPSHOTS=1` rewrites the
//! messages.

use std::path::Path;

use scenario::{Source, parse};

use crate::refusals;

#[test]
fn every_rejected_scenario_gives_the_message_beside_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/rejected");
    let count = refusals::names(&folder).len();
    assert!(count >= 200, "only {count} rejected scenarios");
    refusals::each_is_the_one_beside_it(&folder, |name, text| {
        let name = format!("scenarios/rejected/{name}.yaml");
        parse(&Source { name, text }, &[]).err()
    });
}

//! Galera, where every node takes writes: one node is cut off from the others.

use crate::engines::{check, ended};

#[test]
#[ignore = "second tier: a scenario of its own, and Galera may have to be fetched"]
fn a_galera_node_that_is_alone_refuses_to_work_and_the_majority_goes_on() {
    let test = "a_galera_node_that_is_alone_refuses_to_work";
    let Some(result) = ended(test, "galera", 0, &["scenarios/galera.yaml"]) else { return };
    assert!(check(&result, "ledger")["acknowledged"].as_u64() > Some(500), "{result:#}");
    for name in ["ledger", "bank", "list-append"] {
        assert_eq!(check(&result, name)["verdict"], "pass", "{result:#}");
    }
    let story = check(&result, "list-append")["explanation"].to_string();
    assert!(story.contains("read-committed"), "the level is named: {story}");
}

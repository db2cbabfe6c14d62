//! Faults of processes: whom they mean, what is filled in, how they are written again.

use std::time::Duration;

use history::NodeId;
use scenario::{FaultAction, NodeTarget, OneProgram, ProcessDeed, ProcessFault, Scenario};

use crate::reading::{read_and_written, with_fault};

fn read(engine: &str, fault: &str) -> Scenario {
    let text = with_fault(engine, "30s", fault);
    read_and_written(&text).unwrap_or_else(|problems| panic!("{fault}: {problems:?}"))
}

fn check(fault: &str, node: NodeTarget, how: ProcessDeed, length_s: Option<u64>) {
    let scenario = read("postgres", fault);
    let found = &scenario.schedule[1].faults[0];
    assert_eq!(found.action, FaultAction::Process(ProcessFault { node, how, only: None }), "{fault}");
    assert_eq!(found.length, length_s.map(Duration::from_secs), "{fault}");
}

#[test]
fn a_kill_is_over_when_its_processes_are_started_again_and_a_stop_when_the_schedule_says() {
    let after = |seconds| ProcessDeed::Kill { restart_after: Some(Duration::from_secs(seconds)) };
    check("{ process: { of: leader, how: kill } }", NodeTarget::Leader, after(1), Some(1));
    let later = "{ process: { of: n2, how: kill, restart: { after: 4s } } }";
    check(later, NodeTarget::Named(NodeId::new(1)), after(4), Some(4));
    let never = ProcessDeed::Kill { restart_after: None };
    check("{ process: { of: a-follower, how: kill, restart: never } }", NodeTarget::AFollower, never, None);
    check("{ process: { of: random, how: stop }, for: 7s }", NodeTarget::Random, ProcessDeed::Stop, Some(7));
    check(
        "{ process: { of: n1, how: restart } }",
        NodeTarget::Named(NodeId::FIRST),
        ProcessDeed::Restart,
        None,
    );
}

#[test]
fn a_kill_whose_processes_would_be_started_after_the_run_is_refused_with_the_default_too() {
    let refused = |fault: &str| {
        let text = with_fault("postgres", "9s", fault);
        read_and_written(&text).expect_err("refused").swap_remove(0)
    };
    let late = "{ process: { of: n1, how: kill, restart: { after: 8s } }, at: 2s }";
    assert_eq!(refused(late), "outside-run `8s`");
    assert_eq!(refused("{ process: { of: n1, how: kill }, at: 8500ms }"), "outside-run `kill`");
}

#[test]
fn what_is_over_by_itself_strikes_again_and_again_without_a_length() {
    let at = |fault: &str| {
        let faults = &read("postgres", fault).schedule[1].faults;
        faults.iter().map(|fault| fault.at.as_secs()).collect::<Vec<_>>()
    };
    assert_eq!(at("{ process: { of: random, how: kill }, at: 2s, every: 10s }"), [2, 12, 22]);
    assert_eq!(at("{ process: { of: random, how: restart }, every: 12s }"), [0, 12, 24]);
}

#[test]
fn one_program_of_several_is_meant_by_its_name() {
    let only = |fault: &str| match &read("patroni", fault).schedule[1].faults[0].action {
        FaultAction::Process(fault) => fault.only.clone().expect("one program"),
        other => panic!("{other:?}"),
    };
    let program = |name: &str| OneProgram { name: name.to_owned(), program: name.to_owned() };
    assert_eq!(only("{ process: { of: leader, how: kill, only: etcd } }"), program("etcd"));
    assert_eq!(only("{ process: { of: leader, how: stop, only: postgres } }"), program("postgres"));
    assert_eq!(only("{ process: { of: leader, how: restart, only: patroni } }"), program("patroni"));
}

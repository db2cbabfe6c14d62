//! Agents spoken to in this process, without a database: whoever commands them is gone, says nonsense or asks too much.

use std::io::{BufRead, BufReader, pipe};

use agent::{Group, GroupError, Link, ServeEnd, serve};

/// What an agent answers to these lines, and how it ends.
fn answered(orders: &str) -> (Vec<String>, ServeEnd) {
    let (output, news) = pipe().expect("a pipe");
    let end = serve(std::io::Cursor::new(orders.to_owned().into_bytes()), news, "1.2.3");
    let lines = BufReader::new(output).lines().map(|line| line.expect("text"));
    (lines.collect(), end)
}

#[test]
fn an_agent_is_ready_tells_its_clock_and_ends_with_its_input() {
    let (said, end) = answered("{\"order\":\"ping\",\"number\":7}\n");
    assert_eq!(end, ServeEnd::InputEnded);
    assert_eq!(said[0], "{\"news\":\"ready\",\"holdfast\":\"1.2.3\"}");
    assert!(
        said.iter().any(|line| line.starts_with("{\"news\":\"pong\",\"number\":7,\"at_ns\":")),
        "{said:?}"
    );
}

#[test]
fn what_is_no_order_ends_an_agent_and_half_an_order_is_none() {
    for nonsense in ["help\n", "{\"order\":\"fly\"}\n", "\u{1}\n", "{\"order\":\"load\",\"plan\":{}}\n"] {
        let (_, end) = answered(nonsense);
        assert!(matches!(end, ServeEnd::NotAnOrder { .. }), "{nonsense}: {end:?}");
    }
    let (said, end) = answered("{\"order\":\"ping\",\"number\":7}");
    assert_eq!(end, ServeEnd::InputEnded);
    assert!(!said.iter().any(|line| line.contains("pong")), "{said:?}");
}

/// The way to something that says this and ends.
fn link(said: &str, complaint: &'static str) -> Link {
    Link {
        name: "a1".to_owned(),
        host: "load1".to_owned(),
        input: Box::new(std::io::sink()),
        output: Box::new(std::io::Cursor::new(said.to_owned().into_bytes())),
        last_words: Box::new(move || complaint.to_owned()),
    }
}

#[test]
fn who_is_no_agent_or_of_another_version_is_refused_with_what_was_said() {
    let refused = |said: &str, complaint| Group::greet(vec![link(said, complaint)], "1.2.3").map(drop);
    let told = |said: &str, complaint| refused(said, complaint).expect_err("refused").to_string();
    let missing = told("", "sh: 1: exec: holdfast: not found\n");
    assert!(
        missing.starts_with("agent a1 (load1): ") && missing.contains("holdfast: not found"),
        "{missing}"
    );
    let other = told("Welcome to load1!\n", "");
    assert!(other.contains("Welcome to load1!"), "{other}");
    let old = refused("{\"news\":\"ready\",\"holdfast\":\"1.0.0\"}\n", "").expect_err("refused");
    assert!(matches!(&old, GroupError::Version { theirs, .. } if theirs == "1.0.0"), "{old}");
    // Not a line, but the end of one that never ends in order.
    let cut = told("{\"news\":\"rea", "");
    assert!(cut.contains("rea"), "{cut}");
}

#[test]
fn an_agent_that_is_there_is_ready() {
    let (orders, input) = pipe().expect("a pipe");
    let (output, news) = pipe().expect("a pipe");
    let agent = std::thread::spawn(move || serve(orders, news, "1.2.3"));
    let link = Link { input: Box::new(input), output: Box::new(output), ..link("", "") };
    let group = Group::greet(vec![link], "1.2.3").expect("ready");
    drop(group);
    assert_eq!(agent.join().expect("no panic"), ServeEnd::InputEnded);
}

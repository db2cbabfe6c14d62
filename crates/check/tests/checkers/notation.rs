//! A small language for histories in tests: one operation a line.
//!
//! `0-2 c1 write x 1`: from 0 s to 2 s client 1 wrote 1 to x, and it was acknowledged. A last word `unknown` or `fail`
//! says otherwise; `-` is nothing, a name before the client (`a/c1`) its load. The actions:
//! `read x 1`, `write x 1`, `cas x 1 2`; `append x 1, r x [1 2], r y []`; `setup a=10 b=0`, `overdraft a=10 b=0`,
//! `transfer a b 5`, `balances a=5 b=5`; `replica n1 x=1 y=2`, and `replica-part` for a part of one; `final append`, how
//! the final read of a load of that workload went.

use check::Report;
use history::{Action, Key, Operation, Outcome, Step, Verdict};

/// The operations of a history told in the notation.
pub fn history(text: &str) -> Vec<Operation> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| read_operation(line).unwrap_or_else(|| panic!("not in the notation: {line}"))).collect()
}

/// A history in the notation, on one line: operations of one load, `; ` between them.
pub fn told(operations: &[Operation]) -> String {
    let lines: Vec<String> = operations.iter().map(told_operation).collect();
    lines.join("; ")
}

fn told_operation(operation: &Operation) -> String {
    let Operation { client, invoked_s, completed_s, .. } = operation;
    let optional = |value: Option<i64>| value.map_or("-".to_owned(), |value| value.to_string());
    let action = match &operation.action {
        Action::RegisterRead { key, value } => format!("read {key} {}", optional(*value)),
        Action::RegisterWrite { key, value } => format!("write {key} {value}"),
        Action::RegisterCompareAndSet { key, expected, new } => {
            format!("cas {key} {} {new}", optional(*expected))
        }
        Action::AppendTransaction { steps } => {
            steps.iter().map(told_step).collect::<Vec<String>>().join(", ")
        }
        other => panic!("not told in the notation: {other:?}"),
    };
    let outcome = match operation.outcome {
        Outcome::Ok => "",
        Outcome::Fail => " fail",
        Outcome::Unknown => " unknown",
    };
    format!("{invoked_s}-{completed_s} c{client} {action}{outcome}")
}

fn told_step(step: &Step) -> String {
    match step {
        Step::Append { key, value } => format!("append {key} {value}"),
        Step::Read { key, values: None } => format!("r {key} -"),
        Step::Read { key, values: Some(values) } => {
            let values: Vec<String> = values.iter().map(i64::to_string).collect();
            format!("r {key} [{}]", values.join(" "))
        }
    }
}

/// An operation of a load, on which nothing was told of an error or a node.
pub fn operation(client: u64, action: Action, from_s: f64, to_s: f64, outcome: Outcome) -> Operation {
    Operation {
        load: "l".to_owned(),
        client,
        action,
        invoked_s: from_s,
        completed_s: to_s,
        outcome,
        error: None,
        node: None,
    }
}

fn read_operation(line: &str) -> Option<Operation> {
    let (line, outcome) = match line.rsplit_once(' ') {
        Some((line, "unknown")) => (line, Outcome::Unknown),
        Some((line, "fail")) => (line, Outcome::Fail),
        _ => (line, Outcome::Ok),
    };
    let (times, rest) = line.split_once(' ')?;
    let (invoked, completed) = times.split_once('-')?;
    let (who, action) = rest.split_once(' ')?;
    let (load, client) = who.split_once('/').unwrap_or(("l", who));
    let client = client.strip_prefix('c')?.parse().ok()?;
    let (from_s, to_s) = (invoked.parse().ok()?, completed.parse().ok()?);
    Some(Operation { load: load.to_owned(), ..operation(client, parsed(action)?, from_s, to_s, outcome) })
}

fn parsed(action: &str) -> Option<Action> {
    let words: Vec<&str> = action.split_whitespace().collect();
    Some(match words.as_slice() {
        ["read", key, value] => Action::RegisterRead { key: keyed(key), value: optional(value)? },
        ["write", key, value] => Action::RegisterWrite { key: keyed(key), value: value.parse().ok()? },
        ["cas", key, expected, new] => Action::RegisterCompareAndSet {
            key: keyed(key),
            expected: optional(expected)?,
            new: new.parse().ok()?,
        },
        ["append" | "r", ..] => {
            let steps = action.split(',').map(step).collect::<Option<Vec<Step>>>()?;
            Action::AppendTransaction { steps }
        }
        ["setup", balances @ ..] => Action::BankSetup { balances: pairs(balances)?, may_be_negative: false },
        ["overdraft", balances @ ..] => {
            Action::BankSetup { balances: pairs(balances)?, may_be_negative: true }
        }
        ["transfer", from, to, amount] => {
            Action::BankTransfer { from: keyed(from), to: keyed(to), amount: amount.parse().ok()? }
        }
        ["balances", balances @ ..] => Action::BankRead { balances: pairs(balances)? },
        [part @ ("replica" | "replica-part"), replica, values @ ..] => Action::ReplicaRead {
            replica: (*replica).to_owned(),
            values: pairs(values)?,
            complete: *part == "replica",
        },
        ["final", workload] => {
            Action::FinalRead { workload: (*workload).to_owned(), nodes: Vec::new(), why: String::new() }
        }
        _ => return None,
    })
}

fn step(text: &str) -> Option<Step> {
    let (word, rest) = text.trim().split_once(' ')?;
    let (key, rest) = rest.trim().split_once(' ')?;
    let key = keyed(key);
    match (word, rest.trim()) {
        ("append", value) => Some(Step::Append { key, value: value.parse().ok()? }),
        ("r", "-") => Some(Step::Read { key, values: None }),
        ("r", list) => {
            let list = list.strip_prefix('[')?.strip_suffix(']')?;
            let values = list.split_whitespace().map(|value| value.parse().ok()).collect::<Option<_>>()?;
            Some(Step::Read { key, values: Some(values) })
        }
        _ => None,
    }
}

fn pairs(words: &[&str]) -> Option<Vec<(Key, i64)>> {
    let pair = |word: &&str| {
        let (key, value) = word.split_once('=')?;
        Some((keyed(key), value.parse().ok()?))
    };
    words.iter().map(pair).collect()
}

fn optional(word: &str) -> Option<Option<i64>> {
    if word == "-" { Some(None) } else { word.parse().ok().map(Some) }
}

fn keyed(word: &str) -> Key {
    word.parse().map_or_else(|_| Key::from(word), Key::Number)
}

/// Holds a report against a verdict and a part of its story.
#[track_caller]
pub fn assert_told(report: &Report, verdict: Verdict, told: &str) {
    assert_eq!(report.verdict, verdict, "{}", report.explanation);
    assert!(report.explanation.contains(told), "not told `{told}` in: {}", report.explanation);
}

//! Our histories as Jepsen's: every operation taken apart into its invocation and its completion.
//!
//! Jepsen's checkers take a process whose operation had no answer for dead, so that a client goes on under another
//! number after such a one. Parts of one read become one read.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;

use crate::{Action, Key, Operation, Outcome, Step};

/// What can go wrong when a history is exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Jepsen has no form for it.
    #[error("there is no form in EDN for an operation of load `{load}` ({what})")]
    NoForm {
        load: String,
        /// Its action, by name.
        what: &'static str,
    },
    /// It could not be written.
    #[error("history in EDN: {0}")]
    Io(#[from] std::io::Error),
}

/// One event, to be put in order of time.
struct Event {
    time_ns: i64,
    is_completion: bool,
    text: String,
}

/// Writes operations, in any order, as Jepsen's events, a line each.
///
/// # Errors
/// When an operation has no form there, or the sink fails.
pub fn export(operations: &[Operation], sink: &mut impl Write) -> Result<(), ExportError> {
    let mut order: Vec<&Operation> = operations.iter().collect();
    order.sort_by(|one, other| one.invoked_s.total_cmp(&other.invoked_s));
    let mut processes: BTreeMap<(&str, u64), usize> = BTreeMap::new();
    for operation in &order {
        let next = processes.len();
        processes.entry((operation.load.as_str(), operation.client)).or_insert(next);
    }
    let clients = processes.len();
    let mut parts: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut replicas: BTreeMap<String, Vec<(Key, i64)>> = BTreeMap::new();
    let mut events = Vec::new();
    for operation in order {
        let Some((function, asked, found)) = told(operation, &mut parts, &mut replicas)? else { continue };
        let process = processes.entry((operation.load.as_str(), operation.client)).or_default();
        let ns = |time_s: f64| (time_s * 1e9).round() as i64;
        let mut event = |kind: &str, time_s: f64, value: &str| {
            events.push(Event {
                time_ns: ns(time_s),
                is_completion: kind != "invoke",
                text: format!(":type :{kind}, :f :{function}, :value {value}, :process {process}"),
            });
        };
        event("invoke", operation.invoked_s, &asked);
        match operation.outcome {
            Outcome::Ok => event("ok", operation.completed_s, &found),
            Outcome::Fail => event("fail", operation.completed_s, &asked),
            Outcome::Unknown => {
                event("info", operation.completed_s, &asked);
                *process += clients;
            }
        }
    }
    // What touches is under way together. The order is stable, so one client's events keep theirs.
    events.sort_by_key(|event| (event.time_ns, event.is_completion));
    for (index, event) in events.iter().enumerate() {
        writeln!(sink, "{{{}, :time {}, :index {index}}}", event.text, event.time_ns)?;
    }
    Ok(())
}

fn key(key: &Key) -> String {
    match key {
        Key::Number(number) => number.to_string(),
        Key::Name(name) => quoted(name),
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn optional(value: Option<i64>) -> String {
    value.map_or("nil".to_owned(), |value| value.to_string())
}

fn map(pairs: &[(Key, i64)]) -> String {
    let told: Vec<String> = pairs.iter().map(|(of, value)| format!("{} {value}", key(of))).collect();
    format!("{{{}}}", told.join(", "))
}

fn list<T: ToString>(values: &[T]) -> String {
    format!("[{}]", values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
}

/// The function, the value at invocation and that at completion; `None` for a part that is told with a later one.
fn told(
    operation: &Operation,
    parts: &mut BTreeMap<String, Vec<u64>>,
    replicas: &mut BTreeMap<String, Vec<(Key, i64)>>,
) -> Result<Option<(&'static str, String, String)>, ExportError> {
    let is_ok = operation.outcome == Outcome::Ok;
    let twice = |function, value: String| Ok(Some((function, value.clone(), value)));
    match &operation.action {
        Action::RegisterRead { key: of, value } => {
            let of = key(of);
            Ok(Some(("read", format!("[{of} nil]"), format!("[{of} {}]", optional(*value)))))
        }
        Action::RegisterWrite { key: of, value } => twice("write", format!("[{} {value}]", key(of))),
        Action::RegisterCompareAndSet { key: of, expected, new } => {
            twice("cas", format!("[{} [{} {new}]]", key(of), optional(*expected)))
        }
        Action::AppendTransaction { steps } => {
            Ok(Some(("txn", transaction(steps, false), transaction(steps, true))))
        }
        Action::BankSetup { balances, may_be_negative } => {
            twice("setup", format!("{{:balances {}, :negative-balances? {may_be_negative}}}", map(balances)))
        }
        Action::BankTransfer { from, to, amount } => {
            twice("transfer", format!("{{:from {}, :to {}, :amount {amount}}}", key(from), key(to)))
        }
        Action::BankRead { balances } => Ok(Some(("read", "nil".to_owned(), map(balances)))),
        Action::LedgerInsert { value } => twice("add", value.to_string()),
        Action::LedgerRead { values, complete } => {
            let so_far = parts.entry(operation.load.clone()).or_default();
            if !is_ok {
                so_far.clear();
                return Ok(Some(("read", "nil".to_owned(), "nil".to_owned())));
            }
            so_far.extend(values);
            Ok(complete.then(|| ("read", "nil".to_owned(), list(&std::mem::take(so_far)))))
        }
        Action::ReplicaRead { replica, values, complete } => {
            let so_far = replicas.entry(replica.clone()).or_default();
            let name = quoted(replica);
            if !is_ok {
                so_far.clear();
                return Ok(Some(("replica-read", format!("[{name} nil]"), String::new())));
            }
            so_far.extend(values.iter().cloned());
            Ok(complete.then(|| {
                let found = format!("[{name} {}]", map(&std::mem::take(so_far)));
                ("replica-read", format!("[{name} nil]"), found)
            }))
        }
        // Says nothing of the data where it is not in doubt.
        Action::FinalRead { why, .. } if !is_ok || why.is_empty() => Ok(None),
        // Without it what is missing or in doubt would be taken for sound.
        Action::Unrecorded { .. }
        | Action::FinalRead { .. }
        | Action::TpcbTransaction { .. }
        | Action::TpcbRead { .. }
        | Action::Transaction { .. }
        | Action::RowsRead { .. }
        | Action::CellsWrite { .. }
        | Action::CellsRead { .. }
        | Action::ConditionsRead { .. } => {
            Err(ExportError::NoForm { load: operation.load.clone(), what: operation.action.name() })
        }
    }
}

fn transaction(steps: &[Step], with_found: bool) -> String {
    let mut text = String::from("[");
    for (step, at) in steps.iter().zip(0..) {
        let blank = if at == 0 { "" } else { " " };
        // Writing to a string does not fail.
        let _ = match step {
            Step::Append { key: of, value } => write!(text, "{blank}[:append {} {value}]", key(of)),
            Step::Read { key: of, values: Some(values) } if with_found => {
                write!(text, "{blank}[:r {} {}]", key(of), list(values))
            }
            Step::Read { key: of, .. } => write!(text, "{blank}[:r {} nil]", key(of)),
        };
    }
    text + "]"
}

//! Jepsen's histories as ours: invocations paired with their completions, process by process.
//!
//! Jepsen's order is that of its events; their times only tell. They may be equal or go back, so each is moved on by at
//! least a nanosecond: what came later stays later. An invocation without a completion has no definite answer, nor has
//! one that ended in `:info`. What is said of processes that are keywords, as `:nemesis` is, is passed over; a process
//! whose name is a text is a client like any other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::BufRead;
use std::str::FromStr;

use super::form::{Form, FormError, Forms};
use crate::{Action, Key, Operation, Outcome, Step};

/// What the operations of a history are about; Jepsen's own files do not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// `:read`, `:write`, `:cas`, with `[key value]` as value where there are several; `:replica-read` of
    /// `[replica {key value}]`.
    Register,
    /// `:txn`.
    ListAppend,
    /// `:transfer`, `:read`; ours also `:setup`.
    Bank,
    /// `:add`, `:read`, as in Jepsen's set tests.
    Ledger,
}

/// A check for which Jepsen has no form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no form in EDN for the histories of `{name}`; there is for bank, convergence, ledger, list-append, register"
)]
pub struct UnknownModel {
    /// The check's name.
    pub name: String,
}

impl FromStr for Model {
    type Err = UnknownModel;

    fn from_str(name: &str) -> Result<Self, UnknownModel> {
        Ok(match name {
            "register" | "convergence" => Model::Register,
            "list-append" => Model::ListAppend,
            "bank" => Model::Bank,
            "ledger" => Model::Ledger,
            _ => return Err(UnknownModel { name: name.to_owned() }),
        })
    }
}

/// What can be wrong with a history in EDN.
#[derive(Debug, thiserror::Error)]
pub enum EdnError {
    /// It is not EDN, or ends too early.
    #[error(transparent)]
    Form(#[from] FormError),
    /// It is, but not a history of this model.
    #[error("line {line}: {what}")]
    Meaning {
        /// Line on which the event begins, from 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
}

/// Iterator over the operations of a history in EDN, in order of their completions; those without one come last. Ends
/// after the first error.
#[derive(Debug)]
pub struct EdnHistory<R> {
    forms: Forms<R>,
    model: Model,
    clients: Clients,
    open: BTreeMap<u64, Open>,
    /// The first event's own time, from which all are counted.
    zero_ns: Option<i64>,
    /// The last event's own time.
    last_own_ns: i64,
    last_ns: i64,
    remarks: Remarks,
    ended: bool,
}

/// What was not taken as it stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remarks {
    /// Events of processes that are no clients.
    pub of_no_client: u64,
    /// Clients whose process is named by a text, with the number they go by.
    pub named: Vec<(Box<str>, u64)>,
    /// Events whose time is before that of the event before them, and the line of the first.
    pub back_in_time: u64,
    /// The line of the first of these, from 1.
    pub first_back_in_time_line: u64,
}

/// A process as the history names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Process {
    Number(u64),
    Name(Box<str>),
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Process::Number(number) => write!(f, "{number}"),
            Process::Name(name) => write!(f, "\"{name}\""),
        }
    }
}

/// The numbers that processes go by as clients: their own, or the lowest that is free.
#[derive(Debug, Default)]
struct Clients {
    numbers: BTreeMap<Process, u64>,
    taken: BTreeSet<u64>,
    lowest_free: u64,
}

impl Clients {
    fn number_of(&mut self, process: &Process) -> u64 {
        if let Some(number) = self.numbers.get(process) {
            return *number;
        }
        let number = match process {
            Process::Number(number) if !self.taken.contains(number) => *number,
            _ => {
                while self.taken.contains(&self.lowest_free) {
                    self.lowest_free += 1;
                }
                self.lowest_free
            }
        };
        self.taken.insert(number);
        self.numbers.insert(process.clone(), number);
        number
    }
}

/// An invocation that has no completion yet.
#[derive(Debug)]
struct Open {
    function: Box<str>,
    value: Form,
    invoked_ns: i64,
}

/// One event.
struct Event {
    kind: Box<str>,
    function: Box<str>,
    value: Form,
    process: Process,
    time_ns: Option<i64>,
}

/// How far a time may lie behind the first one: from there on a number of seconds is too coarse to keep nanoseconds apart.
/// A time beyond is none.
const SINCE_ZERO_NS_MAX: i64 = 1 << 52;

/// What is wrong with an event, without its line.
struct Wrong(String);

fn wrong<T>(what: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong(what.into()))
}

impl<R: BufRead> EdnHistory<R> {
    /// A reader of `reader`.
    pub fn new(reader: R, model: Model) -> Self {
        EdnHistory {
            forms: Forms::new(reader),
            model,
            clients: Clients::default(),
            open: BTreeMap::new(),
            zero_ns: None,
            last_own_ns: i64::MIN,
            last_ns: -1,
            remarks: Remarks::default(),
            ended: false,
        }
    }

    /// What was not taken as it stands, so far.
    #[must_use]
    pub fn remarks(&self) -> &Remarks {
        &self.remarks
    }

    /// Line on which the event that was read last begins, from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.forms.line()
    }

    fn next_operation(&mut self) -> Result<Option<Operation>, EdnError> {
        while let Some(form) = self.forms.next() {
            let form = form?;
            let line = self.forms.line();
            match self.take_in(form) {
                Ok(Some(operation)) => return Ok(Some(operation)),
                Ok(None) => {}
                Err(Wrong(what)) => return Err(EdnError::Meaning { line, what }),
            }
        }
        let Some((client, open)) = self.open.pop_first() else { return Ok(None) };
        let line = self.forms.line();
        let ended = self.operation(client, open, Outcome::Unknown, &Form::Nil);
        ended.map(Some).map_err(|Wrong(what)| EdnError::Meaning { line, what })
    }

    /// Takes in an event; gives the operation it completes.
    fn take_in(&mut self, form: Form) -> Result<Option<Operation>, Wrong> {
        let Some(event) = event(form)? else {
            self.remarks.of_no_client += 1;
            return Ok(None);
        };
        self.move_on(event.time_ns);
        let Event { kind, function, value, process, .. } = event;
        let clients = self.clients.numbers.len();
        let client = self.clients.number_of(&process);
        if let Process::Name(name) = &process
            && self.clients.numbers.len() > clients
        {
            self.remarks.named.push((name.clone(), client));
        }
        if &*kind == "invoke" {
            let open = Open { function, value, invoked_ns: self.last_ns };
            return match self.open.insert(client, open) {
                None => Ok(None),
                Some(_) => wrong(format!("process {process} invokes while its last invocation is open")),
            };
        }
        let outcome = match &*kind {
            "ok" => Outcome::Ok,
            "fail" => Outcome::Fail,
            "info" => Outcome::Unknown,
            other => {
                return wrong(format!("`:{other}` is no type of event; :invoke, :ok, :fail and :info are"));
            }
        };
        let Some(open) = self.open.remove(&client) else {
            return wrong(format!("process {process} completes what it never invoked"));
        };
        if open.function != function {
            return wrong(format!("process {process} invoked :{} and completes :{function}", open.function));
        }
        self.operation(client, open, outcome, &value).map(Some)
    }

    fn move_on(&mut self, own_ns: Option<i64>) {
        let Some(own_ns) = own_ns else {
            // Without times, the order alone counts; a millisecond each can be told in a story.
            self.last_ns = self.last_ns.saturating_add(1_000_000);
            return;
        };
        if own_ns < self.last_own_ns {
            if self.remarks.back_in_time == 0 {
                self.remarks.first_back_in_time_line = self.forms.line();
            }
            self.remarks.back_in_time += 1;
        }
        self.last_own_ns = own_ns;
        let since_zero = own_ns.saturating_sub(*self.zero_ns.get_or_insert(own_ns));
        let is_time = since_zero <= SINCE_ZERO_NS_MAX;
        self.last_ns = if is_time { since_zero } else { 0 }.max(self.last_ns.saturating_add(1));
    }

    fn operation(&self, client: u64, open: Open, outcome: Outcome, found: &Form) -> Result<Operation, Wrong> {
        let found = if outcome == Outcome::Ok { Some(found) } else { None };
        let action = match self.model {
            Model::Register => register(&open, found),
            Model::ListAppend => list_append(&open, found),
            Model::Bank => bank(&open, found),
            Model::Ledger => ledger(&open, found),
        }?;
        let seconds = |time_ns: i64| time_ns as f64 / 1e9;
        Ok(Operation {
            load: "jepsen".to_owned(),
            client,
            action,
            invoked_s: seconds(open.invoked_ns),
            completed_s: seconds(self.last_ns),
            outcome,
            error: None,
            node: None,
        })
    }
}

impl<R: BufRead> Iterator for EdnHistory<R> {
    type Item = Result<Operation, EdnError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.next_operation().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

/// An event; `None` for one of a process that is no client.
fn event(form: Form) -> Result<Option<Event>, Wrong> {
    let Form::Map(pairs) = form else { return wrong("an event must be a map") };
    let (mut kind, mut function, mut value, mut process, mut time_ns) = (None, None, Form::Nil, None, None);
    for (key, entry) in pairs {
        let Form::Keyword(key) = key else { continue };
        match (&*key, entry) {
            ("type", Form::Keyword(word)) => kind = Some(word),
            ("f", Form::Keyword(word)) => function = Some(word),
            ("value", entry) => value = entry,
            ("process", entry) => process = Some(entry),
            ("time", Form::Integer(time)) => time_ns = Some(time),
            _ => {}
        }
    }
    let process = match process {
        Some(Form::Integer(number)) => match u64::try_from(number) {
            Ok(number) => Process::Number(number),
            Err(_) => return wrong(format!("process {number} is below zero")),
        },
        Some(Form::Keyword(_)) => return Ok(None),
        Some(Form::Text(name)) if &*name == "nemesis" => return Ok(None),
        Some(Form::Text(name)) => Process::Name(name),
        _ => return wrong("an event has no :process"),
    };
    match (kind, function) {
        (Some(kind), Some(function)) => Ok(Some(Event { kind, function, value, process, time_ns })),
        (None, _) => wrong("an event has no :type"),
        (_, None) => wrong("an event has no :f"),
    }
}

fn integer(form: &Form) -> Result<i64, Wrong> {
    match form {
        Form::Integer(value) => Ok(*value),
        other => wrong(format!("{} is not a whole number", told(other))),
    }
}

fn optional(form: &Form) -> Result<Option<i64>, Wrong> {
    if *form == Form::Nil { Ok(None) } else { integer(form).map(Some) }
}

fn key(form: &Form) -> Result<Key, Wrong> {
    match form {
        Form::Integer(number) => Ok(Key::Number(*number)),
        Form::Keyword(name) | Form::Text(name) => Ok(Key::Name(name.clone())),
        other => wrong(format!("{} is no key; whole numbers and names are", told(other))),
    }
}

fn told(form: &Form) -> String {
    let text = format!("{form:?}");
    text.chars().take(80).collect()
}

/// The key and what belongs to it; key 0 where there is only one.
fn keyed(form: &Form) -> Result<(Key, &Form), Wrong> {
    match form {
        Form::Sequence(parts) => match parts.as_slice() {
            [of, value] => Ok((key(of)?, value)),
            _ => wrong(format!("{} is not a key and a value", told(form))),
        },
        value => Ok((Key::Number(0), value)),
    }
}

fn register(open: &Open, found: Option<&Form>) -> Result<Action, Wrong> {
    match &*open.function {
        "read" => {
            let (key, value) = keyed(found.unwrap_or(&open.value))?;
            Ok(Action::RegisterRead { key, value: if found.is_some() { optional(value)? } else { None } })
        }
        "write" => {
            let (key, value) = keyed(&open.value)?;
            Ok(Action::RegisterWrite { key, value: integer(value)? })
        }
        "cas" => {
            // `[key [expected new]]`, or `[expected new]` where there is one register only.
            let (key, change) = match &open.value {
                Form::Sequence(parts) if matches!(parts.as_slice(), [_, Form::Sequence(_)]) => {
                    keyed(&open.value)?
                }
                change => (Key::Number(0), change),
            };
            match change {
                Form::Sequence(parts) if parts.len() == 2 => Ok(Action::RegisterCompareAndSet {
                    key,
                    expected: optional(&parts[0])?,
                    new: integer(&parts[1])?,
                }),
                other => wrong(format!("{} is not what is expected and what is new", told(other))),
            }
        }
        "replica-read" => {
            let (Key::Name(replica), values) = keyed(found.unwrap_or(&open.value))? else {
                return wrong("a replica has a name");
            };
            let values = if found.is_some() { pairs(values)? } else { Vec::new() };
            Ok(Action::ReplicaRead { replica: replica.into(), values, complete: true })
        }
        other => wrong(format!("`:{other}` is nothing a register does; :read, :write and :cas are")),
    }
}

fn list_append(open: &Open, found: Option<&Form>) -> Result<Action, Wrong> {
    if &*open.function != "txn" {
        return wrong(format!("`:{}` is no list-append transaction; :txn is", open.function));
    }
    let Form::Sequence(steps) = found.unwrap_or(&open.value) else {
        return wrong("a transaction is a vector of steps");
    };
    let step = |form: &Form| -> Result<Step, Wrong> {
        let Form::Sequence(parts) = form else { return wrong(format!("{} is no step", told(form))) };
        match parts.as_slice() {
            [Form::Keyword(word), of, value] if &**word == "append" => {
                Ok(Step::Append { key: key(of)?, value: integer(value)? })
            }
            [Form::Keyword(word), of] if &**word == "r" => Ok(Step::Read { key: key(of)?, values: None }),
            [Form::Keyword(word), of, values] if &**word == "r" => {
                let values = match values {
                    Form::Nil => None,
                    Form::Sequence(values) => Some(values.iter().map(integer).collect::<Result<_, _>>()?),
                    other => return wrong(format!("{} is no list", told(other))),
                };
                Ok(Step::Read { key: key(of)?, values })
            }
            _ => wrong(format!("{} is no step; [:append key value] and [:r key list] are", told(form))),
        }
    };
    Ok(Action::AppendTransaction { steps: steps.iter().map(step).collect::<Result<_, _>>()? })
}

fn pairs(form: &Form) -> Result<Vec<(Key, i64)>, Wrong> {
    match form {
        Form::Map(pairs) => pairs.iter().map(|(of, value)| Ok((key(of)?, integer(value)?))).collect(),
        Form::Nil => Ok(Vec::new()),
        other => wrong(format!("{} is not a map of balances or values", told(other))),
    }
}

fn entry<'f>(form: &'f Form, name: &str) -> Result<&'f Form, Wrong> {
    let Form::Map(pairs) = form else { return wrong(format!("{} is not a map", told(form))) };
    let is_named = |key: &Form| matches!(key, Form::Keyword(word) if &**word == name);
    let found = pairs.iter().find(|(key, _)| is_named(key)).map(|(_, value)| value);
    found.ok_or_else(|| Wrong(format!("`:{name}` is missing in {}", told(form))))
}

fn bank(open: &Open, found: Option<&Form>) -> Result<Action, Wrong> {
    match &*open.function {
        "transfer" => Ok(Action::BankTransfer {
            from: key(entry(&open.value, "from")?)?,
            to: key(entry(&open.value, "to")?)?,
            amount: integer(entry(&open.value, "amount")?)?,
        }),
        "read" => Ok(Action::BankRead { balances: found.map_or(Ok(Vec::new()), pairs)? }),
        "setup" => Ok(Action::BankSetup {
            balances: pairs(entry(&open.value, "balances")?)?,
            may_be_negative: *entry(&open.value, "negative-balances?")? == Form::Boolean(true),
        }),
        other => wrong(format!("`:{other}` is nothing a bank does; :transfer and :read are")),
    }
}

fn ledger(open: &Open, found: Option<&Form>) -> Result<Action, Wrong> {
    let number = |form: &Form| -> Result<u64, Wrong> {
        u64::try_from(integer(form)?).or_else(|_| wrong(format!("{} is below zero", told(form))))
    };
    match &*open.function {
        "add" => Ok(Action::LedgerInsert { value: number(&open.value)? }),
        "read" => match found {
            None => Ok(Action::LedgerRead { values: Vec::new(), complete: true }),
            Some(Form::Sequence(values)) => Ok(Action::LedgerRead {
                values: values.iter().map(number).collect::<Result<_, _>>()?,
                complete: true,
            }),
            Some(other) => wrong(format!("{} is not a list of what was added", told(other))),
        },
        other => wrong(format!("`:{other}` is nothing a set does; :add and :read are")),
    }
}

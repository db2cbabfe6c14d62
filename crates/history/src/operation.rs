//! One operation of one client: what it asked, when, and how it came out.
//!
//! Times are seconds on the run's clock, which starts at 0 with the first load.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Key, Step};

/// Bits of a ledger row's number that hold its client's own count; the client's number stands above them.
pub const LEDGER_SEQUENCE_BITS: u32 = 40;

/// The number of what a cell holds where no write ever puts such a value: it cannot be read as one.
pub const NO_WRITE: u64 = u64::MAX - 1;

/// What the client can know of an operation once it has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Acknowledged: it happened.
    Ok,
    /// Refused: it did not happen.
    Fail,
    /// No definite answer: it may or may not have happened, now or later.
    Unknown,
}

/// The class an error is counted under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorClass {
    /// No connection could be made, or the one there was broke.
    Connection,
    /// No answer in the time the client was willing to wait.
    Timeout,
    /// A serialization failure or deadlock: the standard answer is to try again.
    Serialization,
    /// The server reached is not one that takes writes.
    ReadOnly,
    /// Anything else the server answered.
    Other,
}

impl ErrorClass {
    /// The class's name as it stands in files and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ErrorClass::Connection => "connection",
            ErrorClass::Timeout => "timeout",
            ErrorClass::Serialization => "serialization",
            ErrorClass::ReadOnly => "read-only",
            ErrorClass::Other => "other",
        }
    }
}

/// What an operation asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "f", rename_all = "kebab-case")]
pub enum Action {
    /// Ledger: insert a row whose number nobody else ever uses.
    LedgerInsert {
        /// The row's number.
        value: u64,
    },
    /// Ledger: the final read of every row, after all faults are healed. May be split over several operations,
    /// whose values are taken together; `complete` is true on the last.
    LedgerRead {
        /// The numbers found. A number found twice stands here twice.
        values: Vec<u64>,
        /// Whether all rows have now been read.
        complete: bool,
    },
    /// TPC-B: one transaction that adds `delta` to one account, teller and branch and writes a history row.
    TpcbTransaction {
        /// The amount moved.
        delta: i64,
    },
    /// TPC-B: the final read of the four sums and of the number of history rows.
    TpcbRead {
        /// Sum of all account balances.
        accounts: i64,
        /// Sum of all teller balances.
        tellers: i64,
        /// Sum of all branch balances.
        branches: i64,
        /// Sum of all history deltas.
        history: i64,
        /// Number of history rows.
        history_rows: u64,
    },
    /// Register: read one. Registers hold nothing until they are written.
    RegisterRead {
        /// Which.
        key: Key,
        /// What it held, when the read was acknowledged; nothing when it was never written.
        value: Option<i64>,
    },
    /// Register: write one.
    RegisterWrite {
        /// Which.
        key: Key,
        /// What it holds from then on.
        value: i64,
    },
    /// Register: write one only if it holds what is expected. `ok` when it did, `fail` when it did not or was not
    /// tried.
    RegisterCompareAndSet {
        /// Which.
        key: Key,
        /// What it must hold; nothing when it must never have been written.
        expected: Option<i64>,
        /// What it holds from then on.
        new: i64,
    },
    /// List-append: one transaction over lists, its steps in order.
    AppendTransaction {
        /// What it did.
        steps: Vec<Step>,
    },
    /// Bank: how the accounts are before anybody moves money. Recorded once, before all else.
    BankSetup {
        /// Every account with its balance.
        balances: Vec<(Key, i64)>,
        /// Whether an account may be overdrawn.
        may_be_negative: bool,
    },
    /// Bank: move money between two accounts in one transaction.
    BankTransfer {
        /// The account it leaves.
        from: Key,
        /// The account it reaches.
        to: Key,
        /// How much.
        amount: i64,
    },
    /// Bank: read every account in one transaction.
    BankRead {
        /// Every account found with its balance.
        balances: Vec<(Key, i64)>,
    },
    /// Convergence: read every register of one replica, after all faults are healed and nobody writes any more. May be
    /// split over several operations, whose values are taken together; `complete` is true on the last.
    ReplicaRead {
        /// The replica that was asked, by name.
        replica: String,
        /// Every register found with what it held.
        values: Vec<(Key, i64)>,
        /// Whether all of them have now been read.
        complete: bool,
    },
    /// A transaction of a kind; what it asked in detail is not recorded.
    Transaction {
        /// The kind's name: `NEW-ORDER`, `READ`.
        name: Cow<'static, str>,
        /// The client itself asked for it to be rolled back in the end, as some standards want of some transactions.
        #[serde(default, skip_serializing_if = "is_false")]
        rolled_back: bool,
        /// The row that it leaves, by a name that says who asked for what; absent where its kind leaves none, where the workload
        /// names none, and where it did not come so far that the name was known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        row: Option<String>,
    },
    /// The final read of the rows that transactions of one kind left, after all faults are healed. May be split over several
    /// operations, whose rows are taken together; `complete` is true on the last.
    RowsRead {
        /// The kind's name.
        kind: Cow<'static, str>,
        /// The rows found, by name, each with how many there are beyond those that were loaded.
        rows: Vec<(String, u64)>,
        /// Whether all of them have now been read.
        complete: bool,
    },
    /// One write to one or several cells; afterwards each holds the write's number.
    CellsWrite {
        /// The cells, as the workload numbers them.
        cells: Vec<u64>,
        /// The write's number, which no other write of the run has; 0 is what was there before the first.
        value: u64,
    },
    /// The final read of every cell, after all faults are healed. May be split over several operations, whose cells are
    /// taken together; `complete` is true on the last.
    CellsRead {
        /// Cells found, each with the number of the write it holds.
        cells: Vec<(u64, u64)>,
        /// Whether all cells have now been read.
        complete: bool,
    },
    /// The final look at conditions that the data must meet, all in one transaction.
    ConditionsRead {
        /// Every condition looked at.
        conditions: Vec<ConditionFound>,
        /// What else was counted in the same transaction, by name.
        counts: BTreeMap<String, i64>,
    },
    /// What these clients of a load did from then on is not recorded, because the process that had them was lost. They may
    /// have asked anything that such clients ask, with any outcome.
    Unrecorded {
        /// The load's workload.
        workload: String,
        /// The number of the first of them.
        first_client: u64,
        /// How many they are.
        clients: u32,
    },
    /// How the final read of a load went, recorded after all that it found: `ok` when everything was read. Without one
    /// that is `ok` and has no `why`, the load's final state is not known.
    FinalRead {
        /// The load's workload.
        workload: String,
        /// Nodes that were asked.
        nodes: Vec<String>,
        /// Why it was not read; with `ok`, why what was read may not be all. Empty when nothing is in doubt.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        why: String,
    },
}

impl Action {
    /// The kind of rows of TPC-B's history, in a [`Action::RowsRead`]: their names are amounts.
    pub const TPCB_AMOUNTS: &'static str = "tpcb-amounts";

    /// Its name, as in a history's lines.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Action::LedgerInsert { .. } => "ledger-insert",
            Action::LedgerRead { .. } => "ledger-read",
            Action::TpcbTransaction { .. } => "tpcb-transaction",
            Action::TpcbRead { .. } => "tpcb-read",
            Action::RegisterRead { .. } => "register-read",
            Action::RegisterWrite { .. } => "register-write",
            Action::RegisterCompareAndSet { .. } => "register-compare-and-set",
            Action::AppendTransaction { .. } => "append-transaction",
            Action::BankSetup { .. } => "bank-setup",
            Action::BankTransfer { .. } => "bank-transfer",
            Action::BankRead { .. } => "bank-read",
            Action::ReplicaRead { .. } => "replica-read",
            Action::Transaction { .. } => "transaction",
            Action::RowsRead { .. } => "rows-read",
            Action::CellsWrite { .. } => "cells-write",
            Action::CellsRead { .. } => "cells-read",
            Action::ConditionsRead { .. } => "conditions-read",
            Action::Unrecorded { .. } => "unrecorded",
            Action::FinalRead { .. } => "final-read",
        }
    }
}

/// What became of one condition that the data must meet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConditionFound {
    /// As the workload, or the user's script, names it.
    pub name: String,
    /// How often it is violated.
    pub violations: u64,
    /// A few violations in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
}

// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// One operation, from the moment it was sent to the moment the client knew all it would ever know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// The load it belongs to.
    pub load: String,
    /// The client (process, in Jepsen's words) that asked it. One client has one operation at a time.
    pub client: u64,
    /// What it asked.
    #[serde(flatten)]
    pub action: Action,
    /// When it was sent, seconds.
    #[serde(serialize_with = "crate::seconds::serialize")]
    pub invoked_s: f64,
    /// When it ended, seconds.
    #[serde(serialize_with = "crate::seconds::serialize")]
    pub completed_s: f64,
    /// Acknowledged, refused, or not known.
    pub outcome: Outcome,
    /// The class of its error, when there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorClass>,
    /// The node that answered, by name, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// The first error of its class in a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FirstError {
    /// What it is counted under.
    pub class: ErrorClass,
    /// The server's code (SQLSTATE), where the server gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What was said, by the server or by the client.
    pub text: String,
    /// The node that was asked, by name, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// When, seconds.
    pub at_s: f64,
}

/// How databases say that they have as many sessions as they take: PostgreSQL's SQLSTATE, the number of MySQL and MariaDB.
pub const TOO_MANY_CONNECTIONS: [&str; 2] = ["53300", "1040"];

/// Errors counted by class.
pub type ErrorCounts = BTreeMap<ErrorClass, u64>;

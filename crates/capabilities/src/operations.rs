//! What each workload is and what it times, whatever its options are.
//!
//! Owns the facts and the workloads' names. What a transaction does is the workload's; its options are in `workloads`.

/// What is known of a workload whatever its options are.
#[derive(Debug)]
pub struct WorkloadFacts {
    /// Its name in scenarios.
    pub name: &'static str,
    /// What it does, one line for people.
    pub summary: &'static str,
    /// The operation whose rate is the load's throughput.
    pub transaction: &'static str,
    /// Names of the kinds of transaction it draws, each an operation of its own in the results beside the total; none where
    /// all are alike, or where its user names them.
    pub kinds: &'static [&'static str],
    /// The statements that are timed by themselves.
    pub timed: Timed,
}

/// Statements that are timed by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timed {
    /// None: every transaction is a single statement, whose latency is the transaction's.
    None,
    /// These, in this order.
    These(&'static [&'static str]),
    /// All it has: they are many, or are named by its user.
    All,
}

impl Timed {
    /// Their names, where they are told.
    #[must_use]
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Timed::These(names) => names,
            Timed::None | Timed::All => &[],
        }
    }
}

/// The facts of a workload each, and the list of all in the order they are told to people.
macro_rules! workloads {
    ($($fact:ident: $name:literal, $transaction:literal, $summary:literal, kinds $kinds:expr, timed $timed:expr;)*) => {
        $(
            #[doc = concat!("`", $name, "`.")]
            pub const $fact: WorkloadFacts = WorkloadFacts {
                name: $name,
                summary: $summary,
                transaction: $transaction,
                kinds: &$kinds,
                timed: $timed,
            };
        )*

        /// Every workload that a scenario may name.
        pub const NAMES: &[&str] = &[$($name),*];

        /// The workload of that name.
        #[must_use]
        pub fn workload(name: &str) -> Option<&'static WorkloadFacts> {
            match name {
                $($name => Some(&$fact),)*
                _ => None,
            }
        }
    };
}

workloads! {
    TPCB: "tpcb", "transaction",
        "TPC-B as pgbench runs it: three updates, a select and an insert in each transaction",
        kinds [],
        timed Timed::These(&["BEGIN", "UPDATE accounts", "SELECT accounts", "UPDATE tellers", "UPDATE branches", "INSERT history", "END"]);
    TPCC: "tpcc", "transaction",
        "TPC-C: orders, payments, deliveries and queries of a wholesale supplier; scale is the number of warehouses",
        kinds ["NEW-ORDER", "PAYMENT", "ORDER-STATUS", "DELIVERY", "STOCK-LEVEL"],
        timed Timed::All;
    YCSB: "ycsb", "operation",
        "YCSB's core workloads A to F: reads, updates, inserts, scans and read-modify-writes of rows by key",
        kinds ["READ", "UPDATE", "INSERT", "SCAN", "READ-MODIFY-WRITE"],
        timed Timed::None;
    KV: "kv", "operation",
        "reads and writes of single keys, like `cockroach workload kv`",
        kinds ["read", "write", "span"],
        timed Timed::None;
    IOT: "iot", "operation",
        "sensor time series like NoSQLBench's cql-iot: inserts, and reads of the newest values",
        kinds ["write", "read"],
        timed Timed::None;
    SCRIPT: "script", "transaction",
        "transactions of your own, in the language of pgbench's scripts; without options pgbench's tpcb-like",
        kinds [],
        timed Timed::All;
    LEDGER: "ledger", "insert",
        "unique inserts, one per transaction: at the end exactly the acknowledged rows must exist",
        kinds [],
        timed Timed::None;
    APPEND: "append", "transaction",
        "transactions that append to lists and read them, to test the isolation level",
        kinds [],
        timed Timed::These(&["BEGIN", "SELECT", "APPEND", "COMMIT"]);
    BANK: "bank", "transaction",
        "transfers between eight accounts and reads of them all: no money may appear or vanish",
        kinds ["read", "transfer"],
        timed Timed::These(&["SELECT accounts", "BEGIN", "UPDATE from", "UPDATE to", "END"]);
    REGISTER: "register", "operation",
        "reads, writes and compare-and-sets of ten keys: each must behave as one register",
        kinds ["read", "write", "compare-and-set"],
        timed Timed::None;
    RAWIO: "rawio", "pass",
        "no database: sequential and random reads and writes of a node's volume, each block read back as it was written",
        kinds ["sequential-write", "sequential-read", "cached-read", "random-write", "random-read"],
        timed Timed::These(&["write block", "read block", "read cached block", "write random 4 KiB", "read random 4 KiB", "sync"]);
}

/// An operation's name as a figure's name has it.
#[must_use]
pub fn spelt(operation: &str) -> String {
    operation.to_lowercase().replace([' ', '-'], "_")
}

//! The workloads: what each is and times, what may be set of it, what that means and what it is when absent.
//!
//! Owns the names and the tables. What a transaction does, and what a workload makes of its options, is the workload's.

use yaml::language::{Field, Fields, Shape, choice, optional, plain};

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
    /// The operations of which each success is an acknowledged write, by which is seen whether writes are served; none where
    /// they are not counted.
    pub writes: &'static [&'static str],
    /// Names of the figures that only its loads have, with the unit last.
    pub figures: &'static [&'static str],
    /// The checks that judge its history, by name.
    pub checks: &'static [&'static str],
    /// Whether its reads may be older than the latest write: they are counted, and no check draws anything from them.
    pub reads_may_be_old: bool,
    /// Whether its clients count together the rows that they make, where its options let them make any.
    pub counts_rows: bool,
    /// The option that says how many operations a transaction of keys and values has, where one does.
    pub operations: Option<&'static str>,
}

/// Statements that are timed by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timed {
    /// None: every transaction is a single statement, whose latency is the transaction's.
    None,
    /// These, in this order.
    These(&'static [&'static str]),
    /// All it has, which are many.
    All,
    /// All it has; its user writes and names them.
    Users,
}

impl Timed {
    /// Their names, where they are told.
    #[must_use]
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Timed::These(names) => names,
            Timed::None | Timed::All | Timed::Users => &[],
        }
    }
}

/// The facts of a workload each, and the list of all in the order they are told to people.
macro_rules! workloads {
    ($($fact:ident: $name:literal, $transaction:literal, $summary:literal, kinds $kinds:expr, timed $timed:expr,
        writes $writes:expr, figures $figures:expr, checks $checks:expr
        $(, reads_may_be_old $old:literal)? $(, counts_rows $rows:literal)? $(, operations $operations:literal)?;)*) => {
        $(
            #[doc = concat!("`", $name, "`.")]
            pub const $fact: WorkloadFacts = WorkloadFacts {
                name: $name,
                summary: $summary,
                transaction: $transaction,
                kinds: &$kinds,
                timed: $timed,
                writes: &$writes,
                figures: &$figures,
                checks: &$checks,
                reads_may_be_old: false $(|| $old)?,
                counts_rows: false $(|| $rows)?,
                operations: [$(Some($operations),)? None][0],
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
        timed Timed::These(&["BEGIN", "UPDATE accounts", "SELECT accounts", "UPDATE tellers", "UPDATE branches", "INSERT history", "END"]),
        writes ["transaction"], figures [], checks ["tpcb-sums"];
    TPCC: "tpcc", "transaction",
        "TPC-C: orders, payments, deliveries and queries of a wholesale supplier; scale is the number of warehouses",
        kinds ["NEW-ORDER", "PAYMENT", "ORDER-STATUS", "DELIVERY", "STOCK-LEVEL"],
        timed Timed::All,
        writes ["NEW-ORDER", "PAYMENT"], figures ["tpmC", "efficiency_percent"], checks ["tpcc-conditions"];
    YCSB: "ycsb", "operation",
        "YCSB's core workloads A to F: reads, updates, inserts, scans and read-modify-writes of rows by key",
        kinds ["READ", "UPDATE", "INSERT", "SCAN", "READ-MODIFY-WRITE"],
        timed Timed::None,
        writes [], figures [], checks ["last-writes"], reads_may_be_old true, counts_rows true, operations "fields";
    KV: "kv", "operation",
        "reads and writes of single keys, like `cockroach workload kv`",
        kinds ["read", "write", "span"],
        timed Timed::None,
        writes [], figures [], checks ["last-writes"], reads_may_be_old true, operations "batch";
    IOT: "iot", "operation",
        "sensor time series like NoSQLBench's cql-iot: inserts, and reads of the newest values",
        kinds ["write", "read"],
        timed Timed::None,
        writes [], figures [], checks ["last-writes"], counts_rows true;
    SCRIPT: "script", "transaction",
        "transactions of your own, in the language of pgbench's scripts; without options pgbench's tpcb-like",
        kinds [],
        timed Timed::Users,
        writes [], figures [], checks ["script-conditions"];
    LEDGER: "ledger", "insert",
        "unique inserts, one per transaction: at the end exactly the acknowledged rows must exist",
        kinds [],
        timed Timed::None,
        writes ["insert"], figures [], checks ["ledger"];
    APPEND: "append", "transaction",
        "transactions that append to lists and read them, to test the isolation level",
        kinds [],
        timed Timed::These(&["BEGIN", "SELECT", "APPEND", "COMMIT"]),
        writes [], figures [], checks ["list-append"];
    BANK: "bank", "transaction",
        "transfers between eight accounts and reads of them all: no money may appear or vanish",
        kinds ["read", "transfer"],
        timed Timed::These(&["SELECT accounts", "BEGIN", "UPDATE from", "UPDATE to", "END"]),
        writes ["transfer"], figures [], checks ["bank"];
    REGISTER: "register", "operation",
        "reads, writes and compare-and-sets of ten keys: each must behave as one register",
        kinds ["read", "write", "compare-and-set"],
        timed Timed::None,
        writes ["write", "compare-and-set"], figures [], checks ["register"];
    RAWIO: "rawio", "pass",
        "no database: sequential and random reads and writes of a node's volume, each block read back as it was written",
        kinds ["sequential-write", "sequential-read", "cached-read", "random-write", "random-read"],
        timed Timed::These(&["write block", "read block", "read cached block", "write random 4 KiB", "read random 4 KiB", "sync"]),
        writes [], figures ["sequential_write_mb_per_s", "sequential_read_mb_per_s", "cached_read_mb_per_s", "random_writes_per_s", "random_reads_per_s"], checks ["register"];
}

/// Whether a check judges the history of a load of that workload.
#[must_use]
pub fn is_judged_by(name: &str, check: &str) -> bool {
    workload(name).is_some_and(|facts| facts.checks.contains(&check))
}

/// A workload's options.
pub struct OptionTable {
    /// The workload's name.
    pub workload: &'static str,
    /// Its options.
    pub fields: &'static Fields,
    /// What they are when absent, as written. Those that follow from others are missing here.
    pub defaults: &'static [(&'static str, &'static str)],
    /// A load with some of them.
    pub example: &'static str,
}

/// A workload's options, each stated once: its name, what it holds, what it is when absent, what it means.
macro_rules! options {
    ($table:ident, $workload:literal, $example:literal;
     $($name:literal: $shape:expr $(=> $absent:literal)?, $meaning:literal;)*) => {
        static $table: OptionTable = OptionTable {
            workload: $workload,
            fields: &plain(
                concat!("the map `options` of ", $workload),
                &[$(optional($name, $shape, concat!($meaning $(, "; default ", $absent)?))),*],
            ),
            defaults: &[$($(($name, $absent),)?)*],
            example: $example,
        };
    };
}

/// Levels of isolation, weakest first, by their names in SQL.
pub const ISOLATION_LEVELS: &[&str] = &["read-committed", "repeatable-read", "serializable"];

const SWITCH: Shape = Shape::Word(&["on", "off"]);

/// A whole number from one to `most`.
const fn up_to(most: u64) -> Shape {
    Shape::Count { least: 1, most }
}

options! { RAWIO_OPTIONS, "rawio",
    "- { workload: rawio, clients: 1, timeout: 60s, options: { block: 8192, count: 20000 } }";
    "block": Shape::Count { least: 512, most: 4 << 20 } => "8192",
        "bytes of a block of the sequential passes, whole sectors of 512";
    "count": up_to(1 << 20) => "2000",
        "blocks of a sequential pass";
    "random": up_to(1 << 20) => "200",
        "number of 4 KiB blocks of a random pass";
    "direct": SWITCH => "off",
        "whether to bypass the page cache (O_DIRECT), except for cached reads";
    "durable": Shape::Word(&["end", "each", "none"]) => "end",
        "when a sequential write is synced: once at its end, with each block, or never";
}

options! { KV_OPTIONS, "kv",
    "- { workload: kv, clients: 8, options: { read: 95%, keys: 100000, order: zipfian } }";
    "read": Shape::Percent => "0%",
        "share of operations that read keys";
    "span": Shape::Percent => "0%",
        "share of operations that count the keys from a given key on";
    "span_limit": Shape::Count { least: 0, most: 1_000_000 } => "100",
        "most keys that a span counts; 0 means all";
    "batch": up_to(1_000) => "1",
        "keys of one operation";
    "block_min": up_to(1_000_000) => "1",
        "fewest bytes of a value";
    "block_max": up_to(1_000_000),
        "most bytes of a value; default block_min";
    "keys": up_to(1_000_000_000) => "100000",
        "number of distinct keys";
    "order": Shape::Word(&["hashed", "sequential", "zipfian"]) => "hashed",
        "how keys are chosen: hashed or in order, one after another, or zipfian (some far more often)";
    "exponent": Shape::Positive => "1.1",
        "exponent of zipfian keys, from 1.001 to 1000";
    "preload": Shape::Count { least: 0, most: 1_000_000_000 } => "0",
        "keys loaded before the first operation";
}

options! { YCSB_OPTIONS, "ycsb",
    "- { workload: ycsb, clients: 8, options: { workload: b, records: 100000 } }";
    "workload": Shape::Word(&["a", "b", "c", "d", "e", "f"]) => "a",
        "the core workload that sets shares and keys";
    "read": Shape::Percent,
        "share of reads; if one share is given, the others default to 0%";
    "update": Shape::Percent,
        "share of updates";
    "insert": Shape::Percent,
        "share of inserts";
    "scan": Shape::Percent,
        "share of scans";
    "read_modify_write": Shape::Percent,
        "share of read-modify-writes";
    "distribution": Shape::Word(&["uniform", "zipfian", "latest", "hotspot", "sequential", "exponential"]),
        "how keys are chosen; default that of the core workload";
    "records": up_to(1_000_000_000) => "10000",
        "rows loaded before the first operation";
    "fields": up_to(100) => "10",
        "fields of a row";
    "field_length": Shape::Count { least: 16, most: 100_000 } => "100",
        "bytes of a field";
    "read_all_fields": SWITCH => "on",
        "whether a read asks for every field";
    "write_all_fields": SWITCH => "off",
        "whether an update writes every field";
    "scan_length": up_to(1_000_000) => "100",
        "most rows per scan";
    "hotspot_keys": Shape::Percent => "20%",
        "share of the keys that is hot";
    "hotspot_operations": Shape::Percent => "80%",
        "share of the operations on hot keys";
    "insert_order": Shape::Word(&["hashed", "ordered"]) => "hashed",
        "whether key names are hashed or ordered";
}

options! { TPCC_OPTIONS, "tpcc",
    "- { workload: tpcc, scale: 2, clients: 20, options: { pauses: on } }";
    "pauses": SWITCH => "off",
        "the standard's keying and think times, without which `efficiency_percent` cannot be compared with published figures";
    "mix": Shape::Word(&["deck", "weights"]) => "deck",
        "how transaction types are chosen: from shuffled decks (as the standard allows) or by random weights";
    "deliveries": Shape::Word(&["queued", "at-once"]) => "queued",
        "whether deliveries go through a queue or run at the terminal";
    "isolation": Shape::Word(ISOLATION_LEVELS),
        "isolation level of the transactions; default the database's default level";
}

options! { IOT_OPTIONS, "iot",
    "- { workload: iot, clients: 150, options: { write: 50%, machines: 10000 } }";
    "write": Shape::Percent => "90%",
        "share of writes, the rest reads";
    "machines": up_to(1_000_000) => "10000",
        "machines that send values";
    "sensors": up_to(100_000) => "100",
        "kinds of sensor";
    "stations": up_to(1_000_000) => "100",
        "stations that the machines belong to";
    "limit": up_to(100_000) => "10",
        "number of newest values that a read asks for";
    "data_min": up_to(1_000_000) => "800",
        "least additional characters per value";
    "data_max": up_to(1_000_000) => "1200",
        "most additional characters per value";
    "preload": Shape::Count { least: 0, most: 1_000_000_000 } => "10000",
        "values loaded before the first operation";
}

options! { APPEND_OPTIONS, "append",
    "- { workload: append, clients: 8, options: { isolation: repeatable-read } }";
    "isolation": Shape::Word(ISOLATION_LEVELS),
        "isolation level of the transactions, which the check then requires; default the database's default level";
}

options! { BANK_OPTIONS, "bank",
    "- { workload: bank, clients: 8, options: { isolation: serializable } }";
    "isolation": Shape::Word(ISOLATION_LEVELS),
        "isolation level of the transactions, which the check then requires; default the database's default level";
}

options! { REGISTER_OPTIONS, "register",
    "- { workload: register, clients: 4, options: { compare_and_set: off } }";
    "compare_and_set": SWITCH => "on",
        "whether the load also uses compare-and-set. With `off` on Cassandra, writes are plain (the latest timestamp \
         wins) instead of lightweight transactions";
}

/// An element of `scripts`.
pub static ONE_SCRIPT: Fields = choice(
    "a script",
    &[
        optional("text", Shape::Text, "the script itself, in pgbench's language"),
        optional("file", Shape::PathWithin, "a file with the script, its path from the scenario's folder"),
        optional("builtin", Shape::Word(BUILTIN_SCRIPTS), "one of pgbench's own scripts"),
        optional(
            "name",
            Shape::Name,
            "its name in results; default the name of the file or builtin, or script-1, script-2 ...",
        ),
        optional("weight", up_to(1_000_000), "relative weight of this script; default 1"),
    ],
    &["text", "file", "builtin"],
);

const BUILTIN_SCRIPTS: &[&str] = &["tpcb-like", "simple-update", "select-only"];

options! { SCRIPT_OPTIONS, "script",
    "- { workload: script, clients: 8, options: { scripts: [{ builtin: select-only }] } }";
    "scripts": Shape::List { of: &Shape::Map(&ONE_SCRIPT), least: 1, most: Some(100) },
        "the scripts; each transaction runs one of them; default tpcb-like";
    "setup": Shape::Text,
        "SQL that creates the tables, in addition to pgbench's tables if a builtin needs them";
    "conditions": Shape::Named(&Shape::Text),
        "queries by name, each of which must return no row at the end; each returned row is a violation";
}

/// Every workload that has options.
pub static OPTIONS: &[&OptionTable] = &[
    &KV_OPTIONS,
    &YCSB_OPTIONS,
    &TPCC_OPTIONS,
    &RAWIO_OPTIONS,
    &IOT_OPTIONS,
    &APPEND_OPTIONS,
    &BANK_OPTIONS,
    &REGISTER_OPTIONS,
    &SCRIPT_OPTIONS,
];

/// The options of a workload; none where it has none.
#[must_use]
pub fn table(workload: &str) -> Option<&'static OptionTable> {
    OPTIONS.iter().find(|table| table.workload == workload).copied()
}

/// The option of a workload with this dotted name; an element of `scripts` has its number in it.
#[must_use]
pub fn option(workload: &str, name: &str) -> Option<&'static Field> {
    let fields = match name.split_once('.') {
        None => table(workload)?.fields,
        Some(("scripts", _)) => &ONE_SCRIPT,
        Some(_) => return None,
    };
    let last = name.rsplit('.').next()?;
    fields.fields.iter().find(|field| field.name == last)
}

/// What an option is when absent, as written.
#[must_use]
pub fn default(workload: &str, name: &str) -> Option<&'static str> {
    let defaults = table(workload)?.defaults;
    defaults.iter().find(|(option, _)| *option == name).map(|(_, absent)| *absent)
}

/// An operation's name as a figure's name has it.
#[must_use]
pub fn spelt(operation: &str) -> String {
    operation.to_lowercase().replace([' ', '-'], "_")
}

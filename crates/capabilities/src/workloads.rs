//! What may be set of each workload, what it means and what it is when absent.
//!
//! Owns the tables. What a workload makes of its options is the workload's.

use yaml::language::{Field, Fields, Shape, choice, optional, plain};

/// Every workload that a scenario may name.
pub const NAMES: &[&str] =
    &["tpcb", "tpcc", "ycsb", "kv", "iot", "script", "ledger", "append", "bank", "register", "rawio"];

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

const SWITCH: Shape = Shape::Word(&["on", "off"]);

/// A whole number from one to `most`.
const fn up_to(most: u64) -> Shape {
    Shape::Count { least: 1, most }
}

static RAWIO: Fields = plain(
    "the options of rawio",
    &[
        optional(
            "block",
            Shape::Count { least: 512, most: 4 << 20 },
            "bytes of a block of the sequential passes, whole sectors of 512; 8192 when absent",
        ),
        optional("count", up_to(1 << 20), "blocks of a sequential pass; 2000 when absent"),
        optional("random", up_to(1 << 20), "blocks of 4 KiB of a pass by chance; 200 when absent"),
        optional(
            "direct",
            SWITCH,
            "whether the page cache is left out (O_DIRECT), save by cached reads; off when absent",
        ),
        optional(
            "durable",
            Shape::Word(&["end", "each", "none"]),
            "when a sequential write is synced: once at its end, with each block, or by nobody; end when absent",
        ),
    ],
);

static KV: Fields = plain(
    "the options of kv",
    &[
        optional("read", Shape::Percent, "share of operations that read keys; 0% when absent"),
        optional(
            "span",
            Shape::Percent,
            "share of operations that count the keys from one on; 0% when absent",
        ),
        optional(
            "span_limit",
            Shape::Count { least: 0, most: 1_000_000 },
            "most keys a span counts, 0 for all there are; 100 when absent",
        ),
        optional("batch", up_to(1_000), "keys of one operation; 1 when absent"),
        optional("block_min", up_to(1_000_000), "fewest bytes of a value; 1 when absent"),
        optional("block_max", up_to(1_000_000), "most bytes of a value; as block_min when absent"),
        optional("keys", up_to(1_000_000_000), "keys before they begin anew; 100000 when absent"),
        optional(
            "order",
            Shape::Word(&["hashed", "sequential", "zipfian"]),
            "how keys are chosen: one after another, spread by a hash or in order, or some far more often; hashed when absent",
        ),
        optional("exponent", Shape::Positive, "of zipfian keys, from 1.001 to 1000; 1.1 when absent"),
        optional(
            "preload",
            Shape::Count { least: 0, most: 1_000_000_000 },
            "keys that are there before the first operation; 0 when absent",
        ),
    ],
);

static YCSB: Fields = plain(
    "the options of ycsb",
    &[
        optional(
            "workload",
            Shape::Word(&["a", "b", "c", "d", "e", "f"]),
            "the core workload whose shares and keys are taken; a when absent",
        ),
        optional("read", Shape::Percent, "share of reads; given one share, those not given are 0%"),
        optional("update", Shape::Percent, "share of updates"),
        optional("insert", Shape::Percent, "share of inserts"),
        optional("scan", Shape::Percent, "share of scans"),
        optional("read_modify_write", Shape::Percent, "share of read-modify-writes"),
        optional(
            "distribution",
            Shape::Word(&["uniform", "zipfian", "latest", "hotspot", "sequential", "exponential"]),
            "how keys are chosen; as the core workload has it when absent",
        ),
        optional(
            "records",
            up_to(1_000_000_000),
            "rows that are there before the first operation; 10000 when absent",
        ),
        optional("fields", up_to(100), "fields of a row; 10 when absent"),
        optional(
            "field_length",
            Shape::Count { least: 16, most: 100_000 },
            "bytes of a field; 100 when absent",
        ),
        optional("read_all_fields", SWITCH, "whether a read asks for every field; on when absent"),
        optional("write_all_fields", SWITCH, "whether an update writes every field; off when absent"),
        optional("scan_length", up_to(1_000_000), "most rows of a scan; 100 when absent"),
        optional("hotspot_keys", Shape::Percent, "share of the keys that is hot; 20% when absent"),
        optional(
            "hotspot_operations",
            Shape::Percent,
            "share of the operations on hot keys; 80% when absent",
        ),
        optional(
            "insert_order",
            Shape::Word(&["hashed", "ordered"]),
            "whether names of keys follow a hash or their order; hashed when absent",
        ),
    ],
);

static TPCC: Fields = plain(
    "the options of tpcc",
    &[
        optional("pauses", SWITCH, "the standard's keying and think times; off when absent"),
        optional(
            "mix",
            Shape::Word(&["deck", "weights"]),
            "whether kinds of transaction come by decks of cards or by weights; deck when absent",
        ),
        optional(
            "deliveries",
            Shape::Word(&["queued", "at-once"]),
            "whether deliveries wait in a queue or their terminal carries them out; queued when absent",
        ),
        optional(
            "isolation",
            Shape::Word(&["read-committed", "repeatable-read", "serializable"]),
            "the level transactions run at; read-committed when absent",
        ),
    ],
);

static IOT: Fields = plain(
    "the options of iot",
    &[
        optional("write", Shape::Percent, "share of writes, the rest reads; 90% when absent"),
        optional("machines", up_to(1_000_000), "machines that send values; 10000 when absent"),
        optional("sensors", up_to(100_000), "kinds of sensor; 100 when absent"),
        optional("stations", up_to(1_000_000), "stations the machines stand at; 100 when absent"),
        optional("limit", up_to(100_000), "newest values that a read asks for; 10 when absent"),
        optional("data_min", up_to(1_000_000), "fewest characters sent beside a value; 800 when absent"),
        optional("data_max", up_to(1_000_000), "most characters sent beside a value; 1200 when absent"),
        optional(
            "preload",
            Shape::Count { least: 0, most: 1_000_000_000 },
            "values that are there before the first operation; 10000 when absent",
        ),
    ],
);

/// Of the workloads whose check judges isolation.
const ISOLATION: Field = optional(
    "isolation",
    Shape::Word(&["read-committed", "repeatable-read", "serializable"]),
    "the level transactions begin at, which the database is then held to; its own default when absent",
);

static APPEND: Fields = plain("the options of append", &[ISOLATION]);

static BANK: Fields = plain("the options of bank", &[ISOLATION]);

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
            "its name in results; script-1, script-2 ..., the file's or the builtin's when absent",
        ),
        optional(
            "weight",
            up_to(1_000_000),
            "how often it is run, in proportion to the others; 1 when absent",
        ),
    ],
    &["text", "file", "builtin"],
);

const BUILTIN_SCRIPTS: &[&str] = &["tpcb-like", "simple-update", "select-only"];

static SCRIPT: Fields = plain(
    "the options of script",
    &[
        optional(
            "scripts",
            Shape::List { of: &Shape::Map(&ONE_SCRIPT), least: 1, most: Some(100) },
            "the scripts, of which each transaction is one; tpcb-like when absent",
        ),
        optional(
            "setup",
            Shape::Text,
            "SQL that makes the tables, beside pgbench's own where a builtin needs them",
        ),
        optional(
            "conditions",
            Shape::Named(&Shape::Text),
            "queries by name, each of which must find nothing in the end: what it finds violates the condition",
        ),
    ],
);

/// Every workload that has options.
pub static OPTIONS: &[OptionTable] = &[
    OptionTable {
        workload: "kv",
        example: "- { workload: kv, clients: 8, options: { read: 95%, keys: 100000, order: zipfian } }",
        fields: &KV,
        defaults: &[
            ("read", "0%"),
            ("span", "0%"),
            ("span_limit", "100"),
            ("batch", "1"),
            ("block_min", "1"),
            ("keys", "100000"),
            ("order", "hashed"),
            ("exponent", "1.1"),
            ("preload", "0"),
        ],
    },
    OptionTable {
        workload: "ycsb",
        example: "- { workload: ycsb, clients: 8, options: { workload: b, records: 100000 } }",
        fields: &YCSB,
        defaults: &[
            ("workload", "a"),
            ("records", "10000"),
            ("fields", "10"),
            ("field_length", "100"),
            ("read_all_fields", "on"),
            ("write_all_fields", "off"),
            ("scan_length", "100"),
            ("hotspot_keys", "20%"),
            ("hotspot_operations", "80%"),
            ("insert_order", "hashed"),
        ],
    },
    OptionTable {
        workload: "tpcc",
        example: "- { workload: tpcc, scale: 2, clients: 20, options: { pauses: on } }",
        fields: &TPCC,
        defaults: &[
            ("pauses", "off"),
            ("mix", "deck"),
            ("deliveries", "queued"),
            ("isolation", "read-committed"),
        ],
    },
    OptionTable {
        workload: "rawio",
        fields: &RAWIO,
        defaults: &[
            ("block", "8192"),
            ("count", "2000"),
            ("random", "200"),
            ("direct", "off"),
            ("durable", "end"),
        ],
        example: "- { workload: rawio, clients: 1, timeout: 60s, options: { block: 8192, count: 20000 } }",
    },
    OptionTable {
        workload: "iot",
        example: "- { workload: iot, clients: 150, options: { write: 50%, machines: 10000 } }",
        fields: &IOT,
        defaults: &[
            ("write", "90%"),
            ("machines", "10000"),
            ("sensors", "100"),
            ("stations", "100"),
            ("limit", "10"),
            ("data_min", "800"),
            ("data_max", "1200"),
            ("preload", "10000"),
        ],
    },
    OptionTable {
        workload: "append",
        example: "- { workload: append, clients: 8, options: { isolation: repeatable-read } }",
        fields: &APPEND,
        defaults: &[],
    },
    OptionTable {
        workload: "bank",
        example: "- { workload: bank, clients: 8, options: { isolation: serializable } }",
        fields: &BANK,
        defaults: &[],
    },
    OptionTable {
        workload: "script",
        fields: &SCRIPT,
        defaults: &[],
        example: "- { workload: script, clients: 8, options: { scripts: [{ builtin: select-only }] } }",
    },
];

/// The options of a workload; none where it has none.
#[must_use]
pub fn table(workload: &str) -> Option<&'static OptionTable> {
    OPTIONS.iter().find(|table| table.workload == workload)
}

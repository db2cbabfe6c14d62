//! The language of engine files as tables: every key, what it holds and what it means.
//!
//! Owns words and shapes; which values make sense together is found by reading.

use serde_json::{Value, json};
use yaml::explain::{Explanation, keys, search, sections};
use yaml::language::{
    Field, Fields, Language, OwnShape, Shape, choice, no_keys, no_tables, optional, plain, required,
};

pub(super) mod asking;
pub(super) mod client;

use self::asking::{ASK, HAND_OVER, ROLES, STEP};
use self::client::CLIENT;

/// What the language calls itself.
pub(super) static LANGUAGE: Language = Language {
    family: "engine",
    noun: "engine file",
    begin: "begin with `engine: my-database`, or copy one of the shipped engines (`holdfast explain engine`)",
    shorten: "an engine file holds templates, not the database's own files",
    example,
};

fn example(field: &Field) -> Option<String> {
    let value = match field.name {
        "engine" | "name" => "my-database",
        "summary" => "My database 2 or newer: what it is, in a line",
        "programs" => "[my-database]",
        "version" if matches!(field.shape, Shape::Map(_)) => "{ command: [my-database, --version] }",
        "query" => "\"SELECT release_version FROM system.local\"",
        "command" => "[my-database, --data, \"{volume}/data\"]",
        "ports" => "{ client: 5432 }",
        "ready" => "{ tcp: client }",
        "leads" => "{ field: role, is: [leader] }",
        "at-least" => "\"1.0\"",
        "field" => "role",
        "is" => "[leader]",
        "client" => "{ protocol: postgres, user: me, database: mine }",
        "takes-writes" => "{ query: \"SELECT pg_is_in_recovery()\", is: [f] }",
        "claims" => "{ isolation: serializable }",
        "paper" => "{ commit: at-end, quorum: majority, elects: { timeout: 1s, heartbeat: 100ms } }",
        "elects" => "{ timeout: 1s, heartbeat: 100ms }",
        "setting" => "log_sync",
        "default" => "periodic",
        "tested" => "{ here: false, from: its documentation }",
        _ => return None,
    };
    Some(value.to_owned())
}

const TEMPLATE: Shape = Shape::Own(&OwnShape {
    holds: || "text with names in braces (`{node.address}:{ports.client}`)".to_owned(),
    schema: || json!({ "type": ["string", "number", "boolean"] }),
    keys: no_keys,
    tables: no_tables,
});

const PERIOD: Shape = Shape::Either(&[Shape::Duration, Shape::Map(&PERIOD_OF_A_SETTING)]);
const TEXTS: Shape = Shape::List { of: &Shape::Text, least: 1, most: None };
const TEMPLATES: Shape = Shape::List { of: &TEMPLATE, least: 1, most: None };
/// Templates by names that are not ours.
const VALUES: Shape = Shape::Own(&OwnShape {
    holds: || "a map; each value text with names in braces".to_owned(),
    schema: || json!({ "type": "object", "additionalProperties": { "type": ["string", "number", "boolean"] } }),
    keys: no_keys,
    tables: no_tables,
});
/// Texts by names that are not ours.
const NAMED_TEXTS: Shape = Shape::Own(&OwnShape {
    holds: || "a map; each value text".to_owned(),
    schema: || json!({ "type": "object", "additionalProperties": { "type": ["string", "number", "boolean"] } }),
    keys: no_keys,
    tables: no_tables,
});
const PORT: Shape = Shape::Count { least: 1, most: 65_535 };

/// Protocols that clients speak, as written.
pub(super) const PROTOCOLS: &[&str] =
    &["postgres", "postgres-compatible", "mysql", "etcd", "redis", "cql", "process"];
pub(super) const ISOLATIONS: &[&str] = &["read-committed", "snapshot-isolation", "serializable"];
pub(super) const ORDERS: &[&str] = &["any", REAL_TIME];
pub(super) const REAL_TIME: &str = "real-time";
pub(super) const COMMITS: &[&str] = &[AT_END, "each-request"];
pub(super) const AT_END: &str = "at-end";
pub(super) const QUORUMS: &[&str] = &[MAJORITY, AS_ASKED, PER_REQUEST];
pub(super) const MAJORITY: &str = "majority";
pub(super) const AS_ASKED: &str = "as-asked";
pub(super) const PER_REQUEST: &str = "per-request";
/// What stands for `roles` where no node leads.
pub(super) const NONE: &str = "none";
pub(super) const CONSISTENCIES: &[&str] = &["one", "quorum", "all"];
pub(super) const STARTS: &[&str] = &["together", FIRST_ALONE];
pub(super) const FIRST_ALONE: &str = "first-alone";
pub(super) const SIGNALS: &[&str] = &["TERM", INT];
pub(super) const INT: &str = "INT";
pub(super) const PLACES: &[&str] = &["leader", EVERY];
pub(super) const EVERY: &str = "every";
pub(super) const SHARES: &[&str] = &["first", EVERY];
pub(super) const ONLY: &[&str] = &[SYNCHRONOUS, "asynchronous"];
pub(super) const SYNCHRONOUS: &str = "synchronous";

/// The whole file.
pub(super) static ENGINE: Fields = plain(
    "an engine file",
    &[
        required("engine", Shape::Name, "the engine's name, also of its folder in the cache"),
        required("summary", Shape::Text, "what it is, in one line"),
        required("find", Shape::Map(&FIND), "how its programs are found on a machine"),
        optional(
            "install",
            Shape::List { of: &Shape::Map(&WAY), least: 1, most: None },
            "ways to install it into the cache directory, without root, tried in this order; when absent it has to be there",
        ),
        optional(
            "by-hand",
            Shape::Named(&Shape::Text),
            "the command with which a person installs it, by the distribution's name in its os-release",
        ),
        optional(
            "environment",
            VALUES,
            "what every process and command has in its environment; nothing else is there",
        ),
        required(
            "ports",
            Shape::Named(&PORT),
            "ports by name; `client` is the one that the loads connect to",
        ),
        required(
            "processes",
            Shape::List { of: &Shape::Map(&PROCESS), least: 1, most: Some(8) },
            "the processes of each node in the order in which they are started; the last one is the database itself",
        ),
        required(
            "roles",
            Shape::Either(&[Shape::Map(&ROLES), Shape::Word(&[NONE])]),
            "how a node is asked whether it leads; none where every node takes writes",
        ),
        optional(
            "hand-over",
            Shape::Map(&HAND_OVER),
            "how the node that leads is asked to let another lead, so that the scenario's choice leads at first; its templates \
             have `to.name`, `to.identity` and `from.name`",
        ),
        optional(
            "once-ready",
            Shape::List { of: &Shape::Map(&ASK), least: 1, most: None },
            "what is done on a node whenever its processes have become ready, at first and after each return, in order; 30s when \
             `within` is absent",
        ),
        optional(
            "bootstrap",
            Shape::List { of: &Shape::Map(&STEP), least: 1, most: None },
            "what is done once all processes are ready, in order; where no node leads, on the first node where a step does not say \
             otherwise",
        ),
        optional(
            "shell",
            VALUES,
            "what the shell of a person has in its environment; the list `reached` holds the node it is on, or all nodes elsewhere",
        ),
        optional(
            "links",
            Shape::Flag,
            "whether the database makes symbolic links on its volume; not when absent",
        ),
        optional(
            "memory",
            Shape::Size,
            "about what a node's processes take, for `check` and `run` to reckon with; 90MiB when absent",
        ),
        required("client", Shape::Map(&CLIENT), "how the loads speak to it"),
        required("claims", Shape::Map(&CLAIMS), "what it promises; the checks hold it to that"),
        required("paper", Shape::Map(&PAPER), "what `check` and `predict` assume of it"),
        optional(
            "settings",
            Shape::Map(&SETTINGS),
            "what `database.settings` of a scenario may hold; nothing when absent",
        ),
        required("tested", Shape::Map(&TESTED), "what was tried of this file"),
    ],
);

pub(super) static FIND: Fields = plain(
    "`find`",
    &[
        required("programs", TEXTS, "the programs it needs; the first one's folder is the engine's"),
        optional(
            "folders",
            TEXTS,
            "folders to look in beside those of PATH, from the root of the machine and of what was installed; `*` stands for any \
             name, the greatest version first. usr/bin when absent",
        ),
        required("version", Shape::Map(&VERSION), "how its version is told"),
        required("at-least", Shape::Text, "the oldest version that will do"),
    ],
);

pub(super) static VERSION: Fields = choice(
    "`version`",
    &[
        optional(
            "command",
            TEXTS,
            "a command that writes it: one of `programs`, and a word such as --version. It is run outside of the lab",
        ),
        optional(
            "file",
            TEXTS,
            "or the name of a file in one of `folders` with `*` where the version stands, such as my-database-*.jar; then that \
             file's folder is the engine's. The first of several that is there tells",
        ),
        optional(
            "after",
            Shape::Text,
            "with `command`: what stands before it there; it is the first number when absent",
        ),
    ],
    &["command", "file"],
);

pub(super) static WAY: Fields = choice(
    "a way of installing",
    &[
        optional("apt", TEXTS, "Debian's packages, unpacked into the cache directory"),
        optional("dependencies", Shape::Flag, "with `apt`: also what they depend on and this machine lacks"),
        optional("pip", Shape::Text, "the name of a wheel on PyPI"),
        optional(
            "maven",
            NAMED_TEXTS,
            "jars of Maven Central, all that are needed: `group:artifact:version`, perhaps `:classifier`, each with its SHA-256; \
             they lie in `lib` of what is installed. Needs `curl`",
        ),
        optional("version", Shape::Text, "with `pip`: its version"),
        optional("sha256", NAMED_TEXTS, "with `pip`: its checksum for each architecture (x86_64, aarch64)"),
        optional(
            "megabytes",
            Shape::Count { least: 1, most: 10_000 },
            "with `pip` and `maven`: its size, for people",
        ),
    ],
    &["apt", "pip", "maven"],
);

pub(super) static PROCESS: Fields = plain(
    "a process",
    &[
        required("name", Shape::Name, "its name, also of its log"),
        required(
            "command",
            TEMPLATES,
            "the program, one of `find.programs`, and its arguments; one that is nothing but a list without `join` becomes an \
             argument for each element",
        ),
        optional("environment", VALUES, "what it has in its environment beside what all have"),
        optional(
            "files",
            VALUES,
            "files on the node's volume that are written before it starts, by their path from the volume's root",
        ),
        optional(
            "prepare",
            Shape::List { of: &Shape::Map(&PREPARATION), least: 1, most: None },
            "commands that are run to their end, in order, before the process starts on a node for the first time; its files are \
             there already",
        ),
        optional(
            "keeps",
            TEXTS,
            "those of `files` that the database writes to itself: once such a file is there it is left as it is",
        ),
        optional(
            "start",
            Shape::Word(STARTS),
            "at first: on all nodes together, as without it, or on the first node alone and on the others once that is ready",
        ),
        optional(
            "form",
            Shape::List { of: &Shape::Map(&ASK), least: 1, most: None },
            "what makes a cluster of the processes that have been started for the first time, before they are ready: asked of the \
             first node, in order; 30s when `within` is absent",
        ),
        required("ready", Shape::Map(&ASK), "what shows that it is ready; 20s when `within` is absent"),
        optional(
            "turns-down",
            TEXTS,
            "texts by which it tells in its log that it does not know a setting, so that this line is shown and not the last ones",
        ),
        optional("stop", Shape::Word(SIGNALS), "the signal that asks it to end; TERM when absent"),
    ],
);

pub(super) static PREPARATION: Fields = plain(
    "a preparation",
    &[
        required("command", TEMPLATES, "the program, one of `find.programs`, and its arguments"),
        optional("on", Shape::Word(SHARES), "on the first node alone, as without it, or on every node"),
    ],
);

pub(super) static CLAIMS: Fields = plain(
    "`claims`",
    &[
        required(
            "isolation",
            Shape::Word(ISOLATIONS),
            "the isolation of a transaction that asks for nothing special",
        ),
        optional(
            "order",
            Shape::Word(ORDERS),
            "whether transactions take effect in the order of real time (strict serializability); any when absent",
        ),
        optional(
            "isolation-levels",
            Shape::Flag,
            "whether a transaction can ask for a level of its own; not when absent",
        ),
        optional("replica-reads", Shape::Flag, "whether reads can be sent to replicas; not when absent"),
    ],
);

pub(super) static PAPER: Fields = plain(
    "`paper`",
    &[
        required(
            "commit",
            Shape::Word(COMMITS),
            "when a transaction waits for acknowledgements: once, at its end, or at each request that writes",
        ),
        required(
            "quorum",
            Shape::Word(QUORUMS),
            "what it waits for: always a majority of the nodes, or what the scenario's `replication` asks for, or what each load asks \
             for with `consistency`, of the nodes that hold a row",
        ),
        optional(
            "elects",
            Shape::Map(&ELECTS),
            "when the nodes elect another leader; not with `roles: none`, and else required",
        ),
        optional(
            "unsynced",
            Shape::Map(&UNSYNCED),
            "when a node acknowledges a write before it is synced, so that a loss of power takes it back; never when absent",
        ),
        optional(
            "clock-tolerance",
            Shape::Either(&[Shape::Word(&[ANY_TIME]), Shape::Duration]),
            "how far a node's clock may be off before the database notices, or any where nothing that it decides depends on the time \
             of day; nothing is said of it when absent",
        ),
    ],
);

/// No time of day decides anything.
pub(super) const ANY_TIME: &str = "any";

pub(super) static UNSYNCED: Fields = plain(
    "`unsynced`",
    &[
        required("setting", Shape::Text, "the setting that decides it"),
        required("is", TEXTS, "the values with which a write is acknowledged before it is synced"),
        required("default", Shape::Text, "its value when the scenario does not set it"),
    ],
);

pub(super) static ELECTS: Fields = plain(
    "`elects`",
    &[
        required(
            "timeout",
            PERIOD,
            "how long nothing is heard of the leader until another is elected, at least",
        ),
        required("heartbeat", PERIOD, "how often the leader gives a sign of life"),
        optional(
            "heartbeats-late",
            Shape::Positive,
            "the oldest that the last sign may be when the timeout begins, in heartbeats; 1 when absent",
        ),
    ],
);

pub(super) static PERIOD_OF_A_SETTING: Fields = plain(
    "a period",
    &[
        required("setting", Shape::Text, "the setting that changes it, in milliseconds"),
        required("default", Shape::Duration, "what it is without the setting"),
    ],
);

pub(super) static SETTINGS: Fields = plain(
    "`settings`",
    &[
        optional("signs", Shape::Text, "what may stand in a name beside small letters and digits"),
        required("help", Shape::Text, "how a name is written, in words, with an example"),
        optional(
            "decided",
            NAMED_TEXTS,
            "names that this file decides, with the reason; one that ends with a hyphen stands for all that begin so",
        ),
        optional("known", TEXTS, "names there are, so that a misspelt one is found; others are handed on"),
    ],
);

pub(super) static TESTED: Fields = plain(
    "`tested`",
    &[
        required("here", Shape::Flag, "whether the project's own tests run it"),
        optional("versions", TEXTS, "the versions that were run"),
        optional("from", Shape::Text, "where it is from, where it was not run"),
    ],
);

/// The JSON Schema of an engine file.
#[must_use]
pub fn json_schema() -> Value {
    yaml::schema::of_file(&ENGINE, "Holdfast engine")
}

/// Every map of an engine file with its keys, the whole first.
#[must_use]
pub fn explain() -> Vec<Explanation> {
    let whole = Explanation {
        path: "the whole engine file".to_owned(),
        meaning: "one file that says how a database is found, run and asked".to_owned(),
        holds: "a map".to_owned(),
        keys: keys(&ENGINE),
        examples: Vec::new(),
    };
    std::iter::once(whole).chain(sections(&ENGINE)).chain([super::names::explained()]).collect()
}

/// What there is to say of a key of an engine file.
#[must_use]
pub fn words(word: &str) -> Vec<Explanation> {
    let mut found = Vec::new();
    search(&ENGINE, "", word, &mut found);
    found
}

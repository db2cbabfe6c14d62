//! The language of engine files as tables: every key, what it holds and what it means.
//!
//! Owns words and shapes; which values make sense together is found by reading.

use serde_json::{Value, json};
use yaml::explain::{Explanation, ends_with, keys, search, sections};
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
        "of" => "My database",
        "line" => "\"ended: {process} by signal {signal}\"",
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
            "ways to install it into the cache directory, without root, tried in this order; without it the database \
             must already be installed",
        ),
        optional(
            "by-hand",
            Shape::Named(&Shape::Text),
            "the command to install it by hand, by the distribution's name in os-release",
        ),
        optional(
            "environment",
            VALUES,
            "environment variables of every process and command; nothing else is inherited",
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
            "how a node reports whether it is the leader; `none` if every node takes writes",
        ),
        optional(
            "hand-over",
            Shape::Map(&HAND_OVER),
            "how the leader hands its role to another node, so that the first leader is the one that the scenario \
             names; its templates have `to.name`, `to.identity` and `from.name`",
        ),
        optional(
            "once-ready",
            Shape::List { of: &Shape::Map(&ASK), least: 1, most: None },
            "steps on a node each time its processes become ready, at first and after each return, in order; \
             `within` defaults to 30s",
        ),
        optional(
            "bootstrap",
            Shape::List { of: &Shape::Map(&STEP), least: 1, most: None },
            "steps once all processes are ready, in order; if no node leads, on the first node unless a step says \
             otherwise",
        ),
        optional(
            "shell",
            VALUES,
            "environment variables of `holdfast shell`; the list `reached` holds the node of the shell, or all nodes \
             if it is on none",
        ),
        optional(
            "links",
            Shape::Flag,
            "whether the database creates symbolic links on its volume; default false",
        ),
        optional(
            "memory",
            Shape::Size,
            "approximate memory of a node's processes, used by the estimates of `check` and `run`; default 90MiB",
        ),
        required("client", Shape::Map(&CLIENT), "how the loads speak to it"),
        required("claims", Shape::Map(&CLAIMS), "guarantees of the database, which the checks test"),
        required("paper", Shape::Map(&PAPER), "how `check` and `predict` model it"),
        optional(
            "settings",
            Shape::Map(&SETTINGS),
            "settings that `database.settings` of a scenario may hold; default none",
        ),
        required("tested", Shape::Map(&TESTED), "how this file was tested"),
    ],
);

pub(super) static FIND: Fields = plain(
    "`find`",
    &[
        required("programs", TEXTS, "the programs it needs; the first one's folder is the engine's"),
        optional(
            "folders",
            TEXTS,
            "folders to search besides PATH, relative to the root of the machine and of the installation; `*` \
             matches any name, newest version first; default usr/bin",
        ),
        required("version", Shape::Map(&VERSION), "how its version is found"),
        required("at-least", Shape::Text, "the oldest version that is accepted"),
    ],
);

pub(super) static VERSION: Fields = choice(
    "`version`",
    &[
        optional(
            "command",
            TEXTS,
            "a command that prints it: one of `programs`, and a word such as --version. It runs outside the lab",
        ),
        optional(
            "file",
            TEXTS,
            "or the name of a file in one of `folders` with `*` in place of the version, such as my-database-*.jar; \
             that file's folder is then the engine's. Of several names the first that exists is used",
        ),
        optional(
            "after",
            Shape::Text,
            "with `command`: the text before the version; by default the version is the first number",
        ),
    ],
    &["command", "file"],
);

pub(super) static WAY: Fields = choice(
    "a way of installing",
    &[
        optional("apt", TEXTS, "Debian's packages, unpacked into the cache directory"),
        optional("dependencies", Shape::Flag, "with `apt`: also install missing dependencies"),
        optional("pip", Shape::Text, "the name of a wheel on PyPI"),
        optional(
            "maven",
            NAMED_TEXTS,
            "all jars needed from Maven Central: `group:artifact:version`, optionally `:classifier`, each with its \
             SHA-256; they are put into `lib` of the installation. Needs `curl`",
        ),
        optional(
            "image",
            Shape::Text,
            "an image, which nodes see in place of the machine's files: `name:tag` or `name@sha256:...` in a registry \
             (needs `curl`), or `./image.tar` or `./folder` beside the engine file, as `docker save` or an OCI layout has it",
        ),
        optional("version", Shape::Text, "with `pip`: its version"),
        optional("sha256", NAMED_TEXTS, "with `pip`: its checksum for each architecture (x86_64, aarch64)"),
        optional(
            "megabytes",
            Shape::Count { least: 1, most: 10_000 },
            "with `pip`, `maven` and `image`: download size, for the message to the user",
        ),
    ],
    &["apt", "pip", "maven", "image"],
);

pub(super) static PROCESS: Fields = plain(
    "a process",
    &[
        required("name", Shape::Name, "its name, also of its log"),
        required(
            "command",
            TEMPLATES,
            "the program, one of `find.programs`, and its arguments; an argument that is a list without `join` \
             becomes one argument per element",
        ),
        optional(
            "becomes",
            Shape::Text,
            "the program, one of `find.programs`, that runs in the end where `command` is a script that replaces itself (`exec`)",
        ),
        optional("environment", VALUES, "additional environment variables"),
        optional(
            "files",
            VALUES,
            "files on the node's volume that are written before it starts, by their path from the volume's root",
        ),
        optional(
            "prepare",
            Shape::List { of: &Shape::Map(&PREPARATION), least: 1, most: None },
            "commands that run to completion, in order, before the process first starts on a node; `files` are \
             written before them",
        ),
        optional(
            "keeps",
            TEXTS,
            "those of `files` that the database itself changes: they are written only if they do not exist",
        ),
        optional(
            "start",
            Shape::Word(STARTS),
            "the first start: on all nodes together (default), or on the first node and then, once it is ready, on \
             the others",
        ),
        optional(
            "form",
            Shape::List { of: &Shape::Map(&ASK), least: 1, most: None },
            "steps that form a cluster of the newly started processes, before they are ready: on the first node, in \
             order; `within` defaults to 30s",
        ),
        required("ready", Shape::Map(&ASK), "how to tell that it is ready; `within` defaults to 20s"),
        optional(
            "turns-down",
            TEXTS,
            "texts in its log that report an unknown setting, so that the error message shows that line instead of \
             the last lines",
        ),
        optional(
            "killed",
            Shape::List { of: &Shape::Map(&KILLED), least: 1, most: None },
            "lines in its log that report a process that it started and a signal ended. Without them the lab sees \
             only kills of processes that it started itself, and of servers in the background",
        ),
        optional("stop", Shape::Word(SIGNALS), "the signal for a clean shutdown; default TERM"),
    ],
);

/// The greatest number of a signal.
pub(super) const MOST_SIGNALS: u64 = 64;

pub(super) static KILLED: Fields = plain(
    "lines about killed processes",
    &[
        required("of", Shape::Text, "the name of the database that the processes belong to, for messages"),
        required(
            "line",
            Shape::Text,
            "what such a line contains: text with `{process}` and `{signal}`, each once, and `{number}` for other \
             numbers",
        ),
        optional(
            "own-signals",
            Shape::List { of: &Shape::Count { least: 1, most: MOST_SIGNALS }, least: 1, most: None },
            "numbers of the signals with which the database ends such processes itself; lines with these are ignored",
        ),
    ],
);

pub(super) static PREPARATION: Fields = plain(
    "a preparation",
    &[
        required("command", TEMPLATES, "the program, one of `find.programs`, and its arguments"),
        optional("on", Shape::Word(SHARES), "on the first node only (default), or on every node"),
    ],
);

pub(super) static CLAIMS: Fields = plain(
    "`claims`",
    &[
        required("isolation", Shape::Word(ISOLATIONS), "the default isolation level"),
        optional(
            "order",
            Shape::Word(ORDERS),
            "`real-time` if transactions take effect in real-time order (strict serializability); default any",
        ),
        optional(
            "isolation-levels",
            Shape::Flag,
            "whether a transaction can choose its isolation level; default false",
        ),
        optional(
            "replica-reads",
            Shape::Flag,
            "whether each node answers reads from its own copy alone, in CQL at NODE_LOCAL; default false",
        ),
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
            "what it waits for: always a majority of the nodes (`majority`), the number that the scenario's \
             `replication` sets (`as-asked`), or the number of replicas that each load's `consistency` sets \
             (`per-request`)",
        ),
        optional(
            "elects",
            Shape::Map(&ELECTS),
            "when the nodes elect another leader; required unless `roles: none`",
        ),
        optional(
            "unsynced",
            Shape::Map(&UNSYNCED),
            "when a node acknowledges a write before it is synced, so that a power loss destroys it; default never",
        ),
        optional(
            "clock-tolerance",
            Shape::Either(&[Shape::Word(&[ANY_TIME]), Shape::Duration, Shape::Map(&NO_TOLERANCE)]),
            "how far a node's clock may be off before the database reacts, `any` if it does not depend on the time of \
             day, or why there is no such bound; unknown by default",
        ),
    ],
);

/// No time of day decides anything.
pub(super) const ANY_TIME: &str = "any";

pub(super) static NO_TOLERANCE: Fields = plain(
    "`clock-tolerance`",
    &[required(NONE, Shape::Text, "what the time of day decides; the makers state no bound for it")],
);

pub(super) static UNSYNCED: Fields = plain(
    "`unsynced`",
    &[
        required("setting", Shape::Text, "the setting that decides it"),
        required("is", TEXTS, "the values with which a write is acknowledged before it is synced"),
        required("default", Shape::Text, "its value when the scenario does not set it"),
        optional(
            "synced-by",
            Shape::Text,
            "the settings that sync each write before it is acknowledged, as a scenario has them; `check` recommends \
             them",
        ),
    ],
);

pub(super) static ELECTS: Fields = plain(
    "`elects`",
    &[
        required("timeout", PERIOD, "shortest time without a heartbeat before another leader is elected"),
        required("heartbeat", PERIOD, "how often the leader sends a heartbeat"),
        optional(
            "heartbeats-late",
            Shape::Positive,
            "how old the last heartbeat may be when the timeout starts, in heartbeats; default 1",
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
        optional("signs", Shape::Text, "characters allowed in a name besides small letters and digits"),
        required("help", Shape::Text, "the form of a name, in words, with an example"),
        optional(
            "decided",
            NAMED_TEXTS,
            "names that this file sets itself, each with the reason; a name that ends with a hyphen is a prefix",
        ),
        optional(
            "known",
            TEXTS,
            "known names, so that a misspelt one can be corrected; other names are passed on",
        ),
    ],
);

pub(super) static TESTED: Fields = plain(
    "`tested`",
    &[
        required("here", Shape::Flag, "whether the project's own tests run it"),
        optional("versions", TEXTS, "the versions that were run"),
        optional("from", Shape::Text, "the source of this file, if it was not run"),
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
        meaning: "one file that describes how to find, run and query a database".to_owned(),
        holds: "a map".to_owned(),
        keys: keys(&ENGINE),
        examples: Vec::new(),
    };
    std::iter::once(whole).chain(sections(&ENGINE)).chain([super::names::explained()]).collect()
}

/// What there is to say of a key of an engine file, `elects`, or of one at a place, `paper.elects`.
#[must_use]
pub fn words(word: &str) -> Vec<Explanation> {
    let keys: Vec<&str> = word.split('.').collect();
    let mut found = Vec::new();
    search(&ENGINE, "", keys.last().copied().unwrap_or(word), &mut found);
    found.retain(|one| keys.len() == 1 || ends_with(&one.path, &keys));
    found
}

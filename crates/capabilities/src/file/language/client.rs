//! How clients speak to the database: the keys of `client`.
//!
//! Owns this part of the language.

use serde_json::json;
use yaml::language::{Fields, OwnShape, Shape, choice, no_keys, no_tables, optional, plain, required};

use super::{NAMED_TEXTS, PROTOCOLS, TEMPLATE, TEMPLATES, TEXTS, VALUES};

/// Client programs that ship.
pub(in crate::file) const PROGRAMS: &[&str] = &[DBAPI, JDBC, MONGO];
pub(in crate::file) const DBAPI: &str = "dbapi";
pub(in crate::file) const JDBC: &str = "jdbc";
pub(in crate::file) const MONGO: &str = "mongo";
/// What a client program speaks of.
pub(in crate::file) const SPEAKS: &[&str] = &[SQL, KEYS];
pub(in crate::file) const SQL: &str = "sql";
pub(in crate::file) const KEYS: &str = "keys";
/// Whose SQL a client program's database takes.
pub(in crate::file) const DIALECTS: &[&str] = &["postgres", "mysql", STANDARD];
pub(in crate::file) const STANDARD: &str = "standard";

pub(in crate::file) static CLIENT: Fields = plain(
    "`client`",
    &[
        required(
            "protocol",
            Shape::Word(PROTOCOLS),
            "the protocol; `holdfast list engines` shows which workloads it supports. Use `postgres-compatible` for \
             other databases that speak PostgreSQL's protocol: features that only PostgreSQL has, such as VACUUM and \
             cursors, are not used",
        ),
        optional("user", Shape::Text, "the user; no password is asked for inside the lab"),
        optional("database", Shape::Text, "the database; for CQL the keyspace, default holdfast"),
        optional(
            "program",
            Shape::Either(&[Shape::Word(PROGRAMS), TEMPLATES]),
            "with `process`: the program that has the driver, one that ships or a command, the first word one of `find.programs`",
        ),
        optional(
            "speaks",
            Shape::Word(SPEAKS),
            "with `process`: whether the program runs SQL statements or transactions over keys and values; default sql, \
             for mongo keys",
        ),
        optional(
            "dialect",
            Shape::Word(DIALECTS),
            "with `process`: which SQL dialect the database accepts; required unless the program speaks keys",
        ),
        optional(
            "driver",
            Shape::Text,
            "with `process`: what the program is to load; for dbapi a Python module, such as pg8000.dbapi, for jdbc a class, if the driver does \
             not announce itself, for mongo a Python module, default pymongo",
        ),
        optional(
            "install",
            Shape::Map(&DRIVER_FILES),
            "with `process`: how the driver is installed into the cache directory; without it the driver must already be on the machine",
        ),
        optional(
            "class-path",
            TEMPLATES,
            "with `jdbc`: additional class path besides the installed jars, such as \"{folder}/*\" or \
             /usr/share/java/postgresql.jar",
        ),
        optional(
            "url",
            TEMPLATE,
            "with `process`: the URL of a node, if the driver takes one; for jdbc required",
        ),
        optional(
            "options",
            VALUES,
            "with `process`: what the driver is given for a node; for dbapi the arguments of `connect`, default host, port, user and \
             database; for jdbc its properties; for mongo `read_concern` (linearizable, the default, or majority) and the \
             driver's own options",
        ),
        optional(
            "takes-writes",
            Shape::Map(&TAKES_WRITES),
            "with a program that speaks SQL: how to tell whether a node takes writes; by default every node does, unless the \
             program says otherwise",
        ),
        optional(
            "prepare",
            TEMPLATES,
            "with a program that speaks SQL: statements that are run before each load's tables are made; running one again must \
             do no harm",
        ),
    ],
);

/// Checksums by names that are not ours, one or several for each.
const WHEELS: Shape = Shape::Own(&OwnShape {
    holds: || "a map; each value text or a list of texts".to_owned(),
    schema: || {
        let checksum = json!({ "type": ["string", "number"] });
        let several = json!({ "type": "array", "items": checksum, "minItems": 1 });
        json!({ "type": "object", "additionalProperties": { "anyOf": [checksum, several] } })
    },
    keys: no_keys,
    tables: no_tables,
});

pub(in crate::file) static DRIVER_FILES: Fields = choice(
    "`install` of a driver",
    &[
        optional(
            "pip",
            WHEELS,
            "wheels of PyPI, all that are needed: `name==version`, each with its SHA-256, or a list of them where PyPI has a build \
             for each version of Python",
        ),
        optional(
            "maven",
            NAMED_TEXTS,
            "jars of Maven Central, all that are needed: `group:artifact:version`, each with its SHA-256",
        ),
    ],
    &["pip", "maven"],
);

pub(in crate::file) static TAKES_WRITES: Fields = plain(
    "`takes-writes`",
    &[
        required("query", Shape::Text, "a query sent on every new session"),
        required(
            "is",
            TEXTS,
            "the first cell of its answer on a node that takes writes; case does not matter",
        ),
    ],
);

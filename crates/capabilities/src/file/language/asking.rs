//! How a node is asked something: the keys of questions, of steps, of `roles` and of `hand-over`.
//!
//! Owns this part of the language.

use yaml::language::{Field, Fields, Shape, choice, optional, plain, required};

use super::{CONSISTENCIES, ONLY, PLACES, TEMPLATE, TEMPLATES, TEXTS};

const HTTP_FIELD: Field = optional("http", Shape::Map(&HTTP), "an HTTP request to a port of the node");
const TCP_FIELD: Field = optional("tcp", Shape::Text, "succeeds when this named port accepts a connection");
const COMMAND_FIELD: Field = optional("command", TEMPLATES, "a command on the node that exits with 0");
const EXPECT_FIELD: Field = optional("expect", Shape::Map(&EXPECT), "what its answer must contain");
const WITHIN_FIELD: Field = optional("within", Shape::Duration, "how long it is retried");
const CQL_FIELD: Field = optional(
    "cql",
    Shape::Map(&CQL),
    "a statement in CQL; its answer is looked at as JSON, a list of rows that are lists of texts",
);
const REDIS_FIELD: Field =
    optional("redis", Shape::Map(&REDIS), "a command in Redis' protocol; its answer is looked at as JSON");
const MYSQL_FIELD: Field = optional(
    "mysql",
    Shape::Map(&MYSQL),
    "a statement in MySQL's protocol; its answer is looked at as JSON, a list of rows that are lists of texts",
);
const POSTGRES_FIELD: Field = optional(
    "postgres",
    Shape::Map(&POSTGRES),
    "a statement in PostgreSQL's protocol; its answer is looked at as JSON, a list of rows that are lists of texts",
);
const MONGO_FIELD: Field =
    optional("mongo", Shape::Map(&MONGO), "a command of MongoDB; its reply is looked at as JSON");
/// The ways in which something is asked, as written.
pub(in crate::file) const WAYS_TO_ASK: &[&str] =
    &["http", "tcp", "command", "redis", "mysql", "postgres", "cql", "mongo"];

pub(in crate::file) static ASK: Fields = choice(
    "a question",
    &[
        HTTP_FIELD,
        TCP_FIELD,
        COMMAND_FIELD,
        REDIS_FIELD,
        MYSQL_FIELD,
        POSTGRES_FIELD,
        CQL_FIELD,
        MONGO_FIELD,
        EXPECT_FIELD,
        WITHIN_FIELD,
    ],
    WAYS_TO_ASK,
);

pub(in crate::file) static HAND_OVER: Fields =
    choice("`hand-over`", &[HTTP_FIELD, COMMAND_FIELD], &["http", "command"]);

pub(in crate::file) static STEP: Fields = choice(
    "a step",
    &[
        HTTP_FIELD,
        TCP_FIELD,
        COMMAND_FIELD,
        REDIS_FIELD,
        MYSQL_FIELD,
        POSTGRES_FIELD,
        CQL_FIELD,
        MONGO_FIELD,
        EXPECT_FIELD,
        WITHIN_FIELD,
        optional("on", Shape::Word(PLACES), "on the leader (default), or on every node"),
        optional(
            "only",
            Shape::Word(ONLY),
            "only where commits wait for standbys, or only where they do not",
        ),
    ],
    WAYS_TO_ASK,
);

pub(in crate::file) static HTTP: Fields = choice(
    "an HTTP request",
    &[
        optional("get", TEMPLATE, "the path that is got"),
        optional("post", TEMPLATE, "the path that is posted to"),
        required("port", Shape::Text, "the name of the port"),
        optional("body", TEMPLATE, "what is posted"),
    ],
    &["get", "post"],
);

pub(in crate::file) static REDIS: Fields = plain(
    "a command in Redis' protocol",
    &[required("ask", TEMPLATES, "its words"), required("port", Shape::Text, "the name of the port")],
);

pub(in crate::file) static MYSQL: Fields = plain(
    "a statement in MySQL's protocol",
    &[
        required("query", TEMPLATE, "the statement"),
        required("port", Shape::Text, "the name of the port"),
        required("user", Shape::Text, "who asks; without a password"),
    ],
);

pub(in crate::file) static POSTGRES: Fields = plain(
    "a statement in PostgreSQL's protocol",
    &[
        required("query", TEMPLATE, "the statement"),
        required("port", Shape::Text, "the name of the port"),
        required("user", Shape::Text, "who asks; without a password"),
        required("database", Shape::Text, "the database that is asked"),
    ],
);

pub(in crate::file) static CQL: Fields = plain(
    "a statement in CQL",
    &[
        required("query", TEMPLATE, "the statement"),
        required("port", Shape::Text, "the name of the port"),
        optional(
            "consistency",
            Shape::Word(CONSISTENCIES),
            "how many of the nodes that hold a row must answer; default one",
        ),
    ],
);

pub(in crate::file) static MONGO: Fields = plain(
    "a command of MongoDB",
    &[
        required("ask", TEMPLATE, "the command in JSON, its name first, sent to the database admin"),
        required("port", Shape::Text, "the name of the port"),
    ],
);

pub(in crate::file) static EXPECT: Fields = Fields {
    what: "`expect`",
    fields: &[
        optional("status", Shape::Count { least: 100, most: 599 }, "the HTTP status; default 200"),
        optional(
            "field",
            Shape::Text,
            "a field of its JSON, with dots between the names, or the place of a list's element from 0 on, that `is`",
        ),
        optional("is", TEXTS, "one of these"),
        optional("text", TEMPLATE, "a text that it contains"),
    ],
    exactly_one_of: &[],
    at_least_one_of: &["status", "field", "text"],
    pair: Some(("field", "is")),
};

pub(in crate::file) static ROLES: Fields = choice(
    "`roles`",
    &[
        HTTP_FIELD,
        COMMAND_FIELD,
        REDIS_FIELD,
        MYSQL_FIELD,
        POSTGRES_FIELD,
        MONGO_FIELD,
        required("leads", Shape::Map(&LEADS), "what its answer in JSON says when it leads"),
        optional("identity", Shape::Text, "the field by which the database knows the node, for `hand-over`"),
        optional(
            "position",
            TEXTS,
            "the node's position, a number: the first of these fields that exists. A follower has caught up when it \
             reaches the leader's position",
        ),
    ],
    &["http", "command", "redis", "mysql", "postgres", "mongo"],
);

pub(in crate::file) static LEADS: Fields = choice(
    "`leads`",
    &[
        required(
            "field",
            Shape::Text,
            "a field of the answer, with dots between the names, or the place of a list's element from 0 on",
        ),
        optional("is", TEXTS, "it has one of these values"),
        optional("same-as", Shape::Text, "it has the value of this other field"),
    ],
    &["is", "same-as"],
);

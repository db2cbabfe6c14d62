//! The language of command files as tables: every key, what it holds and what it means.
//!
//! Owns words and shapes; which values make sense together is found by reading.

use serde_json::{Value, json};
use yaml::explain::{Explanation, Key, keys, search, sections};
use yaml::language::{
    Field, Fields, Language, OwnShape, Shape, no_keys, no_tables, optional, plain, required,
};

use crate::command_file::ID;
use crate::parameter::Kind;

/// Most commands of a kind.
const MOST_STEPS: usize = 8;
/// Greatest exit code that says something of a command itself: those above tell of `timeout`, a missing program, a signal.
pub(crate) const MOST_EXIT: u64 = 123;

/// What the language calls itself.
pub(crate) static LANGUAGE: Language = Language {
    family: "commands",
    noun: "command file",
    begin: "begin with `fault: my-fault`, or copy one of the shipped files (`holdfast explain command-file`)",
    shorten: "a command file holds a few commands; put long scripts onto the machine and name them",
    example,
};

fn example(field: &Field) -> Option<String> {
    let value = match field.name {
        "fault" => "my-fault",
        "summary" => "what it does, in a line",
        "written-for" => "{ tool: nftables, version: \"1.0\", asked-by: { run: [nft, --version] } }",
        "tool" => "nftables",
        "version" => "\"1.0\"",
        "asked-by" => "{ run: [nft, --version] }",
        "lasts" => "true",
        "do" => "[{ run: [systemctl, stop, \"{unit}\"] }]",
        "undo" => "[{ run: [systemctl, start, \"{unit}\"] }]",
        "stands" => "[{ run: [systemctl, is-active, \"{unit}\"], exit: 3, has: inactive }]",
        "gone" => "[{ run: [systemctl, is-active, \"{unit}\"] }]",
        "run" => "[systemctl, stop, \"{unit}\"]",
        "tested" => "{ here: false, from: its documentation }",
        "meaning" => "the unit of the database",
        "example" => "postgresql.service",
        _ => return None,
    };
    Some(value.to_owned())
}

const TEMPLATE: Shape = Shape::Own(&OwnShape {
    holds: || "text with names of parameters in braces (`holdfast_{id}`)".to_owned(),
    schema: || json!({ "type": ["string", "number", "boolean"] }),
    keys: no_keys,
    tables: no_tables,
});
const WORDS: Shape = Shape::List { of: &TEMPLATE, least: 1, most: None };

const RUN: Field = required(
    "run",
    WORDS,
    "the program and its arguments; no shell reads them, and a program is found in PATH and the folders sbin",
);
const WITHIN: Field =
    optional("within", Shape::Duration, "how long it may take before it is ended; 1s to 5m, default 10s");

/// The whole file.
pub(crate) static COMMAND_FILE: Fields = plain(
    "a command file",
    &[
        required("fault", Shape::Name, "the fault's name"),
        required("summary", Shape::Text, "what it does, in one line"),
        required("written-for", Shape::Map(&WRITTEN_FOR), "the tool that the commands use"),
        optional(
            "lasts",
            Shape::Flag,
            "whether it lasts until it is undone (default); `false` for what is over at once, such as a kill",
        ),
        optional(
            "parameters",
            Shape::Named(&Shape::Map(&PARAMETER)),
            "values that the user supplies; each is a name in braces in the commands",
        ),
        required(
            "do",
            Shape::List { of: &Shape::Map(&STEP), least: 1, most: Some(MOST_STEPS) },
            "what strikes, in order; that it ends with exit code 0 is a claim, not evidence",
        ),
        required(
            "undo",
            Shape::List { of: &Shape::Map(&STEP), least: 1, most: Some(MOST_STEPS) },
            "what undoes it, in order, all of it even if one fails; it is also run when it was undone already",
        ),
        required(
            "stands",
            Shape::List { of: &Shape::Map(&LOOK), least: 1, most: Some(MOST_STEPS) },
            "what shows that it stands; must not hold before the strike",
        ),
        required(
            "gone",
            Shape::List { of: &Shape::Map(&LOOK), least: 1, most: Some(MOST_STEPS) },
            "what shows that it is gone; must hold before the strike",
        ),
        required("tested", Shape::Map(&TESTED), "how this file was tested"),
    ],
);

pub(crate) static WRITTEN_FOR: Fields = plain(
    "`written-for`",
    &[
        required("tool", Shape::Text, "its name"),
        required("version", Shape::Text, "the version that the commands were written for"),
        required("asked-by", Shape::Map(&STEP), "the command that prints the version of a machine"),
    ],
);

pub(crate) static PARAMETER: Fields = plain(
    "a parameter",
    &[
        required("kind", Shape::Word(Kind::NAMES), "what it may be"),
        required("meaning", Shape::Text, "what it means"),
        required("example", Shape::Text, "a value that it may have"),
        optional(
            "default",
            Shape::Text,
            "its value where none is given; a parameter without a default is required",
        ),
    ],
);

pub(crate) static STEP: Fields = plain("a command", &[RUN, WITHIN]);

pub(crate) static LOOK: Fields = plain(
    "a command that looks",
    &[
        RUN,
        WITHIN,
        optional(
            "exit",
            Shape::Count { least: 0, most: MOST_EXIT },
            "its exit code; default 0. A program that is missing or ended by the time limit has a greater one",
        ),
        optional("has", TEMPLATE, "text that its output or its error output has"),
        optional("lacks", TEMPLATE, "text that neither has"),
        optional(
            "changed",
            Shape::Flag,
            "in `stands`: whether its output, without its error output, must differ from that before the strike; default \
             false",
        ),
    ],
);

pub(crate) static TESTED: Fields = plain(
    "`tested`",
    &[
        required("here", Shape::Flag, "whether the project's own tests run it"),
        optional("with", Shape::Text, "with what and where, if they do"),
        optional("from", Shape::Text, "the source of this file, if they do not"),
    ],
);

/// The JSON Schema of a command file.
#[must_use]
pub fn json_schema() -> Value {
    yaml::schema::of_file(&COMMAND_FILE, "Holdfast command file")
}

/// Every map of a command file with its keys, the whole first, and the kinds of parameters last.
#[must_use]
pub fn explain() -> Vec<Explanation> {
    let whole = Explanation {
        path: "the whole command file".to_owned(),
        meaning: "one file that describes a fault of a machine that exists, as four commands".to_owned(),
        holds: "a map".to_owned(),
        keys: keys(&COMMAND_FILE),
        examples: Vec::new(),
    };
    let kinds = Explanation {
        path: "kinds of parameters".to_owned(),
        meaning: format!(
            "what a value may be. No kind is free text: tools read languages of their own in an argument. `{{{ID}}}` \
             is known in every command: eight hexadecimal digits of the fault's own"
        ),
        holds: "text".to_owned(),
        keys: Kind::WORDS
            .iter()
            .map(|(name, kind)| Key {
                name,
                required: false,
                holds: "a value".to_owned(),
                meaning: kind.form(),
            })
            .collect(),
        examples: Vec::new(),
    };
    std::iter::once(whole).chain(sections(&COMMAND_FILE)).chain([kinds]).collect()
}

/// What there is to say of a key of a command file.
#[must_use]
pub fn words(word: &str) -> Vec<Explanation> {
    let mut found = Vec::new();
    search(&COMMAND_FILE, "", word, &mut found);
    found
}

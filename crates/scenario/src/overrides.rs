//! `--set path=value`: puts values into the tree before it is read, so that an override obeys the same rules as the file.
//!
//! The axes of a matrix put their values in the same way. Owns paths; what a key may hold is found when the tree is decoded, with the caret in the override's own text.

use crate::language::LANGUAGE;
use crate::rejection::{Finding, Spot, Text};
use crate::tree::{self, Entry, Node, Value};

/// How an override is called in messages.
const NAME: &str = "command line";
/// What stands before the path in the text shown to the user.
const BEFORE: &str = "--set ";

/// The text of an override as the user wrote it, for messages.
pub(crate) fn text(path: &str, value: &str) -> Text {
    Text { name: NAME.to_owned(), text: format!("{BEFORE}{path}={value}") }
}

/// One step of a path, and where it was written.
pub(crate) struct Step {
    /// The key or the number of an element.
    pub(crate) key: String,
    at: Spot,
}

/// Sets the value at the path; `text` is the override's own, number `index` of all texts.
pub(crate) fn apply(root: &mut Node, path: &str, text: &Text, index: usize) -> Result<(), Box<Finding>> {
    let start = BEFORE.len();
    let steps = steps(path, Spot { text: index, start, end: start })?;
    let value = value(text, BEFORE.len() + path.len() + 1, index)?;
    set(root, &steps, value)
}

/// The value from that byte on. Nobody sets a block of text, so `> 3s` is what it looks like; in a file YAML insists on
/// quotes around it. Nothing at all is an empty value.
fn value(text: &Text, start: usize, index: usize) -> Result<Node, Box<Finding>> {
    let written = text.text.get(start..).unwrap_or_default();
    let trimmed = written.trim();
    if !trimmed.is_empty() && (!trimmed.starts_with('>') || trimmed.contains('\n')) {
        let node = tree::read(&text.text, start, index, &LANGUAGE)?;
        return refuse_comment(&node, text, index).map_or(Ok(node), Err);
    }
    let start = start + (written.len() - written.trim_start().len());
    let at = Spot { text: index, start, end: start + trimmed.len() };
    Ok(Node { at, head: at, value: Value::Scalar { text: trimmed.to_owned(), plain: true } })
}

/// Nobody comments on a value on the command line: what YAML would drop without a word is part of what was meant.
fn refuse_comment(node: &Node, text: &Text, index: usize) -> Option<Box<Finding>> {
    let behind = text.text.get(last_word_end(node)..)?;
    let between = |letter: char| letter.is_whitespace() || matches!(letter, ',' | ']' | '}');
    let comment = behind.trim_start_matches(between);
    let start = text.text.len() - comment.len();
    let at = Spot { text: index, start, end: start + comment.trim_end().len() };
    comment.starts_with('#').then(|| {
        let help = "put double quotes around the value, inside those of the shell: --set 'path=\"a #1\"'";
        finding(
            "comment",
            at,
            "YAML takes what follows `#` for a comment".to_owned(),
            "would be left out",
            help,
        )
    })
}

/// Where the last word of it ends. The place of a list or a map takes in the comment behind its bracket.
fn last_word_end(node: &Node) -> usize {
    let last = match &node.value {
        Value::Scalar { .. } => return node.at.end,
        Value::List(items) => items.last(),
        Value::Map(entries) => entries.last().map(|entry| &entry.value),
    };
    last.map_or(node.at.start + 1, last_word_end)
}

/// The steps of a path that is written from the beginning of `from` on.
pub(crate) fn steps(path: &str, from: Spot) -> Result<Vec<Step>, Box<Finding>> {
    let mut steps: Vec<Step> = Vec::new();
    let mut start = from.start;
    for key in path.split('.') {
        let at = Spot { text: from.text, start, end: start + key.len() };
        start = at.end + 1;
        if key.is_empty() {
            let help = "write the keys from the top with a dot between them, such as database.cpus or loads.0.clients";
            return Err(finding(
                "bad-path",
                at,
                "a path has an empty part".to_owned(),
                "a key is missing",
                help,
            ));
        }
        // A setting's own name may hold dots: all that follows `database.settings` is one key.
        match steps.as_mut_slice() {
            [one, two, setting] if one.key == "database" && two.key == "settings" => {
                setting.key = format!("{}.{key}", setting.key);
                setting.at.end = at.end;
            }
            // So may an expectation's, which is all that follows `expect`.
            [one, expectation] if one.key == "expect" => {
                expectation.key = format!("{}.{key}", expectation.key);
                expectation.at.end = at.end;
            }
            _ => steps.push(Step { key: key.to_owned(), at }),
        }
    }
    Ok(steps)
}

/// Puts a value where the steps lead.
pub(crate) fn set(node: &mut Node, steps: &[Step], value: Node) -> Result<(), Box<Finding>> {
    let Some((step, rest)) = steps.split_first() else {
        *node = value;
        return Ok(());
    };
    let next = match &mut node.value {
        Value::List(items) => element(items, step)?,
        Value::Map(entries) => entry(entries, step, rest.is_empty()),
        Value::Scalar { .. } => {
            return Err(finding(
                "bad-path",
                step.at,
                format!("`{}` is below a single value, which has no keys", step.key),
                "not a key of a map",
                "set the whole value instead, such as database.failover='{ promote: { after: 3s } }'",
            ));
        }
    };
    set(next, rest, value)?;
    if rest.is_empty() {
        next.head = step.at;
    }
    Ok(())
}

fn element<'n>(items: &'n mut [Node], step: &Step) -> Result<&'n mut Node, Box<Finding>> {
    let count = items.len();
    step.key.parse::<usize>().ok().and_then(|index| items.get_mut(index)).ok_or_else(|| {
        let help = match count {
            0 => "the list is empty: set it as a whole".to_owned(),
            1 => "the list has one element: write 0".to_owned(),
            count => format!("the list has {count} elements: write a number from 0 to {}", count - 1),
        };
        finding(
            "bad-path",
            step.at,
            format!("the list has no element `{}`", step.key),
            "no such element",
            &help,
        )
    })
}

/// The value of a key, made when absent. A key that is set anew is from here on the override's.
fn entry<'n>(entries: &'n mut Vec<Entry>, step: &Step, last: bool) -> &'n mut Node {
    let index = entries.iter().position(|entry| entry.key == step.key).unwrap_or_else(|| {
        let empty = Node { at: step.at, head: step.at, value: Value::Map(Vec::new()) };
        entries.push(Entry { key: step.key.clone(), key_at: step.at, value: empty });
        entries.len() - 1
    });
    if last {
        entries[index].key_at = step.at;
    }
    &mut entries[index].value
}

fn finding(code: &'static str, at: Spot, message: String, label: &str, help: &str) -> Box<Finding> {
    Box::new(Finding { code, message, at, label: label.to_owned(), help: help.to_owned(), also: None })
}

//! YAML text to a tree in which every key and value knows where it stands.
//!
//! Owns what of YAML a file may use (one document, no anchors, no tags, bounded size and depth); knows nothing of a
//! language's own words.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput};

use crate::language::Language;
use crate::rejection::{Finding, Spot};

/// Most bytes of a file, with all that is put into it.
pub const MOST_BYTES: usize = 1 << 20;

/// Deepest nesting.
const MOST_DEPTH: usize = 64;

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The value itself: a scalar's text, `{...}` and `[...]` whole when on one line, else the first of a block.
    pub at: Spot,
    /// Where to point for what is missing in it: the key it belongs to, or itself.
    pub head: Spot,
    pub value: Value,
}

impl Node {
    /// The value at the end of a dotted path, if there is one.
    #[must_use]
    pub fn value_at(&self, path: &str) -> Option<&Node> {
        path.split('.').try_fold(self, |node, step| match &node.value {
            Value::Scalar { .. } => None,
            Value::List(items) => items.get(step.parse::<usize>().ok()?),
            Value::Map(entries) => entries.iter().find(|entry| entry.key == step).map(|entry| &entry.value),
        })
    }
}

/// What a node holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Text, number or word; YAML's own types are not used.
    Scalar {
        /// The text, unquoted.
        text: String,
        /// Written without quotes.
        plain: bool,
    },
    List(Vec<Node>),
    /// A map, in the file's order, without duplicates.
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub key: String,
    /// Where the key stands.
    pub key_at: Spot,
    pub value: Node,
}

/// Reads one YAML document. `text_index` goes into every spot; `skip` bytes at the front of `whole` are not YAML (they
/// are the `--set path=` before an override's value) but do count in the spots.
///
/// # Errors
/// With the first thing that is wrong with it as YAML.
pub fn read(
    whole: &str,
    skip: usize,
    text_index: usize,
    language: &'static Language,
) -> Result<Node, Box<Finding>> {
    let body = whole.get(skip..).unwrap_or_default();
    if body.len() > MOST_BYTES {
        return Err(finding(
            "too-large",
            Spot { text: text_index, start: 0, end: 0 },
            format!("the {} is {} bytes long; at most {MOST_BYTES} are read", language.noun, body.len()),
            "from here on",
            language.shorten,
        ));
    }
    let mut reader = Reader {
        parser: Parser::new_from_str(body),
        body,
        skip,
        text_index,
        language,
        byte_of_char: (!body.is_ascii())
            .then(|| body.char_indices().map(|(byte, _)| byte).chain([body.len()]).collect()),
    };
    reader.document()
}

struct Reader<'t> {
    parser: Parser<'t, StrInput<'t>>,
    body: &'t str,
    skip: usize,
    text_index: usize,
    language: &'static Language,
    /// The scanner counts characters, spans are bytes: the table between them, where they differ.
    byte_of_char: Option<Vec<usize>>,
}

impl<'t> Reader<'t> {
    fn document(&mut self) -> Result<Node, Box<Finding>> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => break,
                Event::DocumentStart(_) if root.is_some() => {
                    return Err(finding(
                        "second-document",
                        self.spot(span),
                        "the file holds a second YAML document",
                        "the second document begins here",
                        format!(
                            "put each {} into a separate file and remove the `---` between them",
                            self.language.noun
                        ),
                    ));
                }
                Event::Nothing | Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd => {}
                event => root = Some(self.node(event, span, 0)?),
            }
        }
        root.ok_or_else(|| {
            finding(
                "empty",
                Spot { text: self.text_index, start: self.skip, end: self.skip },
                "there is nothing here to read",
                "empty",
                self.language.begin,
            )
        })
    }

    fn next(&mut self) -> Result<(Event<'t>, Span), Box<Finding>> {
        match self.parser.next_event() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => Err(self.broken(&error)),
            None => Ok((Event::StreamEnd, Span::empty(Marker::default()))),
        }
    }

    fn node(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Node, Box<Finding>> {
        let at = self.spot(span);
        if depth > MOST_DEPTH {
            return Err(finding(
                "too-deep",
                at,
                format!("more than {MOST_DEPTH} levels of nesting"),
                "too deep",
                format!(
                    "no part of a {} is nested that deep: look for a missing `]` or `}}`",
                    self.language.noun
                ),
            ));
        }
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_anchor_or_tag(anchor, tag.is_some(), at)?;
                let value = Value::Scalar { text: text.into_owned(), plain: style == ScalarStyle::Plain };
                Ok(Node { at, head: at, value })
            }
            Event::SequenceStart(anchor, tag) => {
                self.refuse_anchor_or_tag(anchor, tag.is_some(), at)?;
                self.list(at, depth)
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse_anchor_or_tag(anchor, tag.is_some(), at)?;
                self.map(at, depth)
            }
            Event::Alias(_) => Err(self.anchor_refused(at)),
            // The parser never puts these where a value should be; were it to, that is no file of ours.
            _ => Err(finding("not-yaml", at, "a value is missing", "here", "write the value")),
        }
    }

    fn list(&mut self, start: Spot, depth: usize) -> Result<Node, Box<Finding>> {
        let mut items: Vec<Node> = Vec::new();
        let end = loop {
            match self.next()? {
                (Event::SequenceEnd, span) => break self.spot(span),
                (event, span) => items.push(self.node(event, span, depth + 1)?),
            }
        };
        let at = self.extent(start, end, items.first().map(|item| item.at));
        Ok(Node { at, head: at, value: Value::List(items) })
    }

    fn map(&mut self, start: Spot, depth: usize) -> Result<Node, Box<Finding>> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut seen: BTreeMap<String, Spot> = BTreeMap::new();
        let end = loop {
            let (event, span) = self.next()?;
            let key_at = self.spot(span);
            let key = match event {
                Event::MappingEnd => break key_at,
                Event::Scalar(text, _, 0, None) => text.into_owned(),
                Event::Scalar(..) | Event::Alias(_) => return Err(self.anchor_refused(key_at)),
                _ => {
                    return Err(finding(
                        "key-not-text",
                        key_at,
                        "a key must be a word",
                        "not a word",
                        "quote the value if it begins with `{` or `[`",
                    ));
                }
            };
            if let Some(first) = seen.insert(key.clone(), key_at) {
                let mut twice = finding(
                    "duplicate-key",
                    key_at,
                    format!("`{key}` is given twice"),
                    "again here",
                    "keep one of the two",
                );
                twice.also = Some((first, "first here".to_owned()));
                return Err(twice);
            }
            let (event, span) = self.next()?;
            let mut value = self.node(event, span, depth + 1)?;
            value.head = key_at;
            entries.push(Entry { key, key_at, value });
        };
        let at = self.extent(start, end, entries.first().map(|entry| entry.key_at));
        Ok(Node { at, head: at, value: Value::Map(entries) })
    }

    /// What to point at for a whole list or map.
    fn extent(&self, start: Spot, end: Spot, first: Option<Spot>) -> Spot {
        let opened = self.body.get(start.start - self.skip..).unwrap_or_default();
        if opened.starts_with(['{', '[']) {
            let whole = Spot { end: end.end, ..start };
            let text = self.body.get(whole.start - self.skip..whole.end.saturating_sub(self.skip));
            let one_line = text.is_some_and(|text| !text.contains('\n'));
            return if one_line { whole } else { Spot { end: start.start + 1, ..start } };
        }
        first.unwrap_or(start)
    }

    fn spot(&self, span: Span) -> Spot {
        let byte = |index: usize| {
            let byte = match &self.byte_of_char {
                None => index,
                Some(table) => table.get(index).copied().unwrap_or(self.body.len()),
            };
            self.skip + byte.min(self.body.len())
        };
        let (start, end) = (byte(span.start.index()), byte(span.end.index()));
        Spot { text: self.text_index, start, end: end.max(start) }
    }

    fn refuse_anchor_or_tag(&self, anchor: usize, tagged: bool, at: Spot) -> Result<(), Box<Finding>> {
        if anchor != 0 {
            return Err(self.anchor_refused(at));
        }
        if tagged {
            return Err(finding(
                "tag",
                at,
                format!("YAML tags (`!...`) are not used in {}s", self.language.noun),
                "this value has a tag",
                "remove the tag and write the plain value",
            ));
        }
        Ok(())
    }

    /// Refused altogether: a few lines of nested aliases expand to more than a machine can hold.
    fn anchor_refused(&self, at: Spot) -> Box<Finding> {
        finding(
            "anchor",
            at,
            format!("YAML anchors and aliases (`&name`, `*name`) are not used in {}s", self.language.noun),
            "an anchor or alias",
            "write the value out where it is needed",
        )
    }

    fn broken(&self, error: &ScanError) -> Box<Finding> {
        let marker = *error.marker();
        let at = self.spot(Span::new(marker, marker));
        let before = &self.body[..floor(self.body, at.start - self.skip)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = self.body[line_start..].lines().next().unwrap_or_default();
        if let Some(offset) = greater_sign(line) {
            let start = self.skip + line_start + offset;
            return finding(
                "unquoted-greater",
                Spot { start, end: start + 1, ..at },
                "a value that begins with `>` must be quoted",
                "YAML takes this for the start of a block of text",
                "put quotes around it, as in \"> 10%\"",
            );
        }
        let help = if before[line_start..].contains('\t') || line.trim_start_matches(' ').starts_with('\t') {
            "indent with spaces; YAML does not allow tabs there"
        } else {
            "look at this line and the one before: indentation, a missing `:`, quote or bracket"
        };
        finding(
            "not-yaml",
            at,
            format!("this is not YAML: {}", error.info()),
            "the reader stopped here",
            help,
        )
    }
}

/// Where in a line a value begins with an unquoted `>`, as in `recovery: > 3s`.
fn greater_sign(line: &str) -> Option<usize> {
    let colon = line.find(": >")?;
    let rest = line[colon + 3..].trim_start_matches('=').trim_start();
    rest.starts_with(|c: char| c.is_ascii_digit()).then_some(colon + 2)
}

fn floor(text: &str, mut index: usize) -> usize {
    index = index.min(text.len());
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

fn finding(
    code: &'static str,
    at: Spot,
    message: impl Into<String>,
    label: impl Into<String>,
    help: impl Into<String>,
) -> Box<Finding> {
    Box::new(Finding {
        code,
        message: message.into(),
        at,
        label: label.into(),
        help: help.into(),
        also: None,
    })
}

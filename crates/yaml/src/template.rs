//! Text with names in it that stand for values: `http://{node.address}:{ports.peer}`.
//!
//! Owns how such text is written and what it becomes. Values only: there is no condition and no code. Which names there are,
//! the place of the text in the file says.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use crate::wording::{listed, nearest, shortened};
use crate::{Decoder, Spanned, Spot};

/// A text with names in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    /// The value of that name.
    Value(String),
    /// For each element of the list of that name `each`, with `join` between them; without it each stands for itself.
    List {
        name: String,
        each: Template,
        join: Option<String>,
    },
}

/// A part of a template without lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'t> {
    /// Text as it stands.
    Text(&'t str),
    /// The name of a value.
    Value(&'t str),
}

/// Which names a template may have, and what a mistake's remedy says of them.
#[derive(Debug, Clone)]
pub struct Names {
    /// Those of values.
    pub values: Vec<String>,
    /// Those of lists, with the names that each element has.
    pub lists: Vec<(&'static str, &'static [&'static str])>,
    /// That there is none of a name, before `is named`: `nothing`, `no parameter`.
    pub none: &'static str,
    /// What to do about a name that is none, before the names that are known.
    pub advice: &'static str,
    /// One of the names, for an example.
    pub example: &'static str,
}

/// What the names stand for.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// Values by name.
    pub values: BTreeMap<String, String>,
    /// Lists by name; each element has values of its own, before those above.
    pub lists: BTreeMap<String, Vec<BTreeMap<String, String>>>,
}

/// What is wrong with a template.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mistake {
    code: &'static str,
    /// The very text that is wrong, as written.
    culprit: String,
    message: String,
    label: &'static str,
    help: String,
}

impl Template {
    /// Reads a template that stands in a file. `source` is the text of that file; `alone` is whether it may be one list whose
    /// elements stand for themselves: an argument of a command. A mistake becomes a finding that points at what is wrong.
    pub fn decode(
        decoder: &mut Decoder,
        source: &str,
        text: &Spanned<String>,
        names: &Names,
        alone: bool,
    ) -> Option<Template> {
        match Template::read(&text.value, names, alone) {
            Ok(template) => Some(template),
            Err(mistake) => {
                let at = culprit(source, text.at, &mistake.culprit);
                decoder.findings.add(mistake.code, at, mistake.message, mistake.label, mistake.help);
                None
            }
        }
    }

    fn read(text: &str, names: &Names, alone: bool) -> Result<Template, Mistake> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let found = &rest[at..];
            if let Some(after) = found.strip_prefix("{{").or_else(|| found.strip_prefix("}}")) {
                plain.push_str(&found[..1]);
                rest = after;
                continue;
            }
            if found.starts_with('}') {
                return Err(brace("}", "`}` closes nothing", names));
            }
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            let inner = closed(found).ok_or_else(|| brace(found, "`{` is not closed", names))?;
            parts.push(part(inner, names)?);
            rest = &found[inner.len() + 2..];
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        let is_alone = alone && parts.len() == 1;
        for part in &parts {
            if let Part::List { name, join: None, .. } = part
                && !is_alone
            {
                return Err(Mistake {
                    code: "list-in-text",
                    culprit: format!("{{{name}"),
                    message: format!(
                        "the list `{name}` within a text needs `join`, the text between its elements"
                    ),
                    label: "needs `join`",
                    help: format!(
                        "write `{{{name}: '...', join: ','}}`; only an argument that is nothing but a list may be \
                         without `join`"
                    ),
                });
            }
        }
        Ok(Template { parts })
    }

    /// The names of the values in it.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Value(name) => Some(name.as_str()),
            Part::Text(_) | Part::List { .. } => None,
        })
    }

    /// Its parts in their order, but for lists.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(Piece::Text(text)),
            Part::Value(name) => Some(Piece::Value(name)),
            Part::List { .. } => None,
        })
    }

    /// The one value that it consists of, if so.
    #[must_use]
    pub fn only_name(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Value(name)] => Some(name),
            _ => None,
        }
    }

    /// Whether it has this list in it.
    #[must_use]
    pub fn uses_list(&self, list: &str) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::List { name, .. } if name == list))
    }

    /// The text with its values. A name that the scope lacks stands for nothing.
    #[must_use]
    pub fn filled(&self, scope: &Scope) -> String {
        self.filled_with(scope, &BTreeMap::new())
    }

    /// The texts it stands for: several, or none, where it is a list whose elements stand for themselves.
    #[must_use]
    pub fn all_filled(&self, scope: &Scope) -> Vec<String> {
        match self.parts.as_slice() {
            [Part::List { name, each, join: None }] => elements(name, each, scope),
            _ => vec![self.filled(scope)],
        }
    }

    fn filled_with(&self, scope: &Scope, own: &BTreeMap<String, String>) -> String {
        let mut text = String::new();
        for (number, part) in self.parts.iter().enumerate() {
            match part {
                Part::Text(plain) => text.push_str(plain),
                Part::Value(name) => {
                    let value = own.get(name).or_else(|| scope.values.get(name)).map_or("", String::as_str);
                    let before_port =
                        matches!(self.parts.get(number + 1), Some(Part::Text(next)) if next.starts_with(':'));
                    if before_port && value.parse::<Ipv6Addr>().is_ok() {
                        text.push_str(&format!("[{value}]"));
                    } else {
                        text.push_str(value);
                    }
                }
                Part::List { name, each, join } => {
                    text.push_str(&elements(name, each, scope).join(join.as_deref().unwrap_or_default()));
                }
            }
        }
        text
    }
}

fn elements(name: &str, each: &Template, scope: &Scope) -> Vec<String> {
    let elements = scope.lists.get(name).map(Vec::as_slice).unwrap_or_default();
    elements.iter().map(|own| each.filled_with(scope, own)).collect()
}

/// Where in a scalar a part of its text stands; the whole of it where YAML writes the part otherwise.
fn culprit(source: &str, at: Spot, culprit: &str) -> Spot {
    let whole = source.get(at.start..at.end).unwrap_or_default();
    match whole.find(culprit).filter(|_| !culprit.is_empty()) {
        Some(offset) => {
            let start = at.start + offset;
            Spot { start, end: start + culprit.len(), ..at }
        }
        None => at,
    }
}

/// What stands between a brace and the one that closes it.
fn closed(text: &str) -> Option<&str> {
    let (mut depth, mut quote) = (0, None);
    for (at, letter) in text.char_indices() {
        match letter {
            '\'' | '"' if quote.is_none() => quote = Some(letter),
            letter if quote == Some(letter) => quote = None,
            '{' if quote.is_none() => depth += 1,
            '}' if quote.is_none() => {
                depth -= 1;
                if depth == 0 {
                    return text.get(1..at);
                }
            }
            _ => {}
        }
    }
    None
}

fn brace(culprit: &str, message: &str, names: &Names) -> Mistake {
    Mistake {
        code: "brace",
        culprit: culprit.lines().next().unwrap_or_default().to_owned(),
        message: message.to_owned(),
        label: "this brace",
        help: format!(
            "write `{{{{` and `}}}}` for literal braces; names are in single braces, as in `{{{}}}`",
            names.example
        ),
    }
}

fn part(inner: &str, names: &Names) -> Result<Part, Mistake> {
    let Some((name, rest)) = inner.split_once(':') else {
        let name = inner.trim();
        if names.values.iter().any(|known| known == name) {
            return Ok(Part::Value(name.to_owned()));
        }
        if names.lists.iter().any(|(known, _)| *known == name) {
            return Err(Mistake {
                code: "list-as-value",
                culprit: format!("{{{inner}"),
                message: format!("`{name}` is a list, of which each element has to be written"),
                label: "a list",
                help: format!("write `{{{name}: '{{name}}', join: ','}}`"),
            });
        }
        return Err(unknown(name, names, names.values.iter().map(String::as_str)));
    };
    let name = name.trim();
    let Some((_, own)) = names.lists.iter().find(|(known, _)| *known == name) else {
        return Err(unknown(name, names, names.lists.iter().map(|(known, _)| *known)));
    };
    let misshapen = || Mistake {
        code: "list-form",
        culprit: format!("{{{inner}"),
        message: format!("the list `{name}` is not written as one"),
        label: "not the form of a list",
        help: format!("write `{{{name}: 'TEXT FOR EACH', join: 'TEXT BETWEEN'}}`"),
    };
    let (each, rest) = quoted(rest).ok_or_else(misshapen)?;
    let join = match rest.trim() {
        "" => None,
        rest => {
            let rest = rest.strip_prefix(',').and_then(|rest| rest.trim_start().strip_prefix("join:"));
            let (join, rest) = rest.and_then(quoted).ok_or_else(misshapen)?;
            if !rest.trim().is_empty() {
                return Err(misshapen());
            }
            Some(join.replace("\\n", "\n"))
        }
    };
    let mut inside = Names { lists: Vec::new(), ..names.clone() };
    inside.values.extend(own.iter().map(|name| (*name).to_owned()));
    let each = Template::read(&each.replace("\\n", "\n"), &inside, false)?;
    Ok(Part::List { name: name.to_owned(), each, join })
}

/// What stands in quotes of either kind, and what follows.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    text[1..].split_once(quote)
}

fn unknown<'n>(name: &str, names: &Names, known: impl Iterator<Item = &'n str> + Clone) -> Mistake {
    let all: Vec<&str> = known.clone().collect();
    Mistake {
        code: "unknown-name",
        culprit: format!("{{{name}"),
        message: format!("{} is named `{}` here", names.none, shortened(name)),
        label: "unknown name",
        help: match nearest(name, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "{}known here are {}; `{{{{` and `}}}}` are literal braces",
                names.advice,
                listed(&all)
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        Names {
            values: ["node.name", "node.address", "ports.peer"].map(str::to_owned).to_vec(),
            lists: vec![("nodes", &["name", "address"]), ("settings", &["name", "value"])],
            none: "nothing",
            advice: "",
            example: "node.name",
        }
    }

    fn scope(address: &str) -> Scope {
        let map = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let node = |name: &str, address: &str| map(&[("name", name), ("address", address)]);
        Scope {
            values: map(&[("node.name", "n1"), ("node.address", address), ("ports.peer", "2380")]),
            lists: BTreeMap::from([
                ("nodes".to_owned(), vec![node("n1", address), node("n2", "10.0.0.2")]),
                ("settings".to_owned(), Vec::new()),
            ]),
        }
    }

    fn check(text: &str, address: &str, expected: &str) {
        let template =
            Template::read(text, &names(), false).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        assert_eq!(template.filled(&scope(address)), expected, "{text}");
    }

    #[test]
    fn names_stand_for_values_and_doubled_braces_for_themselves() {
        check("--name={node.name}", "10.0.0.1", "--name=n1");
        check("{{\"a\": {{\"b\": \"{node.name}\"}}}}", "10.0.0.1", "{\"a\": {\"b\": \"n1\"}}");
        check("plain", "10.0.0.1", "plain");
    }

    #[test]
    fn names_are_those_of_its_values_and_the_only_one_stands_alone() {
        let read = |text: &str| Template::read(text, &names(), false).expect(text);
        let template = read("{node.name} {{x}} {ports.peer} {nodes: '{name}', join: ','}");
        assert_eq!(template.names().collect::<Vec<_>>(), ["node.name", "ports.peer"]);
        let pieces: Vec<Piece<'_>> = template.pieces().collect();
        let (name, port) = (Piece::Value("node.name"), Piece::Value("ports.peer"));
        assert_eq!(pieces, [name, Piece::Text(" {x} "), port, Piece::Text(" ")]);
        assert_eq!(read("{node.name}").only_name(), Some("node.name"));
        assert_eq!(read("{node.name}x").only_name(), None);
    }

    #[test]
    fn an_address_of_ipv6_stands_in_brackets_where_a_port_follows() {
        check("http://{node.address}:{ports.peer}", "fd00::1", "http://[fd00::1]:2380");
        check("{node.address}", "fd00::1", "fd00::1");
        check("{node.address}:1", "10.0.0.1", "10.0.0.1:1");
    }

    #[test]
    fn a_list_is_written_for_each_of_its_elements() {
        check(
            "--initial-cluster={nodes: '{name}=http://{address}:{ports.peer}', join: ','}",
            "fd00::1",
            "--initial-cluster=n1=http://[fd00::1]:2380,n2=http://10.0.0.2:2380",
        );
        check("[{nodes: \"'{name}'\", join: ', '}]", "10.0.0.1", "['n1', 'n2']");
        check("{nodes: '- {name}', join: '\\n'}", "10.0.0.1", "- n1\n- n2");
        let alone = Template::read("{nodes: '--of={name}'}", &names(), true).expect("a list alone");
        assert_eq!(alone.all_filled(&scope("10.0.0.1")), ["--of=n1", "--of=n2"]);
        let none = Template::read("{settings: '--{name}={value}'}", &names(), true).expect("a list alone");
        assert_eq!(none.all_filled(&scope("10.0.0.1")), [""; 0]);
    }

    #[test]
    fn every_mistake_has_its_culprit() {
        let refused = |text: &str| {
            let mistake = Template::read(text, &names(), true).expect_err(text);
            (mistake.code, mistake.culprit, mistake.help)
        };
        let (code, culprit, help) = refused("x {node.nam} y");
        assert_eq!((code, culprit.as_str()), ("unknown-name", "{node.nam"));
        assert_eq!(help, "did you mean `node.name`?");
        assert_eq!(refused("{nods: '{name}'}").0, "unknown-name");
        assert_eq!(refused("{nodes: '{port}'}").1, "{port");
        assert_eq!(refused("{nodes}").0, "list-as-value");
        assert_eq!(refused("a {nodes: '{name}'}").0, "list-in-text");
        assert_eq!(refused("{nodes: {name}}").0, "list-form");
        assert_eq!(refused("{nodes: '{name}', with: ','}").0, "list-form");
        assert_eq!(refused("{node.name").0, "brace");
        assert_eq!(refused("a } b").0, "brace");
    }
}

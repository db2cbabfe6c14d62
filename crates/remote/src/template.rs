//! Arguments with names in them that stand for values: `holdfast_{id}`.
//!
//! Owns how such text is written and what it becomes. Which names there are, the file says.

use yaml::wording::{listed, nearest, shortened};

/// A text with names in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Name(String),
}

/// What is wrong with a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub(crate) code: &'static str,
    /// The very text that is wrong, as written.
    pub(crate) culprit: String,
    pub(crate) message: String,
    pub(crate) label: &'static str,
    pub(crate) help: String,
}

impl Template {
    /// Reads a template in which these names are known.
    pub(crate) fn read(text: &str, known: &[String]) -> Result<Template, Mistake> {
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
            let Some((name, after)) = found.strip_prefix('{').and_then(|inner| inner.split_once('}')) else {
                return Err(brace(found));
            };
            if !known.iter().any(|known| known == name) {
                return Err(unknown(name, known));
            }
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(Part::Name(name.to_owned()));
            rest = after;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Template { parts })
    }

    /// The names in it.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Name(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// The one name that it consists of, if so.
    pub(crate) fn only_name(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Name(name)] => Some(name),
            _ => None,
        }
    }

    /// The text with its values.
    pub(crate) fn filled(&self, value: impl Fn(&str) -> String) -> String {
        let filled = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Name(name) => value(name),
        };
        self.parts.iter().map(filled).collect()
    }
}

fn brace(found: &str) -> Mistake {
    Mistake {
        code: "brace",
        culprit: found.lines().next().unwrap_or_default().to_owned(),
        message: if found.starts_with('}') { "`}` closes nothing" } else { "`{` is not closed" }.to_owned(),
        label: "this brace",
        help: "write `{{` and `}}` for literal braces; names are in single braces, as in `{id}`".to_owned(),
    }
}

fn unknown(name: &str, known: &[String]) -> Mistake {
    Mistake {
        code: "unknown-name",
        culprit: format!("{{{name}"),
        message: format!("no parameter is named `{}`", shortened(name)),
        label: "unknown name",
        help: match nearest(name, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "name it under `parameters`; known here are {}; `{{{{` and `}}}}` are literal braces",
                listed(known)
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Template, Mistake> {
        Template::read(text, &["id".to_owned(), "peers".to_owned()])
    }

    #[test]
    fn names_stand_for_values_and_doubled_braces_for_themselves() {
        let template = read("add set t_{id} {{ {peers} }}").expect("a template");
        assert_eq!(template.filled(|name| name.to_uppercase()), "add set t_ID { PEERS }");
        assert_eq!(template.names().collect::<Vec<_>>(), ["id", "peers"]);
        assert_eq!(read("{id}").expect("a name").only_name(), Some("id"));
        assert_eq!(read("{id}x").expect("more than a name").only_name(), None);
    }

    #[test]
    fn every_mistake_has_its_culprit() {
        let refused = |text: &str| {
            let mistake = read(text).expect_err(text);
            (mistake.code, mistake.culprit)
        };
        assert_eq!(refused("t {peer}"), ("unknown-name", "{peer".to_owned()));
        assert_eq!(refused("{ drop }"), ("unknown-name", "{ drop ".to_owned()));
        assert_eq!(refused("{id"), ("brace", "{id".to_owned()));
        assert_eq!(refused("a } b"), ("brace", "} b".to_owned()));
    }
}

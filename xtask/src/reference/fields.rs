//! The page of `result.json`: the fields of the result's types with their documentation comments.
//!
//! Reads the source files, because the comments are the only place where a field's meaning stands.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::Path;

use anyhow::Context;
use syn::{
    Attribute, Expr, Field, Fields, GenericArgument, Item, ItemEnum, ItemStruct, Lit, Meta, PathArguments,
    Type,
};

use super::markdown::{code, page as whole_page, table};

/// Where the types of a result are.
const SOURCES: &[(&str, &str)] = &[
    ("results", "fault lab leadership load prediction run volume"),
    ("history", "agent event facts kubernetes lib migration operation vigil"),
];
/// The type of the whole file.
const WHOLE: &str = "RunResult";

/// Every type of those files, by name.
struct Types {
    structs: BTreeMap<String, ItemStruct>,
    enums: BTreeMap<String, ItemEnum>,
}

impl Types {
    fn read(root: &Path) -> anyhow::Result<Types> {
        let mut types = Types { structs: BTreeMap::new(), enums: BTreeMap::new() };
        let sources = SOURCES.iter().flat_map(|(krate, files)| {
            files.split(' ').map(move |file| format!("crates/{krate}/src/{file}.rs"))
        });
        for source in sources {
            let text = fs::read_to_string(root.join(&source)).with_context(|| source.clone())?;
            for item in syn::parse_file(&text).with_context(|| source)?.items {
                match item {
                    Item::Struct(item) => drop(types.structs.insert(item.ident.to_string(), item)),
                    Item::Enum(item) => drop(types.enums.insert(item.ident.to_string(), item)),
                    _ => {}
                }
            }
        }
        Ok(types)
    }

    /// What a value of a type is in JSON, and the struct it is made of, if any.
    fn in_json(&self, kind: &Type) -> (String, Option<String>) {
        let Type::Path(path) = kind else { return ("a list".to_owned(), None) };
        let Some(last) = path.path.segments.last() else { return (String::new(), None) };
        let inner = match &last.arguments {
            PathArguments::AngleBracketed(inner) => inner.args.iter().filter_map(|argument| match argument {
                GenericArgument::Type(kind) => Some(self.in_json(kind)),
                _ => None,
            }),
            _ => return self.plain(&last.ident.to_string()),
        };
        let Some((what, of)) = inner.last() else { return (String::new(), None) };
        match last.ident.to_string().as_str() {
            "Option" => (format!("{what}, or absent"), of),
            "Vec" => (format!("list: {what}"), of),
            "BTreeMap" => (format!("map by name: {what}"), of),
            _ => (what, of),
        }
    }

    fn plain(&self, name: &str) -> (String, Option<String>) {
        if self.structs.contains_key(name) {
            return (format!("[{name}](#{})", name.to_lowercase()), Some(name.to_owned()));
        }
        if let Some(words) = self.enums.get(name).and_then(unit_words) {
            return (words, None);
        }
        let json = match name {
            "String" => "text",
            "bool" => "boolean",
            "f64" | "f32" | "Seconds" => "number",
            number if number.starts_with(['u', 'i']) => "integer",
            _ => "value",
        };
        (json.to_owned(), None)
    }
}

/// The words of an enum that has nothing but words.
fn unit_words(item: &ItemEnum) -> Option<String> {
    let plain = item.variants.iter().all(|variant| matches!(variant.fields, Fields::Unit));
    let words = item.variants.iter().map(|variant| code(&kebab(&variant.ident.to_string())));
    plain.then(|| words.collect::<Vec<_>>().join(", "))
}

fn kebab(name: &str) -> String {
    let mut word = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !word.is_empty() {
            word.push('-');
        }
        word.extend(letter.to_lowercase());
    }
    word
}

/// The documentation comment, as one line.
fn meaning(attributes: &[Attribute]) -> String {
    let line = |attribute: &Attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value().trim().to_owned()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    attributes.iter().filter_map(line).collect::<Vec<_>>().join(" ")
}

/// Whether a field's own fields stand in its place.
fn is_flattened(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("serde") => list.tokens.to_string() == "flatten",
        _ => false,
    })
}

/// The fields of a type as they stand in JSON.
fn fields<'t>(types: &'t Types, item: &'t ItemStruct) -> Vec<&'t Field> {
    let inner = |field: &'t Field| match types.in_json(&field.ty).1.and_then(|name| types.structs.get(&name))
    {
        Some(inner) if is_flattened(&field.attrs) => fields(types, inner),
        _ => vec![field],
    };
    item.fields.iter().flat_map(inner).collect()
}

pub(super) fn page(root: &Path) -> anyhow::Result<String> {
    let types = Types::read(root)?;
    let mut body = String::new();
    let mut waiting = VecDeque::from([WHOLE.to_owned()]);
    let mut seen = BTreeSet::from([WHOLE.to_owned()]);
    while let Some(name) = waiting.pop_front() {
        let item = types.structs.get(&name).with_context(|| format!("no type {name} in {SOURCES:?}"))?;
        let mut rows = Vec::new();
        for field in fields(&types, item) {
            let Some(key) = &field.ident else { continue };
            let (what, of) = types.in_json(&field.ty);
            rows.push(vec![code(&key.to_string()), what, meaning(&field.attrs)]);
            waiting.extend(of.filter(|of| seen.insert(of.clone())));
        }
        body.push_str(&format!(
            "## {name}\n\n{}\n\n{}",
            meaning(&item.attrs),
            table(&["key", "type", "meaning"], rows)
        ));
    }
    Ok(whole_page(
        "Keys of `result.json`",
        "Times are in seconds on the run's clock, which starts at 0 with the first load. Latencies are in microseconds. Keys \
         are only added, never renamed. A key that may be absent is left out where it has no value.",
        &body,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_variants_are_written_as_in_json() {
        assert_eq!(kebab("PowerOff"), "power-off");
        assert_eq!(kebab("Pass"), "pass");
    }
}

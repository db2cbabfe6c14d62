//! Documentation comments: what is public has one, and none repeats the name that it stands at.
//!
//! Owns which items need one: types, traits and their functions, functions, constants; not modules, constants of a type, or what a macro
//! makes. A field or a variant whose name says all has none: a comment is for shape, unit, error and source.

use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Ident, Lit, Meta, Visibility};

use super::Violation;
use super::names::parts;
use super::source::Source;

/// Words that add nothing to a name.
const EMPTY_WORDS: &[&str] = &[
    "a", "an", "any", "as", "is", "it", "its", "of", "own", "such", "that", "the", "their", "this", "to",
    "which",
];

/// Something that may have a documentation comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Documented {
    name: String,
    /// From 1.
    line: usize,
    /// The comment's lines.
    comment: Vec<String>,
    needs_one: bool,
}

/// All such things of a file.
pub(super) fn documented(file: &syn::File) -> Vec<Documented> {
    let mut seen = Seen::default();
    seen.visit_file(file);
    seen.found
}

/// Public items without a comment, and comments that repeat the name.
pub fn check(source: &Source) -> Vec<Violation> {
    let violation = |line, message| Violation { path: source.path.clone(), line, message };
    let of = |item: &Documented| {
        let name = &item.name;
        if repeats(&item.comment, name) {
            let message = format!(
                "the comment says what the name `{name}` says; say its shape, unit, errors or source, or leave it out"
            );
            return Some(violation(item.line, message));
        }
        let lacks = item.needs_one && item.comment.is_empty() && !source.is_test(item.line);
        lacks.then(|| violation(item.line, format!("`{name}` is public; say in a comment what it is for")))
    };
    source.documented.iter().filter_map(of).collect()
}

/// Whether a comment of one line has no word that is not in the name.
fn repeats(comment: &[String], name: &str) -> bool {
    // What clap shows as help ends without a full stop, and stands beside names that a user does not see.
    let [line] = comment else { return false };
    if !line.ends_with('.') {
        return false;
    }
    let of_name = parts(name);
    let words = line.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut words =
        words.map(str::to_lowercase).filter(|word| !EMPTY_WORDS.contains(&word.as_str())).peekable();
    words.peek().is_some() && words.all(|word| of_name.contains(&word))
}

#[derive(Default)]
struct Seen {
    found: Vec<Documented>,
    /// Whether what is visited is within a trait, whose functions are as public as it is.
    in_public_trait: bool,
}

impl Seen {
    fn item(&mut self, name: &Ident, attributes: &[Attribute], needs_one: bool) {
        let (name, line) = (name.to_string(), name.span().start().line);
        self.found.push(Documented { name, line, comment: comment(attributes), needs_one });
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn comment(attributes: &[Attribute]) -> Vec<String> {
    let line = |attribute: &Attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    attributes.iter().filter_map(line).collect()
}

impl<'ast> Visit<'ast> for Seen {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.item(&item.ident, &item.attrs, is_public(&item.vis));
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.item(&item.ident, &item.attrs, is_public(&item.vis));
        visit::visit_item_enum(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.item(&item.ident, &item.attrs, is_public(&item.vis));
        self.in_public_trait = is_public(&item.vis);
        visit::visit_item_trait(self, item);
        self.in_public_trait = false;
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.item(&item.sig.ident, &item.attrs, self.in_public_trait);
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.item(&item.ident, &item.attrs, is_public(&item.vis));
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.item(&item.ident, &item.attrs, is_public(&item.vis));
        visit::visit_item_const(self, item);
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.item(&item.ident, &item.attrs, is_public(&item.vis));
        visit::visit_item_static(self, item);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.item(&item.sig.ident, &item.attrs, is_public(&item.vis));
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.item(&item.sig.ident, &item.attrs, is_public(&item.vis));
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        self.item(&variant.ident, &variant.attrs, false);
        visit::visit_variant(self, variant);
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if let Some(name) = &field.ident {
            self.item(name, &field.attrs, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::parsed;
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&parsed(path, text)).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn a_comment_that_has_no_word_but_its_name_s_is_found() {
        let repeats = "/// A host.\nstruct Host {\n    /// Its name.\n    name: String,\n    /// The data directory.\n    data_directory: u8,\n}\n";
        assert_eq!(lines("a.rs", repeats), [2, 4, 6]);
        let tells = "/// A host, with power or without.\nstruct Host {\n    /// As the scenario writes it.\n    name: String,\n    port: u16,\n}\n";
        assert_eq!(lines("a.rs", tells), [] as [usize; 0]);
    }

    #[test]
    fn what_is_public_needs_a_comment_and_its_fields_and_tests_need_none() {
        let bare = "pub fn ask() {}\npub struct Host {\n    pub name: u8,\n}\nfn own() {}\npub(crate) fn ours() {}\n";
        assert_eq!(lines("a.rs", bare), [1, 2]);
        assert_eq!(lines("crates/a/tests/b.rs", bare), [] as [usize; 0]);
        let public = "/// Somebody who is asked.\npub trait Asked {\n    fn ask(&self);\n}\nimpl Asked for u8 {\n    fn ask(&self) {}\n}\n";
        assert_eq!(lines("a.rs", public), [3]);
    }
}

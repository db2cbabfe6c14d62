//! A Rust file taken apart: its tokens, its functions, the names it gives, and which of its lines are tests.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::comments::{Documented, documented};
use super::{TextFile, Violation};

/// One token that matters to a rule. Comments are not among them; groups stand as their brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// As written.
    pub text: String,
    /// Its line, from 1.
    pub line: usize,
}

/// A function with a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    /// The line of its `fn`.
    pub line: usize,
    /// Lines from there to its closing brace.
    pub lines: usize,
}

/// A name that the file gives to something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// What: `function`, `type`, `module`.
    pub what: &'static str,
    pub name: String,
    pub line: usize,
}

/// A Rust file taken apart.
#[derive(Debug, Clone)]
pub struct Source {
    pub path: String,
    /// Its tokens in order.
    pub tokens: Vec<Token>,
    pub functions: Vec<Function>,
    /// The names it gives.
    pub names: Vec<Named>,
    /// What has a documentation comment, or could have one.
    pub documented: Vec<Documented>,
    /// Attributes `#[ignore]` without a reason, by line.
    pub ignored_without_reason: Vec<usize>,
    test_lines: Vec<(usize, usize)>,
    all_test: bool,
}

impl Source {
    /// Takes a file apart.
    ///
    /// # Errors
    /// When it is not Rust.
    pub fn parse(file: &TextFile) -> Result<Source, Violation> {
        let broken = |error: syn::Error| Violation {
            path: file.path.clone(),
            line: error.span().start().line,
            message: format!("not Rust: {error}; make it compile first"),
        };
        let parsed = syn::parse_file(&file.text).map_err(broken)?;
        let stream: TokenStream =
            file.text.parse().map_err(|error: proc_macro2::LexError| broken(error.into()))?;
        let mut tokens = Vec::new();
        flatten(stream, &mut tokens);
        let is_of_tests = |part: &str| matches!(part, "tests" | "tests.rs" | "examples" | "benches");
        let all_test = file.path.split('/').any(is_of_tests);
        let mut source = Source {
            path: file.path.clone(),
            tokens,
            functions: Vec::new(),
            names: Vec::new(),
            documented: documented(&parsed),
            ignored_without_reason: Vec::new(),
            test_lines: Vec::new(),
            all_test,
        };
        source.visit_file(&parsed);
        Ok(source)
    }

    /// Whether this line is only ever run by a test.
    #[must_use]
    pub fn is_test(&self, line: usize) -> bool {
        self.all_test || self.test_lines.iter().any(|(from, to)| (*from..=*to).contains(&line))
    }

    /// The crate it belongs to.
    #[must_use]
    pub fn krate(&self) -> &str {
        let mut parts = self.path.split('/');
        match parts.next() {
            Some("crates") => parts.next().unwrap_or_default(),
            first => first.unwrap_or_default(),
        }
    }

    /// Lines on which these tokens stand in this order.
    pub fn lines_with<'a>(&'a self, wanted: &'a [&'a str]) -> impl Iterator<Item = usize> + 'a {
        self.tokens
            .windows(wanted.len())
            .filter(move |window| window.iter().zip(wanted).all(|(token, wanted)| token.text == *wanted))
            .map(|window| window[0].line)
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let line = signature.fn_token.span.start().line;
        let end = block.brace_token.span.close().end().line;
        let name = signature.ident.to_string();
        self.functions.push(Function { name: name.clone(), line, lines: end + 1 - line });
        self.names.push(Named { what: "function", name, line });
    }

    fn name(&mut self, what: &'static str, name: &syn::Ident) {
        self.names.push(Named { what, name: name.to_string(), line: name.span().start().line });
    }
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    for tree in stream {
        let line = tree.span().start().line;
        let mut put = |text: &str, line| tokens.push(Token { text: text.to_owned(), line });
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                put(open, line);
                let end = group.span_close().start().line;
                flatten(group.stream(), tokens);
                tokens.push(Token { text: close.to_owned(), line: end });
            }
            other => put(&other.to_string(), line),
        }
    }
}

fn is_for_tests(attribute: &syn::Attribute) -> bool {
    let only_test = |list: &syn::MetaList| list.tokens.to_string() == "test";
    matches!(&attribute.meta, syn::Meta::List(list) if list.path.is_ident("cfg") && only_test(list))
}

impl<'ast> Visit<'ast> for Source {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.name("module", &item.ident);
        if item.attrs.iter().any(is_for_tests) {
            let span = item.span();
            self.test_lines.push((span.start().line, span.end().line));
        }
        visit::visit_item_mod(self, item);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        match &item.default {
            Some(block) => self.function(&item.sig, block),
            None => self.name("function", &item.sig.ident),
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.name("type", &item.ident);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.name("type", &item.ident);
        visit::visit_item_enum(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.name("type", &item.ident);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.name("type", &item.ident);
        visit::visit_item_type(self, item);
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if matches!(&attribute.meta, syn::Meta::Path(path) if path.is_ident("ignore")) {
            self.ignored_without_reason.push(attribute.span().start().line);
        }
    }
}

#[cfg(test)]
pub(super) fn parsed(path: &str, text: &str) -> Source {
    Source::parse(&TextFile { path: path.to_owned(), text: text.to_owned() }).expect("Rust")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_of_a_test_module_are_tests() {
        let source =
            parsed("crates/a/src/lib.rs", "fn one() {}\n#[cfg(test)]\nmod tests {\n    fn two() {}\n}\n");
        assert!(!source.is_test(1) && source.is_test(4));
        assert!(parsed("crates/a/tests/b.rs", "fn one() {}").is_test(1));
    }

    #[test]
    fn tokens_are_found_inside_macros_and_never_in_comments_or_strings() {
        let source = parsed("a.rs", "// a::b\nconst S: &str = \"a::b\";\nfn f() { m!(x, a::b()); }\n");
        assert_eq!(source.lines_with(&["a", ":", ":", "b"]).collect::<Vec<_>>(), [3]);
    }
}

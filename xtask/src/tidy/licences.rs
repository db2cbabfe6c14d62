//! Licences of what we depend on: each must be met by those that `deny.toml` allows.
//!
//! Owns no list: `deny.toml` has it, for `cargo deny` reads it there.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::path::Path;
use std::str::SplitWhitespace;

use anyhow::Context;

use super::Violation;
use crate::packages::{Package, Packages};

/// Where the list stands.
pub const LIST: &str = "deny.toml";
/// What opens the list in that file.
const OPENING: &str = "\nallow = [";
/// Where the program runs: packages for other systems are not fetched.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The packages of the repository at `root`, and the licences it allows.
///
/// # Errors
/// When cargo does not describe the packages, or the list cannot be read.
pub fn read(root: &Path) -> anyhow::Result<(Packages, BTreeSet<String>)> {
    let text = std::fs::read_to_string(root.join(LIST)).context(LIST)?;
    let list = text.split_once(OPENING).and_then(|(_, rest)| rest.split_once(']'));
    let (list, _) = list.with_context(|| format!("{LIST} has no list `allow = [...]`"))?;
    let allowed = list.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    Ok((Packages::of(root, TARGET)?, allowed))
}

/// Every package of others whose licence is not allowed, or is not known.
pub fn check<'a>(
    packages: impl IntoIterator<Item = &'a Package>,
    allowed: &BTreeSet<String>,
) -> Vec<Violation> {
    let foreign = packages.into_iter().filter(|package| package.source.is_some());
    let message = |package: &Package| {
        let which = format!("`{}` {}", package.name, package.version);
        let Some(expression) = package.license_expression() else {
            return Some(format!("{which} names no licence; do without it"));
        };
        match is_met(&expression, allowed) {
            Some(true) => None,
            Some(false) => Some(format!(
                "{which} is licensed `{expression}`, which {LIST} does not allow; do without it, or add the licence there \
                 when both of ours are compatible with it"
            )),
            None => Some(format!("{which}: `{expression}` is no licence expression of SPDX; do without it")),
        }
    };
    foreign
        .filter_map(message)
        .map(|message| Violation { path: "Cargo.lock".to_owned(), line: 1, message })
        .collect()
}

type Words<'a> = Peekable<SplitWhitespace<'a>>;

/// Whether the allowed licences meet an expression; none when it is no expression. SPDX 2.3, annex D: `WITH` binds most, then
/// `AND`, then `OR`.
fn is_met(expression: &str, allowed: &BTreeSet<String>) -> Option<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ");
    let mut words: Words<'_> = spaced.split_whitespace().peekable();
    let met = one_of(&mut words, allowed)?;
    words.next().is_none().then_some(met)
}

fn one_of(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> Option<bool> {
    let mut met = all_of(words, allowed)?;
    while words.next_if_eq(&"OR").is_some() {
        met |= all_of(words, allowed)?;
    }
    Some(met)
}

fn all_of(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> Option<bool> {
    let mut met = single(words, allowed)?;
    while words.next_if_eq(&"AND").is_some() {
        met &= single(words, allowed)?;
    }
    Some(met)
}

fn single(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> Option<bool> {
    match words.next()? {
        "(" => {
            let met = one_of(words, allowed)?;
            (words.next()? == ")").then_some(met)
        }
        ")" | "AND" | "OR" | "WITH" => None,
        name if words.next_if_eq(&"WITH").is_some() => {
            let exception = words.next()?;
            Some(allowed.contains(&format!("{name} WITH {exception}")))
        }
        name => Some(allowed.contains(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> BTreeSet<String> {
        ["MIT", "Apache-2.0", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned).into()
    }

    #[test]
    fn a_package_with_a_licence_that_is_not_allowed_or_not_there_is_refused() {
        let packages = crate::packages::tests::planted();
        let found = check(packages.all.values(), &allowed());
        let messages: Vec<&str> = found.iter().map(|violation| violation.message.as_str()).collect();
        assert_eq!(messages.len(), 2, "{messages:#?}");
        assert!(messages[0].contains("`below` 1.2.0+c.3 is licensed `GPL-3.0-only`"), "{messages:#?}");
        assert!(messages[1].contains("`tests` 1.2.0+c.3 names no licence"), "{messages:#?}");
    }

    #[test]
    fn an_expression_is_met_when_its_alternatives_and_duties_are() {
        for (expression, met) in [
            ("MIT", Some(true)),
            ("GPL-2.0-only OR MIT", Some(true)),
            ("GPL-2.0-only AND MIT", Some(false)),
            ("MIT AND GPL-2.0-only OR Apache-2.0", Some(true)),
            ("MIT AND (GPL-2.0-only OR ISC)", Some(false)),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", Some(true)),
            ("Apache-2.0 WITH LLVM-exception", Some(true)),
            ("MIT WITH LLVM-exception", Some(false)),
            ("MIT Apache-2.0", None),
            ("MIT OR", None),
            ("(MIT", None),
            ("", None),
        ] {
            assert_eq!(is_met(expression, &allowed()), met, "{expression}");
        }
    }
}

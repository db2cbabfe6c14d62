//! Modules of a crate depend on each other one way only.
//!
//! A module is a file or a folder directly below `src`; `lib.rs` and `main.rs` are none, since a table of contents names
//! everything. What counts is a path that begins with `crate::` or `super::`; what only tests name does not.

use std::collections::{BTreeMap, BTreeSet};

use super::Violation;
use super::source::{Source, Token};

/// Where a module names another: of each pair the first place.
type Graph<'a> = BTreeMap<&'a str, BTreeMap<&'a str, (&'a str, usize)>>;

/// Every cycle.
pub fn check(sources: &[Source]) -> Vec<Violation> {
    let graphs = graphs(sources);
    graphs
        .values()
        .flat_map(|graph| cycles(graph).into_iter().map(|group| violation(graph, &group)))
        .collect()
}

/// The shortest cycle through the first module of a group, as a person can follow it.
fn violation(graph: &Graph<'_>, group: &[&str]) -> Violation {
    let cycle = shortest_cycle(graph, group);
    let mut steps = Vec::new();
    for (position, module) in cycle.iter().enumerate() {
        let next = cycle[(position + 1) % cycle.len()];
        let (path, line) = graph[module][next];
        steps.push((format!("`{module}` names `{next}` ({path}:{line})"), path, line));
    }
    let (_, path, line) = &steps[0];
    let told: Vec<&str> = steps.iter().map(|(step, ..)| step.as_str()).collect();
    Violation {
        path: (*path).to_owned(),
        line: *line,
        message: format!(
            "modules depend on each other in a cycle: {}; give what both need a module of its own, or pass it in (modules \
             in cycles with these: {})",
            told.join(", "),
            group.join(", ")
        ),
    }
}

fn graphs(sources: &[Source]) -> BTreeMap<&str, Graph<'_>> {
    let mut modules: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for source in sources {
        if let Some(path) = module_path(&source.path) {
            modules.entry(source.krate()).or_default().insert(path[0]);
        }
    }
    let mut graphs: BTreeMap<&str, Graph<'_>> = BTreeMap::new();
    for source in sources {
        let Some(path) = module_path(&source.path) else { continue };
        let known = &modules[source.krate()];
        let edges = graphs.entry(source.krate()).or_default().entry(path[0]).or_default();
        for (name, line) in names(source, &path) {
            if let Some(other) = known.get(name).filter(|other| **other != path[0]) {
                edges.entry(other).or_insert((source.path.as_str(), line));
            }
        }
    }
    graphs
}

/// The modules that a file is in, outermost first: `a`, `b` for `crates/c/src/a/b.rs`. None for a crate's root and for what
/// is no part of its library or program.
fn module_path(path: &str) -> Option<Vec<&str>> {
    let (_, inside) = path.split_once("src/")?;
    let mut parts: Vec<&str> = inside.strip_suffix(".rs")?.split('/').collect();
    parts.pop_if(|last| *last == "mod");
    let is_root = matches!(parts.as_slice(), [] | ["lib" | "main"] | ["bin", ..]);
    (!is_root && !path.contains("/tests/")).then_some(parts)
}

/// Names that stand directly below the crate's root in the paths of a file at `path`, each with its line.
fn names<'a>(source: &'a Source, path: &[&str]) -> Vec<(&'a str, usize)> {
    let mut found = Vec::new();
    let tokens = &source.tokens;
    for at in 0..tokens.len() {
        let after = match tokens[at].text.as_str() {
            "crate" => after_colons(tokens, at + 1),
            "super" if !ends_with_colons(&tokens[..at]) => {
                let (mut ups, mut next) = (1, after_colons(tokens, at + 1));
                while let Some(more) =
                    next.filter(|next| tokens.get(*next).is_some_and(|token| token.text == "super"))
                {
                    (ups, next) = (ups + 1, after_colons(tokens, more + 1));
                }
                next.filter(|_| ups == path.len())
            }
            _ => None,
        };
        if let Some(after) = after.filter(|_| !source.is_test(tokens[at].line)) {
            found.extend(first_names(&tokens[after..]));
        }
    }
    found
}

fn after_colons(tokens: &[Token], at: usize) -> Option<usize> {
    let is_colon = |at: usize| tokens.get(at).is_some_and(|token| token.text == ":");
    (is_colon(at) && is_colon(at + 1)).then_some(at + 2)
}

fn ends_with_colons(before: &[Token]) -> bool {
    matches!(before, [.., one, other] if one.text == ":" && other.text == ":")
}

/// The first name of each branch of a path: `a` of `a::b`, `a` and `c` of `{a::b, c}`.
fn first_names(tokens: &[Token]) -> Vec<(&str, usize)> {
    let named = |token: &Token| token.text.starts_with(|first: char| first.is_alphabetic() || first == '_');
    let Some(first) = tokens.first() else { return Vec::new() };
    if first.text != "{" {
        return if named(first) { vec![(first.text.as_str(), first.line)] } else { Vec::new() };
    }
    let (mut depth, mut begins, mut found) = (0, true, Vec::new());
    for token in tokens {
        match token.text.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            "," if depth == 1 => begins = true,
            _ if begins && depth == 1 => {
                found.push((token.text.as_str(), token.line));
                begins = false;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    found
}

/// Groups of modules each of which reaches all others of its group, by name.
fn cycles<'a>(graph: &Graph<'a>) -> Vec<Vec<&'a str>> {
    let reaches: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|module| (*module, reached_from(graph, module))).collect();
    let mut groups: Vec<Vec<&str>> = Vec::new();
    for module in graph.keys().filter(|module| reaches[**module].contains(**module)) {
        if groups.iter().any(|group| group.contains(module)) {
            continue;
        }
        let both_ways = |other: &&str| reaches[module].contains(other) && reaches[other].contains(module);
        groups.push(graph.keys().copied().filter(|other| both_ways(other)).collect());
    }
    groups
}

fn reached_from<'a>(graph: &Graph<'a>, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        for next in graph.get(module).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(*next) {
                open.push(next);
            }
        }
    }
    reached
}

fn shortest_cycle<'a>(graph: &Graph<'a>, group: &[&'a str]) -> Vec<&'a str> {
    let from = group[0];
    let mut ways: Vec<Vec<&str>> = vec![vec![from]];
    let mut seen = BTreeSet::from([from]);
    loop {
        let mut longer = Vec::new();
        for way in &ways {
            for next in graph[way[way.len() - 1]].keys() {
                if *next == from {
                    return way.clone();
                }
                if group.contains(next) && seen.insert(next) {
                    longer.push([way.as_slice(), &[*next]].concat());
                }
            }
        }
        ways = longer;
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::parsed;
    use super::*;

    fn messages(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = files.iter().map(|(path, text)| parsed(path, text)).collect();
        check(&sources).into_iter().map(|violation| violation.message).collect()
    }

    /// Whether two modules, `a` that names `b` by this text and `b` that names `a`, are found to be a cycle.
    fn check_path(file: &str, text: &str, expected: bool) {
        let files = [(file, text), ("crates/x/src/b.rs", "use crate::a::A;")];
        assert_eq!(!messages(&files).is_empty(), expected, "{file}: {text}");
    }

    #[test]
    fn two_modules_that_name_each_other_are_refused_with_both_places() {
        let found = messages(&[
            ("crates/x/src/a.rs", "\nuse crate::b::B;"),
            ("crates/x/src/b.rs", "use crate::a::A;"),
        ]);
        let expected = "modules depend on each other in a cycle: `a` names `b` (crates/x/src/a.rs:2), `b` names `a` \
                        (crates/x/src/b.rs:1); give what both need a module of its own, or pass it in (modules in cycles \
                        with these: a, b)";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn a_path_counts_in_a_use_in_a_body_in_braces_and_by_super_from_any_depth() {
        check_path("crates/x/src/a.rs", "fn f() { crate::b::g(); }", true);
        check_path("crates/x/src/a.rs", "use crate::{c::{d, e}, b::B};", true);
        check_path("crates/x/src/a.rs", "use super::b::B;", true);
        check_path("crates/x/src/a/inner.rs", "use super::super::{b::B};", true);
        check_path("crates/x/src/a/mod.rs", "use super::b;", true);
        check_path("crates/x/src/a/inner.rs", "use super::b;", false);
        check_path("crates/x/src/a.rs", "use other::b::B; // crate::b", false);
        check_path("crates/x/src/a.rs", "#[cfg(test)]\nmod tests {\n use crate::b::B;\n}", false);
        check_path("crates/x/src/lib.rs", "use crate::b::B;", false);
        check_path("crates/y/src/a.rs", "use crate::b::B;", false);
    }

    #[test]
    fn a_longer_cycle_is_told_once_and_what_only_leads_into_it_is_not_part_of_it() {
        let files = [
            ("crates/x/src/a.rs", "use crate::b;"),
            ("crates/x/src/b.rs", "use crate::c;"),
            ("crates/x/src/c.rs", "use crate::a;"),
            ("crates/x/src/d.rs", "use crate::a;"),
        ];
        let found = messages(&files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].ends_with("with these: a, b, c)"), "{found:?}");
    }
}

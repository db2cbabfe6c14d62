//! Links and paths in documents: what a page names must be there.
//!
//! Looks within the repository alone, never at another's site. The changelog may name what is gone.

use std::collections::{BTreeMap, BTreeSet};

use super::{TextFile, Violation};

/// A document that tells of the past.
const PAST: &str = "CHANGELOG.md";
/// Folders of the repository that documents name by path.
const FOLDERS: &[&str] = &["scenarios/", "docs/", "crates/", "suite/", "xtask/", "histories/", "fuzz/"];
/// Paths that a command writes, and that are not committed.
const WRITTEN: &[&str] = &["docs/atlas/", "docs/robustness"];

/// Every link and path in these files that leads nowhere.
pub fn check(files: &[TextFile]) -> Vec<Violation> {
    let paths: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let headings: BTreeMap<&str, BTreeSet<String>> = files
        .iter()
        .filter(|file| is_page(file))
        .map(|file| (file.path.as_str(), anchors(&file.text)))
        .collect();
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.path != PAST) {
        let page = is_page(file);
        if !page && !file.path.ends_with(".rs") {
            continue;
        }
        let mut fenced = false;
        for (number, line) in file.text.lines().enumerate() {
            fenced ^= line.trim_start().starts_with("```");
            let mut say =
                |message| found.push(Violation { path: file.path.clone(), line: number + 1, message });
            for named in named_paths(line).filter(|named| page || named.starts_with("docs/")) {
                if !exists(&paths, named) && !WRITTEN.iter().any(|written| named.starts_with(written)) {
                    say(format!("`{named}` is not in the repository; correct the path or remove it"));
                }
            }
            for target in links(line).filter(|_| page && !fenced) {
                if let Some(message) = broken(&paths, &headings, &file.path, target) {
                    say(message);
                }
            }
        }
    }
    found
}

fn is_page(file: &TextFile) -> bool {
    file.path.ends_with(".md")
}

fn exists(paths: &BTreeSet<&str>, path: &str) -> bool {
    let folder = format!("{}/", path.trim_end_matches('/'));
    paths.contains(path)
        || paths.range(folder.as_str()..).next().is_some_and(|next| next.starts_with(&folder))
}

/// Targets of `[text](target)`.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// What is wrong with a link from a page, if anything.
fn broken(
    paths: &BTreeSet<&str>,
    headings: &BTreeMap<&str, BTreeSet<String>>,
    from: &str,
    target: &str,
) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let path = if file.is_empty() { from.to_owned() } else { joined(from, file) };
    if !exists(paths, &path) && !path.is_empty() {
        return Some(format!("link `{target}`: there is no `{path}`; correct the link"));
    }
    let known =
        anchor.is_none_or(|anchor| headings.get(path.as_str()).is_none_or(|all| all.contains(anchor)));
    (!known).then(|| format!("link `{target}`: `{path}` has no such heading; correct the anchor"))
}

/// A relative path as seen from a page.
fn joined(from: &str, relative: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Paths in a line that begin with a folder of the repository and name a file or folder there; patterns are left out.
fn named_paths(line: &str) -> impl Iterator<Item = &str> {
    let of_path =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '/' | '.' | '_' | '-' | '*');
    let words = line.split(move |letter: char| !of_path(letter) && !matches!(letter, '<' | '$' | '{'));
    let words = words.map(|word| word.trim_end_matches('.'));
    words.filter(move |word| {
        FOLDERS.iter().any(|folder| word.starts_with(folder))
            && word.chars().all(of_path)
            && !word.contains('*')
    })
}

/// The anchors of a page's headings, as the usual renderers make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut fenced = false;
    let mut anchors = BTreeSet::new();
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        let heading = line.trim_start_matches('#');
        if fenced || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let letters = heading
            .trim()
            .chars()
            .filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
        let anchor: String = letters.flat_map(char::to_lowercase).collect();
        anchors.insert(anchor.replace(' ', "-"));
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let file = |path: &str, text: &str| TextFile { path: path.to_owned(), text: text.to_owned() };
        let files = [
            file("pages/a.md", text),
            file("pages/guide/b.md", "# The `first` run\n"),
            file("scenarios/kv.yaml", ""),
            file("README.md", ""),
        ];
        check(&files).into_iter().map(|violation| violation.message).collect()
    }

    #[test]
    fn links_and_paths_that_lead_somewhere_are_left_alone() {
        let text = "[b](guide/b.md), [b](guide/b.md#the-first-run), [up](../README.md), [f](guide), [x](https://x.org/y)\n\
                    `scenarios/kv.yaml`, scenarios/kv.yaml. and `scenarios/*.yaml`, scenarios/\n```\n[no](link)\n```\n";
        assert_eq!(found(text), [""; 0]);
    }

    #[test]
    fn a_link_to_nothing_an_unknown_heading_and_a_missing_path_are_found() {
        let found = found("[b](b.md)\n[b](guide/b.md#second)\n`scenarios/gone.yaml`\n");
        assert_eq!(found.len(), 3, "{found:#?}");
        assert!(found[0].contains("there is no `pages/b.md`"), "{}", found[0]);
        assert!(found[1].contains("no such heading"), "{}", found[1]);
        assert!(found[2].contains("`scenarios/gone.yaml` is not in the repository"), "{}", found[2]);
    }
}

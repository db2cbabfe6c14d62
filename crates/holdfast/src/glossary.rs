//! The words of two pages of the guide, for `holdfast explain`: of the glossary, and of other systems.
//!
//! Reads the pages themselves, which are the only places where they stand.

/// The glossary.
const PAGE: &str = include_str!("../../../docs/guide/glossary.md");
/// The head of its table.
const HEAD: &str = "| word | meaning |";
/// The page with the words of other systems.
const OTHER_SYSTEMS: &str = include_str!("../../../docs/guide/published-reports.md");
/// The head of their table.
const OTHER_SYSTEMS_HEAD: &str = "| there | here |";

/// A row of a table.
pub struct Term {
    /// The words it explains: one, or several that are used alike.
    pub words: Vec<&'static str>,
    /// What they mean.
    pub meaning: &'static str,
}

/// Every row of the glossary.
pub fn terms() -> impl Iterator<Item = Term> {
    rows(PAGE, HEAD)
}

/// What a word means, whatever its case.
pub fn meaning(word: &str) -> Option<&'static str> {
    of(word, terms())
}

/// What a word of another system is called here, whatever its case.
pub fn here(word: &str) -> Option<&'static str> {
    of(word, rows(OTHER_SYSTEMS, OTHER_SYSTEMS_HEAD))
}

/// A text of a page for the terminal: of `[words](page.md)` the words.
pub fn without_links(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((link, target)) = rest.split_once("](") {
        let (Some((before, words)), Some((_, after))) = (link.rsplit_once('['), target.split_once(')'))
        else {
            break;
        };
        shown.extend([before, words]);
        rest = after;
    }
    shown + rest
}

fn of(word: &str, mut terms: impl Iterator<Item = Term>) -> Option<&'static str> {
    let is_it = |term: &Term| term.words.iter().any(|known| known.eq_ignore_ascii_case(word));
    terms.find(is_it).map(|term| term.meaning)
}

/// The rows below a table's head and the line under it.
fn rows(page: &'static str, head: &'static str) -> impl Iterator<Item = Term> {
    let cells = |line: &'static str| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | ");
    let rows = page.lines().skip_while(move |line| *line != head).skip(2).map_while(cells);
    rows.map(|(words, meaning)| Term { words: words.split(", ").collect(), meaning })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_link_the_words_are_shown() {
        let text = "moved by [live migration](migration.md), or `[dc1, dc2]`; see [clocks](clocks.md#x).";
        assert_eq!(without_links(text), "moved by live migration, or `[dc1, dc2]`; see clocks.");
    }

    #[test]
    fn every_row_of_the_page_is_read_and_every_word_stands_once() {
        let rows = PAGE.lines().filter(|line| line.starts_with("| ")).count() - 1;
        assert_eq!(terms().count(), rows);
        let mut words: Vec<&str> = terms().flat_map(|term| term.words).collect();
        let count = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), count);
    }

    #[test]
    fn words_of_messages_and_reports_are_explained() {
        for word in ["place", "link", "p99", "throughput", "baseline", "Quorum", "unknown", "open loop"] {
            assert!(meaning(word).is_some(), "{word}");
        }
        assert_eq!(meaning("no-such-word"), None);
    }

    #[test]
    fn words_of_other_systems_are_read_and_none_stands_twice_or_in_the_glossary_too() {
        let known = || rows(OTHER_SYSTEMS, OTHER_SYSTEMS_HEAD).flat_map(|term| term.words);
        let words: std::collections::BTreeSet<&str> = known().collect();
        assert_eq!(words.len(), known().count());
        let twice: Vec<&&str> = words.iter().filter(|word| meaning(word).is_some()).collect();
        assert!(twice.is_empty(), "{twice:?}");
        for word in ["vMotion", "Anti-affinity", "FTT", "DRBD", "PTP", "tpc-c", "NoSQLBench"] {
            assert!(here(word).is_some(), "{word}");
        }
        assert!(here("matrix of configurations").is_some_and(|here| here.starts_with("`matrix`")));
        assert_eq!(here("no-such-word"), None);
    }
}

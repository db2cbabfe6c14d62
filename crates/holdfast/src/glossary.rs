//! The words of the glossary page of the guide, for `holdfast explain`.
//!
//! Reads the page itself, which is the only place where they stand.

/// The page.
const PAGE: &str = include_str!("../../../docs/guide/glossary.md");

/// A row of its table.
pub struct Term {
    /// The words it explains: one, or several that are used alike.
    pub words: Vec<&'static str>,
    /// What they mean.
    pub meaning: &'static str,
}

/// Every row.
pub fn terms() -> impl Iterator<Item = Term> {
    let cells = |line: &'static str| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | ");
    let rows = PAGE.lines().skip_while(|line| !line.starts_with("|---")).filter_map(cells);
    rows.map(|(words, meaning)| Term { words: words.split(", ").collect(), meaning })
}

/// What a word means, whatever its case.
pub fn meaning(word: &str) -> Option<&'static str> {
    let is_it = |term: &Term| term.words.iter().any(|known| known.eq_ignore_ascii_case(word));
    terms().find(is_it).map(|term| term.meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for word in ["place", "link", "p99", "throughput", "baseline", "Quorum"] {
            assert!(meaning(word).is_some(), "{word}");
        }
        assert_eq!(meaning("no-such-word"), None);
    }
}

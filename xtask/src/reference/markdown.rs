//! Markdown as the reference pages use it. Knows nothing of what they say.

/// The line below a page's title.
const GENERATED: &str = "<!-- Written by `cargo xtask reference`. Edit the registries, not this page. -->";

/// A page: title, introduction, body.
pub(super) fn page(title: &str, introduction: &str, body: &str) -> String {
    format!("# {title}\n\n{GENERATED}\n\n{introduction}\n\n{}\n", body.trim_end())
}

/// A table, with a blank line behind it. Empty where it has no rows.
pub(super) fn table(heads: &[&str], rows: Vec<Vec<String>>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text = format!("| {} |\n|{}\n", heads.join(" | "), "---|".repeat(heads.len()));
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| in_cell(cell)).collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text.push('\n');
    text
}

/// A fenced block, with a blank line behind it.
pub(super) fn block(language: &str, text: &str) -> String {
    format!("```{language}\n{}\n```\n\n", text.trim_end())
}

/// A word as it is typed.
pub(super) fn code(text: &str) -> String {
    format!("`{text}`")
}

/// A sentence: with a capital and a full stop. A product's name keeps its small letter.
pub(super) fn sentence(text: &str) -> String {
    let keeps_its_letter = engine::registry::engines().iter().any(|entry| text.starts_with(entry.name));
    let mut letters = text.chars();
    let first = letters.next().filter(|_| !keeps_its_letter);
    let capital: String = first.into_iter().flat_map(char::to_uppercase).collect();
    let rest = if keeps_its_letter { text } else { letters.as_str() };
    let stop = if text.ends_with('.') { "" } else { "." };
    format!("{capital}{rest}{stop}")
}

fn in_cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_within_a_cell_does_not_end_the_cell() {
        assert_eq!(table(&["a"], vec![vec!["x | y".to_owned()]]), "| a |\n|---|\n| x \\| y |\n\n");
        assert_eq!(table(&["a"], Vec::new()), "");
    }

    #[test]
    fn a_sentence_has_a_capital_and_one_stop() {
        assert_eq!(sentence("how many ..."), "How many ...");
        assert_eq!(sentence("etcd 3.4"), "etcd 3.4.");
    }
}

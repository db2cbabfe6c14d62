//! What a scenario says on paper, as text for a terminal. Decides nothing.

mod capacity_text;
mod cost_text;
mod placement_text;
mod practice_text;
mod scale_text;
mod survival_text;
mod too_short_text;

use paper::Analysis;

pub use capacity_text::capacity;
pub use practice_text::practice;
pub use scale_text::prediction;

/// Columns of the text.
const WIDTH: usize = 110;

/// Everything, line by line.
pub fn lines(paper: &Analysis) -> Vec<String> {
    let mut lines = survival_text::survival(paper);
    lines.extend(too_short_text::too_short(&paper.too_short));
    lines.extend(cost_text::costs(paper));
    lines.extend(paper.placement.iter().flat_map(placement_text::placement));
    lines.push(String::new());
    lines.push("Best practice, from the scenario".to_owned());
    lines.extend(practice(&paper.practice));
    lines
}

/// `1 host`, `2 hosts`.
pub fn counted(count: usize, singular: &str, plural: &str) -> String {
    format!("{count} {}", if count == 1 { singular } else { plural })
}

/// A label, and words beside it over as many lines as they need.
pub fn beside(label: &str, width: usize, text: &str) -> Vec<String> {
    let mut rows: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        let row = rows.last().map_or(0, |row| row.chars().count());
        if row > 0 && width + row + 1 + word.chars().count() > WIDTH {
            rows.push(String::new());
        }
        if let Some(row) = rows.last_mut() {
            if !row.is_empty() {
                row.push(' ');
            }
            row.push_str(word);
        }
    }
    let line = |label: &str, row: &String| format!("{label:width$}{row}").trim_end().to_owned();
    if label.chars().count() >= width && width > 0 && !label.trim().is_empty() {
        return std::iter::once(label.to_owned()).chain(rows.iter().map(|row| line("", row))).collect();
    }
    let label = |number: usize| if number == 0 { label } else { "" };
    rows.iter().enumerate().map(|(number, row)| line(label(number), row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_goes_on_beside_its_label() {
        let words = "word ".repeat(30);
        let found = beside("  label", 10, &words);
        assert!(found.len() == 2 && found.iter().all(|line| line.chars().count() <= WIDTH), "{found:?}");
        assert!(found[0].starts_with("  label   word") && found[1].starts_with("          word"));
        assert_eq!(beside("  label", 10, ""), ["  label"]);
        assert_eq!(beside("  a long label", 4, "word"), ["  a long label", "    word"]);
        assert_eq!(beside("  a long label", 4, "word"), ["  a long label", "    word"]);
    }
}

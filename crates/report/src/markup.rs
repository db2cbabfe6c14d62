//! Text made safe for HTML and SVG, and for a terminal. Everything that comes from a run passes through here.

use std::borrow::Cow;

use history::visible::is_hidden;

/// Text as it may stand between tags and inside quoted attributes.
///
/// Control characters and marks that turn the reading direction become the replacement character: a name must not be
/// able to hide or disguise what stands beside it.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other if is_hidden(other) => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Text as it may be printed to a terminal, on one line.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if text.chars().any(|character| is_hidden(character) || character == '\t') {
        Cow::Owned(
            text.chars().map(|character| if character == '\t' { ' ' } else { tame(character) }).collect(),
        )
    } else {
        Cow::Borrowed(text)
    }
}

fn tame(character: char) -> char {
    if is_hidden(character) { '\u{fffd}' } else { character }
}

/// Text cut to so many characters, the last an ellipsis where something was cut.
pub(crate) fn cut(text: &str, longest: usize) -> String {
    if text.chars().count() <= longest {
        return text.to_owned();
    }
    let mut kept: String = text.chars().take(longest.saturating_sub(1)).collect();
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn markup_in_a_name_stays_text() {
        assert_eq!(
            escape("<script>alert(\"1\" & '2')</script>"),
            "&lt;script&gt;alert(&quot;1&quot; &amp; &#39;2&#39;)&lt;/script&gt;"
        );
    }

    #[test]
    fn control_and_direction_marks_are_shown_as_unreadable() {
        assert_eq!(escape("a\u{0}b\u{1b}[31m\u{202e}c"), "a\u{fffd}b\u{fffd}[31m\u{fffd}c");
        assert_eq!(plain("a\u{1b}[2Jb\tc"), "a\u{fffd}[2Jb c");
    }

    #[test]
    fn long_names_are_cut_with_an_ellipsis() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abcde…");
        assert_eq!(cut("äöüß", 2), "ä…");
        assert_eq!(cut("ab", 0), "…");
    }

    proptest! {
        #[test]
        fn no_text_escapes_its_place(text in any::<String>()) {
            let escaped = escape(&text);
            prop_assert!(!escaped.contains(['<', '>', '"', '\'']));
        }
    }
}

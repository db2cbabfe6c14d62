//! Text of strangers made safe to show: what a terminal would carry out and what hides or turns round the text beside it
//! is shown as what it is.
//!
//! Owns which characters those are. Sources: Unicode Standard Annex 9 for the marks of direction, Annex 44 for what has no
//! width; ECMA-48 for control characters.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character does something other than to be seen. Line ends and tabs are the caller's to judge.
#[must_use]
pub fn is_hidden(character: char) -> bool {
    (character.is_control() && !matches!(character, '\n' | '\t'))
        || matches!(character,
            '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The text with every hidden character written out, as `\u{1b}`.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_hidden(character) {
            // Writing to a string does not fail.
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_carry_out_is_written_out_and_all_else_stays() {
        let check = |text: &str, expected: &str| assert_eq!(visible(text), expected);
        check("\u{1b}]0;owned\u{7}\u{1b}[2J", "\\u{1b}]0;owned\\u{7}\\u{1b}[2J");
        check("\u{9b}31m", "\\u{9b}31m");
        check("sum\u{202e}dets\r", "sum\\u{202e}dets\\u{d}");
        check("a\u{200b}b\u{feff}\u{2028}", "a\\u{200b}b\\u{feff}\\u{2028}");
        check("a\tb\nünïcödé → 日本 𝄞", "a\tb\nünïcödé → 日本 𝄞");
    }
}

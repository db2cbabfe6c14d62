//! Text as YAML takes it for nothing else.

use std::fmt::Write;

/// A word as it is where YAML takes it for nothing else, otherwise in double quotes with everything unusual escaped.
pub(crate) fn quoted(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_lowercase())
        && text
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '/' | ' '))
        && !text.ends_with(' ')
        && !matches!(text, "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n");
    if plain {
        return text.to_owned();
    }
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            ' '..='~' => quoted.push(c),
            // Whatever YAML might take for a line break, a blank to fold or a byte order mark is escaped below.
            c if !c.is_control() && !c.is_whitespace() && c != '\u{feff}' => quoted.push(c),
            c => {
                let _ = write!(quoted, "\\U{:08X}", u32::from(c));
            }
        }
    }
    quoted.push('"');
    quoted
}

//! Words to a line that a POSIX shell splits into exactly these words again.
//!
//! Owns quoting only. What a program makes of its arguments is not known here: see `parameter` for what may stand in them.

/// A word that every POSIX shell reads as itself.
#[must_use]
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,+@%=".contains(c);
    // A word such as `if` or `a=b` is no problem: what is quoted is never the first word of a line.
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    // Nothing is special between single quotes, but the quote itself.
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Words with blanks between them.
#[must_use]
pub fn joined<S: AsRef<str>>(words: &[S]) -> String {
    words.iter().map(|word| quoted(word.as_ref())).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_special_to_a_shell_is_quoted_and_the_rest_stays_readable() {
        assert_eq!(joined(&["show", "--property=MainPID", "x"]), "show --property=MainPID x");
        assert_eq!(
            joined(&["a b", "", "$HOME", "it's", "`x`", "~", "*"]),
            r"'a b' '' '$HOME' 'it'\''s' '`x`' '~' '*'"
        );
        assert_eq!(quoted("x\ny"), "'x\ny'");
    }
}

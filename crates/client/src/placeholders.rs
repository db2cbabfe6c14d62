//! Where a statement's parameters stand in its text, `$1` and `$2`, for servers that have `?` in their place.
//!
//! Owns the cutting of the text. What is put in the places is each protocol's.

/// How a quoted text goes on over a quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quoting {
    /// By a doubled quote, or behind a backslash.
    WithBackslashes,
    /// By a doubled quote.
    Doubled,
}

/// A statement's text, cut at its parameters: one more piece than there are places, and which parameter stands at each
/// place, from 0. One may stand at several. Quoted texts and comments have none.
pub(crate) fn cut(sql: &str, quoting: Quoting) -> (Vec<String>, Vec<usize>) {
    let (mut pieces, mut places) = (Vec::new(), Vec::new());
    let (mut piece, mut rest) = (String::new(), sql);
    while let Some(sign) = rest.chars().next() {
        if sign == '$' {
            let digits = rest.bytes().skip(1).take_while(u8::is_ascii_digit).count();
            let number = rest.get(1..=digits).and_then(|digits| digits.parse::<usize>().ok());
            if let Some(place) = number.and_then(|number| number.checked_sub(1)) {
                pieces.push(std::mem::take(&mut piece));
                places.push(place);
                rest = rest.get(1 + digits..).unwrap_or_default();
                continue;
            }
        }
        let (taken, behind) = rest.split_at(length_of_first(rest, sign, quoting));
        piece.push_str(taken);
        rest = behind;
    }
    pieces.push(piece);
    (pieces, places)
}

/// The statements of a text, cut at its semicolons; quoted texts and comments have none.
pub(crate) fn statements(sql: &str, quoting: Quoting) -> Vec<&str> {
    let (mut found, mut begin, mut at) = (Vec::new(), 0, 0);
    while let Some(rest) = sql.get(at..).filter(|rest| !rest.is_empty()) {
        let Some(sign) = rest.chars().next() else { break };
        if sign == ';' {
            found.extend(sql.get(begin..at));
            begin = at + 1;
        }
        at += length_of_first(rest, sign, quoting);
    }
    found.extend(sql.get(begin..));
    found
}

/// The length of what a text begins with: a quoted text or a comment as a whole, or its first sign.
fn length_of_first(rest: &str, sign: char, quoting: Quoting) -> usize {
    match sign {
        '\'' | '"' | '`' => quoted_length(rest, sign, quoting),
        '-' if rest.starts_with("-- ") => rest.find('\n').unwrap_or(rest.len()),
        '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
        other => other.len_utf8(),
    }
}

/// The length of what begins with a quote, both quotes included.
fn quoted_length(text: &str, quote: char, quoting: Quoting) -> usize {
    let mut is_escaped = false;
    for (at, sign) in text.char_indices().skip(1) {
        match sign {
            _ if is_escaped => is_escaped = false,
            '\\' if quote != '`' && quoting == Quoting::WithBackslashes => is_escaped = true,
            // A doubled quote ends one text and begins the next, which comes to the same.
            sign if sign == quote => return at + quote.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backslash_hides_a_quote_only_where_the_server_has_it_so() {
        let check = |sql: &str, quoting, places: &[usize]| {
            assert_eq!(cut(sql, quoting).1, places, "{sql}");
        };
        check(r"SELECT 'a\', $1", Quoting::Doubled, &[0]);
        check(r"SELECT 'a\', $1", Quoting::WithBackslashes, &[]);
        check(r"SELECT 'a''$1', $2", Quoting::Doubled, &[1]);
    }

    #[test]
    fn a_text_is_cut_at_semicolons_outside_of_quotes_and_comments() {
        let check = |sql: &str, expected: &[&str]| assert_eq!(statements(sql, Quoting::Doubled), expected);
        check("a; b", &["a", " b"]);
        check("a ';' \"b;\" -- c;\n; d /* e; */;", &["a ';' \"b;\" -- c;\n", " d /* e; */", ""]);
        check("\u{fc};", &["\u{fc}", ""]);
    }
}

//! EDN from a stream, one form after another, each with the line it begins on.
//!
//! Bounded: a form has a largest size and a largest depth, so that no file exhausts memory or the stack. Knows nothing of
//! histories.

use std::io::BufRead;

/// The longest form, bytes. As for a line of JSON: anything beyond is not a history.
pub const FORM_BYTES_MAX: usize = 8 << 20;
/// How deep forms may stand in each other.
const DEPTH_MAX: usize = 64;

/// One EDN value. Characters, strings and symbols are text; sets and lists are read as vectors are, and a tag is left
/// out: histories need no more.
#[derive(Debug, Clone, PartialEq)]
pub enum Form {
    Nil,
    /// `true`, `false`.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// A keyword, without its colon.
    Keyword(Box<str>),
    /// A string, a character or a symbol.
    Text(Box<str>),
    /// A vector, list or set.
    Sequence(Vec<Form>),
    /// A map, in the order it was written.
    Map(Vec<(Form, Form)>),
}

/// What can be wrong with EDN.
#[derive(Debug, thiserror::Error)]
pub enum FormError {
    /// The file ends within a form.
    #[error("line {line}: the file ends within what begins here")]
    Truncated {
        /// Line on which the form begins, from 1.
        line: u64,
    },
    /// It is not EDN.
    #[error("line {line}: {what}")]
    Malformed {
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// A form is longer than any of a history.
    #[error("line {line}: what begins here is longer than {FORM_BYTES_MAX} bytes")]
    TooLong {
        /// Line on which the form begins, from 1.
        line: u64,
    },
    /// The stream could not be read.
    #[error("line {line}: {source}")]
    Unreadable {
        /// The line that was being read, from 1.
        line: u64,
        /// What went wrong.
        source: std::io::Error,
    },
}

/// Reads forms one after another. A vector around all of them, as `[{...} {...}]`, is gone through as if it were not
/// there.
#[derive(Debug)]
pub struct Forms<R> {
    reader: R,
    at_line: u64,
    /// Line on which the form at hand begins.
    began_line: u64,
    /// Bytes taken since it began.
    taken: usize,
    /// Whether a bracket around everything was opened.
    is_wrapped: bool,
    has_begun: bool,
    ended: bool,
}

impl<R: BufRead> Forms<R> {
    /// A reader of `reader`.
    pub fn new(reader: R) -> Self {
        Forms {
            reader,
            at_line: 1,
            began_line: 1,
            taken: 0,
            is_wrapped: false,
            has_begun: false,
            ended: false,
        }
    }

    /// Line on which the form that was read last begins, from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.began_line
    }

    fn peek(&mut self) -> Result<Option<u8>, FormError> {
        let line = self.at_line;
        loop {
            match self.reader.fill_buf() {
                Ok(bytes) => return Ok(bytes.first().copied()),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                    return Err(FormError::Truncated { line: self.began_line });
                }
                Err(source) => return Err(FormError::Unreadable { line, source }),
            }
        }
    }

    fn take(&mut self) -> Result<Option<u8>, FormError> {
        let byte = self.peek()?;
        if let Some(byte) = byte {
            self.reader.consume(1);
            self.taken += 1;
            if self.taken > FORM_BYTES_MAX {
                return Err(FormError::TooLong { line: self.began_line });
            }
            self.at_line += u64::from(byte == b'\n');
        }
        Ok(byte)
    }

    fn must_take(&mut self) -> Result<u8, FormError> {
        self.take()?.ok_or(FormError::Truncated { line: self.began_line })
    }

    fn malformed<T>(&self, what: impl Into<String>) -> Result<T, FormError> {
        Err(FormError::Malformed { line: self.at_line, what: what.into() })
    }

    /// Passes over blanks and comments.
    fn skip_blanks(&mut self) -> Result<Option<u8>, FormError> {
        loop {
            match self.peek()? {
                Some(b' ' | b'\t' | b'\r' | b'\n' | b',' | 0x0C) => {
                    self.take()?;
                }
                Some(b';') => while !matches!(self.take()?, Some(b'\n') | None) {},
                next => return Ok(next),
            }
        }
    }

    /// The next form at the top; `None` at the end.
    fn next_form(&mut self) -> Result<Option<Form>, FormError> {
        loop {
            self.taken = 0;
            let next = self.skip_blanks()?;
            // Blanks between forms are no form.
            (self.taken, self.began_line) = (0, self.at_line);
            match next {
                None if self.is_wrapped => return Err(FormError::Truncated { line: self.at_line }),
                None => return Ok(None),
                Some(b'[') if !self.has_begun => {
                    self.take()?;
                    (self.has_begun, self.is_wrapped) = (true, true);
                }
                Some(b']') if self.is_wrapped => {
                    self.take()?;
                    return match self.skip_blanks()? {
                        None => Ok(None),
                        Some(_) => self.malformed("something stands behind the bracket around the history"),
                    };
                }
                Some(_) => {
                    self.has_begun = true;
                    if let Some(form) = self.form(0)? {
                        return Ok(Some(form));
                    }
                }
            }
        }
    }

    /// A form; `None` for one that is marked to be passed over.
    fn form(&mut self, depth: usize) -> Result<Option<Form>, FormError> {
        if depth > DEPTH_MAX {
            return self.malformed(format!("forms stand in each other more than {DEPTH_MAX} deep"));
        }
        match self.skip_blanks()? {
            None => Err(FormError::Truncated { line: self.began_line }),
            Some(b'[') => self.sequence(b']', depth).map(Some),
            Some(b'(') => self.sequence(b')', depth).map(Some),
            Some(b'{') => self.map(depth).map(Some),
            Some(b'"') => self.string().map(Some),
            Some(b'\\') => self.character().map(Some),
            Some(b'#') => self.dispatch(depth),
            Some(byte @ (b']' | b')' | b'}')) => {
                self.malformed(format!("`{}` closes nothing", char::from(byte)))
            }
            Some(_) => self.word().map(Some),
        }
    }

    fn sequence(&mut self, close: u8, depth: usize) -> Result<Form, FormError> {
        self.take()?;
        let mut forms = Vec::new();
        loop {
            if self.skip_blanks()? == Some(close) {
                self.take()?;
                return Ok(Form::Sequence(forms));
            }
            forms.extend(self.form(depth + 1)?);
        }
    }

    fn map(&mut self, depth: usize) -> Result<Form, FormError> {
        let Form::Sequence(forms) = self.sequence(b'}', depth)? else { return self.malformed("not a map") };
        if forms.len() % 2 != 0 {
            return self.malformed("a map has a key without a value");
        }
        let mut forms = forms.into_iter();
        let mut pairs = Vec::new();
        while let (Some(key), Some(value)) = (forms.next(), forms.next()) {
            pairs.push((key, value));
        }
        Ok(Form::Map(pairs))
    }

    /// What begins with `#`: a set, something to be passed over, a tag before a form, or `##Inf`.
    fn dispatch(&mut self, depth: usize) -> Result<Option<Form>, FormError> {
        self.take()?;
        match self.peek()? {
            Some(b'{') => self.sequence(b'}', depth).map(Some),
            Some(b'_') => {
                self.take()?;
                while self.form(depth + 1)?.is_none() {}
                Ok(None)
            }
            Some(b'#') => {
                self.take()?;
                match self.raw_word()?.as_str() {
                    "Inf" => Ok(Some(Form::Float(f64::INFINITY))),
                    "-Inf" => Ok(Some(Form::Float(f64::NEG_INFINITY))),
                    "NaN" => Ok(Some(Form::Float(f64::NAN))),
                    other => self.malformed(format!("`##{other}` is no number")),
                }
            }
            Some(byte) if byte.is_ascii_alphabetic() => {
                self.raw_word()?;
                loop {
                    if let Some(form) = self.form(depth + 1)? {
                        return Ok(Some(form));
                    }
                }
            }
            _ => self.malformed("`#` before nothing known"),
        }
    }

    fn string(&mut self) -> Result<Form, FormError> {
        self.take()?;
        let mut bytes = Vec::new();
        loop {
            match self.must_take()? {
                b'"' => break,
                b'\\' => match self.must_take()? {
                    b'n' => bytes.push(b'\n'),
                    b't' => bytes.push(b'\t'),
                    b'r' => bytes.push(b'\r'),
                    byte @ (b'"' | b'\\') => bytes.push(byte),
                    b'u' => {
                        let mut code = String::new();
                        for _ in 0..4 {
                            code.push(char::from(self.must_take()?));
                        }
                        let Ok(code) = u32::from_str_radix(&code, 16) else {
                            return self.malformed(format!("`\\u{code}` is no character"));
                        };
                        let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                        bytes.extend(character.to_string().into_bytes());
                    }
                    byte => return self.malformed(format!("`\\{}` means nothing", char::from(byte))),
                },
                byte => bytes.push(byte),
            }
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Form::Text(text.into())),
            Err(_) => self.malformed("a string is not UTF-8"),
        }
    }

    fn character(&mut self) -> Result<Form, FormError> {
        self.take()?;
        let mut word = char::from(self.must_take()?).to_string();
        word += &self.raw_word()?;
        Ok(Form::Text(word.into()))
    }

    /// Bytes up to the next blank or bracket.
    fn raw_word(&mut self) -> Result<String, FormError> {
        let mut bytes = Vec::new();
        while let Some(byte) = self.peek()? {
            if byte.is_ascii_whitespace() || b",;\"()[]{}\\".contains(&byte) {
                break;
            }
            bytes.push(byte);
            self.take()?;
        }
        match String::from_utf8(bytes) {
            Ok(word) => Ok(word),
            Err(_) => self.malformed("a word is not UTF-8"),
        }
    }

    fn word(&mut self) -> Result<Form, FormError> {
        let word = self.raw_word()?;
        let number = |word: &str| {
            let digits = word.strip_prefix(['+', '-']).unwrap_or(word);
            digits.starts_with(|first: char| first.is_ascii_digit())
        };
        match word.as_str() {
            "nil" => Ok(Form::Nil),
            "true" => Ok(Form::Boolean(true)),
            "false" => Ok(Form::Boolean(false)),
            "" => {
                let byte = self.must_take()?;
                self.malformed(format!("`{}` begins nothing", char::from(byte).escape_default()))
            }
            _ if number(&word) => {
                let whole = word.strip_suffix('N').unwrap_or(&word);
                let decimal = word.strip_suffix('M').unwrap_or(&word);
                if let Ok(integer) = whole.parse() {
                    Ok(Form::Integer(integer))
                } else {
                    match decimal.parse() {
                        // What has neither point nor exponent is a whole number beyond 64 bits.
                        Ok(float) if word.contains(['.', 'e', 'E', 'M']) => Ok(Form::Float(float)),
                        _ => self.malformed(format!("`{word}` is no number, or too large a one")),
                    }
                }
            }
            _ => Ok(match word.strip_prefix(':') {
                Some(keyword) => Form::Keyword(keyword.into()),
                None => Form::Text(word.into()),
            }),
        }
    }
}

impl<R: BufRead> Iterator for Forms<R> {
    type Item = Result<Form, FormError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.next_form().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

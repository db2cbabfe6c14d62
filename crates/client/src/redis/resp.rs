//! Redis' serialization protocol, version 2: commands as they are sent, answers as they arrive.
//!
//! Owns the form and its limits. Each byte of an answer is looked at once, in however small pieces it comes, and a server
//! that answers without end or nests without end is given up. Source: Redis documentation, "Redis serialization protocol
//! specification".

use std::io::Write as _;

/// The longest answer, bytes.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// The longest line of an answer, bytes: a status, an error, a length.
const LINE_BYTES_MAX: usize = 64 << 10;
/// How deep arrays may lie in each other.
const DEPTH_MAX: usize = 8;

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    /// `+OK`.
    Status(String),
    /// `-ERR ...`, without the hyphen.
    Error(String),
    /// A whole number.
    Integer(i64),
    /// Bytes.
    Bulk(Vec<u8>),
    /// No bytes, or no array.
    Nothing,
    /// Several.
    Array(Vec<Reply>),
}

impl Reply {
    /// Text of a status or of bytes.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Reply::Status(text) => Some(text),
            Reply::Bulk(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }
}

/// What arrives is no answer, or none that is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum RespError {
    /// Not the protocol.
    #[error("an answer that is no RESP: {0}")]
    Malformed(&'static str),
    /// Longer than any.
    #[error("an answer longer than {ANSWER_BYTES_MAX} bytes")]
    TooLong,
}

/// Reads any bytes as answers, for who looks for bytes that a parser cannot bear: the first half, then the rest.
#[doc(hidden)]
pub fn read_any(bytes: &[u8]) {
    let mut reader = Reader::default();
    let (first, rest) = bytes.split_at(bytes.len() / 2);
    for arrived in [first, rest] {
        reader.take(arrived);
        while let Ok(Some(reply)) = reader.next() {
            let _ = reply.text();
        }
    }
}

/// Appends a command.
pub(super) fn write_command<'w>(words: impl ExactSizeIterator<Item = &'w [u8]>, out: &mut Vec<u8>) {
    // Writing into memory cannot fail.
    let _ = write!(out, "*{}\r\n", words.len());
    for word in words {
        let _ = write!(out, "${}\r\n", word.len());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

/// Answers as far as they have arrived.
#[derive(Debug, Default)]
pub(super) struct Reader {
    arrived: Vec<u8>,
    /// Up to where it has been read.
    read_to: usize,
    /// Up to where no line's end was found.
    looked_to: usize,
    /// Bytes of the answer that is being read.
    answer_bytes: usize,
    /// Arrays that are not whole yet, the outermost first: how many elements each lacks.
    open: Vec<(usize, Vec<Reply>)>,
    /// Bytes that are announced and have not all arrived.
    awaited: Option<usize>,
}

impl Reader {
    /// Takes in what has arrived.
    pub(super) fn take(&mut self, arrived: &[u8]) {
        self.arrived.drain(..self.read_to);
        self.looked_to = self.looked_to.saturating_sub(self.read_to);
        self.read_to = 0;
        self.arrived.extend_from_slice(arrived);
    }

    /// The next whole answer; nothing as long as some of it is missing.
    pub(super) fn next(&mut self) -> Result<Option<Reply>, RespError> {
        loop {
            let Some(mut reply) = self.element()? else {
                let waiting = self.arrived.len() - self.read_to;
                return if self.answer_bytes + waiting > ANSWER_BYTES_MAX {
                    Err(RespError::TooLong)
                } else {
                    Ok(None)
                };
            };
            // The last element of an array makes it whole, which may make the one around it whole.
            loop {
                let Some((lacking, elements)) = self.open.last_mut() else {
                    self.answer_bytes = 0;
                    return Ok(Some(reply));
                };
                elements.push(reply);
                *lacking -= 1;
                if *lacking > 0 {
                    break;
                }
                reply = Reply::Array(self.open.pop().map(|(_, elements)| elements).unwrap_or_default());
            }
        }
    }

    /// The next thing that is whole by itself. An array that has elements is opened and its first is looked for.
    fn element(&mut self) -> Result<Option<Reply>, RespError> {
        loop {
            if let Some(length) = self.awaited {
                return self.bytes(length);
            }
            let Some(line) = self.line()? else { return Ok(None) };
            let (kind, rest) = line.split_at_checked(1).ok_or(RespError::Malformed("an empty line"))?;
            match kind {
                "+" => return Ok(Some(Reply::Status(rest.to_owned()))),
                "-" => return Ok(Some(Reply::Error(rest.to_owned()))),
                ":" => {
                    let number = rest.parse().map_err(|_| RespError::Malformed("its number"))?;
                    return Ok(Some(Reply::Integer(number)));
                }
                "$" => match length(rest)? {
                    None => return Ok(Some(Reply::Nothing)),
                    some => self.awaited = some,
                },
                "*" => match length(rest)? {
                    None => return Ok(Some(Reply::Nothing)),
                    Some(0) => return Ok(Some(Reply::Array(Vec::new()))),
                    Some(_) if self.open.len() == DEPTH_MAX => {
                        return Err(RespError::Malformed("arrays nested too deep"));
                    }
                    // No room is made for what is only announced.
                    Some(count) => self.open.push((count, Vec::new())),
                },
                _ => return Err(RespError::Malformed("its kind")),
            }
        }
    }

    fn bytes(&mut self, length: usize) -> Result<Option<Reply>, RespError> {
        let rest = self.arrived.get(self.read_to..).unwrap_or_default();
        let Some((bytes, behind)) = rest.split_at_checked(length) else { return Ok(None) };
        if behind.len() < 2 {
            return Ok(None);
        }
        if !behind.starts_with(b"\r\n") {
            return Err(RespError::Malformed("the end of its bytes"));
        }
        let reply = Reply::Bulk(bytes.to_vec());
        self.awaited = None;
        self.advance(length + 2)?;
        Ok(Some(reply))
    }

    /// The next line without its end.
    fn line(&mut self) -> Result<Option<String>, RespError> {
        let from = self.looked_to.max(self.read_to);
        let rest = self.arrived.get(from..).unwrap_or_default();
        let Some(end) = rest.windows(2).position(|two| two == b"\r\n") else {
            // The first half of an end may have arrived.
            self.looked_to = self.arrived.len().saturating_sub(1).max(self.read_to);
            let length = self.arrived.len() - self.read_to;
            return if length > LINE_BYTES_MAX {
                Err(RespError::Malformed("an endless line"))
            } else {
                Ok(None)
            };
        };
        let line = self.arrived.get(self.read_to..from + end).unwrap_or_default();
        if line.len() > LINE_BYTES_MAX {
            return Err(RespError::Malformed("an endless line"));
        }
        let length = line.len();
        let line = String::from_utf8_lossy(line).into_owned();
        self.advance(length + 2)?;
        Ok(Some(line))
    }

    fn advance(&mut self, bytes: usize) -> Result<(), RespError> {
        self.read_to += bytes;
        self.answer_bytes += bytes;
        if self.answer_bytes > ANSWER_BYTES_MAX { Err(RespError::TooLong) } else { Ok(()) }
    }
}

/// A length that is announced; nothing for -1.
fn length(text: &str) -> Result<Option<usize>, RespError> {
    let length: i64 = text.parse().map_err(|_| RespError::Malformed("its length"))?;
    match usize::try_from(length) {
        Ok(length) if length > ANSWER_BYTES_MAX => Err(RespError::TooLong),
        Ok(length) => Ok(Some(length)),
        Err(_) if length == -1 => Ok(None),
        Err(_) => Err(RespError::Malformed("its length")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A reply as a server writes it.
    fn write(reply: &Reply, out: &mut Vec<u8>) {
        match reply {
            Reply::Status(text) => out.extend_from_slice(format!("+{text}\r\n").as_bytes()),
            Reply::Error(text) => out.extend_from_slice(format!("-{text}\r\n").as_bytes()),
            Reply::Integer(number) => out.extend_from_slice(format!(":{number}\r\n").as_bytes()),
            Reply::Nothing => out.extend_from_slice(b"$-1\r\n"),
            Reply::Bulk(bytes) => {
                out.extend_from_slice(format!("${}\r\n", bytes.len()).as_bytes());
                out.extend_from_slice(bytes);
                out.extend_from_slice(b"\r\n");
            }
            Reply::Array(elements) => {
                out.extend_from_slice(format!("*{}\r\n", elements.len()).as_bytes());
                elements.iter().for_each(|element| write(element, out));
            }
        }
    }

    fn reply() -> impl Strategy<Value = Reply> {
        let leaf = prop_oneof![
            "[ -~]{0,12}".prop_map(Reply::Status),
            "[ -~]{0,12}".prop_map(Reply::Error),
            any::<i64>().prop_map(Reply::Integer),
            proptest::collection::vec(any::<u8>(), 0..20).prop_map(Reply::Bulk),
            Just(Reply::Nothing),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| proptest::collection::vec(inner, 0..6).prop_map(Reply::Array))
    }

    proptest! {
        #[test]
        fn answers_are_read_as_they_were_written_in_whatever_pieces_they_arrive(
            replies in proptest::collection::vec(reply(), 1..4),
            cuts in proptest::collection::vec(1_usize..40, 1..30),
        ) {
            let mut bytes = Vec::new();
            replies.iter().for_each(|reply| write(reply, &mut bytes));
            let (mut reader, mut seen) = (Reader::default(), Vec::new());
            let (mut rest, mut cuts) = (bytes.as_slice(), cuts.iter().cycle());
            while !rest.is_empty() {
                let (piece, behind) = rest.split_at((*cuts.next().expect("endless")).min(rest.len()));
                reader.take(piece);
                while let Some(reply) = reader.next().expect("well-formed") {
                    seen.push(reply);
                }
                rest = behind;
            }
            prop_assert_eq!(seen, replies);
        }

        #[test]
        fn whatever_arrives_ends_in_an_answer_an_error_or_waiting(
            bytes in proptest::collection::vec(
                prop_oneof![Just(b'*'), Just(b'$'), Just(b'\r'), Just(b'\n'), Just(b'1'), any::<u8>()], 0..60),
        ) {
            let mut reader = Reader::default();
            reader.take(&bytes);
            while let Ok(Some(_)) = reader.next() {}
        }
    }

    #[test]
    fn an_answer_without_end_is_given_up() {
        let given_up = |beginning: &[u8], more: &[u8]| {
            let mut reader = Reader::default();
            reader.take(beginning);
            loop {
                match reader.next() {
                    Ok(None) => reader.take(more),
                    Ok(Some(reply)) => panic!("{reply:?}"),
                    Err(error) => return error,
                }
            }
        };
        assert_eq!(given_up(b"$99999999999\r\n", b""), RespError::TooLong);
        assert_eq!(given_up(b"*60000000\r\n", &b":1\r\n".repeat(1_000)), RespError::TooLong);
        assert_eq!(given_up(b"+", &[b'x'; 1_000]), RespError::Malformed("an endless line"));
        assert_eq!(given_up(b"", b"*1\r\n"), RespError::Malformed("arrays nested too deep"));
        assert_eq!(given_up(b"HTTP/1.1 200 OK\r\n", b""), RespError::Malformed("its kind"));
        assert_eq!(given_up(b"$2\r\nabc\r\n", b""), RespError::Malformed("the end of its bytes"));
    }

    #[test]
    fn a_command_is_an_array_of_its_words() {
        let mut out = Vec::new();
        write_command(["WAIT", "1", ""].iter().map(|word| word.as_bytes()), &mut out);
        assert_eq!(out, b"*3\r\n$4\r\nWAIT\r\n$1\r\n1\r\n$0\r\n\r\n");
    }
}

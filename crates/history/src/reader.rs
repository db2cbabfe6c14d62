//! Reading a history: compressed as we write it, or as plain JSON lines.
//!
//! Owns recognising the form and unpacking it. What a line may be is `lines`' business.

use std::io::{BufReader, Chain, Cursor, ErrorKind, Read};

use crate::Operation;
use crate::lines::{JsonLines, ReadError};

/// The first bytes of every zstd frame.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// Iterator over a history's operations, in the order they were written.
///
/// It ends after the first error. [`ReadError::Truncated`] says that the file ends in the middle of a line or
/// of a frame, as it does when its writer was killed: everything given before is whole and good.
pub struct HistoryReader<R: Read> {
    lines: JsonLines<BufReader<Source<R>>, Operation>,
}

impl<R: Read> HistoryReader<R> {
    /// A reader of `stream`: zstd frames one after another, or plain JSON lines, whichever its first bytes say.
    ///
    /// # Errors
    /// When the stream's beginning cannot be read or the decompressor cannot be set up.
    pub fn new(mut stream: R) -> std::io::Result<Self> {
        let mut start = [0; ZSTD_MAGIC.len()];
        let mut length = 0;
        while length < start.len() {
            match stream.read(&mut start[length..]) {
                Ok(0) => break,
                Ok(read) => length += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let start = &start[..length];
        // A file cut within its first four bytes is a torn frame, not text.
        let compressed = length > 0 && ZSTD_MAGIC.starts_with(start);
        let whole = Cursor::new(start.to_vec()).chain(stream);
        let source = if compressed {
            Source::Compressed(zstd::stream::read::Decoder::new(whole)?)
        } else {
            Source::Plain(whole)
        };
        Ok(HistoryReader { lines: JsonLines::new(BufReader::with_capacity(1 << 16, source)) })
    }

    /// Number of the line that was read last, from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.lines.line()
    }
}

impl<R: Read> Iterator for HistoryReader<R> {
    type Item = Result<Operation, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.lines.next()
    }
}

type Whole<R> = Chain<Cursor<Vec<u8>>, R>;

/// The text of a history, however it is packed.
enum Source<R: Read> {
    Plain(Whole<R>),
    Compressed(zstd::stream::read::Decoder<'static, BufReader<Whole<R>>>),
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Source::Plain(stream) => stream.read(buffer),
            Source::Compressed(stream) => stream.read(buffer),
        }
    }
}

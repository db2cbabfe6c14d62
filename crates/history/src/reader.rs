//! Reading a history: compressed as we write it, or as plain JSON lines.
//!
//! Owns recognising the form and unpacking it. What a line may be is `lines`' business.

use std::io::{BufReader, Chain, Cursor, ErrorKind, Read};

use crate::Operation;
use crate::lines::{JsonLines, ReadError};

/// The first bytes of every zstd frame.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// Every operation has times of its own: histories pack to a tenth, not to a thousandth. What unpacks to more was made to
/// fill the memory or the time of its reader.
const UNPACKED_RATIO_MAX: u64 = 1_000;
/// So much of any is read.
const UNPACKED_BYTES_FREE: u64 = 16 << 20;

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
            let counted = BufReader::new(Counted { stream: whole, bytes: 0 });
            Source::Compressed {
                stream: zstd::stream::read::Decoder::with_buffer(counted)?,
                unpacked_bytes: 0,
            }
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
    Compressed {
        stream: zstd::stream::read::Decoder<'static, BufReader<Counted<Whole<R>>>>,
        unpacked_bytes: u64,
    },
}

/// Counts what is read.
struct Counted<R> {
    stream: R,
    bytes: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.stream.read(buffer)?;
        self.bytes += read as u64;
        Ok(read)
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Source::Plain(stream) => stream.read(buffer),
            Source::Compressed { stream, unpacked_bytes } => {
                let read = stream.read(buffer)?;
                *unpacked_bytes += read as u64;
                let packed_bytes = stream.get_ref().get_ref().bytes;
                if *unpacked_bytes > UNPACKED_BYTES_FREE + packed_bytes.saturating_mul(UNPACKED_RATIO_MAX) {
                    let bomb = format!(
                        "it unpacks to more than {UNPACKED_RATIO_MAX} times its length, which no history does"
                    );
                    return Err(std::io::Error::new(ErrorKind::InvalidData, bomb));
                }
                Ok(read)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(packed: &[u8]) -> String {
        let mut reader = HistoryReader::new(packed).expect("a reader");
        reader.by_ref().find_map(Result::err).map_or_else(|| "read".to_owned(), |error| error.to_string())
    }

    #[test]
    fn a_small_file_that_unpacks_without_end_is_given_up_and_a_history_of_equal_lines_is_not() {
        let line = r#"{"load":"l","client":3,"f":"ledger-insert","value":4711,"invoked_s":1.5,"completed_s":1.75,"outcome":"ok"}"#;
        let mut bomb = zstd::stream::Encoder::new(Vec::new(), 3).expect("an encoder");
        // 128 MiB of blank lines.
        for _ in 0..128 {
            std::io::Write::write_all(&mut bomb, &[b'\n'; 1 << 20]).expect("packed");
        }
        let bomb = bomb.finish().expect("packed");
        assert!(bomb.len() < 200_000, "{} bytes", bomb.len());
        assert!(told(&bomb).contains("unpacks to more than 1000 times"), "{}", told(&bomb));
        let equal = zstd::encode_all(format!("{line}\n").repeat(20_000).as_bytes(), 3).expect("packed");
        assert_eq!(told(&equal), "read");
    }
}

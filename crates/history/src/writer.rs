//! Writing a history: one operation a JSON line, in zstd frames that are each whole.
//!
//! Owns the form on disk as it is written. Decides neither when to flush nor where the bytes go.

use std::io::Write;

use crate::Operation;
use crate::lines::LINE_BYTES_MAX;

/// How many values one [`crate::Action::LedgerRead`] should carry at most; a longer read is split, with
/// `complete` on the last part. Keeps every line far below [`LINE_BYTES_MAX`].
pub const LEDGER_READ_VALUES_MAX: usize = 100_000;

/// A frame is closed by itself when it has grown to this many bytes before compression.
const FRAME_BYTES: usize = 1 << 20;

/// zstd's own default: on histories, the higher levels cost more processor time than they save disk.
const COMPRESSION_LEVEL: i32 = 3;

/// What can go wrong when a history is written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The operation cannot be written as JSON that can be read back: a time that is no number, for example.
    #[error("operation of client {client} of load {load}: {source}")]
    Unwritable {
        load: String,
        client: u64,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// The operation's line would be longer than what a reader accepts.
    #[error(
        "operation of client {client} of load {load}: its line of {bytes} bytes exceeds {LINE_BYTES_MAX}"
    )]
    TooLong {
        load: String,
        client: u64,
        /// How long the line would be.
        bytes: usize,
    },
    /// The bytes could not be compressed or written.
    #[error("history: {0}")]
    Io(#[from] std::io::Error),
    /// An earlier write failed half-way; what would follow it could not be read.
    #[error("history: an earlier write failed")]
    Broken,
}

/// Writes operations as JSON lines in zstd frames.
///
/// Each [`flush`](HistoryWriter::flush) ends a frame, so a file whose writer is killed is readable up to the
/// last flush. Dropping the writer without [`finish`](HistoryWriter::finish) leaves out what was not flushed.
pub struct HistoryWriter<W: Write> {
    sink: W,
    compressor: zstd::bulk::Compressor<'static>,
    lines: Vec<u8>,
    broken: bool,
}

impl<W: Write> HistoryWriter<W> {
    /// A writer onto `sink`, which should be empty or hold whole frames.
    ///
    /// # Errors
    /// When the compressor cannot be set up.
    pub fn new(sink: W) -> Result<Self, WriteError> {
        let compressor = zstd::bulk::Compressor::new(COMPRESSION_LEVEL)?;
        Ok(HistoryWriter { sink, compressor, lines: Vec::new(), broken: false })
    }

    /// Adds one operation. Times are kept to the nanosecond.
    ///
    /// # Errors
    /// An operation that cannot be written is left out, and the writer goes on; after a failure of the sink it
    /// does not.
    pub fn write(&mut self, operation: &Operation) -> Result<(), WriteError> {
        if self.broken {
            return Err(WriteError::Broken);
        }
        let start = self.lines.len();
        let written = serde_json::to_writer(&mut self.lines, operation);
        let bytes = self.lines.len() - start;
        if let Err(source) = written {
            self.lines.truncate(start);
            return Err(WriteError::Unwritable {
                load: operation.load.clone(),
                client: operation.client,
                source,
            });
        }
        if bytes > LINE_BYTES_MAX {
            self.lines.truncate(start);
            return Err(WriteError::TooLong {
                load: operation.load.clone(),
                client: operation.client,
                bytes,
            });
        }
        self.lines.push(b'\n');
        if self.lines.len() >= FRAME_BYTES { self.end_frame() } else { Ok(()) }
    }

    /// Ends the frame and flushes the sink: all that was written so far survives this process.
    ///
    /// # Errors
    /// When compressing or writing fails.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.end_frame()?;
        self.sink.flush().map_err(|error| self.break_off(error))
    }

    /// Flushes and gives the sink back.
    ///
    /// # Errors
    /// As [`flush`](HistoryWriter::flush).
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.flush()?;
        Ok(self.sink)
    }

    fn end_frame(&mut self) -> Result<(), WriteError> {
        if self.broken {
            return Err(WriteError::Broken);
        }
        if self.lines.is_empty() {
            return Ok(());
        }
        let frame = self.compressor.compress(&self.lines).map_err(|error| self.break_off(error))?;
        self.sink.write_all(&frame).map_err(|error| self.break_off(error))?;
        self.lines.clear();
        Ok(())
    }

    fn break_off(&mut self, error: std::io::Error) -> WriteError {
        self.broken = true;
        WriteError::Io(error)
    }
}

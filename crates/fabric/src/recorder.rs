//! The captures in progress: which port is written to which file, and what became of it.

use std::fs::File;
use std::io::{self, BufWriter};

use crate::capture::Capture;
use crate::router::PortId;

/// The number of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureId(u64);

#[derive(Debug)]
struct Recording {
    id: CaptureId,
    port: PortId,
    capture: Capture<BufWriter<File>>,
    /// The first thing that went wrong; nothing is written after it.
    failed: Option<io::Error>,
}

/// All captures in progress.
#[derive(Debug, Default)]
pub struct Recorder {
    recordings: Vec<Recording>,
    last: u64,
    is_dirty: bool,
}

impl Recorder {
    /// Begins to write what a port sends and receives.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn begin(&mut self, port: PortId, file: File) -> io::Result<CaptureId> {
        let capture = Capture::begin(BufWriter::new(file))?;
        self.last += 1;
        let id = CaptureId(self.last);
        self.recordings.push(Recording { id, port, capture, failed: None });
        Ok(id)
    }

    /// Ends a capture: how many packets it holds.
    ///
    /// # Errors
    /// When it could not be written to its end.
    pub fn end(&mut self, id: CaptureId) -> io::Result<u64> {
        let Some(index) = self.recordings.iter().position(|recording| recording.id == id) else {
            return Ok(0);
        };
        let mut recording = self.recordings.remove(index);
        match recording.failed {
            Some(error) => Err(error),
            None => recording.capture.flush(),
        }
    }

    /// Whether no capture is in progress.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.recordings.is_empty()
    }

    /// A frame has passed a port.
    pub fn saw(&mut self, port: PortId, frame: &[u8], wall_ns: u64) {
        for recording in self.recordings.iter_mut().filter(|recording| recording.port == port) {
            if recording.failed.is_none() {
                recording.failed = recording.capture.write(frame, wall_ns).err();
                self.is_dirty = true;
            }
        }
    }

    /// Hands everything to the files, so that they can be read while they grow and survive a sudden end.
    pub fn flush(&mut self) {
        if !std::mem::take(&mut self.is_dirty) {
            return;
        }
        for recording in self.recordings.iter_mut().filter(|recording| recording.failed.is_none()) {
            recording.failed = recording.capture.flush().err();
        }
    }
}

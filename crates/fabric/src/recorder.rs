//! The captures in progress: what is written to which file, and what became of it.

use std::fs::File;
use std::io::{self, BufWriter};

use crate::capture::Capture;
use crate::policy::Path;

/// The number of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureId(u64);

/// What a capture holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tap {
    /// What a node sends and receives, wherever it runs: every port whose place ends in this name.
    Node(String),
    /// What every port within a place sends and receives.
    Place(Path),
    /// What arrives from one place at another; what is lost on the way is not in it.
    Link {
        /// Where packets leave.
        from: Path,
        /// Where they arrive.
        to: Path,
    },
}

impl Tap {
    fn is_at(&self, port: &[String]) -> bool {
        match self {
            Tap::Node(name) => port.last() == Some(name),
            Tap::Place(place) => port.starts_with(place),
            Tap::Link { .. } => false,
        }
    }

    fn is_between(&self, source: &[String], destination: &[String]) -> bool {
        match self {
            Tap::Link { from, to } => source.starts_with(from) && destination.starts_with(to),
            Tap::Node(_) | Tap::Place(_) => self.is_at(destination),
        }
    }
}

#[derive(Debug)]
struct Recording {
    id: CaptureId,
    tap: Tap,
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
    /// Begins to write what a tap sees.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn begin(&mut self, tap: Tap, file: File) -> io::Result<CaptureId> {
        let capture = Capture::begin(BufWriter::new(file))?;
        self.last += 1;
        let id = CaptureId(self.last);
        self.recordings.push(Recording { id, tap, capture, failed: None });
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

    /// Whether a capture wants what goes from one place to another.
    #[must_use]
    pub fn sees(&self, from: &[String], to: &[String]) -> bool {
        let is_wanted = |tap: &Tap| tap.is_at(from) || tap.is_between(from, to);
        self.recordings.iter().any(|recording| is_wanted(&recording.tap))
    }

    /// A port has sent a frame.
    pub fn saw_sent(&mut self, port: &[String], frame: &[u8], wall_ns: u64) {
        self.write(frame, wall_ns, |tap| tap.is_at(port));
    }

    /// A frame has arrived.
    pub fn saw_arrive(&mut self, (from, to): (&[String], &[String]), frame: &[u8], wall_ns: u64) {
        self.write(frame, wall_ns, |tap| tap.is_between(from, to));
    }

    fn write(&mut self, frame: &[u8], wall_ns: u64, is_seen_by: impl Fn(&Tap) -> bool) {
        for recording in self.recordings.iter_mut().filter(|recording| is_seen_by(&recording.tap)) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tests::path;

    fn check(tap: &Tap, expected: [bool; 4]) {
        let (one, other, elsewhere) = (path("dc1/a/h1/n1"), path("dc1/a/h2/n2"), path("dc2/a/h1/n3"));
        let found = [
            tap.is_at(&one),
            tap.is_between(&one, &other),
            tap.is_between(&one, &elsewhere),
            tap.is_between(&elsewhere, &one),
        ];
        assert_eq!(found, expected, "{tap:?}");
    }

    #[test]
    fn a_tap_sees_what_it_is_asked_for_and_nothing_else() {
        check(&Tap::Node("n1".into()), [true, false, false, true]);
        check(&Tap::Place(path("dc1")), [true, true, false, true]);
        check(&Tap::Link { from: path("dc1"), to: path("dc2") }, [false, false, true, false]);
    }
}

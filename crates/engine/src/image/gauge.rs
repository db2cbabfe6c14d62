//! How much of this machine an image may take. A few bytes of a packed archive can stand for more than any disk holds.
//!
//! Owns the limits and the account of what was taken. What is done with it, `layer` and `layout` know.
//!
//! Three things are limited: what comes out of archives, how many entries they have, and what stands before an
//! entry's content. The last is limited by itself because whoever reads an archive keeps it in memory: a name may be
//! any number of bytes long.

use std::cell::Cell;
use std::io::{self, Read};
use std::path::Path;
use std::rc::Rc;

use super::error::ImageError;

/// What an image may take, all its archives together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Bytes of its archives, once they are unpacked.
    pub(crate) bytes: u64,
    /// Entries of its archives: files, folders, links, marks.
    pub(crate) entries: u64,
    /// Bytes of what stands before one entry's content: its header, its name, its attributes.
    pub(crate) head_bytes: u64,
}

/// Several times what the largest images of databases have.
pub(crate) const USUAL: Limits = Limits { bytes: 64 << 30, entries: 1_000_000, head_bytes: 1 << 20 };

/// Which limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reached {
    Bytes,
    Entries,
    Head,
}

/// The account of an image.
#[derive(Debug, Clone)]
pub(crate) struct Gauge {
    limits: Limits,
    bytes_left: Cell<u64>,
    entries_left: Cell<u64>,
    /// What may still be read before an entry's content begins; none while content is read.
    head_left: Cell<Option<u64>>,
    reached: Cell<Option<Reached>>,
}

impl Gauge {
    /// With nothing taken.
    pub(crate) fn new(limits: Limits) -> Rc<Gauge> {
        Rc::new(Gauge {
            limits,
            bytes_left: Cell::new(limits.bytes),
            entries_left: Cell::new(limits.entries),
            head_left: Cell::new(None),
            reached: Cell::new(None),
        })
    }

    /// Another account with as much left, for what is read and not kept.
    pub(crate) fn copy(&self) -> Rc<Gauge> {
        Rc::new(self.clone())
    }

    /// What follows stands before an entry's content.
    pub(crate) fn begin_head(&self) {
        self.head_left.set(Some(self.limits.head_bytes));
    }

    /// What follows is content.
    pub(crate) fn end_head(&self) {
        self.head_left.set(None);
    }

    /// Counts an entry whose content has so many bytes, before any of it is read. Of `holes` in it nothing will be
    /// read.
    pub(crate) fn count(&self, content_bytes: u64, holes: bool) -> io::Result<()> {
        match self.entries_left.get().checked_sub(1) {
            Some(left) => self.entries_left.set(left),
            None => return Err(self.stop(Reached::Entries)),
        }
        match self.bytes_left.get().checked_sub(content_bytes) {
            Some(left) if holes => self.bytes_left.set(left),
            Some(_) => {}
            None => return Err(self.stop(Reached::Bytes)),
        }
        Ok(())
    }

    /// What is wrong with the archive at a path: a limit, where one was reached, or else what was said.
    pub(crate) fn blame(&self, path: &Path, source: io::Error) -> ImageError {
        self.limit().unwrap_or_else(|| ImageError::File { path: path.to_owned(), source })
    }

    /// The limit that was reached, if one was.
    pub(crate) fn limit(&self) -> Option<ImageError> {
        Some(match self.reached.get()? {
            Reached::Bytes => ImageError::TooLarge { most: self.limits.bytes },
            Reached::Entries => ImageError::TooMany { most: self.limits.entries },
            Reached::Head => ImageError::LongHead { most: self.limits.head_bytes },
        })
    }

    fn stop(&self, reached: Reached) -> io::Error {
        self.reached.set(Some(reached));
        io::Error::other("the image takes too much")
    }

    /// How many bytes may be read at once.
    fn may_read(&self) -> io::Result<u64> {
        let left = self.bytes_left.get();
        match self.head_left.get() {
            _ if left == 0 => Err(self.stop(Reached::Bytes)),
            Some(0) => Err(self.stop(Reached::Head)),
            Some(head_left) => Ok(left.min(head_left)),
            None => Ok(left),
        }
    }

    fn took(&self, bytes: u64) {
        self.bytes_left.set(self.bytes_left.get().saturating_sub(bytes));
        if let Some(head_left) = self.head_left.get() {
            self.head_left.set(Some(head_left.saturating_sub(bytes)));
        }
    }
}

/// An unpacked archive, read on an account.
pub(crate) struct Metered {
    reader: Box<dyn Read>,
    gauge: Rc<Gauge>,
}

impl Metered {
    /// With all of it ahead.
    pub(crate) fn new(reader: Box<dyn Read>, gauge: Rc<Gauge>) -> Metered {
        Metered { reader, gauge }
    }
}

impl Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.gauge.may_read()?).unwrap_or(usize::MAX).min(buffer.len());
        let length = self.reader.read(&mut buffer[..most])?;
        self.gauge.took(length as u64);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEW: Limits = Limits { bytes: 10, entries: 2, head_bytes: 4 };

    /// What reading so many bytes on the account says.
    fn read(gauge: &Rc<Gauge>, bytes: u64) -> Option<String> {
        let mut metered = Metered::new(Box::new(io::repeat(0)), Rc::clone(gauge));
        let mut content = Vec::new();
        match (&mut metered).take(bytes).read_to_end(&mut content) {
            Ok(_) => None,
            Err(error) => Some(gauge.blame(Path::new("x"), error).to_string()),
        }
    }

    #[test]
    fn what_is_read_is_taken_from_the_account_and_not_from_a_copy_of_it() {
        let gauge = Gauge::new(FEW);
        assert_eq!(read(&gauge.copy(), 9), None);
        assert_eq!(read(&gauge, 6), None);
        let told = read(&gauge, 6).expect("too much");
        assert_eq!(told, "the image takes more than the 10 bytes that one may have unpacked");
    }

    #[test]
    fn what_stands_before_content_has_a_limit_of_its_own_each_time() {
        let gauge = Gauge::new(FEW);
        for _ in 0..2 {
            gauge.begin_head();
            assert_eq!(read(&gauge, 3), None);
        }
        let told = read(&gauge, 3).expect("too much");
        assert_eq!(told, "the name and the attributes of an entry of the image have more than 4 bytes");
    }

    #[test]
    fn entries_and_what_they_announce_are_counted_before_they_are_read() {
        let gauge = Gauge::new(FEW);
        assert!(gauge.count(11, false).is_err());
        assert!(matches!(gauge.limit(), Some(ImageError::TooLarge { most: 10 })));
        assert!(gauge.count(10, false).is_ok());
        assert!(gauge.count(0, false).is_err());
        assert!(matches!(gauge.limit(), Some(ImageError::TooMany { most: 2 })));
    }

    #[test]
    fn a_hole_takes_what_it_will_be_on_the_disk() {
        let gauge = Gauge::new(FEW);
        assert!(gauge.count(6, true).is_ok());
        assert!(gauge.count(6, true).is_err());
    }
}

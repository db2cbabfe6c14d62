//! SHA-256, by which images name their parts, and pinned files are known.
//!
//! Owns its form and the summing up of what is read. What a sum must be, others know.

use std::io::{self, Read};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// What a written digest begins with.
const PREFIX: &str = "sha256:";

/// A SHA-256.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Checksum(String);

impl Checksum {
    /// From its digits; none unless they are 64, the small letters among them.
    pub(crate) fn of_digits(digits: &str) -> Option<Checksum> {
        capabilities::file::image::is_sha256(digits).then(|| Checksum(digits.to_owned()))
    }

    /// Of all that can be read.
    pub(crate) fn of(reader: impl Read) -> io::Result<Checksum> {
        Summed::new(reader).of_all()
    }

    /// Of what is in memory.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Checksum {
        in_digits(Sha256::new_with_prefix(bytes))
    }

    /// Its digits, which are a sound name for a file.
    pub(crate) fn digits(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Checksum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{PREFIX}{}", self.0)
    }
}

impl TryFrom<String> for Checksum {
    type Error = String;

    fn try_from(written: String) -> Result<Checksum, String> {
        let read = written.strip_prefix(PREFIX).and_then(Checksum::of_digits);
        read.ok_or_else(|| format!("`{written}` is not a SHA-256 digest"))
    }
}

impl From<Checksum> for String {
    fn from(checksum: Checksum) -> String {
        checksum.to_string()
    }
}

/// A reader that sums up what is read through it.
pub(crate) struct Summed<R> {
    reader: R,
    hash: Sha256,
}

impl<R: Read> Summed<R> {
    /// With nothing read so far.
    pub(crate) fn new(reader: R) -> Summed<R> {
        Summed { reader, hash: Sha256::new() }
    }

    /// The sum of what was read and of all that is left.
    pub(crate) fn of_all(mut self) -> io::Result<Checksum> {
        io::copy(&mut self, &mut io::sink())?;
        Ok(in_digits(self.hash))
    }
}

fn in_digits(hash: Sha256) -> Checksum {
    Checksum(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.reader.read(buffer)?;
        self.hash.update(&buffer[..length]);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_is_read_as_it_is_written_and_no_other_kind_is() {
        // FIPS 180-2, appendix B.1.
        let written = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let checksum = Checksum::of(&b"abc"[..]).expect("read");
        assert_eq!(checksum.to_string(), written);
        assert_eq!(Checksum::try_from(written.to_owned()), Ok(checksum));
        for other in ["", "sha256:", "sha256:ba78", "md5:900150983cd24fb0d6963f7d28e17f72", &written[7..]] {
            assert!(Checksum::try_from(other.to_owned()).is_err(), "{other}");
        }
    }

    #[test]
    fn a_checksum_is_that_of_the_whole_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("abc");
        std::fs::write(&path, "abc").expect("a file");
        // FIPS 180-2, appendix B.1.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let found = std::fs::File::open(&path).and_then(Checksum::of).expect("read");
        assert_eq!(found.digits(), expected);
        assert_eq!(Checksum::of_bytes(b"abc"), found);
    }

    #[test]
    fn what_was_read_before_counts() {
        let mut summed = Summed::new(&b"abc"[..]);
        summed.read_exact(&mut [0; 2]).expect("read");
        assert_eq!(summed.of_all().ok(), Checksum::of(&b"abc"[..]).ok());
    }
}

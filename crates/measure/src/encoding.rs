//! Histograms as bytes: HdrHistogram's compressed V2 form, which its tools in every language read.
//!
//! Owns packing and unpacking. Unpacking distrusts its input: sizes and counts are bounded before the library
//! that builds the histogram sees them.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

use crate::interval::{SIGNIFICANT_DIGITS, new_histogram};

/// First four bytes of a compressed histogram.
const COMPRESSED_COOKIE: u32 = 0x1c84_9314;
/// First four bytes of one that is not, or no longer.
const PLAIN_COOKIE: u32 = 0x1c84_9313;
/// Bytes before the counts in the plain form.
const PLAIN_HEADER_BYTES: usize = 40;
/// A histogram of three digits over all of 64 bits has some 57,000 counts of at most nine bytes each.
const PLAIN_BYTES_MAX: u64 = 1 << 20;

/// No second of any run holds this many operations; sums of whole runs of them stay within 64 bits.
const TOTAL_COUNT_MAX: i64 = 1 << 40;

/// What can be wrong with a histogram's bytes.
#[derive(Debug, thiserror::Error)]
pub enum EncodingError {
    /// It could not be packed.
    #[error("histogram cannot be packed: {0}")]
    Pack(String),
    /// The bytes end too early, or do not unpack.
    #[error("histogram cannot be unpacked: {0}")]
    Unpack(#[from] std::io::Error),
    /// The bytes are no histogram, or not one of the kind we write.
    #[error("not a latency histogram of ours: {0}")]
    Foreign(&'static str),
    /// The counts do not fit the histogram they claim to be.
    #[error("histogram's counts are wrong: {0}")]
    Counts(String),
}

/// Packs histograms; keeps its buffer from one to the next.
pub struct Encoder {
    serializer: V2Serializer,
    plain: Vec<u8>,
}

impl Default for Encoder {
    fn default() -> Self {
        Encoder { serializer: V2Serializer::new(), plain: Vec::new() }
    }
}

impl Encoder {
    /// Packs a histogram and appends it to `bytes`.
    ///
    /// # Errors
    /// When the library refuses, which a count beyond 63 bits would make it do.
    pub fn encode(&mut self, histogram: &Histogram<u64>, bytes: &mut Vec<u8>) -> Result<(), EncodingError> {
        self.plain.clear();
        self.serializer
            .serialize(histogram, &mut self.plain)
            .map_err(|error| EncodingError::Pack(error.to_string()))?;
        // Not the library's own compressing form: at its level, packing takes half as long again for 7 %
        // less, and this is done for every operation in every second beside the database that is measured.
        let mut deflater = ZlibEncoder::new(Vec::with_capacity(self.plain.len() / 2), Compression::fast());
        let packed = deflater.write_all(&self.plain).and_then(|()| deflater.finish());
        let packed = packed.map_err(|error| EncodingError::Pack(error.to_string()))?;
        let length = u32::try_from(packed.len()).map_err(|error| EncodingError::Pack(error.to_string()))?;
        bytes.extend(COMPRESSED_COOKIE.to_be_bytes());
        bytes.extend(length.to_be_bytes());
        bytes.extend(packed);
        Ok(())
    }
}

/// Unpacks a histogram.
///
/// # Errors
/// When the bytes are no compressed V2 histogram with the digits and the lowest value that we use. Never
/// panics, and never takes more than a few megabytes, whatever the bytes.
pub fn decode(bytes: &[u8]) -> Result<Histogram<u64>, EncodingError> {
    if word_at(bytes, 0)? != COMPRESSED_COOKIE {
        return Err(EncodingError::Foreign("its first bytes are those of something else"));
    }
    let length = word_at(bytes, 4)? as usize;
    let packed = bytes
        .get(8..)
        .and_then(|rest| rest.get(..length))
        .ok_or(EncodingError::Foreign("it is cut short"))?;
    let mut plain = Vec::new();
    ZlibDecoder::new(packed).take(PLAIN_BYTES_MAX + 1).read_to_end(&mut plain)?;
    if plain.len() as u64 > PLAIN_BYTES_MAX {
        return Err(EncodingError::Foreign("it unpacks to more than any histogram needs"));
    }
    validate(&plain)?;
    let fixed: Histogram<u64> = Deserializer::new()
        .deserialize(&mut plain.as_slice())
        .map_err(|error| EncodingError::Counts(error.to_string()))?;
    // What comes back has a fixed range; ours grow, so that they can be added to one another.
    let mut histogram = new_histogram();
    histogram.add(&fixed).map_err(|error| EncodingError::Counts(error.to_string()))?;
    Ok(histogram)
}

/// The big-endian word at a place.
fn word_at(bytes: &[u8], at: usize) -> Result<u32, EncodingError> {
    let word = bytes.get(at..at + 4).and_then(|word| <[u8; 4]>::try_from(word).ok());
    word.map(u32::from_be_bytes).ok_or(EncodingError::Foreign("it is cut short"))
}

/// Refuses what the library's own reader would stumble over: a length that is not that of the bytes at hand, a
/// number of digits for which it would reserve far more, runs of zeroes and sums of counts that overflow.
fn validate(plain: &[u8]) -> Result<(), EncodingError> {
    if word_at(plain, 0)? != PLAIN_COOKIE {
        return Err(EncodingError::Foreign("its inner first bytes are those of something else"));
    }
    let counts = plain.get(PLAIN_HEADER_BYTES..).ok_or(EncodingError::Foreign("it is cut short"))?;
    if word_at(plain, 4)? as usize != counts.len() {
        return Err(EncodingError::Foreign("its length is not what it says"));
    }
    if word_at(plain, 12)? != u32::from(SIGNIFICANT_DIGITS) {
        return Err(EncodingError::Foreign("it has another number of significant digits"));
    }
    if (word_at(plain, 16)?, word_at(plain, 20)?) != (0, 1) {
        return Err(EncodingError::Foreign("its lowest value is not 1"));
    }
    let mut rest = counts;
    let mut total: i64 = 0;
    while !rest.is_empty() {
        let number = zig_zag_number(&mut rest)?;
        let fits = if number < 0 {
            number.checked_neg().is_some_and(|zeroes| zeroes <= i64::from(u32::MAX))
        } else {
            total = total.saturating_add(number);
            total <= TOTAL_COUNT_MAX
        };
        if !fits {
            return Err(EncodingError::Counts(format!("a number of {number}")));
        }
    }
    Ok(())
}

/// Takes one number off the front: seven bits a byte, lowest first, the ninth byte whole; odd ones are
/// negative.
fn zig_zag_number(rest: &mut &[u8]) -> Result<i64, EncodingError> {
    let mut folded: u64 = 0;
    for place in 0..9 {
        let (byte, after) = rest.split_first().ok_or(EncodingError::Foreign("a count is cut short"))?;
        *rest = after;
        if place == 8 {
            folded |= u64::from(*byte) << 56;
            break;
        }
        folded |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Ok((folded >> 1) as i64 ^ -((folded & 1) as i64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(histogram: &Histogram<u64>) -> Vec<u8> {
        let mut bytes = Vec::new();
        Encoder::default().encode(histogram, &mut bytes).unwrap();
        bytes
    }

    /// A compressed histogram with this header and these bytes of counts.
    fn forged(claimed_length: u32, digits: u32, lowest: u64, highest: u64, counts: &[u8]) -> Vec<u8> {
        let mut plain = Vec::new();
        plain.extend(PLAIN_COOKIE.to_be_bytes());
        plain.extend(claimed_length.to_be_bytes());
        plain.extend(0u32.to_be_bytes());
        plain.extend(digits.to_be_bytes());
        plain.extend(lowest.to_be_bytes());
        plain.extend(highest.to_be_bytes());
        plain.extend(1f64.to_be_bytes());
        plain.extend(counts);
        let mut deflated = ZlibEncoder::new(Vec::new(), Compression::fast());
        deflated.write_all(&plain).unwrap();
        let deflated = deflated.finish().unwrap();
        let mut bytes = COMPRESSED_COOKIE.to_be_bytes().to_vec();
        bytes.extend((deflated.len() as u32).to_be_bytes());
        bytes.extend(deflated);
        bytes
    }

    #[test]
    fn hostile_histograms_are_refused() {
        let lowest_number = [0xff; 9];
        let largest_number = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        let two_of_the_largest = [largest_number, largest_number].concat();
        let cases: [(&str, Vec<u8>); 9] = [
            ("claims four gigabytes", forged(u32::MAX, 3, 1, 2047, &[2])),
            ("five digits", forged(1, 5, 1, 2047, &[2])),
            ("lowest value of 0", forged(1, 3, 0, 2047, &[2])),
            ("a run of 2^63 zeroes", forged(9, 3, 1, 2047, &lowest_number)),
            ("counts that add up to more than 64 bits", forged(18, 3, 1, 2047, &two_of_the_largest)),
            ("a count cut short", forged(1, 3, 1, 2047, &[0x80])),
            ("more counts than values", forged(5000, 3, 1, 2047, &[2; 5000])),
            ("a highest value below the lowest", forged(1, 3, 1, 0, &[2])),
            ("a bomb", forged(8 << 20, 3, 1, 2047, &vec![0; 8 << 20])),
        ];
        for (what, bytes) in cases {
            assert!(decode(&bytes).is_err(), "{what}");
        }
        assert_eq!(decode(&forged(1, 3, 1, 2047, &[2])).unwrap().len(), 1, "the forge itself is sound");
    }

    #[test]
    fn an_empty_histogram_comes_back_empty() {
        assert_eq!(decode(&encoded(&new_histogram())).unwrap().len(), 0);
    }

    proptest! {
        #[test]
        fn a_histogram_comes_back_as_it_was(values in prop::collection::vec(1u64.., 0..300)) {
            let mut histogram = new_histogram();
            for value in values {
                histogram.record(value).unwrap();
            }
            prop_assert_eq!(decode(&encoded(&histogram)).unwrap(), histogram);
        }

        #[test]
        fn damaged_bytes_are_read_without_a_panic(at in 0usize..1000, byte in any::<u8>(), cut in 0usize..1000) {
            let mut histogram = new_histogram();
            for value in 1..400 {
                histogram.record(value * value).unwrap();
            }
            let mut bytes = encoded(&histogram);
            let length = bytes.len();
            bytes[at % length] = byte;
            let _ = decode(&bytes);
            let _ = decode(&bytes[..cut % length]);
        }

        #[test]
        fn any_counts_are_read_without_a_panic(
            counts in prop::collection::vec(any::<u8>(), 0..200),
            highest in any::<u64>(),
        ) {
            let _ = decode(&forged(counts.len() as u32, 3, 1, highest, &counts));
        }
    }
}

//! Random text, as workloads fill their rows with it.
//!
//! Owns alphabets and lengths.

use std::ops::RangeInclusive;

use rand::{Rng, RngExt};

const LETTERS_AND_DIGITS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// Letters and digits, each as likely as the others, appended to `text`.
pub(crate) fn push_alphanumeric(rng: &mut (impl Rng + ?Sized), length: usize, text: &mut Vec<u8>) {
    // Five characters from one draw of 32 bits: 62^5 is below 2^30, so the bias is below one in four hundred million.
    let mut left = length;
    while left > 0 {
        let mut bits = (u64::from(rng.next_u32()) * 916_132_832) >> 32;
        for _ in 0..left.min(5) {
            text.push(LETTERS_AND_DIGITS[(bits % 62) as usize]);
            bits /= 62;
        }
        left -= left.min(5);
    }
}

/// As [`push_alphanumeric`], of a random length.
pub(crate) fn push_alphanumeric_of(
    rng: &mut (impl Rng + ?Sized),
    length: RangeInclusive<usize>,
    text: &mut Vec<u8>,
) -> usize {
    let length = rng.random_range(length);
    push_alphanumeric(rng, length, text);
    length
}

/// Letters and digits as a string.
pub(crate) fn alphanumeric(rng: &mut (impl Rng + ?Sized), length: usize) -> String {
    let mut text = Vec::with_capacity(length);
    push_alphanumeric(rng, length, &mut text);
    // Only ASCII was pushed.
    String::from_utf8(text).unwrap_or_default()
}

/// Digits, appended to `text`.
pub(crate) fn push_digits(rng: &mut (impl Rng + ?Sized), length: usize, text: &mut Vec<u8>) {
    for _ in 0..length {
        text.push(b'0' + rng.random_range(0..10_u8));
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn every_character_is_as_likely_as_the_others_in_every_place() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let text = alphanumeric(&mut rng, 200_000);
        for place in 0..5 {
            let mut counts = [0_u64; 62];
            for byte in text.bytes().skip(place).step_by(5) {
                let letter =
                    LETTERS_AND_DIGITS.iter().position(|known| *known == byte).expect("of the alphabet");
                counts[letter] += 1;
            }
            let off = crate::distribution::chi_square::statistic(&[1.0 / 62.0; 62], &counts, 40_000.0);
            assert!(off < 4.9, "place {place}: {off}");
        }
    }

    #[test]
    fn lengths_are_as_asked() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        for length in [0, 1, 4, 5, 6, 99] {
            assert_eq!(alphanumeric(&mut rng, length).len(), length);
        }
    }
}

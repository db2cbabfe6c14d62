//! What a block holds: which write pass it comes from and where in the file it belongs, in every piece of 4096 bytes, and
//! the rest of the piece filled with words that follow from the two.

/// Bytes of a piece; a block may be shorter than one.
const PIECE_BYTES: usize = 4096;

/// Fills a block that begins at `offset`.
pub(crate) fn fill(block: &mut [u8], stamp: u64, offset: u64) {
    for (number, piece) in block.chunks_mut(PIECE_BYTES).enumerate() {
        let at = offset + (number * PIECE_BYTES) as u64;
        let word = mixed(stamp, at);
        for (place, bytes) in piece.chunks_mut(8).enumerate() {
            let value = if place == 0 { stamp } else { word };
            bytes.copy_from_slice(&value.to_le_bytes()[..bytes.len()]);
        }
    }
}

/// The write pass that a block at `offset` comes from, each of its pieces.
///
/// # Errors
/// In words, what is wrong with it.
pub(crate) fn read(block: &[u8], offset: u64) -> Result<u64, String> {
    let mut found: Option<u64> = None;
    for (number, piece) in block.chunks(PIECE_BYTES).enumerate() {
        let at = offset + (number * PIECE_BYTES) as u64;
        let Some(head) = piece.first_chunk::<8>() else { return Err(format!("byte {at}: too short")) };
        let stamp = u64::from_le_bytes(*head);
        let word = mixed(stamp, at).to_le_bytes();
        let differs = |(_, bytes): &(usize, &[u8])| **bytes != word[..bytes.len()];
        if let Some((place, _)) = piece.chunks(8).enumerate().skip(1).find(differs) {
            return Err(format!("byte {}: not what any pass wrote there", at + place as u64 * 8));
        }
        match found {
            Some(earlier) if earlier != stamp => {
                return Err(format!("byte {at}: of pass {stamp}, after pieces of pass {earlier}"));
            }
            _ => found = Some(stamp),
        }
    }
    found.ok_or_else(|| format!("byte {offset}: nothing"))
}

/// The finaliser of SplitMix64 over both.
fn mixed(stamp: u64, at: u64) -> u64 {
    let mut mixed = stamp.rotate_left(32) ^ at ^ 0x9e37_79b9_7f4a_7c15;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(stamp: u64, offset: u64, bytes: usize) -> Vec<u8> {
        let mut block = vec![0; bytes];
        fill(&mut block, stamp, offset);
        block
    }

    #[test]
    fn a_block_tells_its_pass_and_a_changed_or_misplaced_one_tells_none() {
        for bytes in [512, 4096, 8192, 10_000] {
            let good = block(7, 81_920, bytes);
            assert_eq!(read(&good, 81_920), Ok(7), "{bytes}");
            assert!(read(&good, 0).is_err(), "{bytes}");
            for place in [0, 9, 511, bytes - 1] {
                let mut bad = good.clone();
                bad[place] ^= 1;
                assert!(read(&bad, 81_920).is_err(), "{bytes} {place}");
            }
        }
    }

    #[test]
    fn a_block_of_two_passes_or_of_none_is_wrong() {
        let mut torn = block(7, 0, 8192);
        torn[4096..].copy_from_slice(&block(8, 4096, 4096));
        assert!(read(&torn, 0).is_err_and(|why| why.contains("of pass 8, after pieces of pass 7")));
        assert!(read(&[0; 4096], 0).is_err());
        assert!(read(&[], 0).is_err());
    }
}

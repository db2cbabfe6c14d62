//! Reads that come back wrong. What lies on the disk stays as it is: a bad cable, a bad controller, bad memory.

use crate::Refusal;
use crate::block_log::BLOCK_BYTES;

/// Which blocks are read wrongly, and whether anybody notices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Corruption {
    /// Share of the blocks of 4096 bytes read that are wrong, 0 to 1.
    pub share: f64,
    /// Whether the disk keeps a checksum of each block: then a wrong one is refused with `EIO`, and never handed out.
    pub checksums: bool,
    /// Where chance begins.
    pub seed: u64,
}

impl Corruption {
    /// Flips a bit in some blocks of what was read. `drawn` counts the blocks drawn for so far. Returns how many are
    /// wrong.
    ///
    /// # Errors
    /// `EIO` where a checksum tells.
    pub(super) fn strike(&self, drawn: &mut u64, content: &mut [u8]) -> Result<u64, Refusal> {
        let mut wrong = 0;
        for block in content.chunks_mut(BLOCK_BYTES as usize) {
            *drawn += 1;
            let chance = mixed(self.seed ^ mixed(*drawn));
            // The upper 53 bits are a number from 0 to 1 as exact as one can be.
            if (chance >> 11) as f64 / (1_u64 << 53) as f64 >= self.share {
                continue;
            }
            wrong += 1;
            // A block has at most 32768 bits; which of them, the lower bits say, which did not decide above.
            let bit = (mixed(chance) % (block.len() as u64 * 8)) as usize;
            block[bit / 8] ^= 1 << (bit % 8);
        }
        if wrong > 0 && self.checksums { Err(Refusal::EIO) } else { Ok(wrong) }
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): every bit of the result depends on every bit of the number.
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks that are wrong of ten thousand, each by exactly one bit.
    fn wrong(share: f64, seed: u64) -> Vec<usize> {
        let corruption = Corruption { share, checksums: false, seed };
        let mut content = vec![0; 10_000 * BLOCK_BYTES as usize];
        let counted = corruption.strike(&mut 0, &mut content).expect("no checksums");
        let bits = |block: &[u8]| block.iter().map(|byte| byte.count_ones()).sum::<u32>();
        let found: Vec<usize> = (0..)
            .zip(content.chunks(BLOCK_BYTES as usize))
            .filter(|(_, b)| bits(b) == 1)
            .map(|(n, _)| n)
            .collect();
        assert_eq!(found.len() as u64, counted);
        found
    }

    #[test]
    fn about_the_share_asked_for_is_wrong_and_the_seed_says_which() {
        assert!((60..140).contains(&wrong(0.01, 7).len()), "{}", wrong(0.01, 7).len());
        assert_eq!(wrong(1.0, 7).len(), 10_000);
        assert_eq!(wrong(0.0, 7), Vec::<usize>::new());
        assert_eq!(wrong(0.01, 7), wrong(0.01, 7));
        assert_ne!(wrong(0.01, 7), wrong(0.01, 8));
    }

    #[test]
    fn with_checksums_a_wrong_block_is_refused() {
        let corruption = Corruption { share: 1.0, checksums: true, seed: 1 };
        assert_eq!(corruption.strike(&mut 0, &mut [0; 100]), Err(Refusal::EIO));
        let corruption = Corruption { share: 0.0, ..corruption };
        assert_eq!(corruption.strike(&mut 0, &mut [0; 100]), Ok(0));
    }
}

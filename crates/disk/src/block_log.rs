//! What a file's content was when it was last made durable: its size then, and the blocks overwritten since.
//!
//! Pure: reads and writes no file. A sync takes its time, and writes may go on meanwhile, so what has been overwritten is
//! kept by generation: beginning a sync seals one, its success drops that one and all before.

use std::collections::BTreeMap;

/// Bytes of a block, the unit in which overwritten content is kept.
pub const BLOCK_BYTES: u64 = 4096;
/// Bytes of a sector, the unit that a disk writes whole or not at all.
pub const SECTOR_BYTES: u64 = 512;

/// Blocks by their number in the file. The last block of a file may be shorter.
pub(crate) type Blocks = BTreeMap<u64, Box<[u8]>>;

#[derive(Debug, Default)]
struct Generation {
    blocks: Blocks,
    /// Number of the sync that covers it, and the file's size when that began.
    sealed: Option<(u64, u64)>,
}

/// The log of one file.
#[derive(Debug, Default)]
pub(crate) struct BlockLog {
    durable_size: u64,
    generations: Vec<Generation>,
    syncs: u64,
}

/// How a file is brought back: cut or stretched to `size`, then `blocks` written over it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Restoration {
    pub(crate) size: u64,
    pub(crate) blocks: Blocks,
}

impl BlockLog {
    /// Blocks of which the content must be kept before `from..to` is changed, with the number of bytes each has.
    pub(crate) fn wanted(&self, from: u64, to: u64) -> Vec<(u64, usize)> {
        let sealed_sizes = self.generations.iter().filter_map(|generation| generation.sealed);
        let kept_up_to = sealed_sizes.map(|(_, size)| size).fold(self.durable_size, u64::max);
        let to = to.min(kept_up_to);
        if from >= to {
            return Vec::new();
        }
        let current = self.generations.last().filter(|generation| generation.sealed.is_none());
        (from / BLOCK_BYTES..to.div_ceil(BLOCK_BYTES))
            .filter(|block| current.is_none_or(|generation| !generation.blocks.contains_key(block)))
            // A block has at most 4096 bytes.
            .map(|block| (block, (kept_up_to - block * BLOCK_BYTES).min(BLOCK_BYTES) as usize))
            .collect()
    }

    /// Keeps a block's content from before the change.
    pub(crate) fn keep(&mut self, block: u64, content: Box<[u8]>) {
        if self.generations.last().is_none_or(|generation| generation.sealed.is_some()) {
            self.generations.push(Generation::default());
        }
        if let Some(current) = self.generations.last_mut() {
            current.blocks.entry(block).or_insert(content);
        }
    }

    /// Blocks kept.
    pub(crate) fn kept(&self) -> usize {
        self.generations.iter().map(|generation| generation.blocks.len()).sum()
    }

    /// A sync begins, of a file of `size` bytes. Returns its number.
    pub(crate) fn begin_sync(&mut self, size: u64) -> u64 {
        self.syncs += 1;
        let seal = Some((self.syncs, size));
        match self.generations.last_mut().filter(|generation| generation.sealed.is_none()) {
            Some(current) => current.sealed = seal,
            None => self.generations.push(Generation { blocks: Blocks::new(), sealed: seal }),
        }
        self.syncs
    }

    /// The same for one that stands for the one before it too, which has this number: what that covers, this covers.
    pub(crate) fn begin_sync_in_place_of(&mut self, before: Option<u64>, size: u64) -> u64 {
        let number = self.begin_sync(size);
        if let [.., earlier, last] = &mut self.generations[..]
            && earlier.sealed.is_some_and(|(sync, _)| Some(sync) == before)
        {
            // Older content replaces newer.
            last.blocks.extend(std::mem::take(&mut earlier.blocks));
            self.generations.remove(self.generations.len() - 2);
        }
        number
    }

    /// The sync with this number has succeeded: what was written before it began is durable. One that fails is never
    /// reported here, and what it would have covered stays in doubt. Without effect after a power-off in between.
    pub(crate) fn end_sync(&mut self, number: u64) {
        let covers = |generation: &Generation| generation.sealed.is_some_and(|(sync, _)| sync <= number);
        let Some(last) = self.generations.iter().rposition(covers) else { return };
        if let Some((_, size)) = self.generations[last].sealed {
            self.durable_size = size;
        }
        self.generations.drain(..=last);
    }

    /// The file's size as it would be after a power-off.
    pub(crate) fn durable_size(&self) -> u64 {
        self.durable_size
    }

    /// Whether all of a file of `size` bytes is durable.
    pub(crate) fn is_clean(&self, size: u64) -> bool {
        self.generations.is_empty() && self.durable_size == size
    }

    /// Takes back everything that is not durable.
    pub(crate) fn take_back(&mut self) -> Restoration {
        let mut blocks = Blocks::new();
        // Older content replaces newer, so the oldest generation comes last.
        for generation in std::mem::take(&mut self.generations).into_iter().rev() {
            blocks.extend(generation.blocks);
        }
        let size = self.durable_size;
        blocks.retain(|block, _| block * BLOCK_BYTES < size);
        for (block, content) in &mut blocks {
            // A block has at most 4096 bytes.
            let bytes = (size - block * BLOCK_BYTES).min(BLOCK_BYTES) as usize;
            if content.len() != bytes {
                let mut exact = std::mem::take(content).into_vec();
                exact.resize(bytes, 0);
                *content = exact.into_boxed_slice();
            }
        }
        Restoration { size, blocks }
    }
}

impl Restoration {
    /// Lets some sectors of the write `from..to`, the last before the power went, reach the disk after all: those for
    /// which `coin` says so. `now` are the blocks' contents as written. The file's size stays as it was durable, because
    /// a size is changed after the content. Returns how many sectors survived.
    pub(crate) fn tear(&mut self, from: u64, to: u64, now: &Blocks, coin: &mut dyn FnMut() -> bool) -> u64 {
        let mut survived = 0;
        for sector in from / SECTOR_BYTES..to.min(self.size).div_ceil(SECTOR_BYTES) {
            let start = sector * SECTOR_BYTES;
            let block = start / BLOCK_BYTES;
            let (Some(old), Some(new)) = (self.blocks.get_mut(&block), now.get(&block)) else { continue };
            if !coin() {
                continue;
            }
            // Within a block of 4096 bytes.
            let first = (start % BLOCK_BYTES) as usize;
            let last = (first + SECTOR_BYTES as usize).min(old.len()).min(new.len());
            if first < last {
                old[first..last].copy_from_slice(&new[first..last]);
                survived += 1;
            }
        }
        survived
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(byte: u8, bytes: usize) -> Box<[u8]> {
        vec![byte; bytes].into_boxed_slice()
    }

    fn durable(size: u64) -> BlockLog {
        let mut log = BlockLog::default();
        let sync = log.begin_sync(size);
        log.end_sync(sync);
        log
    }

    #[test]
    fn only_what_was_durable_needs_to_be_kept_and_only_once() {
        let mut log = durable(5000);
        assert_eq!(log.wanted(0, 1), [(0, 4096)]);
        assert_eq!(log.wanted(4000, 20_000), [(0, 4096), (1, 904)]);
        assert_eq!(log.wanted(8192, 9000), []);
        log.keep(0, block(1, 4096));
        assert_eq!(log.wanted(0, 6000), [(1, 904)]);
    }

    #[test]
    fn writes_during_a_sync_that_succeeds_are_taken_back_and_those_before_it_are_not() {
        let mut log = durable(4096);
        log.keep(0, block(1, 4096));
        let sync = log.begin_sync(8192);
        assert_eq!(log.wanted(0, 8192), [(0, 4096), (1, 4096)]);
        log.keep(0, block(2, 4096));
        log.end_sync(sync);
        let back = log.take_back();
        assert_eq!((back.size, back.blocks), (8192, Blocks::from([(0, block(2, 4096))])));
    }

    #[test]
    fn a_sync_that_never_ends_leaves_the_older_content_to_come_back() {
        let mut log = durable(4096);
        log.keep(0, block(1, 4096));
        log.begin_sync(8192);
        log.keep(0, block(2, 4096));
        log.keep(1, block(3, 4096));
        let back = log.take_back();
        assert_eq!((back.size, back.blocks), (4096, Blocks::from([(0, block(1, 4096))])));
    }

    #[test]
    fn a_sync_in_place_of_another_covers_what_that_covered_and_takes_no_more_memory() {
        let mut log = durable(4096);
        log.keep(0, block(1, 4096));
        let first = log.begin_sync_in_place_of(None, 4096);
        log.keep(0, block(2, 4096));
        let second = log.begin_sync_in_place_of(Some(first), 4096);
        assert_eq!(log.kept(), 1);
        log.keep(0, block(3, 4096));
        let unsynced = log.kept();
        log.end_sync(second);
        assert_eq!((unsynced, log.kept()), (2, 1));
        let back = log.take_back();
        assert_eq!((back.size, back.blocks), (4096, Blocks::from([(0, block(3, 4096))])));
        let mut log = durable(4096);
        log.keep(0, block(1, 4096));
        let first = log.begin_sync_in_place_of(None, 4096);
        log.keep(0, block(2, 4096));
        log.begin_sync_in_place_of(Some(first), 4096);
        assert_eq!(log.take_back().blocks, Blocks::from([(0, block(1, 4096))]));
    }

    #[test]
    fn a_sync_that_ends_after_the_power_went_makes_nothing_durable() {
        let mut log = durable(100);
        let sync = log.begin_sync(200);
        assert_eq!(log.take_back().size, 100);
        log.end_sync(sync);
        assert_eq!(log.take_back().size, 100);
    }

    #[test]
    fn of_a_torn_write_single_sectors_survive_and_the_size_does_not_grow() {
        let mut back = Restoration { size: 1500, blocks: Blocks::from([(0, block(1, 1500))]) };
        let mut flip = false;
        let mut coin = || {
            flip = !flip;
            flip
        };
        let survived = back.tear(0, 4096, &Blocks::from([(0, block(2, 4096))]), &mut coin);
        assert_eq!(survived, 2);
        let content = &back.blocks[&0];
        let sectors: Vec<u8> = content.chunks(512).map(|sector| sector[0]).collect();
        assert_eq!((content.len(), sectors), (1500, vec![2, 1, 2]));
    }
}

//! One pass over a file: opened, gone over block by block, each timed by itself, closed.
//!
//! What is timed is the system call and nothing else: filling a block and looking at what one holds are not the disk's.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::{Done, Durability, Pass, Shape, pattern};

/// What `O_DIRECT` wants buffers and offsets to be multiples of, on every disk there is.
const ALIGNMENT: usize = 4096;

/// Carries a pass out on a volume.
///
/// # Errors
/// What the volume refused, with the file in words.
pub fn carry_out(volume: &Path, pass: &Pass) -> Result<Done, String> {
    let path = volume.join(format!("rawio-{}", pass.file));
    let told = |what: &str, error: &io::Error| format!("{what} {}: {error}", path.display());
    let (file, writes) = match open(&path, pass) {
        Ok(opened) => opened,
        // What was read is nothing: whether there must be a file is not for this pass to say.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_write(pass.shape) => {
            return Ok(Done { wrong: Some(told("open", &error)), ..Done::default() });
        }
        Err(error) => return Err(told("open", &error)),
    };
    let mut buffer = Buffer::new(pass.block_bytes as usize);
    let mut done = Done::default();
    let mut found: Option<Result<u64, String>> = None;
    for number in order(pass) {
        let offset = u64::from(number) * u64::from(pass.block_bytes);
        let block = buffer.block();
        if writes {
            pattern::fill(block, pass.stamp, offset);
        }
        let began = Instant::now();
        let moved = if writes {
            file.write_all_at(block, offset).map(|()| block.len())
        } else {
            read(&file, block, offset)
        };
        let took = began.elapsed();
        let moved = moved.map_err(|error| told(if writes { "write" } else { "read" }, &error))?;
        done.block_ns.push(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        done.bytes += moved as u64;
        if !writes {
            let here = if moved < block.len() {
                Err(format!("byte {}: the file ends there", offset + moved as u64))
            } else {
                pattern::read(block, offset)
            };
            done.stamps.extend(here.as_ref().ok());
            found = Some(agreed(found, here, offset));
        }
    }
    if pass.shape == Shape::SequentialWrite && pass.durability == Durability::End {
        let began = Instant::now();
        file.sync_data().map_err(|error| told("sync", &error))?;
        done.sync_ns = Some(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    match found {
        Some(Ok(stamp)) => done.stamp = Some(stamp),
        Some(Err(why)) => done.wrong = Some(format!("{}: {why}", path.display())),
        None => {}
    }
    Ok(done)
}

fn agreed(before: Option<Result<u64, String>>, here: Result<u64, String>, at: u64) -> Result<u64, String> {
    match (before, here) {
        (Some(Err(first)), _) => Err(first),
        (Some(Ok(before)), Ok(here)) if before != here => {
            Err(format!("byte {at}: of pass {here}, after blocks of pass {before}"))
        }
        (_, here) => here,
    }
}

fn is_write(shape: Shape) -> bool {
    matches!(shape, Shape::SequentialWrite | Shape::RandomWrite)
}

fn open(path: &PathBuf, pass: &Pass) -> io::Result<(File, bool)> {
    let writes = is_write(pass.shape);
    let each = pass.shape == Shape::RandomWrite || pass.durability == Durability::Each;
    let through = if writes && each { libc::O_DSYNC } else { 0 };
    let direct = if pass.direct { libc::O_DIRECT } else { 0 };
    let mut options = OpenOptions::new();
    options.read(true).write(writes).create(writes).custom_flags(through | direct);
    options.truncate(pass.shape == Shape::SequentialWrite);
    let file = options.open(path)?;
    if matches!(pass.shape, Shape::SequentialRead | Shape::RandomRead) {
        nix::fcntl::posix_fadvise(&file, 0, 0, nix::fcntl::PosixFadviseAdvice::POSIX_FADV_DONTNEED)?;
    }
    Ok((file, writes))
}

/// Block numbers in the order of the pass.
fn order(pass: &Pass) -> Vec<u32> {
    let mut order: Vec<u32> = (0..pass.count).collect();
    if matches!(pass.shape, Shape::RandomWrite | Shape::RandomRead) {
        let mut chance = ChaCha8Rng::seed_from_u64(pass.stamp);
        // Fisher and Yates. The remainder favours some places by less than one in a billion.
        for place in (1..order.len()).rev() {
            order.swap(place, (chance.next_u64() % (place as u64 + 1)) as usize);
        }
    }
    order
}

fn read(file: &File, block: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut read = 0;
    while read < block.len() {
        match file.read_at(&mut block[read..], offset + read as u64) {
            Ok(0) => break,
            Ok(bytes) => read += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

/// A buffer at an address that `O_DIRECT` takes.
struct Buffer {
    bytes: Vec<u8>,
    from: usize,
    length: usize,
}

impl Buffer {
    fn new(length: usize) -> Buffer {
        let bytes = vec![0; length + ALIGNMENT];
        let from = bytes.as_ptr().align_offset(ALIGNMENT);
        Buffer { bytes, from, length }
    }

    fn block(&mut self) -> &mut [u8] {
        &mut self.bytes[self.from..self.from + self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(shape: Shape, stamp: u64) -> Pass {
        let durability = Durability::End;
        Pass { shape, file: 1, stamp, block_bytes: 8192, count: 20, direct: false, durability }
    }

    fn done(folder: &Path, shape: Shape, stamp: u64) -> Done {
        carry_out(folder, &pass(shape, stamp)).unwrap_or_else(|why| panic!("{shape:?}: {why}"))
    }

    #[test]
    fn what_was_written_is_read_back_in_every_order() {
        let folder = tempfile::tempdir().expect("a folder");
        for (stamp, write) in [(5, Shape::SequentialWrite), (6, Shape::RandomWrite)] {
            let written = done(folder.path(), write, stamp);
            assert_eq!((written.block_ns.len(), written.bytes), (20, 20 * 8192));
            for read in [Shape::SequentialRead, Shape::CachedRead, Shape::RandomRead] {
                let read = done(folder.path(), read, 99);
                assert_eq!((read.stamp, read.wrong, read.bytes), (Some(stamp), None, 20 * 8192));
            }
        }
    }

    #[test]
    fn only_a_sequential_write_that_is_durable_at_its_end_syncs_there() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(done(folder.path(), Shape::SequentialWrite, 1).sync_ns.is_some());
        let lazy = Pass { durability: Durability::None, ..pass(Shape::SequentialWrite, 1) };
        assert_eq!(carry_out(folder.path(), &lazy).map(|done| done.sync_ns), Ok(None));
        assert_eq!(done(folder.path(), Shape::RandomWrite, 1).sync_ns, None);
    }

    #[test]
    fn a_changed_byte_a_lost_end_and_a_mixture_of_passes_are_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rawio-1");
        let wrong = || {
            let read = done(folder.path(), Shape::SequentialRead, 0);
            assert_eq!(read.stamp, None);
            read.wrong.expect("found")
        };
        done(folder.path(), Shape::SequentialWrite, 1);
        let file = OpenOptions::new().write(true).open(&path).expect("there");
        file.write_all_at(b"x", 100_000).expect("written");
        assert!(wrong().contains("byte 100000: not what any pass wrote there"), "{}", wrong());
        done(folder.path(), Shape::SequentialWrite, 2);
        file.set_len(150_000).expect("cut");
        assert!(wrong().contains("byte 150000: the file ends there"), "{}", wrong());
        done(folder.path(), Shape::SequentialWrite, 3);
        let half = Pass { count: 10, ..pass(Shape::RandomWrite, 4) };
        carry_out(folder.path(), &half).expect("done");
        assert!(wrong().contains("of pass 3, after blocks of pass 4"), "{}", wrong());
        assert_eq!(done(folder.path(), Shape::SequentialRead, 0).stamps, [3, 4].into());
    }

    #[test]
    fn nothing_is_read_of_a_file_that_is_not_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let read = done(folder.path(), Shape::SequentialRead, 0);
        assert_eq!((read.stamp, read.stamps.len()), (None, 0));
        let why = read.wrong.expect("told");
        assert!(why.starts_with("open ") && why.contains("rawio-1: No such file"), "{why}");
    }

    #[test]
    fn the_page_cache_can_be_left_out() {
        let folder = tempfile::tempdir_in(".").expect("a folder");
        for shape in [Shape::SequentialWrite, Shape::RandomWrite, Shape::SequentialRead] {
            let direct = Pass { direct: true, ..pass(shape, 7) };
            match carry_out(folder.path(), &direct) {
                Ok(done) => assert_eq!(done.bytes, 20 * 8192),
                // tmpfs of older kernels has none.
                Err(why) => assert!(why.contains("Invalid argument"), "{why}"),
            }
        }
    }
}

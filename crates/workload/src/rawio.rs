//! Raw passes over files of a node's volume, in turn: sequential write, sequential read, cached read, random synced
//! writes, random reads. Without a database.
//!
//! Each client has two files, one for sequential passes and one for those of chance. A write pass over a file is one write
//! of a register, whose value is the pass's number; a read pass reads it, and reads nothing where the blocks were not all
//! of one pass: so the register check judges whether what was written is what is read back.
//!
//! A write pass that ended without a definite answer may have left blocks of its own beside those of the pass before, or
//! a file cut short. The final read of such a file is a read of each pass that a block is of, all at the same time: one
//! that an acknowledged pass had replaced is found out, the two that may be there are not.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capabilities::workloads::{self, WorkloadFacts};
use client::volume::{Done, Durability, Pass, Shape};
use client::{Session, SessionFuture};
use history::{Action, Key};

use crate::options::{ConfigurationError, Options};
use crate::workload::{Attempt, ClientState, Request, Statement, TableSetup, Workload, refused};

/// The shapes in turn.
const TURNS: [Shape; 5] =
    [Shape::SequentialWrite, Shape::SequentialRead, Shape::CachedRead, Shape::RandomWrite, Shape::RandomRead];
/// Bytes of a block of a pass by chance.
const RANDOM_BLOCK_BYTES: u32 = 4096;
/// The statement that times the sync at the end of a sequential write; the others stand at their shape's turn.
const SYNC: usize = TURNS.len();
/// Bytes that blocks must be multiples of: a sector.
const SECTOR_BYTES: u64 = 512;

/// Names of the statements.
const TIMED: &[&str] = workloads::RAWIO.timed.names();

/// See the module.
pub struct Rawio {
    block_bytes: u32,
    count: u32,
    random_count: u32,
    direct: bool,
    durability: Durability,
    shared: Mutex<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Files whose last write pass was done, as against those of which nobody knows.
    written: BTreeMap<u64, bool>,
    /// Of each shape, bytes or blocks, and the time they took.
    moved: [(u64, u64, Duration); TURNS.len()],
}

impl Rawio {
    /// With these options.
    ///
    /// # Errors
    /// When one does not fit.
    pub fn configured(given: &BTreeMap<String, String>) -> Result<Self, ConfigurationError> {
        let mut options = Options::new("rawio", given);
        let block = options.count("block")?;
        if !block.is_multiple_of(SECTOR_BYTES) {
            let text = options.text("block").unwrap_or_default();
            return Err(options.bad("block", text, "it is a multiple of 512 bytes"));
        }
        let count = options.count("count")?;
        let random = options.count("random")?;
        let direct = options.switch("direct")?;
        let durability = match options.word("durable")? {
            "end" => Durability::End,
            "each" => Durability::Each,
            _ => Durability::None,
        };
        options.finish()?;
        let small = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        Ok(Rawio {
            block_bytes: small(block),
            count: small(count),
            random_count: small(random),
            direct,
            durability,
            shared: Mutex::default(),
        })
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass(&self, shape: Shape, file: u64, stamp: u64) -> Pass {
        let by_chance = matches!(shape, Shape::RandomWrite | Shape::RandomRead);
        let (block_bytes, count) =
            if by_chance { (RANDOM_BLOCK_BYTES, self.random_count) } else { (self.block_bytes, self.count) };
        // A cached read is one of the page cache.
        let direct = self.direct && shape != Shape::CachedRead;
        Pass { shape, file, stamp, block_bytes, count, direct, durability: self.durability }
    }

    fn note(&self, turn: usize, done: &Done) {
        let blocks: u64 = done.block_ns.iter().sum();
        let time = Duration::from_nanos(blocks + done.sync_ns.unwrap_or(0));
        let moved = &mut self.shared().moved[turn];
        *moved = (moved.0 + done.bytes, moved.1 + done.block_ns.len() as u64, moved.2 + time);
    }
}

/// The file of a shape, of a client.
fn file(shape: Shape, client: u64) -> u64 {
    client * 2 + u64::from(matches!(shape, Shape::RandomWrite | Shape::RandomRead))
}

fn writes(shape: Shape) -> bool {
    matches!(shape, Shape::SequentialWrite | Shape::RandomWrite)
}

fn key(file: u64) -> Key {
    Key::Name(format!("file {file}").into())
}

/// The value that a read pass found: the number of the one write pass its blocks are of, or nothing.
fn value(done: &Done) -> Option<i64> {
    done.stamp.and_then(|stamp| i64::try_from(stamp).ok())
}

/// What a file was found to hold in the end: of one whose last write pass had no definite answer, every pass that a block
/// is of.
fn found_in_the_end(done: &Done, is_written: bool) -> Vec<Option<i64>> {
    match is_written {
        true => vec![value(done)],
        false => done.stamps.iter().map(|stamp| i64::try_from(*stamp).ok()).collect(),
    }
}

impl Workload for Rawio {
    fn facts(&self) -> &'static WorkloadFacts {
        &workloads::RAWIO
    }

    fn statements(&self) -> &[Statement] {
        static STATEMENTS: [Statement; TURNS.len() + 1] = [
            Statement::fixed(TIMED[0], ""),
            Statement::fixed(TIMED[1], ""),
            Statement::fixed(TIMED[2], ""),
            Statement::fixed(TIMED[3], ""),
            Statement::fixed(TIMED[4], ""),
            Statement::fixed(TIMED[5], ""),
        ];
        &STATEMENTS
    }

    fn figures(&self, _: &BTreeMap<String, u64>, _: f64, _: u32) -> BTreeMap<String, f64> {
        let mut figures = BTreeMap::new();
        let shared = self.shared();
        for (name, (bytes, blocks, time)) in self.kinds().into_iter().zip(shared.moved) {
            let seconds = time.as_secs_f64();
            if seconds == 0.0 {
                continue;
            }
            let name = name.replace('-', "_");
            if name.starts_with("random") {
                figures.insert(format!("{name}s_per_s"), blocks as f64 / seconds);
            } else {
                figures.insert(format!("{name}_mb_per_s"), bytes as f64 / 1e6 / seconds);
            }
        }
        figures
    }

    fn setup<'a>(&'a self, setup: &'a mut TableSetup<'_>) -> SessionFuture<'a, ()> {
        Box::pin(async move {
            *self.shared() = Shared::default();
            match setup.session {
                Session::Volume(_) => Ok(()),
                Session::Sql(_) | Session::KeyValue(_) => {
                    Err(refused("rawio needs `engine: none`: it asks a volume and no database".to_owned()))
                }
            }
        })
    }

    fn draw(&self, client: &mut ClientState) -> Request {
        let mut turn = (client.sequence % TURNS.len() as u64) as usize;
        client.sequence += 1;
        let number = file(TURNS[turn], client.client);
        // What nobody knows to be written whole is written before it is read.
        while !writes(TURNS[turn]) && self.shared().written.get(&number) != Some(&true) {
            turn -= 1;
        }
        let key = key(number);
        let stamp = client.sequence.cast_signed();
        let action = if writes(TURNS[turn]) {
            Action::RegisterWrite { key, value: stamp }
        } else {
            Action::RegisterRead { key, value: None }
        };
        Request::plain(action, turn, [number.cast_signed(), stamp, 0, 0])
    }

    fn perform<'a>(
        &'a self,
        request: &'a mut Request,
        attempt: &'a mut Attempt<'_>,
    ) -> SessionFuture<'a, ()> {
        Box::pin(async move {
            let [number, stamp, ..] = request.numbers.map(i64::cast_unsigned);
            let shape = TURNS[request.kind];
            if writes(shape) {
                self.shared().written.insert(number, false);
            }
            let done = attempt.session.volume()?.pass(self.pass(shape, number, stamp)).await?;
            for nanos in &done.block_ns {
                attempt.observer.answered(request.kind, Duration::from_nanos(*nanos));
            }
            if let Some(nanos) = done.sync_ns {
                attempt.observer.answered(SYNC, Duration::from_nanos(nanos));
            }
            self.note(request.kind, &done);
            if writes(shape) {
                self.shared().written.insert(number, true);
            } else if let Action::RegisterRead { value: found, .. } = &mut request.action {
                *found = value(&done);
            }
            Ok(())
        })
    }

    fn final_read<'a>(&'a self, session: &'a mut Session) -> SessionFuture<'a, Vec<Action>> {
        Box::pin(async move {
            let files = self.shared().written.clone();
            let mut actions = Vec::new();
            for (number, is_written) in files {
                let shape = if number % 2 == 0 { Shape::SequentialRead } else { Shape::RandomRead };
                let done = session.volume()?.pass(self.pass(shape, number, 0)).await?;
                let read = |value| Action::RegisterRead { key: key(number), value };
                actions.extend(found_in_the_end(&done, is_written).into_iter().map(read));
            }
            Ok(actions)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    fn client() -> ClientState {
        ClientState::new(3, 1, ChaCha8Rng::seed_from_u64(1))
    }

    #[test]
    fn a_client_goes_through_all_shapes_in_turn_and_reads_nothing_that_is_not_known_to_be_written() {
        let rawio = Rawio::configured(&BTreeMap::new()).expect("configured");
        let mut client = client();
        let mut drawn = |written: &[u64]| {
            rawio.shared().written = written.iter().map(|file| (*file, true)).collect();
            rawio.draw(&mut client)
        };
        let kinds: Vec<usize> = (0..5).map(|_| drawn(&[6, 7]).kind).collect();
        assert_eq!(kinds, [0, 1, 2, 3, 4]);
        let kinds: Vec<usize> = (0..5).map(|_| drawn(&[7]).kind).collect();
        assert_eq!(kinds, [0, 0, 0, 3, 4]);
        assert_eq!(drawn(&[]).action, Action::RegisterWrite { key: key(6), value: 11 });
    }

    #[test]
    fn a_file_whose_last_write_had_no_answer_is_read_in_the_end_pass_by_pass() {
        let mixed = Done { stamps: [3, 4].into(), ..Done::default() };
        assert_eq!(found_in_the_end(&mixed, false), [Some(3), Some(4)]);
        assert_eq!(
            found_in_the_end(&mixed, true),
            [None],
            "blocks of two passes are none that was acknowledged"
        );
        let whole = Done { stamp: Some(4), stamps: [4].into(), ..Done::default() };
        assert_eq!(found_in_the_end(&whole, true), [Some(4)]);
        assert_eq!(found_in_the_end(&whole, false), [Some(4)]);
        assert_eq!(found_in_the_end(&Done::default(), false), [], "it may have been cut short");
    }

    #[test]
    fn throughput_is_bytes_by_the_time_of_their_blocks_and_syncs() {
        let rawio = Rawio::configured(&BTreeMap::new()).expect("configured");
        let done = Done {
            block_ns: vec![400_000, 100_000],
            sync_ns: Some(500_000),
            bytes: 16_384,
            ..Done::default()
        };
        rawio.note(0, &done);
        rawio.note(3, &Done { sync_ns: None, ..done });
        let figures = rawio.figures(&BTreeMap::new(), 1.0, 1);
        assert!(figures.keys().all(|name| rawio.facts().figures.contains(&name.as_str())), "{figures:?}");
        let told: Vec<(&str, f64)> = figures.iter().map(|(name, figure)| (name.as_str(), *figure)).collect();
        assert_eq!(told, [("random_writes_per_s", 4000.0), ("sequential_write_mb_per_s", 16.384)]);
    }

    #[test]
    fn a_block_is_whole_sectors() {
        let told = |value: &str| {
            let given = [("block".to_owned(), value.to_owned())].into();
            Rawio::configured(&given).err().map(|error| error.to_string())
        };
        assert_eq!(told("8192"), None);
        assert!(told("1000").is_some_and(|why| why.contains("multiple of 512")), "{:?}", told("1000"));
        assert!(told("1").is_some());
    }
}

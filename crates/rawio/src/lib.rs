//! Raw reads and writes of a node's volume, as `dd`, `hdparm` and `fio` do them: so that a platform can be measured and
//! proven before any database is on it.
//!
//! A pass goes once over a file, block by block, and times each. Every block says which write pass it comes from and where
//! it belongs, so that a read pass knows whether it was handed what had been written. `pass` does the passes, `server` is
//! the process on a node that is asked for them; who asks, and what follows from the answers, is elsewhere.

mod pass;
mod pattern;
pub mod server;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

pub use pass::carry_out;

/// How a pass goes over its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// From the beginning to the end, on an empty file: `dd`.
    SequentialWrite,
    /// From the beginning to the end, nothing of it in memory at first: `hdparm -t`.
    SequentialRead,
    /// From the beginning to the end of a file that was read just now: `hdparm -T`.
    CachedRead,
    /// Every block once, in an order of chance, each durable before the next.
    RandomWrite,
    /// Every block once, in an order of chance, nothing of it in memory at first.
    RandomRead,
}

/// When what a sequential write writes is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// Once, at the end: `dd conv=fdatasync`.
    End,
    /// With each block: `dd oflag=dsync`.
    Each,
    /// By nobody: `dd` as it is. What a power-off takes then, nobody was promised.
    None,
}

/// One way through a file, block by block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pass {
    /// How it goes.
    pub shape: Shape,
    /// Number of its file.
    pub file: u64,
    /// Number of the write pass, which its blocks carry; of a read pass, the seed of its order.
    pub stamp: u64,
    pub block_bytes: u32,
    /// Blocks.
    pub count: u32,
    /// Whether the page cache is left out (`O_DIRECT`).
    pub direct: bool,
    /// When a sequential write is durable.
    pub durability: Durability,
}

/// What a pass did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Done {
    /// Time of each block, nanoseconds, in the order of the pass.
    pub block_ns: Vec<u64>,
    /// Time of the sync at the end, nanoseconds, where there was one.
    pub sync_ns: Option<u64>,
    /// Bytes read or written.
    pub bytes: u64,
    /// The write pass of which every block read carried the number; nothing where they did not agree, where one was no
    /// block of any write pass or not in its place, or where some were missing.
    pub stamp: Option<u64>,
    /// Every write pass of which a block read carried the number, sorted.
    #[serde(default)]
    pub stamps: BTreeSet<u64>,
    /// The first block read that was not as it should be, and why, for people.
    pub wrong: Option<String>,
}

/// What a node's process is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub enum Ask {
    /// Whether it is there. Answered by [`Tell::Here`].
    Hello,
    /// A pass. Answered by [`Tell::Done`] or [`Tell::Failed`].
    Pass {
        /// It.
        pass: Pass,
    },
}

/// What it answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "tell", rename_all = "kebab-case")]
pub enum Tell {
    /// It is there.
    Here,
    /// The pass is done.
    Done {
        /// What it did.
        done: Done,
    },
    /// The volume refused something; the pass has ended there.
    Failed {
        /// What, and the system's words.
        why: String,
    },
}

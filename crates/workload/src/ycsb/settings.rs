//! YCSB's options: the six core workloads as they ship, and what may be asked for instead.
//!
//! Owns the table of the standard and the reading of options. Source: YCSB's files `workloads/workloada` to `workloadf`
//! and the properties of `CoreWorkload`.
//!
//! | workload | operations | keys |
//! |---|---|---|
//! | a | READ 50 %, UPDATE 50 % | zipfian |
//! | b | READ 95 %, UPDATE 5 % | zipfian |
//! | c | READ | zipfian |
//! | d | READ 95 %, INSERT 5 % | latest |
//! | e | SCAN 95 %, INSERT 5 % | zipfian |
//! | f | READ 50 %, READ-MODIFY-WRITE 50 % | zipfian |

use std::collections::BTreeMap;

use rand::{Rng, RngExt};

use crate::options::{ConfigurationError, Options};

/// Places of the operations in [`KINDS`].
pub const READ: usize = 0;
/// See [`READ`].
pub const UPDATE: usize = 1;
/// See [`READ`].
pub const INSERT: usize = 2;
/// See [`READ`].
pub const SCAN: usize = 3;
/// See [`READ`].
pub const READ_MODIFY_WRITE: usize = 4;

/// Names of the operations, as YCSB prints them.
pub(super) const KINDS: &[&str] = capabilities::workloads::YCSB.kinds;

/// Names of the options that hold their shares, in the same order.
const SHARES: [&str; 5] = ["read", "update", "insert", "scan", "read_modify_write"];

/// How keys are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    Uniform,
    /// Popular keys spread over all.
    Zipfian,
    /// The newest most.
    Latest,
    Hotspot,
    /// One after another, from the first again after the last.
    Sequential,
    /// The nearer to the newest the likelier, falling off exponentially.
    Exponential,
}

const CHOICES: [(&str, Choice); 6] = [
    ("uniform", Choice::Uniform),
    ("zipfian", Choice::Zipfian),
    ("latest", Choice::Latest),
    ("hotspot", Choice::Hotspot),
    ("sequential", Choice::Sequential),
    ("exponential", Choice::Exponential),
];

/// A core workload: its letter, the shares of its operations, how it chooses keys.
type Core = (&'static str, [f64; 5], Choice);

const CORES: [Core; 6] = [
    ("a", [0.5, 0.5, 0.0, 0.0, 0.0], Choice::Zipfian),
    ("b", [0.95, 0.05, 0.0, 0.0, 0.0], Choice::Zipfian),
    ("c", [1.0, 0.0, 0.0, 0.0, 0.0], Choice::Zipfian),
    ("d", [0.95, 0.0, 0.05, 0.0, 0.0], Choice::Latest),
    ("e", [0.0, 0.0, 0.05, 0.95, 0.0], Choice::Zipfian),
    ("f", [0.5, 0.0, 0.0, 0.0, 0.5], Choice::Zipfian),
];

/// What was asked for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settings {
    /// Of the operations, in the order of [`KINDS`]; together 1.
    pub(super) shares: [f64; 5],
    pub(super) choice: Choice,
    pub(super) records: u64,
    pub(super) fields: usize,
    pub(super) field_length: usize,
    pub(super) read_all_fields: bool,
    pub(super) write_all_fields: bool,
    /// Rows of a scan at most; how many, every length is as likely.
    pub(super) scan_length: i64,
    pub(super) hotspot_keys: f64,
    pub(super) hotspot_operations: f64,
    /// Keys are named in the order of their insertion instead of by a hash.
    pub(super) ordered: bool,
}

impl Settings {
    pub(super) fn read(given: &BTreeMap<String, String>) -> Result<Self, ConfigurationError> {
        let mut options = Options::new("ycsb", given);
        let letter = options.word("workload")?;
        let core = CORES.iter().find(|core| core.0 == letter).unwrap_or(&CORES[0]);
        let (_, core_shares, core_choice) = *core;
        // Given one by one, they stand for themselves: what is not given is nothing.
        let any_given = SHARES.iter().any(|name| given.contains_key(*name));
        let mut shares = core_shares;
        for (share, name) in shares.iter_mut().zip(SHARES) {
            *share = options.share_or(name, if any_given { 0.0 } else { *share })?;
        }
        let sum: f64 = shares.iter().sum();
        if (sum - 1.0).abs() > 1e-6 {
            let given = SHARES.iter().find_map(|name| Some((*name, given.get(*name)?)));
            let (name, told) = given.map_or(("read", ""), |(name, told)| (name, told.as_str()));
            let sum = (sum * 1e4).round() / 1e2;
            let wanted = format!("the shares of all operations must add up to 100%, and come to {sum}%");
            return Err(options.bad(name, told, &wanted));
        }
        let choice = match options.text("distribution") {
            None => core_choice,
            Some(_) => {
                let name = options.word("distribution")?;
                CHOICES.iter().find(|choice| choice.0 == name).map_or(core_choice, |choice| choice.1)
            }
        };
        let settings = Settings {
            shares,
            choice,
            records: options.count("records")?,
            fields: small(options.count("fields")?),
            field_length: small(options.count("field_length")?),
            read_all_fields: options.switch("read_all_fields")?,
            write_all_fields: options.switch("write_all_fields")?,
            scan_length: i64::try_from(options.count("scan_length")?).unwrap_or(i64::MAX),
            hotspot_keys: options.share("hotspot_keys")?,
            hotspot_operations: options.share("hotspot_operations")?,
            ordered: options.word("insert_order")? == "ordered",
        };
        options.finish()?;
        Ok(settings)
    }

    pub(super) fn draw_kind(&self, rng: &mut impl Rng) -> usize {
        let mut left = rng.random::<f64>();
        for (kind, share) in self.shares.iter().enumerate() {
            left -= share;
            if left < 0.0 {
                return kind;
            }
        }
        // Rounding may leave a crumb: it goes to the last operation there is.
        self.shares.iter().rposition(|share| *share > 0.0).unwrap_or(READ)
    }
}

fn small(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

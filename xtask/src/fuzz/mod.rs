//! Many inputs for each parser and each core that takes what others say: made of good ones by chance, the same for the same number.
//!
//! Owns the targets and the drive over them. Each target asserts what must hold of any input; a panic, or an input that takes longer
//! than [`PATIENCE`], is a finding. The same targets serve libFuzzer (`fuzz/`), which needs a nightly compiler.

mod bytes;
mod fuse;
mod history;
mod mutation;
mod network;
mod texts;

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use self::mutation::Mutation;

/// No input may take longer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest input, bytes.
const LONGEST: usize = 16 << 10;

/// Something that takes any bytes.
struct Target {
    name: &'static str,
    one: fn(&[u8]),
    /// Folders with good inputs and bad ones, and how their names end.
    seeds: &'static [(&'static str, &'static str)],
    /// Further ones.
    written: &'static [&'static [u8]],
    /// One more out of each that was read, in another form, where it has that form.
    also: fn(&[u8]) -> Option<Vec<u8>>,
}

const TARGETS: [Target; 10] = [
    Target {
        seeds: &[("scenarios", "yaml"), ("scenarios/rejected", "yaml")],
        ..target("scenario", texts::scenario)
    },
    Target { seeds: &[("engines", "yaml"), ("engines/rejected", "yaml")], ..target("engine", texts::engine) },
    Target { written: &[SCRIPT], ..target("script", texts::script) },
    Target { seeds: HISTORIES, also: history::as_edn, ..target("history", history::one) },
    target("fabric", network::one),
    Target { written: &[fuse::SEED], ..target("fuse", fuse::one) },
    // A head of nine bytes and a body of a word.
    Target { written: &[b"\x84\0\0\0\x08\0\0\0\x04\0\0\0\x01"], ..target("cql", client::cql::read_any) },
    // A column, its end, a row; an answer without rows; an error.
    Target {
        written: &[MYSQL_ROW, b"\x07\0\x03\0\x02\0\0\0", b"\x0d\xff\xbd\x04#40001text"],
        ..target("mysql", client::mysql::read_any)
    },
    Target {
        written: &[b"SWARNING\0VWARNING\0C01000\0Mwait\0\0"],
        ..target("postgres", client::postgres::read_any)
    },
    Target {
        written: &[b"*2\r\n$3\r\nabc\r\n:12\r\n+OK\r\n-ERR no\r\n$-1\r\n"],
        ..target("redis", client::redis::read_any)
    },
];

const SCRIPT: &[u8] =
    b"\\set aid random(1, 100000 * :scale)\n\\set delta random_gaussian(-5, 5, 2.5)\nBEGIN;\n\
    UPDATE a SET b = b + :delta WHERE c = :aid;\nSELECT b AS kept FROM a WHERE c = :aid \\gset\n\
    \\if :kept > 0\n\\sleep 1 ms\n\\else\n\\set x abs(:kept) % 7\n\\endif\nEND;\n";
const MYSQL_ROW: &[u8] =
    b"\x01\x01\x14\x03def\0\0\0\x01a\0\x0c\x21\0\0\0\0\0\x08\0\0\0\0\0\x05\xfe\0\0\x02\0\x02\x01\x37";

/// A target without seeds.
const fn target(name: &'static str, one: fn(&[u8])) -> Target {
    Target { name, one, seeds: &[], written: &[], also: |_| None }
}

const HISTORIES: &[(&str, &str)] = &[
    ("histories/bank", "jsonl"),
    ("histories/convergence", "jsonl"),
    ("histories/last-writes", "jsonl"),
    ("histories/ledger", "jsonl"),
    ("histories/list-append", "jsonl"),
    ("histories/register", "jsonl"),
    ("histories/script-conditions", "jsonl"),
    ("histories/tpcb-sums", "jsonl"),
    ("histories/tpcc-conditions", "jsonl"),
];

/// What is asked of the drive.
#[derive(Debug)]
pub struct Options {
    /// Inputs of each target.
    pub inputs: u64,
    /// The number of the first.
    pub first: u64,
    /// Only these targets; all when empty.
    pub only: Vec<String>,
}

/// Gives each target its inputs and prints how many it bore; findings are kept under `target/fuzz/`. Writes `docs/inputs.md`, unless
/// only some targets were asked for.
///
/// # Errors
/// When a target is named that there is none of, or a file cannot be read or written.
pub fn run(asked: &Options) -> anyhow::Result<ExitCode> {
    if let Some(name) = asked.only.iter().find(|name| !TARGETS.iter().any(|target| target.name == **name)) {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        bail!("no target is called {name:?}; there are {}", names.join(", "));
    }
    let is_asked =
        |target: &&Target| asked.only.is_empty() || asked.only.iter().any(|name| name == target.name);
    let mut findings = 0;
    let mut page = format!(
        "# Inputs by chance\n\nInputs made from good and bad files by changing bytes, numbers, lines and pieces, given to every parser and to the \
         fabric's core. None may panic, take longer than {} s, or break what must hold of any input (`xtask/src/fuzz/`). The same \
         number is the same input everywhere. Written by\n\n    cargo xtask fuzz --inputs {} --first {}\n\n| target | inputs | seeds | seconds \
         | findings |\n|---|---|---|---|---|\n",
        PATIENCE.as_secs(),
        asked.inputs,
        asked.first,
    );
    for target in TARGETS.iter().filter(is_asked) {
        let began = Instant::now();
        let found = drive(target, asked.first..asked.first + asked.inputs)?;
        let (seconds, seeds) = (began.elapsed().as_secs_f64(), seeds_of(target)?.len());
        println!(
            "{:<9} {} inputs of {seeds} seeds in {seconds:.0} s: {} findings",
            target.name,
            asked.inputs,
            found.len()
        );
        page.push_str(&format!(
            "| {} | {} | {seeds} | {seconds:.0} | {} |\n",
            target.name,
            asked.inputs,
            found.len()
        ));
        for (number, path) in &found {
            println!("  input {number}: {}", path.display());
        }
        findings += found.len();
    }
    if asked.only.is_empty() {
        let path = crate::repository_root().join("docs/inputs.md");
        std::fs::write(&path, page).with_context(|| path.display().to_string())?;
    }
    Ok(if findings == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Gives a target one input, for libFuzzer.
pub fn one(target: &str, input: &[u8]) {
    if let Some(target) = TARGETS.iter().find(|known| known.name == target) {
        (target.one)(input);
    }
}

/// The inputs of a target that it did not bear, and where they are kept.
fn drive(target: &Target, numbers: std::ops::Range<u64>) -> anyhow::Result<Vec<(u64, PathBuf)>> {
    let seeds = seeds_of(target)?;
    let mutation = Mutation::of(&seeds, LONGEST);
    let mut found = Vec::new();
    for number in numbers {
        let input = mutation.input(number);
        let began = Instant::now();
        let is_borne = catch_unwind(|| (target.one)(&input)).is_ok();
        if !is_borne || began.elapsed() > PATIENCE {
            let folder = crate::target_directory().join("fuzz");
            std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
            let path = folder.join(format!("{}-{number}", target.name));
            std::fs::write(&path, &input).with_context(|| path.display().to_string())?;
            found.push((number, path));
        }
    }
    Ok(found)
}

/// In order of their paths, so that a number stands for the same input everywhere.
fn seeds_of(target: &Target) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut seeds: Vec<Vec<u8>> = target.written.iter().map(|seed| seed.to_vec()).collect();
    for (folder, ending) in target.seeds {
        let folder = crate::repository_root().join(folder);
        let entries = std::fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        paths.retain(|path| has_ending(path, ending));
        ensure!(!paths.is_empty(), "{} holds no seeds of {}", folder.display(), target.name);
        for path in paths {
            let mut seed = std::fs::read(&path).with_context(|| path.display().to_string())?;
            let mut other = (target.also)(&seed);
            for seed in std::iter::once(&mut seed).chain(&mut other) {
                seed.truncate(LONGEST);
            }
            seeds.push(seed);
            seeds.extend(other);
        }
    }
    Ok(seeds)
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|extension| extension == ending)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_bears_its_first_inputs() {
        for target in &TARGETS {
            let found = drive(target, 0..300).expect("driven");
            assert!(found.is_empty(), "{}: {found:?}", target.name);
        }
    }

    #[test]
    fn histories_are_seeds_in_both_forms() {
        let target = TARGETS.iter().find(|target| target.name == "history").expect("there");
        let seeds = seeds_of(target).expect("read");
        let in_edn = seeds.iter().filter(|seed| seed.starts_with(b"{:")).count();
        assert!(in_edn > 20 && seeds.len() - in_edn > in_edn, "{in_edn} of {}", seeds.len());
    }

    #[test]
    fn a_target_that_panics_is_found_out_and_its_input_is_kept() {
        let planted = Target {
            seeds: &[("scenarios", "yaml")],
            ..target("planted", |input| assert!(input.len() < 100))
        };
        let found = drive(&planted, 0..5).expect("driven");
        let (_, path) = found.first().expect("a finding");
        assert!(std::fs::read(path).expect("kept").len() >= 100);
    }
}

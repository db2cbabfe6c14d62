//! Judges a generated history, for `cargo xtask bench check`: one process for each figure, so that the kernel's account
//! of the process is that of the check with its generator.
//!
//! `judge list-append TRANSACTIONS STALE_EVERY LOST_AT`, `judge register OPERATIONS KEYS CLIENTS`, `judge agree HISTORIES`. The
//! last writes small histories to standard output, each with our verdict, for another checker to judge.

use std::env::args;
use std::io::Write;

use check::list_append::{Level, ListAppend};
use check::register::Register;
use check::{Check, Report};
use history::{Action, Key, Operation, Outcome, Step, Verdict};

/// SplitMix64 (Steele, Lea and Flood, 2014): the same in every language.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// When each client is free again, microseconds.
struct Clients(Vec<u64>);

impl Clients {
    fn of(count: u64) -> Clients {
        Clients(vec![0; usize::try_from(count).unwrap_or(1)])
    }

    /// A client and the beginning and end of an operation of it that takes effect at `now_us`.
    fn next(&mut self, random: &mut Random, now_us: u64) -> (u64, u64, u64) {
        let count = self.0.len() as u64;
        loop {
            let client = random.below(count);
            let free_us = &mut self.0[client as usize];
            if *free_us < now_us {
                let begin_us = (*free_us + 1).max(now_us.saturating_sub(random.below(4 * count)));
                let end_us = now_us + random.below(4 * count);
                *free_us = end_us;
                return (client, begin_us, end_us);
            }
            // That one is busy; another will do. One is always free, for time goes on.
            let earliest = self.0.iter().copied().min().unwrap_or(0);
            if earliest >= now_us {
                self.0.iter_mut().for_each(|free_us| *free_us = (*free_us).min(now_us - 1));
            }
        }
    }
}

fn operation() -> Operation {
    Operation {
        load: "append".to_owned(),
        client: 0,
        action: Action::AppendTransaction { steps: Vec::new() },
        invoked_s: 0.0,
        completed_s: 0.0,
        outcome: Outcome::Ok,
        error: None,
        node: None,
    }
}

/// Ten active keys, each retired after 32 appends, and ten clients, as Elle's own generator has by default.
fn list_append(transactions: u64, stale_every: u64, lost_at: u64) -> Report {
    let mut random = Random(1);
    let mut clients = Clients::of(10);
    let mut lists: Vec<(i64, Vec<i64>)> = (0..10).map(|key| (key, Vec::new())).collect();
    let mut next_key = 10;
    let mut check = Box::new(ListAppend::claiming(Level::STRICT_SERIALIZABLE));
    let mut operation = operation();
    for at in 0..transactions {
        let (client, begin_us, end_us) = clients.next(&mut random, at * 4 + 100);
        operation.client = client;
        operation.invoked_s = begin_us as f64 / 1e6;
        operation.completed_s = end_us as f64 / 1e6;
        let is_stale = stale_every > 0 && at % stale_every == stale_every / 2;
        let Action::AppendTransaction { steps } = &mut operation.action else { continue };
        steps.clear();
        for _ in 0..=random.below(4) {
            let list = &mut lists[random.below(10) as usize];
            let key = Key::Number(list.0);
            if random.below(2) == 0 {
                let mut values = list.1.clone();
                // What everybody has long seen is not there: a stale read, or less than was read before.
                values.truncate(if is_stale { values.len() / 2 } else { values.len() });
                steps.push(Step::Read { key, values: Some(values) });
            } else {
                // An append that was acknowledged and is nowhere: only the order of time tells.
                let is_lost = lost_at > 0 && at == lost_at;
                let value = if is_lost { -1 } else { list.1.len() as i64 };
                list.1.extend((!is_lost).then_some(value));
                steps.push(Step::Append { key, value });
                if list.1.len() == 32 {
                    *list = (next_key, Vec::new());
                    next_key += 1;
                }
            }
        }
        check.observe(&operation);
    }
    check.conclude()
}

/// Registers that are written with ever new values. With `lie_every`, one read in so many finds another value.
fn register(random: &mut Random, counts: [u64; 3], lie_every: u64, mut take: impl FnMut(&Operation)) {
    let [operations, keys, clients] = counts;
    let mut clients = Clients::of(clients);
    let mut held: Vec<Option<i64>> = vec![None; usize::try_from(keys).unwrap_or(1)];
    let mut operation = operation();
    for at in 0..operations {
        let (client, begin_us, end_us) = clients.next(random, at * 4 + 100);
        operation.client = client;
        operation.invoked_s = begin_us as f64 / 1e6;
        operation.completed_s = end_us as f64 / 1e6;
        let number = random.below(keys);
        let key = Key::Number(number as i64);
        let held = &mut held[number as usize];
        let new = at as i64 + 1;
        operation.action = match random.below(10) {
            0..5 => {
                let lies = lie_every > 0 && random.below(lie_every) == 0;
                let value = if lies { held.map(|value| (value - 3).max(1)) } else { *held };
                Action::RegisterRead { key, value }
            }
            5..9 => {
                *held = Some(new);
                Action::RegisterWrite { key, value: new }
            }
            _ => {
                let expected = held.replace(new);
                Action::RegisterCompareAndSet { key, expected, new }
            }
        };
        take(&operation);
    }
}

/// Small histories, a line for each operation, then one with our verdict.
fn agree(histories: u64) -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout());
    for seed in 0..histories {
        let mut random = Random(seed);
        let mut check = Box::<Register>::default();
        let mut lines = String::new();
        let lie_every = if seed % 2 == 0 { 0 } else { 20 };
        register(&mut random, [200, 2, 6], lie_every, |operation| {
            check.observe(operation);
            let value = |value: Option<i64>| value.unwrap_or(-1);
            let (kind, key, one, other) = match &operation.action {
                Action::RegisterRead { key, value: found } => ("read", key, value(*found), 0),
                Action::RegisterWrite { key, value } => ("write", key, *value, 0),
                Action::RegisterCompareAndSet { key, expected, new } => ("cas", key, value(*expected), *new),
                _ => return,
            };
            let us = |time_s: f64| (time_s * 1e6).round() as u64;
            lines += &format!(
                "{} {} {} {kind} {key} {one} {other}\n",
                operation.client,
                us(operation.invoked_s),
                us(operation.completed_s)
            );
        });
        let verdict = check.conclude().verdict;
        writeln!(out, "{lines}verdict {verdict}")?;
    }
    out.flush()
}

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(0u64);
    let report = match arguments.first().map(String::as_str) {
        Some("list-append") => list_append(number(1), number(2), number(3)),
        Some("register") => {
            let mut check = Box::<Register>::default();
            let counts = [number(1), number(2).max(1), number(3).max(1)];
            register(&mut Random(1), counts, 0, |operation| check.observe(operation));
            check.conclude()
        }
        Some("agree") => return agree(number(1)),
        _ => return Err(std::io::Error::other("judge list-append|register|agree COUNTS")),
    };
    println!("{}", report.verdict);
    if report.verdict == Verdict::Fail {
        eprintln!("{}", report.explanation);
    }
    Ok(())
}

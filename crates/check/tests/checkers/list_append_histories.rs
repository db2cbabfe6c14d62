//! Small histories of list-append transactions as a careless database makes them.
//!
//! A transaction sees the lists as they were at one moment, with its own appends, and its appends are put behind the
//! lists at a later moment, whoever else wrote in between. Some databases are worse: they show old states, what a
//! transaction has yet to append, half of a transaction, or what was refused; or they lose half of one. Some clients append a value twice. Some
//! reads are made up.

use std::collections::BTreeMap;

use history::{Action, Key, Operation, Outcome, Step};

use crate::notation::operation;
use crate::random::Random;

type Lists = BTreeMap<Key, Vec<i64>>;

/// How bad it is: each, percent.
struct Badness {
    stale: u64,
    future: u64,
    torn: u64,
    refused_but_there: u64,
    used_twice: u64,
    made_up: u64,
}

/// What becomes of a transaction.
struct Fate {
    read_at: u64,
    begin: u64,
    end: u64,
    happens: bool,
    sees_future: bool,
    is_torn: bool,
    /// Only the latter half of a torn one happens.
    is_half: bool,
}

/// The history of a seed, of at most so many transactions.
pub fn history(seed: u64, transactions_max: u64) -> Vec<Operation> {
    let mut random = Random(seed);
    let badness = badness(&mut random);
    let count = 2 + random.below(transactions_max - 1);
    let mut free_at = [0u64; 3];
    let (mut operations, mut fates) = (Vec::new(), Vec::new());
    for at in 0..count {
        let client = random.below(3);
        let begin = free_at[client as usize] + random.below(3);
        let end = begin + random.below(8);
        free_at[client as usize] = end + 1;
        let outcome = match random.below(12) {
            0 => Outcome::Fail,
            1 | 2 => Outcome::Unknown,
            _ => Outcome::Ok,
        };
        let read_at = begin + random.below(end - begin + 1);
        fates.push(Fate {
            read_at: if random.percent(badness.stale) { read_at / 2 } else { read_at },
            begin,
            end,
            happens: match outcome {
                Outcome::Ok => true,
                Outcome::Unknown => random.percent(60),
                Outcome::Fail => random.percent(badness.refused_but_there),
            },
            sees_future: random.percent(badness.future),
            is_torn: random.percent(badness.torn),
            is_half: random.percent(25),
        });
        let steps = (0..=random.below(3)).map(|place| {
            let key = Key::from(random.below(2) as i64);
            let value = if random.percent(badness.used_twice) { 1 } else { (at * 10 + place + 1) as i64 };
            if random.percent(50) { Step::Read { key, values: None } } else { Step::Append { key, value } }
        });
        let action = Action::AppendTransaction { steps: steps.collect() };
        operations.push(operation(client, action, begin as f64, end as f64, outcome));
    }
    let lists = play(&mut operations, &fates);
    if random.percent(50) {
        let read = |key: i64| {
            let key = Key::from(key);
            Step::Read { values: Some(lists.get(&key).cloned().unwrap_or_default()), key }
        };
        let action = Action::AppendTransaction { steps: vec![read(0), read(1)] };
        operations.push(operation(4, action, 90.0, 91.0, Outcome::Ok));
    }
    if random.percent(badness.made_up) {
        make_up(&mut operations, &mut random);
    }
    operations
}

fn badness(random: &mut Random) -> Badness {
    let mut often = |percent: u64, how_often: u64| if random.percent(percent) { how_often } else { 0 };
    Badness {
        stale: often(30, 40),
        future: often(20, 40),
        torn: often(20, 50),
        refused_but_there: often(50, 80),
        used_twice: often(20, 50),
        made_up: often(15, 100),
    }
}

/// Fills in what the reads found; gives the lists as they are in the end.
fn play(operations: &mut [Operation], fates: &[Fate]) -> Lists {
    let mut moments = Vec::new();
    for (at, fate) in fates.iter().enumerate() {
        moments.push((fate.read_at, 0, at));
        if fate.is_torn {
            moments.push((fate.begin, 1, at));
        }
        moments.push((fate.end, 2, at));
    }
    moments.sort_unstable();
    let mut lists = Lists::new();
    for (_, kind, at) in moments {
        let Action::AppendTransaction { steps } = &mut operations[at].action else { continue };
        let fate = &fates[at];
        if kind == 0 {
            see(steps, &lists, fate.sees_future);
            continue;
        }
        if kind == 1 && fate.is_half {
            continue;
        }
        let is_append = |step: &&Step| matches!(step, Step::Append { .. });
        let (first, rest) = steps.split_at(if fate.is_torn { steps.len() / 2 } else { 0 });
        for step in if kind == 1 { first } else { rest }.iter().filter(is_append).filter(|_| fate.happens) {
            append(step, &mut lists);
        }
    }
    lists
}

fn append(step: &Step, lists: &mut Lists) {
    if let Step::Append { key, value } = step {
        lists.entry(key.clone()).or_default().push(*value);
    }
}

fn see(steps: &mut [Step], lists: &Lists, sees_future: bool) {
    let mut own = lists.clone();
    if sees_future {
        steps.iter().for_each(|step| append(step, &mut own));
    }
    for step in steps {
        match step {
            Step::Append { .. } if sees_future => {}
            Step::Append { .. } => append(step, &mut own),
            Step::Read { key, values } => *values = Some(own.get(key).cloned().unwrap_or_default()),
        }
    }
}

/// Changes what one read found.
fn make_up(operations: &mut [Operation], random: &mut Random) {
    let steps = operations.iter_mut().flat_map(|operation| match &mut operation.action {
        Action::AppendTransaction { steps } => steps.iter_mut(),
        _ => [].iter_mut(),
    });
    let mut reads: Vec<&mut Vec<i64>> = steps
        .filter_map(|step| match step {
            Step::Read { values: Some(values), .. } => Some(values),
            _ => None,
        })
        .collect();
    if reads.is_empty() {
        return;
    }
    let which = random.below(reads.len() as u64) as usize;
    let found = &mut *reads[which];
    match random.below(5) {
        0 => found.truncate(found.len().saturating_sub(1)),
        1 => {
            let last = found.last().copied();
            found.extend(last);
        }
        2 => found.reverse(),
        3 => found.push(99),
        _ => {
            let by = usize::from(found.len() > 1);
            found.rotate_left(by);
        }
    }
}

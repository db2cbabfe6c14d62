//! Transactions over keys by chance, each carried out by a client and by the state machine of the control database, whose
//! answers must be the same.
//!
//! Owns what is drawn and what is compared; the server and its session are the test's.

use client::KeyValueSession;
use client::key_value::{Operation, REFUSED, Value};
use control::state::{Command, State};
use control::transaction::Answer;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng};

/// The keys of a folder.
const NAMES: [&str; 4] = ["a1", "a2", "b1", "b2"];

/// An operation by chance over a few keys. Values are at both ends of what 64 bits hold as often as not.
fn drawn(rng: &mut ChaCha8Rng, folder: &str, may_write: bool) -> Operation {
    let mut below = |bound: u64| rng.next_u64() % bound;
    let mut name = || NAMES[usize::try_from(below(4)).expect("small")];
    let (key, other_key) = (format!("{folder}{}", name()), format!("{folder}{}", name()));
    let number = [-3, 0, 7, i64::MAX, i64::MIN, (1 << 53) + 1][usize::try_from(below(6)).expect("small")];
    let other = [-1, 0, 1, 7, i64::MAX][usize::try_from(below(5)).expect("small")];
    let value = |number: i64| match number {
        7 => Value::List(vec![7, -1]),
        // What a number or a list looks like, and what has to be quoted in most forms of a text.
        0 => Value::Text("7".to_owned()),
        i64::MIN => Value::Text("[7,-1] \"\\\n' \u{e9}\u{1f511} {}%s$1".to_owned()),
        _ => Value::Integer(number),
    };
    let after = (below(2) == 0).then_some(other_key);
    let prefix = format!("{folder}{}", ["", "a", "b", "b2"][usize::try_from(below(4)).expect("small")]);
    match if may_write { below(7) } else { below(2) } {
        0 if !may_write => Operation::Scan { prefix, after, limit: 3 },
        0 | 1 => Operation::Read { key },
        2 => Operation::Write { key, value: value(number) },
        3 => Operation::Insert { key, value: value(number) },
        4 => {
            let expected = (other != 0).then(|| value(other));
            Operation::CompareAndSet { key, expected, new: value(number) }
        }
        5 => Operation::Append { key, element: number },
        _ => Operation::Add { key, amount: number, floor: (other != 0).then_some(other) },
    }
}

/// 150 transactions of each of these seeds, in keys of their own.
pub async fn do_what_the_control_database_does(session: &mut dyn KeyValueSession, seeds: u64) {
    for seed in 0..seeds {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut state = State::new(None);
        let folder = format!("t{seed}/");
        for index in 1..=150 {
            let may_write = rng.next_u64() % 3 > 0;
            let count = 1 + rng.next_u64() % 5;
            let operations: Vec<Operation> =
                (0..count).map(|_| drawn(&mut rng, &folder, may_write)).collect();
            let command = Command::Transaction { operations: operations.clone(), stamp_us: 0 };
            let expected = state.apply(index, &command);
            let seen = session.transact(operations.clone()).await;
            match (expected, seen) {
                (Answer::Committed { found }, seen) => assert_eq!(seen, Ok(found), "{operations:?}"),
                (Answer::Refused { step, .. }, Err(error)) => {
                    let told = (error.definite, error.code.as_deref());
                    assert_eq!(told, (true, Some(REFUSED)), "{operations:?}: {error}");
                    assert!(error.message.contains(&format!("step {step}:")), "{operations:?}: {error}");
                }
                (expected, seen) => panic!("{operations:?}: {expected:?} {seen:?}"),
            }
        }
    }
    assert!(!session.is_broken());
}

//! Histories written and read back: whole, cut at any byte, damaged.

use std::io::{self, Write};

use history::{
    Action, ErrorClass, HistoryReader, HistoryWriter, Key, Operation, Outcome, ReadError, Step, WriteError,
};
use proptest::prelude::*;

/// What a reader makes of the bytes: the operations and, if it ended in error, the error.
fn read_all(bytes: &[u8]) -> (Vec<Operation>, Option<ReadError>) {
    let mut operations = Vec::new();
    for item in HistoryReader::new(bytes).expect("in-memory streams can be opened") {
        match item {
            Ok(operation) => operations.push(operation),
            Err(error) => return (operations, Some(error)),
        }
    }
    (operations, None)
}

/// Holds one operation's line against what it is on disk: the form others may rely on.
fn check_line(action: Action, expected: &str) {
    let operation = Operation {
        load: "l".into(),
        client: 3,
        action,
        invoked_s: 1.5,
        completed_s: 1.75,
        outcome: Outcome::Ok,
        error: None,
        node: None,
    };
    let whole = format!(
        "{{\"load\":\"l\",\"client\":3,{expected},\"invoked_s\":1.5,\"completed_s\":1.75,\"outcome\":\"ok\"}}"
    );
    assert_eq!(serde_json::to_string(&operation).unwrap(), whole);
    assert_eq!(read_all(whole.as_bytes()).0, [operation]);
}

#[test]
fn operations_have_the_form_on_disk_that_others_rely_on() {
    let key = Key::from(3);
    check_line(
        Action::RegisterRead { key: key.clone(), value: None },
        r#""f":"register-read","key":3,"value":null"#,
    );
    check_line(
        Action::RegisterWrite { key: "x".into(), value: 4 },
        r#""f":"register-write","key":"x","value":4"#,
    );
    check_line(
        Action::RegisterCompareAndSet { key: key.clone(), expected: Some(4), new: 5 },
        r#""f":"register-compare-and-set","key":3,"expected":4,"new":5"#,
    );
    let steps = vec![
        Step::Append { key: key.clone(), value: 17 },
        Step::Read { key: key.clone(), values: Some(vec![15, 16]) },
        Step::Read { key: "x".into(), values: None },
    ];
    check_line(
        Action::AppendTransaction { steps },
        r#""f":"append-transaction","steps":[["append",3,17],["r",3,[15,16]],["r","x",null]]"#,
    );
    check_line(
        Action::BankSetup { balances: vec![(key.clone(), 10)], may_be_negative: false },
        r#""f":"bank-setup","balances":[[3,10]],"may_be_negative":false"#,
    );
    check_line(
        Action::BankTransfer { from: key.clone(), to: Key::from(4), amount: 5 },
        r#""f":"bank-transfer","from":3,"to":4,"amount":5"#,
    );
    check_line(
        Action::BankRead { balances: vec![(key.clone(), 5)] },
        r#""f":"bank-read","balances":[[3,5]]"#,
    );
    check_line(
        Action::ReplicaRead { replica: "n1".into(), values: vec![(key, 5)], complete: true },
        r#""f":"replica-read","replica":"n1","values":[[3,5]],"complete":true"#,
    );
}

fn insert(value: u64) -> Operation {
    Operation {
        load: "ledger".into(),
        client: value % 7,
        action: Action::LedgerInsert { value },
        invoked_s: value as f64 / 1e3,
        completed_s: (value as f64 * 2.0 + 1.0) / 2e3,
        outcome: if value.is_multiple_of(11) { Outcome::Unknown } else { Outcome::Ok },
        error: value.is_multiple_of(11).then_some(ErrorClass::Timeout),
        node: Some("n1".into()),
    }
}

/// A history with a flush after every `per_frame` operations, and where each of its frames ends.
fn written(operations: &[Operation], per_frame: usize) -> (Vec<u8>, Vec<(usize, usize)>) {
    let mut bytes = Vec::new();
    let mut ends = vec![(0, 0)];
    let mut count = 0;
    for frame in operations.chunks(per_frame) {
        let mut writer = HistoryWriter::new(&mut bytes).unwrap();
        for operation in frame {
            writer.write(operation).unwrap();
        }
        writer.finish().unwrap();
        count += frame.len();
        ends.push((bytes.len(), count));
    }
    (bytes, ends)
}

#[test]
fn a_history_cut_at_any_byte_is_readable_up_to_the_last_flush() {
    let operations: Vec<Operation> = (0..60).map(insert).collect();
    let (bytes, ends) = written(&operations, 20);
    for length in 0..=bytes.len() {
        let (read, error) = read_all(&bytes[..length]);
        let (last_end, flushed) = *ends.iter().rfind(|(end, _)| *end <= length).unwrap();
        assert!(read.len() >= flushed, "cut at {length}: {} of {flushed} operations", read.len());
        assert_eq!(read, operations[..read.len()], "cut at {length}");
        if length == last_end {
            assert!(error.is_none(), "cut at {length}, between frames: {error:?}");
        } else {
            assert!(matches!(error, Some(ReadError::Truncated { .. })), "cut at {length}: {error:?}");
        }
    }
}

#[test]
fn flush_makes_everything_before_it_readable_without_finish() {
    let mut bytes = Vec::new();
    let mut writer = HistoryWriter::new(&mut bytes).unwrap();
    writer.write(&insert(1)).unwrap();
    writer.flush().unwrap();
    writer.write(&insert(2)).unwrap();
    drop(writer);
    let (read, error) = read_all(&bytes);
    assert_eq!(read, [insert(1)]);
    assert!(error.is_none());
}

#[test]
fn plain_lines_are_read_as_well() {
    let mut text = String::new();
    for value in 0..3 {
        text += &serde_json::to_string(&insert(value)).unwrap();
        text += "\n";
    }
    let (read, error) = read_all(text.as_bytes());
    assert_eq!(read, [insert(0), insert(1), insert(2)]);
    assert!(error.is_none());
}

#[test]
fn an_empty_file_is_an_empty_history() {
    let (read, error) = read_all(b"");
    assert!(read.is_empty() && error.is_none());
}

#[test]
fn rubbish_after_a_whole_frame_is_damage_not_truncation() {
    let (mut bytes, _) = written(&[insert(1)], 1);
    bytes.extend([0; 64]);
    let (read, error) = read_all(&bytes);
    assert_eq!(read, [insert(1)]);
    assert!(matches!(error, Some(ReadError::Unreadable { line: 2, .. })), "{error:?}");
}

#[test]
fn a_read_of_a_hundred_thousand_large_values_passes() {
    let values = (0..history::LEDGER_READ_VALUES_MAX as u64).map(|value| u64::MAX - value).collect();
    let operation = Operation { action: Action::LedgerRead { values, complete: true }, ..insert(1) };
    let (bytes, _) = written(std::slice::from_ref(&operation), 1);
    let (read, error) = read_all(&bytes);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(read, [operation]);
}

#[test]
fn an_operation_that_could_not_be_read_back_is_refused_and_the_rest_is_kept() {
    let mut writer = HistoryWriter::new(Vec::new()).unwrap();
    writer.write(&insert(1)).unwrap();
    let timeless = Operation { completed_s: f64::NAN, ..insert(2) };
    assert!(matches!(writer.write(&timeless), Err(WriteError::Unwritable { client: 2, .. })));
    let huge = Action::LedgerRead { values: vec![u64::MAX; 500_000], complete: true };
    assert!(matches!(
        writer.write(&Operation { action: huge, ..insert(3) }),
        Err(WriteError::TooLong { .. })
    ));
    writer.write(&insert(4)).unwrap();
    let (read, error) = read_all(&writer.finish().unwrap());
    assert_eq!(read, [insert(1), insert(4)]);
    assert!(error.is_none());
}

/// A sink that takes a number of bytes and then fails for good.
struct FullDisk {
    room: usize,
}

impl Write for FullDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.room == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = self.room.min(bytes.len());
        self.room -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn after_a_failed_write_nothing_more_is_taken() {
    let mut writer = HistoryWriter::new(FullDisk { room: 10 }).unwrap();
    writer.write(&insert(1)).unwrap();
    assert!(matches!(writer.flush(), Err(WriteError::Io(_))));
    assert!(matches!(writer.write(&insert(2)), Err(WriteError::Broken)));
    assert!(matches!(writer.flush(), Err(WriteError::Broken)));
}

fn any_key() -> impl Strategy<Value = Key> {
    prop_oneof![any::<i64>().prop_map(Key::Number), ".*".prop_map(|name| Key::from(name.as_str()))]
}

fn any_balances() -> impl Strategy<Value = Vec<(Key, i64)>> {
    prop::collection::vec((any_key(), any::<i64>()), 0..6)
}

fn any_step() -> impl Strategy<Value = Step> {
    let values = prop::option::of(prop::collection::vec(any::<i64>(), 0..6));
    prop_oneof![
        (any_key(), any::<i64>()).prop_map(|(key, value)| Step::Append { key, value }),
        (any_key(), values).prop_map(|(key, values)| Step::Read { key, values }),
    ]
}

fn any_operation() -> impl Strategy<Value = Operation> {
    let time_s = (0u64..200_000_000_000_000).prop_map(|ns| ns as f64 / 1e9);
    let action =
        prop_oneof![
            any::<u64>().prop_map(|value| Action::LedgerInsert { value }),
            (prop::collection::vec(any::<u64>(), 0..50), any::<bool>())
                .prop_map(|(values, complete)| Action::LedgerRead { values, complete }),
            any::<i64>().prop_map(|delta| Action::TpcbTransaction { delta }),
            (any::<[i64; 4]>(), any::<u64>()).prop_map(
                |([accounts, tellers, branches, history], history_rows)| {
                    Action::TpcbRead { accounts, tellers, branches, history, history_rows }
                }
            ),
            (any_key(), any::<Option<i64>>()).prop_map(|(key, value)| Action::RegisterRead { key, value }),
            (any_key(), any::<i64>()).prop_map(|(key, value)| Action::RegisterWrite { key, value }),
            (any_key(), any::<Option<i64>>(), any::<i64>())
                .prop_map(|(key, expected, new)| Action::RegisterCompareAndSet { key, expected, new }),
            prop::collection::vec(any_step(), 0..6).prop_map(|steps| Action::AppendTransaction { steps }),
            (any_balances(), any::<bool>())
                .prop_map(|(balances, may_be_negative)| Action::BankSetup { balances, may_be_negative }),
            (any_key(), any_key(), any::<i64>()).prop_map(|(from, to, amount)| Action::BankTransfer {
                from,
                to,
                amount
            }),
            any_balances().prop_map(|balances| Action::BankRead { balances }),
            (".*", any_balances(), any::<bool>())
                .prop_map(|(replica, values, complete)| Action::ReplicaRead { replica, values, complete }),
        ];
    let outcome = prop_oneof![Just(Outcome::Ok), Just(Outcome::Fail), Just(Outcome::Unknown)];
    let error = prop::option::of(prop_oneof![Just(ErrorClass::Connection), Just(ErrorClass::ReadOnly)]);
    (".*", any::<u64>(), action, time_s.clone(), time_s, outcome, error, prop::option::of(".*")).prop_map(
        |(load, client, action, invoked_s, completed_s, outcome, error, node)| Operation {
            load,
            client,
            action,
            invoked_s,
            completed_s,
            outcome,
            error,
            node,
        },
    )
}

proptest! {
    #[test]
    fn any_history_comes_back_as_it_was_written(
        operations in prop::collection::vec(any_operation(), 1..40),
        per_frame in 1usize..20,
    ) {
        let (bytes, _) = written(&operations, per_frame);
        let (read, error) = read_all(&bytes);
        prop_assert!(error.is_none());
        prop_assert_eq!(read, operations);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        read_all(&bytes);
    }

    #[test]
    fn a_damaged_history_is_read_without_a_panic(at in 0usize..400, byte in any::<u8>()) {
        let (mut bytes, _) = written(&(0..40).map(insert).collect::<Vec<_>>(), 10);
        let at = at % bytes.len();
        bytes[at] = byte;
        read_all(&bytes);
    }
}

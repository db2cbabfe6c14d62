//! Histories in EDN: Jepsen's own, ours exported and read again, and files that are damaged.

use std::io::Cursor;

use history::edn::{EdnHistory, Model, export};
use history::{Action, Key, Operation, Outcome, Step};
use proptest::prelude::*;

/// What is read, and the message if it ends in an error.
fn read(model: Model, text: &[u8]) -> (Vec<Operation>, Option<String>) {
    let mut operations = Vec::new();
    for item in EdnHistory::new(Cursor::new(text), model) {
        match item {
            Ok(operation) => operations.push(operation),
            Err(error) => return (operations, Some(error.to_string())),
        }
    }
    (operations, None)
}

#[track_caller]
fn check(model: Model, text: &str, expected: &[(u64, Action, Outcome)]) {
    let (operations, error) = read(model, text.as_bytes());
    assert_eq!(error, None);
    let found: Vec<_> = operations.into_iter().map(|one| (one.client, one.action, one.outcome)).collect();
    assert_eq!(found, expected);
}

#[track_caller]
fn check_error(model: Model, text: &str, expected: &str) {
    let (_, error) = read(model, text.as_bytes());
    assert_eq!(error.as_deref(), Some(expected));
}

#[test]
fn a_register_history_is_read_with_and_without_keys() {
    let text = "{:type :invoke, :f :write, :value 3, :process 0, :time 10, :index 0}
        {:type :invoke, :f :read, :value nil, :process 1, :time 10}
        ; a comment
        {:type :info, :f :start, :process :nemesis, :value {:a #{1 2}}}
        {:type :ok, :f :write, :value 3, :process 0, :time 20}
        {:type :ok, :f :read, :value 3, :process 1, :time 25}
        #jepsen.history.Op{:type :invoke, :f :cas, :value [3 4], :process 0}
        {:type :fail, :f :cas, :value [3 4], :process 0, :error \"no \\\"luck\\\"\"}
        {:type :invoke, :f :cas, :value [:x [nil 4]], :process 2}";
    let zero = Key::Number(0);
    check(
        Model::Register,
        text,
        &[
            (0, Action::RegisterWrite { key: zero.clone(), value: 3 }, Outcome::Ok),
            (1, Action::RegisterRead { key: zero.clone(), value: Some(3) }, Outcome::Ok),
            (0, Action::RegisterCompareAndSet { key: zero, expected: Some(3), new: 4 }, Outcome::Fail),
            (2, Action::RegisterCompareAndSet { key: "x".into(), expected: None, new: 4 }, Outcome::Unknown),
        ],
    );
}

/// Events as the loop in docs/design/checkers.md writes them, from Jepsen's logs of etcd.
#[test]
fn what_a_log_says_of_an_operation_that_timed_out_is_not_taken_for_its_value() {
    let text = "{:process 0, :type :invoke, :f :write, :value 4}
        {:process 4, :type :invoke, :f :cas, :value [2 1]}
        {:process 1, :type :invoke, :f :read, :value nil}
        {:process 0, :type :info, :f :write, :value :timed-out}
        {:process 4, :type :info, :f :cas, :value :timed-out}
        {:process 1, :type :fail, :f :read, :value :timed-out}";
    let key = Key::Number(0);
    check(
        Model::Register,
        text,
        &[
            (0, Action::RegisterWrite { key: key.clone(), value: 4 }, Outcome::Unknown),
            (
                4,
                Action::RegisterCompareAndSet { key: key.clone(), expected: Some(2), new: 1 },
                Outcome::Unknown,
            ),
            (1, Action::RegisterRead { key, value: None }, Outcome::Fail),
        ],
    );
}

#[test]
fn a_change_of_the_only_register_may_expect_nothing() {
    let text = "{:type :invoke, :f :cas, :value [nil 3], :process 0} {:type :ok, :f :cas, :value [nil 3], :process 0}
        {:type :invoke, :f :cas, :value [3 4], :process 0} {:type :ok, :f :cas, :value [3 4], :process 0}";
    let change = |expected, new| Action::RegisterCompareAndSet { key: Key::from(0), expected, new };
    check(Model::Register, text, &[(0, change(None, 3), Outcome::Ok), (0, change(Some(3), 4), Outcome::Ok)]);
}

#[test]
fn order_is_that_of_the_events_where_their_times_go_back() {
    let event = |kind: &str, value: i64, process: i64, time: i64| {
        format!("{{:type :{kind}, :f :add, :value {value}, :process {process}, :time {time}}}\n")
    };
    let text = event("invoke", 1, 0, 500)
        + &event("ok", 1, 0, 900)
        + &event("invoke", 2, 1, 100)
        + &event("ok", 2, 1, 200)
        + &event("invoke", 3, 1, i64::MAX)
        + &event("ok", 3, 1, i64::MAX)
        + &event("invoke", 4, 1, i64::MIN)
        + &event("ok", 4, 1, 4);
    let mut history = EdnHistory::new(Cursor::new(text), Model::Ledger);
    let operations: Vec<Operation> = history.by_ref().map(|one| one.unwrap()).collect();
    for pair in operations.windows(2) {
        assert!(pair[0].completed_s < pair[1].invoked_s, "{pair:?}");
    }
    assert_eq!(operations.len(), 4);
    assert_eq!((history.remarks().back_in_time, history.remarks().first_back_in_time_line), (2, 3));
}

#[test]
fn processes_named_by_texts_are_clients_of_their_own_and_the_nemesis_is_none() {
    let text =
        "{:type :invoke, :f :add, :value 1, :process \"a\"} {:type :invoke, :f :add, :value 2, :process 0}
        {:type :info, :f :start, :process :nemesis} {:type :info, :f :start, :process \"nemesis\"}
        {:type :ok, :f :add, :value 2, :process 0} {:type :ok, :f :add, :value 1, :process \"a\"}
        {:type :invoke, :f :add, :value 3, :process \"b\"} {:type :ok, :f :add, :value 3, :process \"b\"}";
    let mut history = EdnHistory::new(Cursor::new(text), Model::Ledger);
    let clients: Vec<u64> = history.by_ref().map(|one| one.unwrap().client).collect();
    assert_eq!(clients, [1, 0, 2]);
    assert_eq!(history.remarks().named, [("a".into(), 0), ("b".into(), 2)]);
    assert_eq!(history.remarks().of_no_client, 2);
    check_error(
        Model::Ledger,
        "{:type :ok, :f :add, :value 1, :process \"a\"}",
        "line 1: process \"a\" completes what it never invoked",
    );
}

#[test]
fn events_at_the_same_time_keep_their_order() {
    let text = "[{:type :invoke :f :add :value 1 :process 0 :time 5} {:type :ok :f :add :value 1 :process 0 :time 5}
                 {:type :invoke :f :add :value 2 :process 1 :time 5} {:type :ok :f :add :value 2 :process 1 :time 5}]";
    let (operations, error) = read(Model::Ledger, text.as_bytes());
    assert_eq!(error, None);
    assert!(operations[0].completed_s < operations[1].invoked_s);
}

#[test]
fn a_list_append_history_is_read_from_completions() {
    let text = "{:type :invoke, :f :txn, :value [[:append 3 1] [:r 3 nil] [:r 4]], :process 0}
        {:type :ok, :f :txn, :value [[:append 3 1] [:r 3 [1]] [:r 4 nil]], :process 0}";
    let steps = vec![
        Step::Append { key: Key::from(3), value: 1 },
        Step::Read { key: Key::from(3), values: Some(vec![1]) },
        Step::Read { key: Key::from(4), values: None },
    ];
    check(Model::ListAppend, text, &[(0, Action::AppendTransaction { steps }, Outcome::Ok)]);
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let invoke = "{:type :invoke, :f :read, :value nil, :process 0, :time 9}";
    check_error(
        Model::Register,
        "{:type :ok, :f :read, :process 0}",
        "line 1: process 0 completes what it never invoked",
    );
    check_error(
        Model::Register,
        &format!("{invoke}\n\n{invoke}"),
        "line 3: process 0 invokes while its last invocation is open",
    );
    check_error(
        Model::Register,
        &format!("{invoke}\n{{:type :ok, :f"),
        "line 2: the file ends within what begins here",
    );
    check_error(
        Model::Register,
        &format!("{invoke}\n{{:type :ok, :f :read, :value \"a\", :process 0}}"),
        "line 2: Text(\"a\") is not a whole number",
    );
    check_error(Model::Register, "{:type :invoke, :f :read}", "line 1: an event has no :process");
    check_error(Model::Register, "\n 17", "line 2: an event must be a map");
    check_error(Model::Register, "{:type :invoke :f}", "line 1: a map has a key without a value");
    check_error(
        Model::Register,
        "[{:type :invoke, :f :read, :value nil, :process 0}",
        "line 1: the file ends within what begins here",
    );
    check_error(
        Model::Register,
        "{:value 99999999999999999999}",
        "line 1: `99999999999999999999` is no number, or too large a one",
    );
    check_error(
        Model::Bank,
        "{:type :invoke, :f :read, :value nil, :process 0} {:type :ok, :f :read, :value 3, :process 0}",
        "line 1: Integer(3) is not a map of balances or values",
    );
    check_error(Model::Register, "}", "line 1: `}` closes nothing");
}

#[test]
fn depth_and_size_are_bounded() {
    check_error(Model::Register, &"[".repeat(100_000), "line 1: forms stand in each other more than 64 deep");
    check_error(
        Model::Register,
        &"#_".repeat(100_000),
        "line 1: forms stand in each other more than 64 deep",
    );
    let huge = format!("\n\"{}\"", "a".repeat(history::edn::FORM_BYTES_MAX));
    check_error(Model::Register, &huge, "line 2: what begins here is longer than 8388608 bytes");
}

/// A model and some operations of it, one after another, each with its own client.
fn any_history() -> impl Strategy<Value = (Model, Vec<Operation>)> {
    let key = || {
        prop_oneof![any::<i64>().prop_map(Key::Number), "[^\u{0}-\u{1f}]*".prop_map(|name| Key::from(&*name))]
    };
    let step = prop_oneof![
        (key(), any::<i64>()).prop_map(|(key, value)| Step::Append { key, value }),
        (key(), prop::collection::vec(any::<i64>(), 0..4))
            .prop_map(|(key, values)| Step::Read { key, values: Some(values) }),
    ];
    let balances = || prop::collection::vec((key(), any::<i64>()), 0..4);
    let register = prop_oneof![
        (key(), any::<Option<i64>>()).prop_map(|(key, value)| Action::RegisterRead { key, value }),
        (key(), any::<i64>()).prop_map(|(key, value)| Action::RegisterWrite { key, value }),
        (key(), any::<Option<i64>>(), any::<i64>())
            .prop_map(|(key, expected, new)| Action::RegisterCompareAndSet { key, expected, new }),
    ];
    let bank = prop_oneof![
        (balances(), any::<bool>())
            .prop_map(|(balances, may_be_negative)| Action::BankSetup { balances, may_be_negative }),
        (key(), key(), any::<i64>()).prop_map(|(from, to, amount)| Action::BankTransfer { from, to, amount }),
        balances().prop_map(|balances| Action::BankRead { balances }),
    ];
    let append = prop::collection::vec(step, 0..4).prop_map(|steps| Action::AppendTransaction { steps });
    let ledger = (0u64..1 << 60).prop_map(|value| Action::LedgerInsert { value });
    prop_oneof![
        (Just(Model::Register), prop::collection::vec(register, 0..8)),
        (Just(Model::Bank), prop::collection::vec(bank, 0..8)),
        (Just(Model::ListAppend), prop::collection::vec(append, 0..8)),
        (Just(Model::Ledger), prop::collection::vec(ledger, 0..8)),
    ]
    .prop_map(|(model, actions)| {
        let operation = |(at, action): (usize, Action)| Operation {
            load: "jepsen".into(),
            client: at as u64,
            action,
            invoked_s: at as f64,
            completed_s: at as f64 + 0.5,
            outcome: Outcome::Ok,
            error: None,
            node: None,
        };
        (model, actions.into_iter().enumerate().map(operation).collect())
    })
}

proptest! {
    #[test]
    fn what_is_exported_is_read_again((model, operations) in any_history()) {
        let mut text = Vec::new();
        export(&operations, &mut text).unwrap();
        let (again, error) = read(model, &text);
        prop_assert_eq!(error, None);
        prop_assert_eq!(again, operations);
    }

    #[test]
    fn any_text_is_read_without_a_panic(text in "[\\[\\]{}()#_:;\"\\\\ a-z0-9,.\n-]{0,200}") {
        for model in [Model::Register, Model::ListAppend, Model::Bank, Model::Ledger] {
            read(model, text.as_bytes());
        }
    }

    #[test]
    fn a_cut_or_damaged_history_is_read_without_a_panic(
        (model, operations) in any_history(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut text = Vec::new();
        export(&operations, &mut text).unwrap();
        if text.is_empty() {
            return Ok(());
        }
        let at = at.index(text.len());
        read(model, &text[..at]);
        text[at] = byte;
        read(model, &text);
    }
}

#[test]
fn a_client_goes_on_as_another_process_after_an_operation_without_an_answer() {
    let operation = |value, at: f64, outcome| Operation {
        load: "l".into(),
        client: 0,
        action: Action::LedgerInsert { value },
        invoked_s: at,
        completed_s: at + 1.0,
        outcome,
        error: None,
        node: None,
    };
    let operations = [operation(1, 0.0, Outcome::Unknown), operation(2, 1.0, Outcome::Ok)];
    let mut text = Vec::new();
    export(&operations, &mut text).unwrap();
    let expected = "{:type :invoke, :f :add, :value 1, :process 0, :time 0, :index 0}
{:type :invoke, :f :add, :value 2, :process 1, :time 1000000000, :index 1}
{:type :info, :f :add, :value 1, :process 0, :time 1000000000, :index 2}
{:type :ok, :f :add, :value 2, :process 1, :time 2000000000, :index 3}
";
    assert_eq!(String::from_utf8(text).unwrap(), expected);
}

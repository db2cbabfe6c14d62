//! Several agents' records against one record of everything: the same counts, the same percentiles, the same history.

use std::time::Duration;

use agent::Merger;
use history::{Action, ErrorClass, FaultId, Operation, Outcome};
use load::{Batch, FirstSuccess};
use measure::{Recorder, Timeline, Waits};

const LOAD: &str = "orders";
const AGENTS: usize = 3;
const SECONDS: u64 = 12;
/// In which nobody succeeds.
const OUTAGE: std::ops::Range<f64> = 5.2..6.9;

/// An operation, with the agent whose client asked it.
#[derive(Clone)]
struct AgentOperation {
    agent: usize,
    latency: Duration,
    operation: Operation,
}

/// Numbers that look drawn by chance, the same every time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Operations of nine clients on three agents, of which one is slow, by the moment of their end.
fn operations() -> Vec<AgentOperation> {
    let mut chance = Chance(9);
    let mut all = Vec::new();
    for client in 0..9_u64 {
        let agent = usize::try_from(client % 3).expect("small");
        let mut now_us = chance.below(4_000);
        let mut value = client << 40;
        while now_us < SECONDS * 1_000_000 {
            let slow = if agent == 2 { 9 } else { 1 };
            let latency_us = (300 + chance.below(3_000) + chance.below(40) / 39 * 250_000) * slow;
            let (invoked_s, completed_s) = (now_us as f64 / 1e6, (now_us + latency_us) as f64 / 1e6);
            let fails = OUTAGE.contains(&completed_s);
            value += 1;
            let operation = Operation {
                load: LOAD.to_owned(),
                client,
                action: Action::LedgerInsert { value },
                invoked_s,
                completed_s,
                outcome: if fails { Outcome::Unknown } else { Outcome::Ok },
                error: fails.then_some(ErrorClass::Timeout),
                node: None,
            };
            all.push(AgentOperation { agent, latency: Duration::from_micros(latency_us), operation });
            now_us += latency_us;
        }
    }
    all.retain(|asked| asked.operation.completed_s < SECONDS as f64);
    all.sort_by(|one, other| {
        let (one, other) = (&one.operation, &other.operation);
        one.completed_s.total_cmp(&other.completed_s).then(one.client.cmp(&other.client))
    });
    all
}

/// The record of some of them, as a load's thread makes it.
fn recorded(of: impl Iterator<Item = AgentOperation>) -> Vec<Batch> {
    let mut recorder = Recorder::new(LOAD);
    let insert = recorder.operation("insert");
    let mut waits = Waits::default();
    waits.due(0.0);
    let mut batches = Vec::new();
    let mut history = Vec::new();
    let mut of = of.peekable();
    for second in 0..SECONDS {
        while let Some(asked) = of.next_if(|asked| asked.operation.completed_s < (second + 1) as f64) {
            match asked.operation.error {
                None => {
                    recorder.record_ok(insert, asked.latency);
                    waits.succeeded(asked.operation.completed_s, true);
                }
                Some(class) => recorder.record_error(insert, class, false),
            }
            history.push(asked.operation);
        }
        if second + 1 == SECONDS {
            waits.end(SECONDS as f64);
        }
        let taken = waits.take();
        batches.push(Batch {
            interval: recorder.take(second),
            history: std::mem::take(&mut history),
            waits: taken.waits,
            quiet: taken.quiet,
            marked: Vec::new(),
            first_success: Vec::new(),
            open_loop: None,
            first_errors: Vec::new(),
            failure: None,
        });
    }
    batches
}

/// What was recorded in a second.
fn of_second(batches: &[Batch], second: u64) -> Batch {
    batches.iter().find(|batch| batch.interval.second == second).expect("recorded").clone()
}

fn timeline(batches: &[Batch]) -> Timeline {
    let mut timeline = Timeline::new();
    batches.iter().for_each(|batch| timeline.add(&batch.interval).expect("a histogram"));
    timeline
}

#[test]
fn three_agents_merged_percentiles_and_history_equal_those_of_one_combined_recording() {
    let all = operations();
    let whole = recorded(all.iter().cloned());
    let mut merger = Merger::new(LOAD, AGENTS);
    let parts: Vec<Vec<Batch>> =
        (0..AGENTS).map(|agent| recorded(all.iter().filter(|asked| asked.agent == agent).cloned())).collect();
    let mut merged = Vec::new();
    // The agents are heard at different times.
    for second in 0..SECONDS {
        for agent in [2, 0, 1] {
            assert!(merger.whole_seconds().is_empty(), "not before all have told");
            merger.take(agent, of_second(&parts[agent], second));
        }
        merged.extend(merger.whole_seconds());
    }
    (0..AGENTS).for_each(|agent| merger.end(agent, false));
    let rest = merger.finish(None, Vec::new());
    let waits: Vec<_> = rest.iter().flat_map(|batch| &batch.waits).copied().collect();
    merged.extend(rest.into_iter().filter(|batch| batch.interval.second < SECONDS));

    for (one, other) in merged.iter().zip(&whole) {
        assert_eq!(one.interval, other.interval, "second {}", one.interval.second);
        assert_eq!(one.history, other.history, "second {}", one.interval.second);
    }
    let figures =
        |batches: &[Batch]| timeline(batches).summarize(LOAD, 0.0, SECONDS as f64).expect("figures");
    let (one, other) = (figures(&merged), figures(&whole));
    assert_eq!(one, other);
    // Percentiles of percentiles would not be: the slow agent would count as much as the others together.
    let p99 = |batches: &[Batch]| figures(batches).operations["insert"].latency.p99_us as f64;
    let mean_of_three = parts.iter().map(|part| p99(part)).sum::<f64>() / AGENTS as f64;
    let true_p99 = other.operations["insert"].latency.p99_us as f64;
    assert!((mean_of_three - true_p99).abs() > true_p99 / 10.0, "{mean_of_three} beside {true_p99}");
    let long = |waits: &[measure::Wait]| -> Vec<measure::Wait> {
        waits.iter().filter(|wait| wait.length_s() > measure::waits::KEPT_ABOVE_S).copied().collect()
    };
    let of_whole: Vec<_> = whole.iter().flat_map(|batch| &batch.waits).copied().collect();
    assert_eq!(long(&waits), long(&of_whole));
    assert!(long(&waits).iter().any(|wait| wait.length_s() > 1.7), "the outage is one wait: {waits:?}");
}

fn blank(second: u64) -> Batch {
    recorded(std::iter::empty()).swap_remove(usize::try_from(second).expect("small"))
}

#[test]
fn the_first_success_after_a_fault_is_the_first_of_any_agent_and_told_when_none_can_be_earlier() {
    let fault = FaultId::FIRST;
    let first = |at_s| FirstSuccess { fault, at_s, after_s: at_s - 2.0 };
    let mut merger = Merger::new(LOAD, 2);
    merger.mark(fault);
    let marked = |second, first_success: Vec<FirstSuccess>| Batch {
        marked: vec![fault],
        first_success,
        ..blank(second)
    };
    merger.take(0, marked(0, vec![]));
    merger.take(1, blank(0));
    merger.take(0, Batch { first_success: vec![first(4.5)], ..blank(1) });
    merger.take(1, marked(1, vec![]));
    let told = |batches: Vec<Batch>| -> Vec<f64> {
        batches.iter().flat_map(|batch| &batch.first_success).map(|first| first.at_s).collect()
    };
    assert_eq!(told(merger.whole_seconds()), [0.0; 0], "the other may still tell an earlier one");
    merger.take(0, blank(2));
    merger.take(1, Batch { first_success: vec![first(2.25)], ..blank(2) });
    assert_eq!(told(merger.whole_seconds()), [2.25]);
    merger.take(0, blank(3));
    merger.take(1, blank(3));
    assert_eq!(told(merger.whole_seconds()), [0.0; 0], "told once");
}

#[test]
fn seconds_go_on_without_a_lost_agent_and_its_silence_ends_no_interruption() {
    let mut merger = Merger::new(LOAD, 2);
    let parts =
        [0, 1].map(|agent| recorded(operations().into_iter().filter(move |asked| asked.agent == agent)));
    for second in 0..3 {
        merger.take(0, of_second(&parts[0], second));
        merger.take(1, of_second(&parts[1], second));
    }
    merger.take(0, of_second(&parts[0], 3));
    assert_eq!(merger.whole_seconds().len(), 3);
    merger.end(1, true);
    assert_eq!(merger.recorded_until_s(1), 3.0);
    (4..SECONDS).for_each(|second| merger.take(0, of_second(&parts[0], second)));
    assert_eq!(merger.whole_seconds().len(), SECONDS as usize - 3);
    merger.end(0, false);
    let rest = merger.finish(Some("planted".to_owned()), Vec::new());
    let last = rest.last().expect("a last batch");
    assert_eq!(last.failure.as_deref(), Some("planted"));
    let outage = last.waits.iter().find(|wait| wait.from_s < OUTAGE.start && wait.to_s > OUTAGE.end);
    assert!(outage.is_some(), "{:?}", last.waits);
}

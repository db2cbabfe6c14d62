//! What a result says of faults, compared with the time line beside it: every run of every test is looked at so.
//!
//! Reckons anew from `timeline.csv` and knows nothing of how the program does it.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

/// Successes by second.
type Series = BTreeMap<u64, u64>;

/// What a result claims that its time line contradicts, one line each.
pub fn contradictions(directory: &Path, result: &Value) -> Vec<String> {
    let Ok(text) = std::fs::read_to_string(directory.join("timeline.csv")) else { return Vec::new() };
    let faults = result["faults"].as_array().cloned().unwrap_or_default();
    let mut found = Vec::new();
    for (number, fault) in faults.iter().enumerate() {
        for load in fault["loads"].as_array().into_iter().flatten() {
            let Some(window) = window(&faults, fault, result) else { continue };
            let claims = Claims { result, load, window, series: series(&text, result, load) };
            found.extend(claims.contradicted().into_iter().map(|what| {
                format!("fault {} ({}), load {}: {what}", number + 1, fault["kind"], load["load"])
            }));
        }
    }
    found
}

fn series(text: &str, result: &Value, load: &Value) -> Series {
    let facts = result["facts"]["loads"].as_array().into_iter().flatten();
    let transaction = facts.into_iter().find(|facts| facts["name"] == load["load"]);
    let transaction = transaction.and_then(|facts| facts["transaction"].as_str()).unwrap_or_default();
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let [second, name, operation, count, ..] = fields.as_slice() else { return None };
        let is_ours = load["load"].as_str() == Some(name) && *operation == transaction;
        is_ours.then(|| Some((second.parse().ok()?, count.parse().ok()?))).flatten()
    };
    text.lines().skip(1).filter_map(row).collect()
}

/// Faults asked for within this long after one took effect are of the same moment: none of them ends its time.
const SAME_MOMENT_S: f64 = 0.25;

/// From a fault's effect until the next one that takes effect is asked for, or to the end of the last phase.
fn window(faults: &[Value], fault: &Value, result: &Value) -> Option<(f64, f64)> {
    let effect_s = fault["took_effect_s"].as_f64()?;
    let phases = result["loads"][0]["phases"].as_array()?;
    let end_s = phases.last()?["to_s"].as_f64()?;
    let struck = faults.iter().filter(|other| other["took_effect_s"].is_number());
    let asked = struck.filter_map(|other| other["asked_s"].as_f64());
    let next = asked.filter(|asked_s| *asked_s > effect_s + SAME_MOMENT_S);
    Some((effect_s, next.fold(end_s, f64::min).max(effect_s)))
}

/// What a result says of one load after one fault.
struct Claims<'r> {
    result: &'r Value,
    load: &'r Value,
    window: (f64, f64),
    series: Series,
}

impl Claims<'_> {
    fn contradicted(&self) -> Vec<String> {
        [self.gap(), self.low_seconds(), self.recovery(), self.first_success()]
            .into_iter()
            .flatten()
            .collect()
    }

    fn count(&self, second: u64) -> u64 {
        self.series.get(&second).copied().unwrap_or(0)
    }

    /// The seconds that lie wholly in the window.
    fn whole_seconds(&self) -> std::ops::Range<u64> {
        self.window.0.ceil() as u64..self.window.1.floor() as u64
    }

    fn is_open_loop(&self) -> bool {
        let loads = self.result["loads"].as_array().into_iter().flatten();
        loads.into_iter().any(|load| load["name"] == self.load["load"] && load["rate_per_s"].is_number())
    }

    /// No success lies in the gap, and no stretch without a success is longer.
    fn gap(&self) -> Option<String> {
        let gap_s = self.load["gap_s"].as_f64()?;
        if let Some(from_s) = self.load["gap_from_s"].as_f64() {
            let within = from_s.ceil() as u64..(from_s + gap_s).floor() as u64;
            if let Some(second) = within.into_iter().find(|second| self.count(*second) > 0) {
                let count = self.count(second);
                return Some(format!(
                    "gap of {gap_s} s from {from_s} s, {count} successes in second {second}"
                ));
            }
        }
        let mut longest = 0;
        let mut length = 0;
        for second in self.whole_seconds() {
            length = if self.count(second) == 0 { length + 1 } else { 0 };
            longest = longest.max(length);
        }
        // At a rate, or with pauses, seconds pass in which nothing is due.
        let is_paced = self.is_open_loop() || self.baseline().is_none_or(|per_s| per_s < 20.0);
        (!is_paced && f64::from(longest) > gap_s + 0.001)
            .then(|| format!("gap of {gap_s} s, {longest} seconds without a success"))
    }

    /// Mean of the baseline's whole seconds.
    fn baseline(&self) -> Option<f64> {
        let phases = self.result["loads"][0]["phases"].as_array()?;
        let phase = phases.iter().find(|phase| phase["name"] == "baseline")?;
        let seconds = phase["from_s"].as_f64()?.ceil() as u64..phase["to_s"].as_f64()?.floor() as u64;
        let number = seconds.end.saturating_sub(seconds.start);
        (number > 0).then(|| seconds.map(|second| self.count(second)).sum::<u64>() as f64 / number as f64)
    }

    fn below(&self, share: f64) -> Option<f64> {
        let bound = share * self.baseline()?;
        let seconds = self.window.0.floor() as u64..self.window.1.floor() as u64;
        Some(seconds.filter(|second| (self.count(*second) as f64) < bound).count() as f64)
    }

    fn low_seconds(&self) -> Option<String> {
        let (half, most) =
            (self.load["below_50_percent_s"].as_f64()?, self.load["below_95_percent_s"].as_f64()?);
        let (expected, bound) = (self.below(0.5)?, self.below(0.95)?);
        (half != expected || most < half || most > bound).then(|| {
            format!(
                "{half} s below 50 % and {most} s below 95 %, in the time line {expected} s and at most {bound} s"
            )
        })
    }

    /// A success after the last phase is none of the run.
    fn first_success(&self) -> Option<String> {
        let after_s = self.load["recovery_s"]["first_success"].as_f64()?;
        let end_s = self.result["loads"][0]["phases"].as_array()?.last()?["to_s"].as_f64()?;
        (self.window.0 + after_s > end_s)
            .then(|| format!("first success after {after_s} s, when the run was over at {end_s} s"))
    }

    /// After sustained recovery no second is below half of the baseline.
    fn recovery(&self) -> Option<String> {
        let sustained_s = self.load["recovery_s"]["sustained"].as_f64()?;
        let per_s = self.baseline()?;
        let from = (self.window.0 + sustained_s).ceil() as u64;
        let low =
            (from..self.window.1.floor() as u64).find(|second| (self.count(*second) as f64) < 0.5 * per_s)?;
        let count = self.count(low);
        Some(format!("back for good after {sustained_s} s, {count} of {per_s:.1} a second in second {low}"))
    }
}

/// A result with a fault at 5.0 s that ran to 10 s, and these successes a second of its one load.
fn planted(counts: &[u64], load: Value) -> (tempfile::TempDir, Value) {
    let folder = tempfile::tempdir().expect("a folder");
    let rows: Vec<String> = counts
        .iter()
        .enumerate()
        .map(|(second, count)| format!("{second},bank,transaction,{count},0,1,1,1,1"))
        .collect();
    std::fs::write(folder.path().join("timeline.csv"), format!("heading\n{}\n", rows.join("\n")))
        .expect("written");
    let result = serde_json::json!({
        "facts": { "loads": [{ "name": "bank", "transaction": "transaction" }] },
        "loads": [{ "name": "bank", "phases": [
            { "name": "baseline", "from_s": 0.0, "to_s": 5.0 }, { "name": "fault", "from_s": 5.0, "to_s": 10.0 }] }],
        "faults": [{ "kind": "power-off", "asked_s": 5.0, "took_effect_s": 5.0, "loads": [load] }],
    });
    (folder, result)
}

#[test]
fn an_honest_result_agrees_with_its_time_line_and_each_planted_lie_does_not() {
    let counts = [100, 100, 100, 100, 100, 118, 0, 0, 93, 100];
    let check = |gap: (f64, f64), below: (f64, f64), sustained: Option<f64>, expected: &str| {
        let (folder, result) = planted(
            &counts,
            serde_json::json!({
                "load": "bank", "gap_from_s": gap.0, "gap_s": gap.1, "below_50_percent_s": below.0,
                "below_95_percent_s": below.1, "recovery_s": { "sustained": sustained },
            }),
        );
        let found = contradictions(folder.path(), &result).join("; ");
        assert!(found.contains(expected) && found.is_empty() == expected.is_empty(), "{found}");
    };
    check((5.99, 2.02), (2.0, 3.0), Some(3.01), "");
    check((5.99, 2.02), (2.0, 3.0), None, "");
    // The first success taken for the recovery.
    check((5.0, 0.01), (2.0, 3.0), Some(3.01), "gap of 0.01 s, 2 seconds without a success");
    check((4.5, 3.0), (2.0, 3.0), Some(3.01), "118 successes in second 5");
    check((5.99, 2.02), (0.0, 3.0), Some(3.01), "in the time line 2 s");
    check((5.99, 2.02), (2.0, 4.0), Some(3.01), "at most 3 s");
    let late = serde_json::json!({ "load": "bank", "recovery_s": { "first_success": 5.25 } });
    let (folder, result) = planted(&counts, late);
    assert!(contradictions(folder.path(), &result).join("").contains("when the run was over at 10 s"));
    check((5.99, 2.02), (2.0, 3.0), Some(0.01), "0 of 100.0 a second in second 6");
}

#[test]
fn faults_of_the_same_moment_share_their_time_and_a_later_one_ends_it() {
    let fault = |asked_s: f64| serde_json::json!({ "asked_s": asked_s, "took_effect_s": asked_s });
    let result = serde_json::json!({ "loads": [{ "phases": [{ "from_s": 0.0, "to_s": 10.0 }] }] });
    let faults = [fault(5.0), fault(5.2), fault(8.0)];
    let windows = faults.each_ref().map(|one| window(&faults, one, &result));
    assert_eq!(windows, [Some((5.0, 8.0)), Some((5.2, 8.0)), Some((8.0, 10.0))]);
}

//! What catching up cost the loads: each time that a component of a volume did so, and the latency meanwhile beside the baseline's.
//!
//! `volumes` shows what was left to copy.

use std::fmt::Write;

use measure::warnings::Percentile;

use crate::format;
use crate::markup::escape;
use results::{CatchUpResult, MeanwhileResult, VolumeResult};

/// Rows of the table.
const MOST_ROWS: usize = 60;

/// The sentence and the table; empty when nothing caught up.
pub(crate) fn section(volumes: &[&VolumeResult]) -> String {
    let all: Vec<(&VolumeResult, &CatchUpResult)> = volumes
        .iter()
        .flat_map(|volume| volume.catch_ups.iter().map(move |caught| (*volume, caught)))
        .collect();
    if all.is_empty() {
        return String::new();
    }
    let mut html = format!("<p>{}</p>", escape(&in_words(&all)));
    html.push_str(
        "<div class=\"scroll\"><table><thead><tr><th>Volume of<th>Component on<th class=\"n\">From<th class=\"n\">For\
         <th class=\"n\">Copied<th>Load<th class=\"n\">Transactions<th class=\"n\">Median<th class=\"n\">in the baseline\
         <th class=\"n\">99th percentile<th class=\"n\">in the baseline</tr></thead><tbody>",
    );
    let rows = all.iter().flat_map(|(volume, caught)| rows(volume, caught));
    rows.take(MOST_ROWS).for_each(|row| html.push_str(&row));
    html.push_str("</tbody></table></div>");
    if volumes.iter().any(|volume| volume.acknowledge != "async") {
        html.push_str(
            "<p class=\"note\">Syncs do not wait for a component until it has caught up, so the median can be below \
             the baseline’s. The copy shares the network and the buffer with new changes.</p>",
        );
    }
    let is_few = |of: &MeanwhileResult| of.transactions < Percentile::P99.samples_needed();
    if all.iter().flat_map(|(_, caught)| &caught.loads).any(is_few) {
        let _ = write!(
            html,
            "<p class=\"note\">Too few samples for p99 (fewer than {} transactions).</p>",
            format::count(Percentile::P99.samples_needed())
        );
    }
    html
}

fn length(caught: &CatchUpResult) -> String {
    format::seconds((caught.to_s - caught.from_s).max(0.0))
}

/// The one that took longest, and whether there are others of which nothing can be said.
fn in_words(all: &[(&VolumeResult, &CatchUpResult)]) -> String {
    let told = all.iter().filter(|(_, caught)| !caught.loads.is_empty());
    let longest =
        told.max_by(|(_, one), (_, other)| (one.to_s - one.from_s).total_cmp(&(other.to_s - other.from_s)));
    let mut text = String::new();
    if let Some((volume, caught)) = longest {
        let loads: Vec<String> = caught.loads.iter().map(of_load).collect();
        let _ = write!(
            text,
            "While {}’s volume caught up on {}, for {}: {}.",
            volume.node,
            caught.component,
            length(caught),
            loads.join("; ")
        );
    }
    let short = all.iter().filter(|(_, caught)| caught.loads.is_empty()).count();
    if short > 0 {
        let all_of_them = if text.is_empty() { "Components caught up " } else { " Components caught up " };
        let _ = write!(
            text,
            "{all_of_them}{} in less than a second. Latencies are recorded per second, so the cost to the loads \
             cannot be separated.",
            format::counted(short as u64, "time", "times")
        );
    }
    text
}

fn of_load(of: &MeanwhileResult) -> String {
    if of.transactions == 0 {
        return format!("no transaction of {} succeeded", of.load);
    }
    let baseline = match of.baseline_us_p99 {
        Some(baseline) => format!("baseline {}", format::latency(baseline as f64)),
        None => "without a baseline".to_owned(),
    };
    format!("p99 of {} {}, {baseline}", of.load, format::latency(of.latency_us_p99 as f64))
}

fn rows(volume: &VolumeResult, caught: &CatchUpResult) -> Vec<String> {
    let unfinished = if caught.complete { "" } else { ", incomplete" };
    let first = format!(
        "<tr><th scope=\"row\">{}<td>{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}{unfinished}",
        escape(&volume.node),
        escape(&caught.component),
        format::seconds(caught.from_s),
        length(caught),
        format::bytes(caught.copied_bytes),
    );
    if caught.loads.is_empty() {
        return vec![format!(
            "{first}<td colspan=\"6\">took less than a second, too short for the time line</tr>"
        )];
    }
    let latency = |latency_us: Option<u64>| format::latency(latency_us.unwrap_or(0) as f64);
    let row = |of: &MeanwhileResult| {
        format!(
            "{first}<td>{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}</tr>",
            escape(&of.load),
            format::count(of.transactions),
            latency(Some(of.latency_us_p50)),
            latency(of.baseline_us_p50),
            latency(Some(of.latency_us_p99)),
            latency(of.baseline_us_p99),
        )
    };
    caught.loads.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caught(seconds: f64, loads: &[(u64, u64)]) -> CatchUpResult {
        let of = |(transactions, p99): &(u64, u64)| MeanwhileResult {
            load: "ledger".to_owned(),
            seconds: 2,
            transactions: *transactions,
            latency_us_p50: p99 / 2,
            latency_us_p99: *p99,
            baseline_us_p50: Some(2_000),
            baseline_us_p99: Some(5_100),
        };
        CatchUpResult {
            component: "dc1/a/h2".to_owned(),
            from_s: 20.0,
            to_s: 20.0 + seconds,
            copied_bytes: 5_000_000,
            complete: true,
            loads: loads.iter().map(of).collect(),
        }
    }

    fn volume(catch_ups: Vec<CatchUpResult>) -> VolumeResult {
        let text = r#"{"node":"n2","replicas":2,"resync":[]}"#;
        VolumeResult { catch_ups, ..serde_json::from_str(text).expect("a volume") }
    }

    fn check(catch_ups: Vec<CatchUpResult>, expected: &[&str], not: &[&str]) {
        let volume = volume(catch_ups);
        // No-break spaces stand before units.
        let html = section(&[&volume]).replace('\u{a0}', " ");
        for text in expected {
            assert!(html.contains(text), "{text}: {html}");
        }
        for text in not {
            assert!(!html.contains(text), "{text}: {html}");
        }
    }

    #[test]
    fn the_longest_is_told_in_a_sentence_with_its_baseline() {
        check(
            vec![caught(1.8, &[(1_500, 12_400)]), caught(1.2, &[(1_100, 7_000)])],
            &["While n2’s volume caught up on dc1/a/h2, for 1.8 s: p99 of ledger 12.4 ms, baseline 5.10 ms."],
            &["less than", "Too few"],
        );
        check(vec![caught(1.8, &[(30, 12_400)])], &["fewer than 1,000 transactions"], &[]);
        check(vec![caught(1.8, &[(0, 0)])], &["no transaction of ledger succeeded"], &[]);
    }

    #[test]
    fn of_one_shorter_than_a_second_it_is_said_that_nothing_can_be_told() {
        let expected = ["caught up 1 time in less than a second", "took less than a second"];
        check(vec![caught(0.4, &[])], &expected, &["p99 of"]);
        assert_eq!(section(&[&volume(Vec::new())]), "");
    }
}

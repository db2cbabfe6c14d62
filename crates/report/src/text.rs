//! The closing summary for the terminal: plain text of at most 100 columns, no colours.

use std::fmt::Write;

use history::Verdict;

use crate::format;
use crate::markup::plain;
use crate::{first_errors, interruption, pods, prediction, story, tables};
use results::{FaultResult, RunResult};

const COLUMNS: usize = 100;
/// Where the text beside a label begins, at most.
const LABEL_COLUMNS: usize = 36;

/// The closing summary: verdict, the three numbers, expectations, checks, faults, loads, warnings.
#[must_use]
pub fn text(result: &RunResult) -> String {
    let mut out = String::new();
    entry(&mut out, &format!("{}  ", result.verdict.to_string().to_uppercase()), &result.scenario);
    for reason in &result.reasons {
        entry(&mut out, "  ", reason);
    }
    for sentence in prediction::contradicted(&result.prediction) {
        entry(&mut out, "  ", &sentence);
    }
    out.push('\n');
    for number in story::numbers(result) {
        entry(
            &mut out,
            &format!("  {:<26}", number.label),
            &format!("{}  ({})", number.value, number.detail),
        );
    }
    heading(&mut out, "Expectations", result.expectations.is_empty());
    for expectation in &result.expectations {
        let label = format!("  {:<8} {:<24} ", expectation.verdict.to_string(), plain(&expectation.name));
        entry(&mut out, &label, &format!("wanted {}, measured {}", expectation.wanted, expectation.measured));
    }
    heading(&mut out, "Checks", result.checks.is_empty());
    for check in &result.checks {
        let label = format!("  {:<8} {:<24} ", check.verdict.to_string(), plain(&check.name));
        entry(&mut out, &label, &check.explanation);
    }
    heading(&mut out, "Faults", result.faults.is_empty());
    let mut said = None;
    for fault in &result.faults {
        let name = results::fault_name(&fault.kind, " ", &fault.target);
        let label = format!("  {:<8} {:<24} ", receipt_word(fault), plain(&name));
        entry(&mut out, &label, &fault_line(fault, &mut said));
        if let Some(line) = pods::recovery_line(fault) {
            entry(&mut out, &format!("  {:<8} {:<24} ", "", "after the fault"), &line);
        }
    }
    heading(&mut out, "Loads", result.loads.is_empty());
    for load in &result.loads {
        let figures: String = load
            .measured
            .figures
            .iter()
            .map(|(name, figure)| format!("; {} {figure:.1}", plain(name)))
            .collect();
        let line = format!(
            "{}, p50 {}, p99 {}, longest {}; errors: {}{figures}",
            format::rate(load.measured.throughput_per_s),
            format::latency(load.measured.latency_us.p50 as f64),
            format::latency(load.measured.latency_us.p99 as f64),
            format::latency(load.measured.latency_us.max as f64),
            tables::errors(&load.measured.errors)
        );
        entry(&mut out, &format!("  {:<33} ", plain(&load.name)), &line);
        for error in &load.first_errors {
            entry(&mut out, "    first error: ", &first_errors::told(error));
            if let Some(hint) = first_errors::hint(error) {
                entry(&mut out, "    what to do:  ", hint);
            }
        }
    }
    heading(&mut out, "Warnings", result.lab.warnings.is_empty());
    for warning in &result.lab.warnings {
        entry(&mut out, "  - ", &warning.what);
        entry(&mut out, "    what to do: ", &warning.remedy);
    }
    out
}

fn heading(out: &mut String, title: &str, is_empty: bool) {
    if !is_empty {
        let _ = write!(out, "\n{title}\n");
    }
}

fn receipt_word(fault: &FaultResult) -> &'static str {
    match fault.receipt.verdict {
        Verdict::Pass => "shown",
        Verdict::Fail => "refuted",
        Verdict::Unknown => "unproven",
    }
}

fn fault_line(fault: &FaultResult, said: &mut Option<String>) -> String {
    let mut parts = Vec::new();
    if !fault.hits.is_empty() {
        parts.push(format!("hit {}", format::listed(&fault.hits)));
    }
    parts.push(match fault.took_effect_s {
        Some(t_s) => format!("took effect at {}", format::seconds(t_s)),
        None => format!("requested at {}; no evidence of an effect", format::seconds(fault.asked_s)),
    });
    parts.push(match fault.healed_s {
        Some(t_s) => format!("healed at {}", format::seconds(t_s)),
        None => "not healed".to_owned(),
    });
    let felt = interruption::clauses(fault, said);
    if let Some(after_s) = fault.recovery_s.first_success.filter(|_| felt.is_empty()) {
        parts.push(format!("first success after {}", format::seconds(after_s)));
    }
    parts.extend(felt);
    if let Some(lost) = fault.lost() {
        let what = if lost.known() == 1 { "write" } else { "writes" };
        parts.push(format!("{} {what} lost", format::lost(lost)));
    }
    parts.join(", ")
}

/// A label and a text, wrapped and indented under itself. Words longer than a line are cut, never left to run over.
fn entry(out: &mut String, label: &str, text: &str) {
    let label = plain(label);
    let label_width = label.chars().count();
    // A label that is wider than the column of labels stands on its own; the text goes below it.
    let (mut line, indent) = if label_width <= LABEL_COLUMNS {
        (label.to_string(), label_width)
    } else {
        for piece in pieces(&label, COLUMNS) {
            let _ = writeln!(out, "{}", piece.trim_end());
        }
        (" ".repeat(8), 8)
    };
    let indentation = " ".repeat(indent);
    let text = plain(text);
    for (number, story_line) in text.lines().enumerate() {
        if number > 0 {
            let _ = writeln!(out, "{}", line.trim_end());
            line.clone_from(&indentation);
        }
        wrap(out, &mut line, &indentation, story_line);
    }
    let _ = writeln!(out, "{}", line.trim_end());
}

/// Adds words to a line that has its indentation already; whole lines go out, the last stays in `line`.
fn wrap(out: &mut String, line: &mut String, indentation: &str, text: &str) {
    let mut width = indentation.chars().count();
    let mut is_fresh = true;
    // A no-break space keeps a number and its unit on one line; printed it is a plain one.
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        for piece in pieces(&word.replace('\u{a0}', " "), COLUMNS - indentation.len()) {
            let length = piece.chars().count();
            if !is_fresh && width + 1 + length > COLUMNS {
                let _ = writeln!(out, "{}", line.trim_end());
                line.clear();
                line.push_str(indentation);
                (width, is_fresh) = (indentation.len(), true);
            }
            if !is_fresh {
                line.push(' ');
                width += 1;
            }
            line.push_str(&piece);
            width += length;
            is_fresh = false;
        }
    }
}

fn pieces(word: &str, longest: usize) -> Vec<String> {
    let characters: Vec<char> = word.chars().collect();
    characters.chunks(longest.max(1)).map(|chunk| chunk.iter().collect()).collect()
}

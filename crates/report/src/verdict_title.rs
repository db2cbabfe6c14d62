//! The title of a verdict: what was judged, counted. Why it is so stands in the reasons below it.

use history::Verdict;

use crate::format;
use results::RunResult;

/// One kind of thing that a run judges.
struct Judged {
    verdicts: Vec<Verdict>,
    singular: &'static str,
    plural: &'static str,
    /// How each verdict of it is said: pass, fail, unknown.
    said: [&'static str; 3],
}

/// The title: `2 checks passed, 3 expectations passed, 1 fault shown`.
pub(crate) fn of(result: &RunResult) -> String {
    let judged = [
        Judged {
            verdicts: result.checks.iter().map(|check| check.verdict).collect(),
            singular: "check",
            plural: "checks",
            said: ["passed", "failed", "undecided"],
        },
        Judged {
            verdicts: result.expectations.iter().map(|expectation| expectation.verdict).collect(),
            singular: "expectation",
            plural: "expectations",
            said: ["passed", "failed", "undecided"],
        },
        Judged {
            verdicts: result.faults.iter().map(|fault| fault.receipt.verdict).collect(),
            singular: "fault",
            plural: "faults",
            said: ["shown by evidence", "refuted by evidence", "not shown by evidence"],
        },
    ];
    let parts: Vec<String> = judged.iter().filter_map(|judged| part(judged, result.verdict)).collect();
    match (result.verdict, parts.is_empty()) {
        (Verdict::Pass, true) => "Nothing was checked or expected".to_owned(),
        // The reason lies elsewhere: a load that ended, a lab that stood still.
        (_, true) => "The run cannot be judged".to_owned(),
        (Verdict::Pass, false) if result.checks.is_empty() => {
            format!("{}; the data was not checked", parts.join(", "))
        }
        (_, false) => parts.join(", "),
    }
}

/// How many of a kind share the run's verdict; nothing where none does.
fn part(judged: &Judged, verdict: Verdict) -> Option<String> {
    let count = judged.verdicts.iter().filter(|one| **one == verdict).count() as u64;
    let all = judged.verdicts.len() as u64;
    let said = match verdict {
        Verdict::Pass => judged.said[0],
        Verdict::Fail => judged.said[1],
        Verdict::Unknown => judged.said[2],
    };
    match count {
        0 => None,
        _ if count == all => Some(format!("{} {said}", format::counted(all, judged.singular, judged.plural))),
        _ => {
            let all = format::counted(all, judged.singular, judged.plural);
            Some(format!("{} of {all} {said}", format::count(count)))
        }
    }
}

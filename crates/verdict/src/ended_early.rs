//! A load that ended before it was told to: the load generator failed, so figures say nothing of the database.
//!
//! Owns what is recorded of such an end, and what becomes of expectations. What checks say of such a load is `checks`' business.

use std::collections::BTreeMap;

use history::Verdict;
use load::LoadError;
use results::{EndedEarly, ExpectationResult};

/// Expectations that checks answer, from the history alone.
const FROM_CHECKS: [&str; 3] = ["lost_writes", "invented_writes", "anomalies"];

/// What is told of this end.
#[must_use]
pub fn ended_early(error: &LoadError) -> EndedEarly {
    let recorded = match error {
        LoadError::RecordsLost { .. } => false,
        LoadError::Elsewhere { recorded, .. } => *recorded,
        _ => true,
    };
    EndedEarly { why: error.to_string(), recorded }
}

/// Leaves expectations on figures in doubt where a load ended early: less was asked of the database than was meant to be.
pub(crate) fn doubt_figures(expectations: &mut [ExpectationResult], ended: &BTreeMap<String, EndedEarly>) {
    let Some(load) = ended.keys().next() else { return };
    let rests_on_figures = |expectation: &&mut ExpectationResult| {
        let quantity = expectation.name.rsplit('.').next().unwrap_or_default();
        !FROM_CHECKS.contains(&quantity)
    };
    for expectation in expectations.iter_mut().filter(rests_on_figures) {
        expectation.verdict = Verdict::Unknown;
        expectation.measured.push_str(&format!(", but load {load} ended early"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(recorded: bool) -> BTreeMap<String, EndedEarly> {
        BTreeMap::from([("l".to_owned(), EndedEarly { why: "a panic".to_owned(), recorded })])
    }

    #[test]
    fn figures_of_a_run_whose_load_ended_early_are_in_doubt_and_what_checks_say_is_not() {
        let expectation = |name: &str, verdict| ExpectationResult {
            name: name.to_owned(),
            wanted: "> 100".to_owned(),
            measured: "3".to_owned(),
            verdict,
        };
        let mut expectations = [
            expectation("throughput_per_s", Verdict::Fail),
            expectation("tpcb.fault.errors", Verdict::Pass),
            expectation("lost_writes", Verdict::Fail),
        ];
        doubt_figures(&mut expectations, &BTreeMap::new());
        assert_eq!(expectations[0].verdict, Verdict::Fail);
        doubt_figures(&mut expectations, &ended(true));
        let verdicts = expectations.each_ref().map(|expectation| expectation.verdict);
        assert_eq!(verdicts, [Verdict::Unknown, Verdict::Unknown, Verdict::Fail]);
        assert_eq!(expectations[0].measured, "3, but load l ended early");
    }
}

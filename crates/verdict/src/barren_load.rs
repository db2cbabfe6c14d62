//! Sentences about loads whose figures prove nothing, with what to do. Which loads these are is decided in `results`.

use report::with_thousands;
use results::{Barren, LoadResult};

/// Why nothing follows from a load's figures, and what to do.
pub(crate) fn barren(load: &LoadResult, why: Barren) -> String {
    let told = match why {
        Barren::IdleBaseline => {
            "no operation succeeded in its baseline, so later figures prove nothing; give the warm-up more time, or \
             look at what the database waited for"
                .to_owned()
        }
        Barren::MostlyErrors { in_baseline, errors, transactions } => {
            let (stretch, figures) = match in_baseline {
                true => ("its baseline", "later figures prove nothing"),
                false => ("it", "its figures prove nothing"),
            };
            format!(
                "{stretch} has {} errors and {} transactions, so {figures}; look at the first errors, then correct the \
                 setup or lower the load",
                with_thousands(errors),
                with_thousands(transactions)
            )
        }
        Barren::FewerThanClients { transactions, clients } => format!(
            "it has {} clients and {} successful transactions, so some clients had none and its figures prove nothing; \
             make the run longer, or lower the clients or their think time",
            with_thousands(clients.into()),
            with_thousands(transactions)
        ),
    };
    format!("load {}: {told}", load.name)
}

#[cfg(test)]
mod tests {
    use results::{LoadFigures, PhaseResult};

    use super::*;

    #[test]
    fn a_load_that_did_next_to_nothing_is_named_with_its_counts() {
        let measured = LoadFigures { clients: Some(1_000), transactions: 300, ..LoadFigures::default() };
        let load = LoadResult { name: "kv".to_owned(), measured, ..LoadResult::default() };
        let told = barren(&load, load.barren().expect("a reason"));
        assert!(
            told.starts_with("load kv: it has 1,000 clients and 300 successful transactions, "),
            "{told}"
        );
    }

    #[test]
    fn a_load_of_mostly_errors_is_named_with_its_counts() {
        let errors = [("connection".to_owned(), 25_794)].into();
        let measured = LoadFigures { transactions: 9, errors, ..LoadFigures::default() };
        let load = LoadResult { name: "kv".to_owned(), measured, ..LoadResult::default() };
        let told = barren(&load, load.barren().expect("a reason"));
        assert!(
            told.starts_with("load kv: it has 25,794 errors and 9 transactions, so its figures"),
            "{told}"
        );
    }

    #[test]
    fn a_baseline_of_mostly_errors_or_without_an_operation_is_named() {
        let with = |transactions: u64, errors: &[(&str, u64)]| {
            let errors = errors.iter().map(|(class, count)| ((*class).to_owned(), *count)).collect();
            let measured = LoadFigures { transactions, errors, ..LoadFigures::default() };
            let phase =
                PhaseResult { name: history::BASELINE.to_owned(), measured, ..PhaseResult::default() };
            let measured = LoadFigures { transactions: 4_000, ..LoadFigures::default() };
            let load =
                LoadResult { name: "kv".to_owned(), measured, phases: vec![phase], ..LoadResult::default() };
            barren(&load, load.barren().expect("a reason"))
        };
        let told = with(9, &[("connection", 25_794)]);
        assert!(told.contains("its baseline has 25,794 errors and 9 transactions"), "{told}");
        let told = with(0, &[]);
        assert!(told.starts_with("load kv: no operation succeeded in its baseline"), "{told}");
    }
}

//! A final read of rows while it is taken in.
//!
//! Owns that parts belong together and that a read which broke off is none. What rows that are there or missing mean, each check says.

use std::collections::BTreeMap;

use history::Outcome;

/// Rows found in the end, by kind of transaction and by name, each with how many there are.
pub(crate) type Found = BTreeMap<String, BTreeMap<String, u64>>;

/// The rows of a final read while it is taken in.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    open: Found,
    complete: Found,
}

impl Reading {
    /// Takes in a part.
    pub(crate) fn observe(&mut self, outcome: Outcome, kind: &str, rows: &[(String, u64)], is_last: bool) {
        if outcome != Outcome::Ok {
            // What was read before it broke off is not everything, and whoever reads again begins anew.
            *self = Reading::default();
            return;
        }
        let open = self.open.entry(kind.to_owned()).or_default();
        for (name, count) in rows {
            let found = open.entry(name.clone()).or_default();
            *found = found.saturating_add(*count);
        }
        if is_last && let Some(all) = self.open.remove(kind) {
            self.complete.insert(kind.to_owned(), all);
        }
    }

    /// What was read whole.
    pub(crate) fn found(&self) -> &Found {
        &self.complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_before_a_read_broke_off_is_not_counted_twice() {
        let mut reading = Reading::default();
        let rows = [("a".to_owned(), 1)];
        reading.observe(Outcome::Ok, "PAYMENT", &rows, false);
        reading.observe(Outcome::Fail, "PAYMENT", &[], false);
        assert!(reading.found().is_empty());
        reading.observe(Outcome::Ok, "PAYMENT", &rows, false);
        assert!(reading.found().is_empty(), "not read whole");
        reading.observe(Outcome::Ok, "PAYMENT", &[], true);
        assert_eq!(reading.found()["PAYMENT"]["a"], 1);
    }
}

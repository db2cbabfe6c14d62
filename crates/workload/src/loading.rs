//! How far the loading of a table is, told to people with an estimate of the rest.
//!
//! Owns the estimate: rows that are left take as long, each, as those before them. What is loaded is the workload's.

use std::cell::Cell;
use std::ops::Range;
use std::time::{Duration, Instant};

/// The loading of one table, by one session or several.
pub(crate) struct Loading<'a> {
    table: &'static str,
    rows: u64,
    done: Cell<u64>,
    /// The share that was told last.
    percent: Cell<u64>,
    began: Instant,
    progress: &'a dyn Fn(String),
}

impl<'a> Loading<'a> {
    /// So many rows are to be loaded, beginning now.
    pub(crate) fn begin(table: &'static str, rows: u64, progress: &'a dyn Fn(String)) -> Self {
        let (done, percent) = (Cell::new(0), Cell::new(0));
        Loading { table, rows, done, percent, began: Instant::now(), progress }
    }

    /// The next rows of those that are left, at most so many; they count as handed to a session.
    pub(crate) fn next_rows(&self, left: &mut Range<u64>, most: u64) -> Range<u64> {
        let end = left.start.saturating_add(most).min(left.end).max(left.start);
        let next = left.start..end;
        left.start = end;
        self.add(next.end - next.start);
        next
    }

    /// So many more rows were handed to a session. Told at every whole percent.
    fn add(&self, rows: u64) {
        let done = self.done.get() + rows;
        self.done.set(done);
        let percent = done.saturating_mul(100) / self.rows.max(1);
        if self.percent.replace(percent) != percent {
            (self.progress)(how_far(self.table, (done, self.rows), self.began.elapsed()));
        }
    }
}

fn how_far(table: &str, (done, all): (u64, u64), elapsed: Duration) -> String {
    let percent = done.saturating_mul(100) / all.max(1);
    let left_s = left_s(done, all, elapsed);
    format!("{table}: {percent} % of {all} rows are loaded, about {left_s:.0} s left")
}

/// Seconds that the rest of `all` will take, by what `done` of it took.
pub(crate) fn left_s(done: u64, all: u64, elapsed: Duration) -> f64 {
    let share = done as f64 / all.max(1) as f64;
    elapsed.as_secs_f64() * (1.0 - share) / share.max(f64::EPSILON)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_the_rows_before_it() {
        let told = how_far("usertable", (2_500, 10_000), Duration::from_secs(10));
        assert_eq!(told, "usertable: 25 % of 10000 rows are loaded, about 30 s left");
        assert!(left_s(4, 4, Duration::from_secs(9)).abs() < 1e-9);
        assert!(left_s(0, 0, Duration::ZERO).abs() < 1e-9, "nothing to load");
    }

    #[test]
    fn every_whole_percent_is_told_once_whoever_loads_it() {
        let lines = RefCell::new(Vec::new());
        let progress = |line: String| lines.borrow_mut().push(line);
        let loading = Loading::begin("usertable", 1_000, &progress);
        for rows in [4, 5, 1, 0, 990] {
            loading.add(rows);
        }
        let lines = lines.borrow();
        let begins =
            |line: &String, percent: &str| line.starts_with(&format!("usertable: {percent} % of 1000 rows"));
        assert!(lines.len() == 2 && begins(&lines[0], "1") && begins(&lines[1], "100"), "{lines:?}");
    }
}

//! The result of a bench: rows of ours beside theirs, as a table for people and as JSON for programs.

use std::fs;

use anyhow::Context;
use serde::Serialize;

/// Median and ends of what was measured several times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The middle one; between the two middle ones when there is none.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Of these values; all zero when there is none.
    #[must_use]
    pub fn of(values: &[f64]) -> Spread {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |index: usize| sorted.get(index).copied().unwrap_or_default();
        let count = sorted.len();
        let median = (at(count.saturating_sub(1) / 2) + at(count / 2)) / 2.0;
        Spread { median, min: at(0), max: at(count.saturating_sub(1)) }
    }
}

/// What is good enough.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    /// The median of the ratios is at most this.
    RatioAtMost(f64),
    /// The median of the ratios is at least this.
    RatioAtLeast(f64),
    /// The median of ours is at most this.
    OursAtMost(f64),
    /// Every one of ours is at most this.
    EachOfOursAtMost(f64),
}

impl Goal {
    fn value(self) -> f64 {
        match self {
            Goal::RatioAtMost(value)
            | Goal::RatioAtLeast(value)
            | Goal::OursAtMost(value)
            | Goal::EachOfOursAtMost(value) => value,
        }
    }

    fn rule(self) -> &'static str {
        match self {
            Goal::RatioAtMost(_) => "ratio at most",
            Goal::RatioAtLeast(_) => "ratio at least",
            Goal::OursAtMost(_) => "at most",
            Goal::EachOfOursAtMost(_) => "each at most",
        }
    }

    /// Nothing measured meets no goal.
    fn is_met(self, ours: Option<Spread>, ratio: Option<Spread>) -> bool {
        let finite = |figure: Option<f64>| figure.filter(|figure| figure.is_finite());
        let ratio = finite(ratio.map(|ratio| ratio.median));
        match self {
            Goal::RatioAtMost(most) => ratio.is_some_and(|ratio| ratio <= most),
            Goal::RatioAtLeast(least) => ratio.is_some_and(|ratio| ratio >= least),
            Goal::OursAtMost(most) => finite(ours.map(|ours| ours.median)).is_some_and(|ours| ours <= most),
            Goal::EachOfOursAtMost(most) => {
                finite(ours.map(|ours| ours.max)).is_some_and(|ours| ours <= most)
            }
        }
    }
}

/// One thing compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    pub what: String,
    /// Of ours; nothing when it was not measured.
    pub ours: Option<Spread>,
    /// Who theirs is, or why there is none.
    pub peer: String,
    /// Of theirs; nothing when there is none.
    pub theirs: Option<Spread>,
    /// Ours by theirs, pair by pair.
    pub ratio: Option<Spread>,
    /// Unit of ours and theirs.
    pub unit: String,
    /// The figure that is good enough; nothing when the row only informs.
    pub goal: Option<f64>,
    /// What the goal is held against: `ratio at most`, `ratio at least`, `at most` or `each at most`, the last two of ours.
    pub goal_rule: Option<&'static str>,
    /// Whether it is; nothing without a goal.
    pub met: Option<bool>,
}

impl Row {
    /// Compares pairs of ours and theirs, each pair measured side by side. The ratio is taken within pairs, so that a
    /// machine that was busier for a while is busier for both. The goal is the largest median ratio.
    #[must_use]
    pub fn of_pairs(what: &str, peer: &str, unit: &str, pairs: &[(f64, f64)], goal: Option<f64>) -> Row {
        let pairs: Vec<(Option<f64>, Option<f64>)> =
            pairs.iter().map(|(ours, theirs)| (Some(*ours), Some(*theirs))).collect();
        Row::of_readings(what, peer, unit, &pairs, goal.map(Goal::RatioAtMost))
    }

    /// The same where one side or the other was not measured, or has no peer.
    #[must_use]
    pub fn of_readings(
        what: &str,
        peer: &str,
        unit: &str,
        pairs: &[(Option<f64>, Option<f64>)],
        goal: Option<Goal>,
    ) -> Row {
        let spread = |values: Vec<f64>| (!values.is_empty()).then(|| Spread::of(&values));
        let ours = spread(pairs.iter().filter_map(|pair| pair.0).collect());
        let ratio = spread(pairs.iter().filter_map(|pair| Some(pair.0? / pair.1?)).collect());
        Row {
            what: what.to_owned(),
            ours,
            peer: peer.to_owned(),
            theirs: spread(pairs.iter().filter_map(|pair| pair.1).collect()),
            ratio,
            unit: unit.to_owned(),
            goal: goal.map(Goal::value),
            goal_rule: goal.map(Goal::rule),
            met: goal.map(|goal| goal.is_met(ours, ratio)),
        }
    }
}

/// Prints the rows and writes them to `target/bench/NAME.json`. Whether all goals are met.
///
/// # Errors
/// When the file cannot be written.
pub fn conclude(name: &str, rows: &[Row]) -> anyhow::Result<bool> {
    println!("| what | ours: median (min-max) | theirs | ratio | goal |");
    println!("|---|---|---|---|---|");
    for row in rows {
        let spread = |spread: Option<Spread>, unit: &str| {
            spread.map_or_else(
                || "none".to_owned(),
                |spread| {
                    let [median, min, max] = [spread.median, spread.min, spread.max].map(figure);
                    format!("{median} ({min}-{max}){unit}")
                },
            )
        };
        let unit = format!(" {}", row.unit);
        let goal = match (row.goal, row.goal_rule) {
            (Some(goal), Some(rule)) => {
                format!("{rule} {goal}: {}", if row.met == Some(true) { "met" } else { "NOT MET" })
            }
            _ => String::new(),
        };
        println!(
            "| {} | {} | {}: {} | {} | {goal} |",
            row.what,
            spread(row.ours, &unit),
            row.peer,
            spread(row.theirs, &unit),
            spread(row.ratio, ""),
        );
    }
    let folder = crate::target_directory().join("bench");
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    let path = folder.join(format!("{name}.json"));
    let text = serde_json::to_string_pretty(&serde_json::json!({ "rows": rows }))?;
    fs::write(&path, format!("{text}\n")).with_context(|| format!("write {}", path.display()))?;
    println!("{}", path.display());
    Ok(rows.iter().all(|row| row.met != Some(false)))
}

/// Two digits behind the point, more where that would leave nothing.
fn figure(value: f64) -> String {
    if value != 0.0 && value.abs() < 0.1 { format!("{value:.4}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_between_the_middle_two() {
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]), Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(Spread::of(&[4.0, 1.0, 2.0, 3.0]).median, 2.5);
        assert_eq!(Spread::of(&[]).median, 0.0);
    }

    #[test]
    fn a_goal_is_held_against_the_median_of_the_pairs_ratios() {
        let row = |pairs: &[(f64, f64)]| Row::of_pairs("boot", "script", "s", pairs, Some(1.25));
        assert_eq!(row(&[(2.0, 2.0), (3.0, 2.0), (2.4, 2.0)]).met, Some(true));
        assert_eq!(row(&[(3.0, 2.0), (3.0, 2.0), (2.0, 2.0)]).met, Some(false));
        assert_eq!(row(&[]).met, Some(false), "nothing measured is not good");
        assert_eq!(row(&[(1.0, 0.0)]).met, Some(false));
    }
    #[test]
    fn a_goal_may_be_held_against_ours_alone_and_nothing_measured_meets_none() {
        let met = |ours: &[f64], goal| {
            let pairs: Vec<_> = ours.iter().map(|ours| (Some(*ours), None)).collect();
            Row::of_readings("loss", "no peer", "packets", &pairs, Some(goal)).met
        };
        assert_eq!(met(&[0.0, 0.0, 1.0], Goal::OursAtMost(0.0)), Some(true));
        assert_eq!(met(&[0.0, 0.0, 1.0], Goal::EachOfOursAtMost(0.0)), Some(false));
        assert_eq!(met(&[0.0], Goal::RatioAtLeast(0.6)), Some(false), "there is no ratio");
        assert_eq!(met(&[], Goal::OursAtMost(1.0)), Some(false));
        assert_eq!(met(&[f64::NAN], Goal::EachOfOursAtMost(1.0)), Some(false));
        let faster = [(Some(7.0), Some(10.0)), (Some(5.0), Some(10.0)), (Some(6.0), Some(10.0))];
        assert_eq!(Row::of_readings("", "", "", &faster, Some(Goal::RatioAtLeast(0.6))).met, Some(true));
        assert_eq!(Row::of_readings("", "", "", &faster, Some(Goal::RatioAtLeast(0.7))).met, Some(false));
    }
}

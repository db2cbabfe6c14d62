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

/// One thing compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// What.
    pub what: String,
    /// Of ours.
    pub ours: Spread,
    /// Who theirs is.
    pub peer: String,
    /// Of theirs.
    pub theirs: Spread,
    /// Ours by theirs, pair by pair.
    pub ratio: Spread,
    /// Unit of ours and theirs.
    pub unit: String,
    /// The largest median ratio that is good enough; nothing when the row only informs.
    pub goal: Option<f64>,
    /// Whether it is; nothing without a goal.
    pub met: Option<bool>,
}

impl Row {
    /// Compares pairs of ours and theirs, each pair measured side by side. The ratio is taken within pairs, so that a
    /// machine that was busier for a while is busier for both.
    #[must_use]
    pub fn of_pairs(what: &str, peer: &str, unit: &str, pairs: &[(f64, f64)], goal: Option<f64>) -> Row {
        let ratio = Spread::of(&pairs.iter().map(|(ours, theirs)| ours / theirs).collect::<Vec<_>>());
        Row {
            what: what.to_owned(),
            ours: Spread::of(&pairs.iter().map(|pair| pair.0).collect::<Vec<_>>()),
            peer: peer.to_owned(),
            theirs: Spread::of(&pairs.iter().map(|pair| pair.1).collect::<Vec<_>>()),
            ratio,
            unit: unit.to_owned(),
            goal,
            // Without a single pair the ratio is 0, which must not count as good.
            met: goal.map(|goal| !pairs.is_empty() && ratio.median.is_finite() && ratio.median <= goal),
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
        let spread = |spread: Spread, unit: &str| {
            format!("{:.2} ({:.2}-{:.2}){unit}", spread.median, spread.min, spread.max)
        };
        let unit = format!(" {}", row.unit);
        let goal = match (row.goal, row.met) {
            (Some(goal), Some(true)) => format!("<= {goal}: met"),
            (Some(goal), _) => format!("<= {goal}: NOT MET"),
            (None, _) => String::new(),
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
}

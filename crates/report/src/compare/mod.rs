//! Runs beside each other: runs of the same settings are repetitions, and what differs between settings is held against
//! what differs between repetitions.
//!
//! Owns which runs belong together, which figures are held against each other and on what grounds. The statistics are
//! `measure`'s; `page` and `text` tell what was found. Reads run directories and nothing else.

mod atlas;
mod bars;
mod beside;
mod distributions;
mod dots;
mod gate;
mod page;
mod quantity;
mod replication;
mod settings;
mod source;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use history::Verdict;
use measure::{Finding, Sampling};

pub use self::atlas::Reference;
pub use distributions::of_matrix as distributions_of;
pub use gate::{Bound, Gate, GateError, Judged, judge};
pub use page::html;
pub use quantity::{Quantity, Subject};
pub(crate) use source::of_matrix;
pub use source::{CompareError, Given, expand};
pub use text::text;

use crate::format;
use crate::written::WriteError;
use results::RunResult;
use results::matrix;
use source::Taken;

/// Where the page of a comparison is written unless said otherwise, in the working directory.
pub const WHERE: &str = "compare.html";

/// Longest name of a variant, in characters.
const NAME_MAX: usize = 32;

/// One run among those compared.
#[derive(Debug, Clone)]
pub struct Run {
    /// Its run directory, as it was given.
    pub path: PathBuf,
    /// What its `result.json` says.
    pub result: RunResult,
    /// Why its figures are left out; none when they count.
    pub left_out: Option<String>,
}

/// Runs of the same settings.
#[derive(Debug, Clone)]
pub struct Variant {
    /// What tables and charts call it: its own short name, such as that of a matrix's cell, else `A`, `B` ...
    pub name: String,
    /// What distinguishes it from the others; the same as `name` where that says it.
    pub label: String,
    /// Its runs, in the order given.
    pub runs: Vec<Run>,
    /// The variant that it is held against, by its place; its own where it is held against none.
    pub reference: usize,
}

impl Variant {
    /// The worst of its runs' verdicts.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.runs.iter().fold(Verdict::Pass, |verdict, run| verdict.and(run.result.verdict))
    }

    /// Why it did not pass: the first reason of the first run with that verdict.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        let verdict = self.verdict();
        let run = self.runs.iter().find(|run| run.result.verdict == verdict && verdict != Verdict::Pass)?;
        run.result.reasons.first().map(String::as_str)
    }

    /// The runs whose figures count.
    pub(crate) fn counted_runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| run.left_out.is_none())
    }

    /// How many of its runs' figures count.
    #[must_use]
    pub fn counted(&self) -> usize {
        self.counted_runs().count()
    }
}

/// A setting that is not the same everywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Differing {
    /// Its dotted path in the resolved scenario.
    pub path: String,
    /// Its value in each variant; none where it is not there.
    pub values: Vec<Option<String>>,
}

/// On what grounds a difference is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// Several runs on each side.
    Runs {
        /// Of the reference.
        first: usize,
        /// Of this variant.
        second: usize,
    },
    /// One run on each side: its seconds, which know nothing of other runs.
    Seconds,
    /// None: a side has too little.
    Nothing,
}

/// How a figure differs from the reference's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// Ratio, interval and finding.
    pub measured: measure::Comparison,
    /// On what grounds.
    pub basis: Basis,
}

/// One figure of one variant.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Its value in each run that has one, in the order of the runs.
    pub values: Vec<f64>,
    /// Against the variant's reference; none where it has none, and where a side has no value.
    pub difference: Option<Difference>,
}

impl Cell {
    /// Mean over the runs.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (!self.values.is_empty()).then(|| self.values.iter().sum::<f64>() / self.values.len() as f64)
    }
}

/// One figure in all variants.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Of what.
    pub subject: Subject,
    /// Which figure.
    pub quantity: Quantity,
    /// One cell for each variant.
    pub cells: Vec<Cell>,
}

/// Runs of a cell of a matrix that left no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// What the cell is called.
    pub label: String,
    /// How many of its runs.
    pub runs: u64,
    /// Why: the lab's failure, or that they were not made.
    pub why: String,
}

impl Missing {
    /// In one sentence.
    pub(crate) fn sentence(&self) -> String {
        let runs = format::counted(self.runs, "run", "runs");
        format!("{}: {runs} left no result: {}", self.label, self.why)
    }
}

/// All of it.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// What was compared, for a heading.
    pub title: String,
    /// The variants. Each is held against the first, or, where all are cells of a matrix, against the earliest of those that differ
    /// from it on the fewest axes.
    pub variants: Vec<Variant>,
    /// What distinguishes them.
    pub differing: Vec<Differing>,
    /// Every figure.
    pub rows: Vec<Row>,
    /// What the reader must know to judge it, one sentence each.
    pub notes: Vec<String>,
    /// Runs of a matrix that left nothing to compare, by cell.
    pub missing: Vec<Missing>,
    /// Each fault beside the atlas, where there is one to hold them against.
    beside_atlas: Option<atlas::AtlasComparison>,
}

impl Comparison {
    /// Whether every variant is held against the first.
    pub(crate) fn has_one_reference(&self) -> bool {
        self.variants.iter().all(|variant| variant.reference == 0)
    }

    /// How many differences were looked for, and how many were found to be more than noise.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        let judged = self.rows.iter().flat_map(|row| &row.cells).filter_map(|cell| cell.difference);
        let judged: Vec<Finding> =
            judged.map(|difference| difference.measured.finding).filter(|f| *f != Finding::Unknown).collect();
        (judged.len(), judged.iter().filter(|finding| **finding != Finding::Noise).count())
    }
}

/// Compares runs. Those with the same label belong together; without labels, those of the same settings do. Each is held
/// against the atlas, where one is given.
///
/// # Errors
/// When a directory cannot be read or is given twice, or there are fewer than two runs and no atlas.
pub fn compare(given: &[Given], reference: Option<Reference<'_>>) -> Result<Comparison, CompareError> {
    let needed = if reference.is_some() { 1 } else { 2 };
    let missing = missing(given);
    let given: Vec<&Given> = given.iter().filter(|given| given.without_result.is_none()).collect();
    if given.len() < needed {
        return Err(CompareError::TooFew { runs: given.len() });
    }
    if let Some(again) = source::given_twice(&given) {
        return Err(CompareError::Twice { path: again.path.clone() });
    }
    let taken = given.into_iter().map(source::take).collect::<Result<Vec<Taken>, CompareError>>()?;
    let groups = grouped(&taken);
    let differing = settings::differing(&groups.iter().map(|group| &group[0].settings).collect::<Vec<_>>());
    let labels = settings::labels(&groups, &differing);
    let names = names(&groups, &labels);
    let references = references(&groups);
    let variants: Vec<Variant> = groups
        .iter()
        .zip(labels)
        .zip(names)
        .zip(&references)
        .map(|(((group, label), name), reference)| Variant {
            name,
            label,
            runs: group.iter().map(|taken| taken.run.clone()).collect(),
            reference: *reference,
        })
        .collect();
    let rows = rows(&groups, &references);
    let mut notes = notes(&taken, &groups);
    notes.extend(missing.iter().map(Missing::sentence));
    let title = title(&taken);
    let beside_atlas = reference.map(|reference| atlas::beside(&groups, reference));
    Ok(Comparison { title, variants, differing, rows, notes, missing, beside_atlas })
}

/// The runs that left no result, those of a cell with the same reason together.
fn missing(given: &[Given]) -> Vec<Missing> {
    let mut missing: Vec<Missing> = Vec::new();
    for (run, why) in given.iter().filter_map(|run| Some((run, run.without_result.as_ref()?))) {
        let label = run.label.clone().unwrap_or_else(|| run.path.display().to_string());
        match missing.iter_mut().find(|known| known.label == label && known.why == *why) {
            Some(known) => known.runs += 1,
            None => missing.push(Missing { label, runs: 1, why: why.clone() }),
        }
    }
    missing
}

/// Writes the page that compares the cells, beside `matrix.json`. Returns the comparison and the page's path.
///
/// # Errors
/// When fewer than two runs left a result, one cannot be read, or the page cannot be written.
pub fn write_of_matrix(
    directory: &Path,
    matrix: &matrix::MatrixResult,
) -> Result<(Comparison, PathBuf), CompareError> {
    let path = directory.join(matrix::COMPARISON);
    Ok((write(&of_matrix(directory, matrix), None, &path)?, path))
}

/// Compares runs and writes the page. Returns what was found.
///
/// # Errors
/// As [`compare`], and when the file cannot be written.
pub fn write(
    given: &[Given],
    reference: Option<Reference<'_>>,
    path: &Path,
) -> Result<Comparison, CompareError> {
    let comparison = compare(given, reference)?;
    history::whole_file::write(path, html(&comparison).as_bytes())
        .map_err(|source| WriteError::File { path: path.to_owned(), source })?;
    Ok(comparison)
}

/// Labels that were given serve as names where all of them are short enough for a column; else letters do.
fn names(groups: &[Vec<&Taken>], labels: &[String]) -> Vec<String> {
    let all_given = groups.iter().all(|group| group[0].label.is_some());
    if all_given && labels.iter().all(|label| label.chars().count() <= NAME_MAX) {
        return labels.to_vec();
    }
    (0..groups.len()).map(letter).collect()
}

/// `A` to `Z`, then `A2` and so on.
fn letter(index: usize) -> String {
    let name = char::from(b'A' + (index % 26) as u8);
    if index < 26 { name.to_string() } else { format!("{name}{}", index / 26 + 1) }
}

/// Runs that belong together, in the order in which the first of each was given.
fn grouped(taken: &[Taken]) -> Vec<Vec<&Taken>> {
    let mut groups: Vec<Vec<&Taken>> = Vec::new();
    for run in taken {
        let same = |group: &&mut Vec<&Taken>| match (&group[0].label, &run.label) {
            (Some(one), Some(other)) => one == other,
            (None, None) => group[0].settings == run.settings,
            _ => false,
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    groups
}

/// What each group is held against. A cell beside one that differs in everything would show no axis' effect.
fn references(groups: &[Vec<&Taken>]) -> Vec<usize> {
    let values: Vec<&BTreeMap<String, String>> = groups.iter().map(|group| &group[0].axes).collect();
    if values.iter().any(|values| values.is_empty()) {
        return vec![0; groups.len()];
    }
    let apart = |one: &BTreeMap<String, String>, other: &BTreeMap<String, String>| {
        let axes: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
        axes.into_iter().filter(|axis| one.get(*axis) != other.get(*axis)).count()
    };
    let nearest = |cell: usize| (0..cell).min_by_key(|earlier| apart(values[*earlier], values[cell]));
    (0..groups.len()).map(|cell| nearest(cell).unwrap_or(cell)).collect()
}

fn title(taken: &[Taken]) -> String {
    let names: BTreeSet<&str> = taken.iter().map(|taken| taken.run.result.scenario.as_str()).collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

fn rows(groups: &[Vec<&Taken>], references: &[usize]) -> Vec<Row> {
    let counted: Vec<Vec<&Taken>> = groups
        .iter()
        .map(|group| group.iter().copied().filter(|taken| taken.run.left_out.is_none()).collect())
        .collect();
    let all: Vec<&RunResult> = counted.iter().flatten().map(|taken| &taken.run.result).collect();
    let mut rows = Vec::new();
    for (subject, quantity) in quantity::all(&all) {
        let samples: Vec<Vec<(f64, &Taken)>> = counted
            .iter()
            .map(|group| {
                let runs = group.iter().copied();
                runs.filter_map(|taken| Some((quantity.of(&taken.run.result, &subject)?, taken))).collect()
            })
            .collect();
        let seed = rows.len() as u64;
        let cell = |(index, reference): (usize, &usize)| {
            let (runs, against) = (&samples[index], &samples[*reference]);
            Cell {
                values: runs.iter().map(|(value, _)| *value).collect(),
                difference: (index != *reference && !runs.is_empty() && !against.is_empty())
                    .then(|| difference(against, runs, &subject, quantity, seed)),
            }
        };
        let cells = references.iter().enumerate().map(cell).collect();
        rows.push(Row { subject, quantity, cells });
    }
    rows
}

fn difference(
    first: &[(f64, &Taken)],
    second: &[(f64, &Taken)],
    subject: &Subject,
    quantity: Quantity,
    seed: u64,
) -> Difference {
    let values = |side: &[(f64, &Taken)]| side.iter().map(|(value, _)| *value).collect::<Vec<f64>>();
    let (one, other) = (values(first), values(second));
    if let ([(_, first)], [(_, second)]) = (first, second) {
        let seconds = |taken: &Taken| quantity.by_second(taken, subject);
        if let (Some(before), Some(after)) = (seconds(first), seconds(second)) {
            let mut measured = measure::compare(&before, &after, Sampling::SecondsOfOneRun, 0.0, seed);
            measured = moved_to(measured, other[0] / one[0]);
            let basis = if measured.finding == Finding::Unknown { Basis::Nothing } else { Basis::Seconds };
            return Difference { measured, basis };
        }
    }
    let mut measured = measure::compare(&one, &other, Sampling::Runs, quantity.resolution(), seed);
    let apart = quantity.mean(&other) - quantity.mean(&one);
    if measured.finding != Finding::Unknown && apart.abs() <= quantity.resolution() {
        measured.finding = Finding::Noise;
    }
    let basis = if measured.finding == Finding::Unknown {
        Basis::Nothing
    } else {
        Basis::Runs { first: one.len(), second: other.len() }
    };
    Difference { measured, basis }
}

/// The figure shown is the whole run's, not the mean over its seconds: the interval keeps its width about that one, and
/// the finding stands only when it still does.
fn moved_to(mut measured: measure::Comparison, ratio: f64) -> measure::Comparison {
    if measured.finding == Finding::Unknown || !ratio.is_finite() || ratio <= 0.0 {
        return measure::Comparison { finding: Finding::Unknown, ratio, ..measured };
    }
    let by = ratio / measured.ratio;
    (measured.low, measured.high, measured.ratio) = (measured.low * by, measured.high * by, ratio);
    let (seen, floor) = (measured.finding, measure::compare::BETWEEN_RUNS);
    let stands = match seen {
        Finding::Larger => measured.low > 1.0 && ratio - 1.0 > floor,
        Finding::Smaller => measured.high < 1.0 && 1.0 - ratio > floor,
        Finding::Noise | Finding::Unknown => true,
    };
    measured.finding = if stands { seen } else { Finding::Noise };
    measured
}

fn notes(taken: &[Taken], groups: &[Vec<&Taken>]) -> Vec<String> {
    let mut notes = Vec::new();
    for run in taken.iter().map(|taken| &taken.run) {
        if let Some(why) = &run.left_out {
            notes.push(format!("{}: its figures are left out: {why}", run.path.display()));
        }
    }
    notes.extend(taken.iter().flat_map(|taken| taken.notes.iter().cloned()));
    let counted: Vec<usize> = groups
        .iter()
        .map(|group| group.iter().filter(|taken| taken.run.left_out.is_none()).count())
        .collect();
    if counted.len() < 2 {
        // Nothing is held against a variant that is alone.
    } else if counted.iter().all(|runs| *runs == 1) {
        notes.push(format!(
            "One run of each: repeat runs vary more than one run can show. A difference counts as noise below {:.0} %, and above \
             it where the seconds of the two runs vary as much. Repeat each configuration a few times to see smaller \
             differences, and to be sure of the larger ones.",
            measure::compare::BETWEEN_RUNS * 100.0
        ));
    } else if counted.iter().any(|runs| *runs < measure::compare::RUNS_MIN) {
        notes.push(
            "Some settings have a single run, so their run-to-run noise is unknown and they are not compared. Repeat \
             them."
                .to_owned(),
        );
    }
    let machine = |taken: &Taken| {
        let facts = &taken.run.result.facts.machine;
        ["cpu", "cores", "kernel", "memory_bytes", "user"].map(|key| facts.get(key).cloned())
    };
    if taken.iter().any(|other| machine(other) != machine(&taken[0])) {
        notes.push("The runs come from different machines, which may cause differences.".to_owned());
    }
    let counting = || groups.iter().flatten().filter(|taken| taken.run.left_out.is_none());
    let kept = counting().filter(|taken| taken.run.result.lab.from_snapshot).count();
    if (1..counting().count()).contains(&kept) {
        notes.push(
            "Some of these runs began with a database that was made and loaded by themselves, others with one that was just \
             started again on volumes that were loaded before (`lab.from_snapshot`): its buffers were empty, which may cause \
             differences. `--boot-each` has all begin alike."
                .to_owned(),
        );
    }
    let doubted = taken.iter().filter(|taken| !taken.run.result.lab.warnings.is_empty()).count();
    if doubted > 0 {
        notes
            .push(format!("{doubted} of {} runs have measurement warnings; see their reports.", taken.len()));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_are_called_by_letters() {
        let check = |index, expected: &str| assert_eq!(letter(index), expected);
        check(0, "A");
        check(25, "Z");
        check(26, "A2");
        check(53, "B3");
    }

    #[test]
    fn a_finding_of_the_seconds_stands_only_when_the_whole_runs_figures_show_it_too() {
        let seen = measure::Comparison { ratio: 1.5, low: 1.2, high: 1.8, finding: Finding::Larger };
        let check = |ratio: f64, expected| {
            let moved = moved_to(seen, ratio);
            assert_eq!(moved.finding, expected, "{moved:?}");
        };
        check(1.5, Finding::Larger);
        check(1.3, Finding::Larger);
        check(1.05, Finding::Noise);
        check(0.5, Finding::Noise);
        check(f64::NAN, Finding::Unknown);
    }
}

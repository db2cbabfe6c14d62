//! The files of the atlas: one for each cell, `docs/atlas/data/ENGINE/FAULT.json`, to which runs are added, and `atlas.json`, which
//! has them all with their scenarios and is compiled into the program.
//!
//! Their form is the crate `atlas`'s.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ::atlas::{Atlas, Cell, Entry, Run};
use anyhow::Context;

use super::faults::FAULTS;
use crate::bench::table::Spread;

/// A run for the terminal.
pub(super) fn in_a_line(run: &Run) -> String {
    let seconds =
        |value: Option<f64>| value.map_or_else(|| "unknown".to_owned(), |value| format!("{value:.1} s"));
    let gap = match (run.interrupted, Gaps::of(&[run])) {
        (Some(false), _) => "none".to_owned(),
        (_, None) => "unknown".to_owned(),
        (_, Some(gap)) => format!("{} s", gap.median()),
    };
    let lost = run.lost().map_or_else(|| "unknown".to_owned(), |lost| lost.to_string());
    let sustained = seconds(run.sustained_s);
    format!("{}, interruption {gap}, back for good {sustained}, lost {lost}", run.verdict)
}

/// The machines that a cell's runs were made on, each once, in words.
pub(super) fn machines(cell: &Cell) -> Vec<String> {
    let mut machines = Vec::new();
    for run in &cell.runs {
        let of = |key: &str| run.machine.get(key).map_or("?", String::as_str);
        let machine = format!("{}, {} cores, Linux {}", of("cpu"), of("cores"), of("kernel"));
        if !machines.contains(&machine) {
            machines.push(machine);
        }
    }
    machines
}

fn path(folder: &Path, engine: &str, fault: &str) -> PathBuf {
    folder.join(format!("data/{engine}/{fault}.json"))
}

/// The cell, where it has a run.
pub(super) fn read(folder: &Path, engine: &str, fault: &str) -> anyhow::Result<Option<Cell>> {
    let path = path(folder, engine, fault);
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    serde_json::from_str(&text)
        .map(Some)
        .with_context(|| format!("{}: not a cell of the atlas", path.display()))
}

pub(super) fn save(folder: &Path, cell: &Cell) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(cell)?;
    super::write(&path(folder, &cell.engine, &cell.fault), &format!("{text}\n"))
}

/// Writes `atlas.json`: the cells, each with the scenario in the folder that made its runs.
pub(super) fn publish(folder: &Path, cells: impl Iterator<Item = Cell>) -> anyhow::Result<()> {
    let entry = |cell: Cell| {
        let path = super::scenario_path(folder, &cell.engine, &cell.fault);
        let scenario = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        let fault = FAULTS.iter().find(|fault| fault.name == cell.fault);
        let title = fault.map_or(cell.fault.as_str(), |fault| fault.title).to_owned();
        anyhow::Ok(Entry { title, scenario, cell })
    };
    let atlas = Atlas { cells: cells.map(entry).collect::<anyhow::Result<_>>()? };
    let text = serde_json::to_string_pretty(&atlas)?;
    super::write(&folder.join("atlas.json"), &format!("{text}\n"))
}

/// Cells by engine and fault.
pub(super) type Cells = BTreeMap<(&'static str, &'static str), Cell>;

/// The median, and the ends where they differ.
pub(super) fn range(values: &[f64], digits: usize) -> String {
    let Spread { median, min, max } = Spread::of(values);
    if values.len() < 2 || min == max {
        return format!("{median:.digits$}");
    }
    format!("{median:.digits$} ({min:.digits$} to {max:.digits$})")
}

/// The longest times without a success of runs. One that had not ended when the loads did is a lower bound, and so is what rests
/// on it.
pub(super) struct Gaps {
    spread: Spread,
    first_open_s: f64,
}

impl Gaps {
    /// Of the runs that have one; nothing where none has.
    pub(super) fn of(runs: &[&Run]) -> Option<Gaps> {
        let values: Vec<f64> = runs.iter().filter_map(|run| run.gap_s).collect();
        let open = runs.iter().filter(|run| run.gap_is_open).filter_map(|run| run.gap_s);
        let first_open_s = open.fold(f64::INFINITY, f64::min);
        (!values.is_empty()).then(|| Gaps { spread: Spread::of(&values), first_open_s })
    }

    fn bound(&self, value: f64) -> String {
        format!("{}{value:.1}", if self.first_open_s <= value { "≥ " } else { "" })
    }

    pub(super) fn median(&self) -> String {
        self.bound(self.spread.median)
    }

    /// The median, and the ends where they differ.
    pub(super) fn range(&self) -> String {
        let Spread { min, max, .. } = self.spread;
        if min == max {
            return self.median();
        }
        format!("{} ({} to {})", self.median(), self.bound(min), self.bound(max))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use history::Verdict;

    use super::*;

    /// A run that passed if it lost nothing.
    pub(in crate::atlas) fn run(interrupted: Option<bool>, gap_s: f64, lost: Option<u64>) -> Run {
        Run {
            seed: 1,
            holdfast: "0.1.0".to_owned(),
            engine_version: "3.4.23".to_owned(),
            machine: [("cpu", "EPYC"), ("cores", "2"), ("kernel", "6.18")]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            verdict: if lost == Some(0) { Verdict::Pass } else { Verdict::Fail },
            reasons: Vec::new(),
            interrupted,
            gap_s: Some(gap_s),
            gap_is_open: false,
            first_success_s: Some(gap_s),
            back_to_95_percent_s: Some(gap_s),
            new_leader_s: None,
            sustained_s: Some(gap_s + 1.0),
            is_incomparable: Some(false),
            acknowledged_writes: Some(1_000),
            lost_writes: lost,
            lost_writes_at_least: false,
            errors: Default::default(),
            checks: Default::default(),
            loads: Vec::new(),
            warnings: Some(0),
            boot_s: Some(2.5),
            cpu_s: 1.0,
            database_cpu_s: Some(1.0),
            memory_bytes: Some(90_000_000),
        }
    }

    #[test]
    fn a_run_is_told_in_a_line() {
        assert_eq!(
            in_a_line(&run(Some(true), 8.25, Some(2))),
            "fail, interruption 8.2 s, back for good 9.2 s, lost 2"
        );
        assert_eq!(
            in_a_line(&run(Some(false), 0.1, None)),
            "fail, interruption none, back for good 1.1 s, lost unknown"
        );
        let open = Run { lost_writes_at_least: true, ..run(Some(true), 8.25, Some(2)) };
        assert!(in_a_line(&open).ends_with("lost at least 2"), "{}", in_a_line(&open));
    }

    #[test]
    fn a_cell_is_read_back_as_it_was_saved_and_damage_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(read(folder.path(), "etcd", "all-off").expect("readable"), None);
        let mut cell = Cell::new("etcd", "all-off");
        cell.runs = vec![run(Some(true), 2.0, Some(0)); 2];
        assert_eq!((cell.versions(), machines(&cell).len()), (vec!["3.4.23"], 1));
        save(folder.path(), &cell).expect("saved");
        assert_eq!(read(folder.path(), "etcd", "all-off").expect("readable"), Some(cell));
        super::super::write(&path(folder.path(), "etcd", "all-off"), "{").expect("written");
        assert!(read(folder.path(), "etcd", "all-off").is_err());
    }

    #[test]
    fn what_is_published_has_the_scenario_of_each_cell_and_lacks_none_silently() {
        let folder = tempfile::tempdir().expect("a folder");
        let cell = || Cell { runs: vec![run(Some(true), 2.0, Some(0))], ..Cell::new("etcd", "leader-off") };
        assert!(
            publish(folder.path(), std::iter::once(cell())).is_err(),
            "nobody could make these figures again"
        );
        super::super::write(&super::super::scenario_path(folder.path(), "etcd", "leader-off"), "name: it\n")
            .expect("written");
        publish(folder.path(), std::iter::once(cell())).expect("published");
        let text = fs::read_to_string(folder.path().join("atlas.json")).expect("the file");
        let atlas = Atlas::read(&text).expect("an atlas");
        assert_eq!((atlas.cells[0].scenario.as_str(), &atlas.cells[0].cell), ("name: it\n", &cell()));
        assert!(atlas.cells[0].title.starts_with("The leader's host"), "{}", atlas.cells[0].title);
    }
}

//! The pages of the atlas: one for all, one for each engine, made from the data that are there.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use ::atlas::{Cell, Run};
use anyhow::Context;
use history::Verdict;

use super::data::{self, Cells, range};
use super::engines::{ENGINES, EngineSetting};
use super::faults::{FAULTS, FaultSetting};
use super::wall;

/// Writes `README.md`, a page for each engine that has a run, and `atlas.json`.
pub(super) fn write(folder: &Path) -> anyhow::Result<()> {
    let mut cells = BTreeMap::new();
    for engine in &ENGINES {
        for fault in &FAULTS {
            if let Some(cell) = data::read(folder, engine.name, fault.name)? {
                cells.insert((engine.name, fault.name), cell);
            }
        }
    }
    // By engine and fault as the pages have them.
    let in_order =
        ENGINES.iter().flat_map(|engine| FAULTS.iter().map(move |fault| (engine.name, fault.name)));
    data::publish(folder, in_order.filter_map(|place| cells.get(&place).cloned()))?;
    super::write(&folder.join("README.md"), &overview(&cells, &findings(folder)?))?;
    super::write(&folder.join("wall.svg"), &wall::picture(&cells))?;
    for engine in &ENGINES {
        if FAULTS.iter().any(|fault| cells.contains_key(&(engine.name, fault.name))) {
            super::write(&folder.join(format!("{}.md", engine.name)), &engine_page(engine, &cells))?;
        }
    }
    Ok(())
}

/// Title and file of each page in `findings/` beside the atlas.
fn findings(folder: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let beside = folder.parent().unwrap_or(folder).join("findings");
    if !beside.is_dir() {
        return Ok(found);
    }
    for entry in std::fs::read_dir(&beside).with_context(|| format!("read {}", beside.display()))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let path = beside.join(&name);
        let text = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        let title = text.lines().next().unwrap_or_default().trim_start_matches("# ");
        found.insert(title.to_owned(), name);
    }
    Ok(found)
}

fn overview(cells: &Cells, findings: &BTreeMap<String, String>) -> String {
    let mut text = String::from(
        "\
# Atlas

<!-- Written by `cargo xtask atlas`. -->

Each engine under the same faults, on the same site, with the same load. A cell says how long clients went without a
success (median, and from best to worst where there are several runs), and how many acknowledged writes were lost, in
how many runs. **Bold** is a loss, a failed check, or runs whose verdict is `unknown`: none of these shows that nothing was lost.
Each engine's page has all figures, the reasons for doubts, its settings and its scenarios. The number of runs leads to the
scenario that makes them again. Runs that were made one after the other may share a lab: the database starts anew from a snapshot of its
volumes (`holdfast run --repeat`).

![A field for each engine and fault, in it a dot for each run](./wall.svg)

",
    );
    let shown: Vec<&EngineSetting> = ENGINES
        .iter()
        .filter(|engine| FAULTS.iter().any(|fault| cells.contains_key(&(engine.name, fault.name))))
        .collect();
    let heads: String = shown.iter().map(|engine| format!(" [{0}]({0}.md) |", engine.name)).collect();
    let _ = writeln!(text, "| fault |{heads}\n|---|{}", "---|".repeat(shown.len()));
    for fault in &FAULTS {
        let row: String = shown
            .iter()
            .map(|engine| {
                let cell = cells.get(&(engine.name, fault.name));
                let told = |cell| in_a_cell(cell, &scenario_link(engine.name, fault.name));
                format!(" {} |", cell.map_or_else(|| "not run".to_owned(), told))
            })
            .collect();
        let _ = writeln!(text, "| {} |{row}", fault.title);
    }
    let runs: usize = cells.values().map(|cell| cell.runs.len()).sum();
    let cpu_hours = cells.values().flat_map(|cell| &cell.runs).map(|run| run.cpu_s).sum::<f64>() / 3_600.0;
    let _ = writeln!(
        text,
        "\n{runs} runs in {} cells, {cpu_hours:.1} CPU hours. `cargo xtask atlas` makes the runs that are missing; its data \
         are in `data/`, the scenarios in `scenarios/`. `holdfast compare RUN_DIR --with atlas` compares a run of yours with them.",
        cells.len()
    );
    if !findings.is_empty() {
        text.push_str("\nWhat was found in logs and histories of such runs:\n\n");
        for (title, file) in findings {
            let _ = writeln!(text, "- [{title}](../findings/{file})");
        }
    }
    text
}

fn scenario_link(engine: &str, fault: &str) -> String {
    format!("./scenarios/{engine}/{fault}.yaml")
}

/// A cell on the overview: from how many runs of which scenario, and what they showed.
fn in_a_cell(cell: &Cell, scenario: &str) -> String {
    let runs = match cell.runs.len() {
        1 => "1 run".to_owned(),
        several => format!("{several} runs"),
    };
    format!("[{runs}]({scenario}): {}", in_short(cell))
}

/// What the runs of a cell showed.
fn in_short(cell: &Cell) -> String {
    let runs = cell.runs.len();
    let lost: Vec<&Run> =
        cell.runs.iter().filter(|run| run.lost_writes.is_some_and(|lost| lost > 0)).collect();
    let unread = cell.runs.iter().filter(|run| run.lost_writes.is_none()).count();
    let mut words = interruptions(cell);
    words.push_str(&match lost.len() {
        0 if unread == runs => String::new(),
        0 => "; none lost".to_owned(),
        with_loss => format!(
            "; **{}{} lost** in {with_loss} of {runs}",
            least(cell),
            range(&lost.iter().filter_map(|run| Some(run.lost_writes? as f64)).collect::<Vec<_>>(), 0)
        ),
    });
    if unread > 0 {
        let _ = write!(words, "; losses unknown in {unread} of {runs}");
    }
    let doubtful = cell.runs.iter().filter(|run| run.verdict == Verdict::Unknown).count();
    if doubtful > 0 {
        let _ = write!(words, "; **in doubt** in {doubtful} of {runs}");
    }
    let failed = failed_checks(cell);
    if !failed.is_empty() {
        let _ = write!(words, "; **{}**", failed.join(", "));
    }
    words
}

/// How long clients went without a success.
fn interruptions(cell: &Cell) -> String {
    let runs = cell.runs.len();
    let interrupted: Vec<&Run> =
        cell.runs.iter().filter(|run| run.interrupted == Some(true) && run.gap_s.is_some()).collect();
    let gaps = data::Gaps::of(&interrupted).map(|gaps| gaps.range()).unwrap_or_default();
    let unknown = cell.runs.iter().filter(|run| run.interrupted.is_none() || run.gap_s.is_none()).count();
    let mut words = match interrupted.len() {
        0 if unknown == runs => return "interruption unknown".to_owned(),
        0 => "no interruption".to_owned(),
        some if some + unknown == runs => format!("{gaps} s"),
        some => format!("{gaps} s in {some} of {runs}"),
    };
    if unknown > 0 {
        let _ = write!(words, "; unknown in {unknown} of {runs}");
    }
    words
}

/// Checks other than the ledger's that failed, with how often.
fn failed_checks(cell: &Cell) -> Vec<String> {
    let mut failed: BTreeMap<&str, usize> = BTreeMap::new();
    for run in &cell.runs {
        for (check, _) in
            run.checks.iter().filter(|(check, verdict)| *check != "ledger" && **verdict == Verdict::Fail)
        {
            *failed.entry(check).or_default() += 1;
        }
    }
    failed.iter().map(|(check, times)| format!("{check} failed in {times} of {}", cell.runs.len())).collect()
}

/// What stands before lost writes where not all of a run could be told.
fn least(cell: &Cell) -> &'static str {
    if cell.runs.iter().any(|run| run.lost_writes_at_least) { "at least " } else { "" }
}

fn engine_page(engine: &EngineSetting, cells: &Cells) -> String {
    let mut text = format!("# {}\n\n<!-- Written by `cargo xtask atlas`. -->\n\n", engine.name);
    let of_engine: Vec<(&FaultSetting, &Cell)> =
        FAULTS.iter().filter_map(|fault| Some((fault, cells.get(&(engine.name, fault.name))?))).collect();
    let versions = of_engine.iter().flat_map(|(_, cell)| cell.versions().into_iter().map(str::to_owned));
    let versions = joined(versions);
    let machines = joined(of_engine.iter().flat_map(|(_, cell)| data::machines(cell)));
    let _ = writeln!(text, "Version {versions}; {}. Ran on: {machines}.\n", engine.remark);
    text.push_str(
        "\
| fault | runs | verdicts | interruption | new leader, s | first success, s | back to 95 %, s | for good, s | acknowledged | lost | errors | scenario |
|---|---|---|---|---|---|---|---|---|---|---|---|
",
    );
    for (fault, cell) in &of_engine {
        let _ = writeln!(text, "{}", row(engine, fault, cell));
    }
    text.push_str(
        "\nInterruption: the longest time without a success, of all loads. The four times are from the fault's effect. New \
         leader: the platform had promoted another node, or a node that was asked every 200 ms said that it leads. First success: of \
         the load that waited longest. For good: the end of the last second below 95 % of the baseline; `never` within the run \
         where a run has none, `not shown` where its throughput could not be compared with a baseline or its record does not say. \
         `≥`: the interruption had not ended when the loads did.\n\n\
         | fault | boot, s | CPU of the nodes, s | memory of the nodes, MB |\n|---|---|---|---|\n",
    );
    for (fault, cell) in &of_engine {
        let _ = writeln!(text, "{}", cost_row(fault, cell));
    }
    text.push_str(
        "\nOf all nodes together. Boot: until the database accepted a write. CPU: over the whole run, the boot included. Memory: \
         the most that their processes held at once while loads ran.\n",
    );
    let doubts = doubts(&of_engine);
    if !doubts.is_empty() {
        let _ = write!(text, "\nRuns in doubt, and why:\n\n{doubts}");
    }
    text
}

/// The reasons of runs whose verdict is unknown, with how often each was given.
fn doubts(of_engine: &[(&FaultSetting, &Cell)]) -> String {
    let mut text = String::new();
    for (fault, cell) in of_engine {
        let doubtful = cell.runs.iter().filter(|run| run.verdict == Verdict::Unknown);
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        for reason in doubtful.flat_map(|run| &run.reasons) {
            *reasons.entry(reason).or_default() += 1;
        }
        for (reason, times) in reasons {
            let _ = writeln!(text, "- {}, {times} of {}: {reason}", fault.title, cell.runs.len());
        }
    }
    text
}

fn cost_row(fault: &FaultSetting, cell: &Cell) -> String {
    format!(
        "| {} | {} | {} | {} |",
        fault.title,
        figure(&cell.runs, 1, |run| run.boot_s),
        figure(&cell.runs, 0, |run| run.database_cpu_s),
        figure(&cell.runs, 0, |run| run.memory_bytes.map(|bytes| bytes as f64 / 1e6)),
    )
}

/// A figure of the runs that have it, and of how many where not all do.
fn figure(runs: &[Run], digits: usize, of: impl Fn(&Run) -> Option<f64>) -> String {
    let values: Vec<f64> = runs.iter().filter_map(of).collect();
    match values.len() {
        0 => "unknown".to_owned(),
        all if all == runs.len() => range(&values, digits),
        some => format!("{} in {some} of {}", range(&values, digits), runs.len()),
    }
}

/// A time to recover, in how many runs it never came, and of how many it is not known.
fn recovery(runs: &[Run], of: impl Fn(&Run) -> Option<f64>) -> String {
    let values: Vec<f64> = runs.iter().filter_map(&of).collect();
    let without = runs.iter().filter(|run| of(run).is_none());
    let (never, unknown): (Vec<&Run>, Vec<&Run>) = without.partition(|run| run.never_recovered());
    let mut words = Vec::new();
    if !values.is_empty() {
        words.push(range(&values, 1));
    }
    for (runs, what) in [(never, "never"), (unknown, "not shown")] {
        if !runs.is_empty() {
            words.push(format!("{what} in {}", runs.len()));
        }
    }
    words.join("; ")
}

fn row(engine: &EngineSetting, fault: &FaultSetting, cell: &Cell) -> String {
    let mut verdicts: BTreeMap<String, usize> = BTreeMap::new();
    let mut errors: BTreeMap<&str, u64> = BTreeMap::new();
    for run in &cell.runs {
        *verdicts.entry(run.verdict.to_string()).or_default() += 1;
        for (class, count) in &run.errors {
            *errors.entry(class).or_default() += count;
        }
    }
    let counted = |counts: Vec<String>| if counts.is_empty() { "none".to_owned() } else { counts.join(", ") };
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {}{} | {} | [yaml]({}) |",
        fault.title,
        cell.runs.len(),
        counted(verdicts.iter().map(|(verdict, times)| format!("{times} {verdict}")).collect()),
        interruptions(cell),
        figure(&cell.runs, 1, |run| run.new_leader_s),
        recovery(&cell.runs, |run| run.first_success_s),
        recovery(&cell.runs, |run| run.back_to_95_percent_s),
        recovery(&cell.runs, |run| run.sustained_s),
        figure(&cell.runs, 0, |run| run.acknowledged_writes.map(|writes| writes as f64)),
        least(cell),
        figure(&cell.runs, 0, |run| run.lost_writes.map(|writes| writes as f64)),
        counted(errors.iter().map(|(class, count)| format!("{count} {class}")).collect()),
        scenario_link(engine.name, fault.name),
    )
}

fn joined(words: impl Iterator<Item = String>) -> String {
    let words: std::collections::BTreeSet<String> = words.collect();
    words.into_iter().collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::super::data::tests::run;
    use super::*;

    fn cell(runs: Vec<Run>) -> Cell {
        Cell { runs, ..Cell::new("etcd", "leader-off") }
    }

    #[test]
    fn a_cell_says_how_long_and_how_many_and_in_how_many_runs() {
        let told = |runs| in_short(&cell(runs));
        assert_eq!(told(vec![run(Some(true), 2.0, Some(0))]), "2.0 s; none lost");
        assert_eq!(
            told(vec![
                run(Some(true), 2.0, Some(0)),
                run(Some(true), 3.0, Some(7)),
                run(Some(true), 4.0, Some(0))
            ]),
            "3.0 (2.0 to 4.0) s; **7 lost** in 1 of 3"
        );
        assert_eq!(told(vec![run(Some(false), 0.1, Some(0))]), "no interruption; none lost");
        assert_eq!(
            told(vec![run(Some(false), 0.1, Some(0)), run(None, 0.1, None)]),
            "no interruption; unknown in 1 of 2; none lost; losses unknown in 1 of 2"
        );
        let doubtful = Run { verdict: Verdict::Unknown, ..run(Some(true), 2.0, Some(0)) };
        assert_eq!(told(vec![doubtful]), "2.0 s; none lost; **in doubt** in 1 of 1");
        let open = Run { lost_writes_at_least: true, ..run(Some(true), 2.0, Some(7)) };
        assert_eq!(told(vec![open]), "2.0 s; **at least 7 lost** in 1 of 1");
        let mut failed = run(Some(true), 2.0, Some(0));
        failed.checks = BTreeMap::from([("append".to_owned(), Verdict::Fail)]);
        assert_eq!(told(vec![failed]), "2.0 s; none lost; **append failed in 1 of 1**");
    }

    #[test]
    fn pages_are_made_of_the_cells_that_are_there_and_the_others_are_told() {
        let folder = tempfile::tempdir().expect("a folder");
        data::save(folder.path(), &cell(vec![run(Some(true), 2.0, Some(0))])).expect("saved");
        super::super::write(&super::super::scenario_path(folder.path(), "etcd", "leader-off"), "name: it\n")
            .expect("written");
        write(folder.path()).expect("written");
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("a page");
        let overview = read("README.md");
        assert!(
            overview.contains("[etcd](etcd.md)")
                && overview.contains("[1 run](./scenarios/etcd/leader-off.yaml): 2.0 s; none lost"),
            "{overview}"
        );
        assert!(overview.contains("not run") && !overview.contains("redis"), "{overview}");
        let page = read("etcd.md");
        assert!(page.contains("| 1 pass | 2.0 s | unknown | 2.0 | 2.0 | 3.0 | 1000 | 0 | none |"), "{page}");
        assert!(page.contains("| 2.5 | 1 | 90 |"), "{page}");
        assert!(!folder.path().join("redis.md").exists() && !page.contains("in doubt"));
        let reasons = vec!["two led".to_owned()];
        let doubtful = Run { verdict: Verdict::Unknown, reasons, ..run(Some(true), 2.0, Some(0)) };
        data::save(folder.path(), &cell(vec![doubtful.clone(), doubtful])).expect("saved");
        write(folder.path()).expect("written");
        let page = std::fs::read_to_string(folder.path().join("etcd.md")).expect("a page");
        assert!(page.contains("host loses power for 10 s, 2 of 2: two led\n"), "{page}");
    }
}

//! Which engine carries which workload, as a table for the terminal: a mark where it does not, and what each mark means.
//!
//! Owns the table's form. What an engine lacks is `capabilities`' knowledge.

use capabilities::{Capabilities, Lack};

/// Stands where the engine carries the workload.
const CARRIED: &str = "yes";

/// The table's lines: workloads as columns, engines as rows, and below them why each empty cell is empty. Every line is indented,
/// so that the first words of other lines are the engines alone.
pub(super) fn matrix(engines: &[&Capabilities], workloads: &[&str]) -> Vec<String> {
    let name_width = engines.iter().map(|engine| engine.name.len()).max().unwrap_or(0);
    let row = |name: &str, cells: Vec<&str>| {
        let cells = cells.iter().zip(workloads).map(|(cell, workload)| {
            let width = workload.len().max(CARRIED.len());
            format!("  {cell:width$}")
        });
        format!("  {name:name_width$}{}", cells.collect::<String>()).trim_end().to_owned()
    };
    let mut reasons: Vec<Lack> = Vec::new();
    let mut lines = vec![row("", workloads.to_vec())];
    for engine in engines {
        let cells = workloads.iter().map(|workload| match engine.understands.why_not(workload) {
            None => CARRIED,
            Some(reason) => {
                if !reasons.contains(&reason) {
                    reasons.push(reason);
                }
                mark(reason)
            }
        });
        lines.push(row(engine.name, cells.collect()));
    }
    lines.extend(reasons.into_iter().map(|reason| format!("  {}: the workload {reason}", mark(reason))));
    lines
}

fn mark(reason: Lack) -> &'static str {
    match reason {
        Lack::Database => "d",
        Lack::Volume => "v",
        Lack::Dialect => "f",
        Lack::Sql => "s",
        Lack::Transactions => "t",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_row_for_each_engine_and_says_what_each_mark_means() {
        let named = |name| capabilities::named(name).expect("an engine");
        let lines = matrix(&[named("cassandra"), named("none")], &["kv", "append", "rawio"]);
        assert_eq!(
            lines,
            [
                "             kv   append  rawio",
                "  cassandra  yes  t       v",
                "  none       d    d       yes",
                "  t: the workload needs transactions of several statements",
                "  v: the workload needs a bare volume",
                "  d: the workload needs a database",
            ]
        );
    }

    #[test]
    fn every_engine_has_an_answer_for_every_workload() {
        let workloads: Vec<&str> = workload::all().iter().map(|workload| workload.name()).collect();
        let engines: Vec<&Capabilities> = capabilities::engines().to_vec();
        let lines = matrix(&engines, &workloads);
        for (engine, line) in engines.iter().zip(&lines[1..]) {
            let cells: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(cells.len(), workloads.len() + 1, "{line}");
            assert!(cells[0] == engine.name && cells.contains(&CARRIED), "{line}");
            for (cell, workload) in cells[1..].iter().zip(&workloads) {
                assert_eq!(*cell == CARRIED, engine.understands.workload(workload), "{line}: {workload}");
            }
        }
    }
}

//! The page of a run directory's files.
//!
//! Owns the list: the files are written by several crates, and no one of them knows them all. A test looks for each name in
//! the crates that write them.

use super::markdown::{self, code, table};

/// Files and folders, what writes each, and what each holds.
const FILES: &[(&str, &str, &str)] = &[
    ("report.html", "run, report", "The report: one file, works offline and prints."),
    (
        "result.json",
        "run, load",
        "Verdict, expectations, checks, faults with receipts, and all figures. For programs; see [result.md](result.md).",
    ),
    (
        "scenario.yaml",
        "run",
        "The scenario as it ran, with all defaults and the seed. Run it to repeat the run.",
    ),
    ("events.jsonl", "run, load", "Events on the run's clock, one JSON object a line."),
    ("timeline.csv", "run, load", "One row a second for each operation: count, errors, percentiles."),
    ("timeline.hlog", "run, load", "Latency histograms, as an HdrHistogram interval log."),
    (
        "hosts.csv",
        "run",
        "One row a second for each host: processors that its nodes use, bytes that its disks hand out and make durable, syncs, \
         and the memory of its nodes' processes as `/proc` has it: what each has for itself, and of each node once the largest \
         part that one of its processes has of files and shared memory.",
    ),
    (
        "kubernetes.jsonl",
        "run, of pods",
        "What was seen of the cluster's pods, nodes, leases, volumes and services, one JSON object a line.",
    ),
    ("links.csv", "run", "One row a second for each link and edge: traffic, drops, utilisation."),
    ("history.jsonl.zst", "run, load", "Every operation with its outcome: the input of the checks."),
    ("captures", "run --capture", "Folder of packet captures (pcap), one for each `--capture`."),
    ("logs", "run, load", "Folder of logs: the database's on each node, and the lab's own."),
    ("matrix.json", "run, of a matrix", "Axes, cells and the result of each run."),
    ("compare.html", "run, of a matrix; compare", "Charts and intervals of several runs."),
    (
        "cells",
        "run, of a matrix",
        "Folder with a run directory for each run, and one for each lab that runs began with.",
    ),
    ("lab.json", "run", "While the lab is up: where `holdfast shell` finds it."),
    ("volumes", "run", "While the lab is up: folder with the content of the nodes' volumes."),
];

pub(super) fn page() -> String {
    let rows =
        FILES.iter().map(|(name, by, content)| vec![code(name), (*by).to_owned(), (*content).to_owned()]);
    markdown::page(
        "Files of a run",
        "A run writes its own directory, `runs/SCENARIO/TIME/`; `runs/latest` points to the last one. Every file is \
         complete up to the last second at any time, so a run that was killed can still be reported on.",
        &table(&["file", "written by", "content"], rows.collect()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Crates that write or read a run directory.
    const WRITERS: &[&str] = &[
        "crates/run/src",
        "crates/pods/src",
        "crates/watch/src",
        "crates/report/src",
        "crates/results/src",
        "crates/holdfast/src",
        "crates/lab/src",
    ];

    #[test]
    fn every_file_on_the_page_is_named_by_the_code_that_writes_it() {
        let files = crate::tidy::text_files(&crate::repository_root()).expect("the repository");
        let source: String = files
            .iter()
            .filter(|file| WRITERS.iter().any(|folder| file.path.starts_with(folder)))
            .map(|file| file.text.as_str())
            .collect();
        for (name, _, _) in FILES {
            let quoted = [format!("\"{name}\""), format!("\"{name}/")];
            assert!(quoted.iter().any(|quoted| source.contains(quoted)), "{name} is written by nobody");
        }
    }
}

//! The pages of a campaign: counts by what was done to the runs, and the complaints.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use serde_json::json;

use super::Options;
use super::one_run::Became;
use super::treatment::TREATMENTS;

/// How many runs ended how, by treatment, as a table in Markdown.
pub(super) fn table(became: &[Became]) -> String {
    let ends: BTreeSet<&str> = became.iter().map(|one| one.ended.as_str()).collect();
    let columns = |cell: &dyn Fn(&str) -> String| {
        ends.iter().map(|end| format!(" {} |", cell(end))).collect::<String>()
    };
    let mut table = format!("| done to the run | runs |{} complaints |\n", columns(&|end| end.to_owned()));
    table.push_str(&format!("|---|---|{}---|\n", columns(&|_| "---".to_owned())));
    for (treatment, _, name) in TREATMENTS {
        let of_it: Vec<&Became> = became.iter().filter(|one| one.treatment == treatment).collect();
        if of_it.is_empty() {
            continue;
        }
        let ended = |end: &str| of_it.iter().filter(|one| one.ended == end).count().to_string();
        let complained = of_it.iter().filter(|one| !one.complaints.is_empty()).count();
        table.push_str(&format!("| {name} | {} |{} {complained} |\n", of_it.len(), columns(&ended)));
    }
    table
}

/// Writes both.
///
/// # Errors
/// When a file cannot be written.
pub(super) fn write(asked: &Options, became: &[Became], impossible: &[String]) -> anyhow::Result<()> {
    let docs = crate::repository_root().join("docs");
    for (name, text) in
        [("robustness.md", page(asked, became, impossible)), ("robustness.json", data(asked, became)?)]
    {
        let path = docs.join(name);
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
        println!("{}", path.display());
    }
    Ok(())
}

fn page(asked: &Options, became: &[Became], impossible: &[String]) -> String {
    let mut page = format!(
        "# Robustness\n\n\
         Scenarios drawn by chance from the language, most of them disturbed: killed, interrupted, suspended, or run on a machine \
         without room, memory or devices. A run is complained about when it leaves anything on the machine for more than 30 s, \
         panics, hangs, ends with an exit code that stands nowhere, has a directory that `holdfast report` cannot take, or says `pass` \
         where its own record, read again by other code, gives a doubt. Written by\n\n    \
         cargo xtask campaign --runs {} --seed {} --at-once {}\n\n{}\n\
         *refused*: the scenario contradicts itself, and the program says where. *no lab*: the lab could not do its job, and the \
         program says why. *killed*: ended by the signal.\n",
        asked.runs,
        asked.seed,
        asked.at_once,
        table(became),
    );
    if !impossible.is_empty() {
        page.push_str(&format!("\nNot done on this machine: {}.\n", impossible.join("; ")));
    }
    let complained: Vec<&Became> = became.iter().filter(|one| !one.complaints.is_empty()).collect();
    if !complained.is_empty() {
        page.push_str("\n## Complaints\n\n");
    }
    for one in complained {
        page.push_str(&format!(
            "- seed {}, {}: {}\n",
            one.seed,
            one.treatment.name(),
            one.complaints.join("; ")
        ));
    }
    page
}

fn data(asked: &Options, became: &[Became]) -> anyhow::Result<String> {
    let mut treatments: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
    for one in became {
        *treatments.entry(one.treatment.name()).or_default().entry(&one.ended).or_default() += 1;
    }
    let complained = became.iter().filter(|one| !one.complaints.is_empty());
    let complaints: Vec<_> = complained
        .map(|one| json!({ "seed": one.seed, "treatment": one.treatment.name(), "complaints": one.complaints }))
        .collect();
    let data = json!({
        "runs": asked.runs, "seed": asked.seed, "at_once": asked.at_once, "ended": treatments, "complaints": complaints,
    });
    Ok(serde_json::to_string_pretty(&data)? + "\n")
}

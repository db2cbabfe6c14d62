//! How it was measured: what the words and figures of a report mean, what no check of the run proves, on which machine,
//! and how to have the same run again.

use std::fmt::Write;

use crate::format;
use crate::markup::escape;
use results::RunDirectory;
use results::RunResult;

/// The method in words.
pub(crate) fn method(run: &RunDirectory) -> String {
    let result = &run.result;
    let mut items = vec![("Load", load(result))];
    items.push((
        "Latency",
        "from the moment a client sends an operation to the moment it has the whole answer, as the client sees it, in \
         microseconds, in a high dynamic range histogram per operation and second with three significant digits. The \
         tail is not capped: the longest one is the longest there was. Only operations that succeeded have a latency here; \
         those that did not are counted as errors by class."
            .to_owned(),
    ));
    items.push((
        "Time",
        "seconds on one clock, the machine's monotonic clock, which no fault touches. It starts at 0 with the first load; \
         preparation has negative times. A charted second covers that second up to the next."
            .to_owned(),
    ));
    items.push((
        "Outcomes",
        "an operation is acknowledged, refused, or unknown. Unknown means that the client sent it and never had a definite \
         answer (the connection broke, or the answer did not come in time): it may have happened, it may not, and no \
         client could know. Such writes count neither as acknowledged nor as lost."
            .to_owned(),
    ));
    items.push((
        "Recovery",
        "A fault is charged with what happens from its effect, by its receipt, until the next fault is asked for or the loads \
         end. Longest time without a success: of any client of a load while something was due, in a closed loop whenever a \
         client wants to send, in an open loop from the moment an operation is due; measured operation by operation. It is an \
         interruption when it is longer than 0.25 s and than three times the longest in the baseline. Below 95 %: whole \
         seconds with less than 95 % of the baseline's mean throughput that are also slower than the baseline's own spread \
         explains, its slowest second and its mean less four standard deviations. Below 50 %: whole seconds with less than \
         half. Sustained recovery: the end of the last interruption, the last second below 50 % and the last two neighbouring \
         seconds below 95 %, whichever is latest, with at least three seconds after it. First success: the first operation \
         sent after the effect that succeeded, less the time in which nothing was due. Where the baseline is shorter than \
         four seconds, has itself a second below 50 %, or the number of clients changed, low seconds are unknown."
            .to_owned(),
    ));
    items.push((
        "Receipts",
        "a fault counts only with independent evidence that it took effect and that it healed. A run without it cannot pass."
            .to_owned(),
    ));
    let mut html = "<dl class=\"method\">".to_owned();
    for (term, text) in items {
        let _ = write!(html, "<dt>{term}</dt><dd>{}</dd>", escape(&text));
    }
    html.push_str("</dl>");
    html.push_str(&proofs(result));
    html
}

fn load(result: &RunResult) -> String {
    let closed: Vec<String> = result
        .loads
        .iter()
        .filter_map(|load| {
            let clients = format::counted(u64::from(load.measured.clients?), "client", "clients");
            let least = load.measured.clients_least.map(|least| format!("{least} to ")).unwrap_or_default();
            Some(format!("{} with {least}{clients}", load.name))
        })
        .collect();
    let open: Vec<String> = result
        .loads
        .iter()
        .filter(|load| load.measured.clients.is_none())
        .filter_map(|load| {
            let rate = match load.measured.rate_range_per_s {
                Some([least, most]) => format!("{} to {}", format::rate(least), format::rate(most)),
                None => format::rate(load.measured.rate_per_s?),
            };
            Some(format!("{} at {rate}", load.name))
        })
        .collect();
    let mut sentences = Vec::new();
    if !closed.is_empty() {
        sentences.push(format!(
            "closed loop ({}): each client sends its next operation as soon as the last has ended. During an outage closed \
             clients wait, so that few operations meet it: the outage shows in throughput and in the time to recover rather \
             than in percentiles.",
            format::listed(&closed)
        ));
    }
    if !open.is_empty() {
        sentences.push(format!(
            "open loop ({}): operations are timed from the moment they were due.",
            format::listed(&open)
        ));
    }
    sentences.push(
        "Clients stand in their own place in the site, reconnect by themselves with growing pauses, look for the node that takes \
         writes, and never stop the run."
            .to_owned(),
    );
    sentences.join(" ")
}

/// What nothing in this run proves. What each check proves stands beside the check.
fn proofs(result: &RunResult) -> String {
    let mut unproven = Vec::new();
    if result.volumes.is_empty() {
        unproven.push(
            "Whether unsynced data survives a loss of power. In this run a node's volume is a plain directory: a power-off \
             ends all processes of a host at once, but what they had written without fsync stays. A database that acknowledges before \
             fsync is not caught.",
        );
    }
    unproven.push(
        "Absolute speed on other hardware. Everything here shares one machine; what carries over is the shape: ratios, the order \
         of events, whether data survived.",
    );
    unproven.push("Other moments and other orders of the same fault. One run is one sample; run it again with other seeds.");
    let list = |sentences: &[&str]| -> String {
        sentences.iter().map(|sentence| format!("<li>{sentence}</li>")).collect()
    };
    format!("<h3>What this run does not prove</h3><ul>{}</ul>", list(&unproven))
}

/// Versions, settings, the machine, the lab's own cost.
pub(crate) fn provenance(run: &RunDirectory) -> String {
    let (result, facts) = (&run.result, &run.result.facts);
    let mut html = "<div class=\"columns\">".to_owned();
    let mut versions = vec![
        ("Holdfast".to_owned(), result.holdfast.clone()),
        (facts.engine.clone(), facts.engine_version.clone()),
        ("Scenario".to_owned(), result.scenario.clone()),
        ("Seed".to_owned(), result.seed.to_string()),
        ("Started".to_owned(), result.started_at.clone()),
    ];
    versions.extend(
        result
            .lab
            .boot_s
            .map(|boot_s| ("Time until the database accepted a write".to_owned(), format::seconds(boot_s))),
    );
    html.push_str(&facts_list("Run", versions));
    html.push_str(&facts_list(
        "Database settings",
        facts.engine_settings.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
    ));
    html.push_str(&facts_list(
        "Machine",
        facts.machine.iter().map(|(name, value)| machine(name, value)).collect(),
    ));
    html.push_str(&facts_list("Modelled disks", modelled_disks(result)));
    html.push_str(&facts_list("CPU of the whole run", cpu(result)));
    html.push_str("</div>");
    html
}

fn machine(name: &str, value: &str) -> (String, String) {
    match (name, value.parse::<u64>()) {
        ("memory_bytes", Ok(memory_bytes)) => ("memory".to_owned(), format::bytes(memory_bytes)),
        _ => (name.replace('_', " "), value.to_owned()),
    }
}

fn modelled_disks(result: &RunResult) -> Vec<(String, String)> {
    let Some(syncs) = &result.lab.modelled_syncs else { return Vec::new() };
    [
        ("syncs", format::count(syncs.count)),
        ("latency asked for", format::latency_or_zero(syncs.asked_us as f64)),
        ("answered later than due, mean", format::latency_or_zero(syncs.late_us_mean)),
        ("answered later than due, most", format::latency_or_zero(syncs.late_us_max as f64)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

fn cpu(result: &RunResult) -> Vec<(String, String)> {
    const ORDER: [&str; 5] = ["database", "load", "fabric", "disk", "other"];
    let parts = &result.lab.cpu_seconds;
    let known = ORDER.iter().filter_map(|part| Some(((*part).to_owned(), *parts.get(*part)?)));
    let others = parts
        .iter()
        .filter(|(part, _)| !ORDER.contains(&part.as_str()))
        .map(|(part, value)| (part.clone(), *value));
    let mut rows: Vec<(String, String)> =
        known.chain(others).map(|(part, value)| (part, format::seconds(value))).collect();
    rows.push((
        "the lab's share while loads ran".to_owned(),
        result.lab.cpu_share_of_lab.map_or_else(|| "not measured".to_owned(), format::percent),
    ));
    rows
}

fn facts_list(title: &str, rows: Vec<(String, String)>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let rows: String = rows
        .iter()
        .map(|(name, value)| format!("<div><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(value)))
        .collect();
    format!("<div><h3>{title}</h3><dl class=\"facts\">{rows}</dl></div>")
}

/// How to have the same run again.
pub(crate) fn again(run: &RunDirectory) -> String {
    let result = &run.result;
    let mut html = format!(
        "<p>The same scenario with the same seed, from the resolved scenario that lies beside this report:</p>\
         <pre>holdfast run scenario.yaml --seed {}</pre>",
        result.seed
    );
    if let Some(yaml) = &run.scenario_yaml {
        let _ = write!(
            html,
            "<details><summary>The resolved scenario</summary><pre>{}</pre></details>",
            escape(yaml)
        );
    }
    html
}

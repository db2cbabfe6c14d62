//! How it was measured: what the words and figures of a report mean, what no check of the run proves, on which machine,
//! and how to have the same run again.

use std::fmt::Write;

use crate::agents;
use crate::format;
use crate::markup::escape;
use history::RunFacts;
use results::{CPU_PARTS, RunDirectory, RunResult};

/// The method in words.
pub(crate) fn method(run: &RunDirectory) -> String {
    let result = &run.result;
    let mut items = vec![("Load", load(result))];
    items.push((
        "Latency",
        "the time from sending an operation, with a rate from when it was due, to receiving its whole answer, measured by the client in microseconds, \
         in a high dynamic range histogram per operation and second with three significant digits. The tail is not \
         capped. Only successful operations have a latency; failed ones are counted as errors by class."
            .to_owned(),
    ));
    items.push((
        "Time",
        format!(
            "seconds on the machine's monotonic clock, which no fault changes. Zero is the start of the first load; \
             preparation has negative times. A point of a chart covers the second that follows it.{}",
            agents::time(result)
        ),
    ));
    items.push((
        "Outcomes",
        "an operation is acknowledged, refused, or unknown. Unknown means that the client sent it and got no \
         definite answer (the connection broke or the client timed out), so it may or may not have happened. Such \
         writes count neither as acknowledged nor as lost."
            .to_owned(),
    ));
    items.push((
        "Recovery",
        "a fault accounts for everything from its effect (by its receipt) until the next fault or the end of the \
         loads. Longest time without a success: over all clients of a load while operations were due, measured \
         operation by operation; in a closed loop an operation is due whenever a client is ready to send. It counts \
         as an interruption if it is longer than 0.25 s and longer than three times the baseline's longest; a baseline with a gap of a second leaves that unknown. Below 95 \
         %: whole seconds with less than 95 % of the baseline's mean throughput that are also below the baseline's \
         own spread (its slowest second, and its mean minus four standard deviations). Below 50 %: whole seconds \
         with less than half. Sustained recovery: the latest of the end of the last interruption, the last second \
         below 50 % and the last pair of neighbouring seconds below 95 %, followed by at least three good seconds. \
         First success: the first successful operation sent after the effect, without the time in which nothing was \
         due. Low seconds are unknown if the baseline is shorter than four seconds, has a second below 50 % itself, \
         or the number of clients changed."
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
            "closed loop ({}): each client sends its next operation once the last one has ended, and its pause where it has one. During an \
             outage the clients wait, so few operations are affected: the outage shows in throughput and recovery \
             time, not in percentiles.",
            format::listed(&closed)
        ));
    }
    if !open.is_empty() {
        sentences.push(format!(
            "open loop ({}): operations are timed from the moment they were due.",
            format::listed(&open)
        ));
    }
    sentences.push(format!(
        "{} They reconnect with growing pauses, search for the node that \
         takes writes, and never stop the run.",
        clients_place(result)
    ));
    sentences.join(" ")
}

fn clients_place(result: &RunResult) -> &'static str {
    let (of_pods, on_agents) = (result.facts.kubernetes.is_some(), !result.agents.is_empty());
    match result.facts.is_external {
        true if of_pods && on_agents => {
            "Clients run in the pods named under Agents, and reach each member by a service of its own. Those of loads \
             without agents run in the process that conducted the run, and reach the members by `kubectl port-forward`, \
             through the cluster's API server."
        }
        true if of_pods => {
            "Clients run in one process on the machine that holdfast ran on, and reach each pod by `kubectl port-forward`: \
             every latency has the way through the cluster's API server and the node's kubelet in it."
        }
        true if on_agents => {
            "Clients run in processes of holdfast on the machines named under Agents; loads without agents in the one that \
             conducted the run."
        }
        true => "Clients run in one process on the machine that holdfast ran on.",
        false => "Clients have their own place in the site.",
    }
}

/// What nothing in this run proves. What each check proves stands beside the check.
fn proofs(result: &RunResult) -> String {
    let mut unproven = Vec::new();
    if result.facts.is_external {
        unproven.push(
            "What was not observed. The receipts are what the command files' own looks saw on the members; what other \
             programs do to the cluster meanwhile is not watched.",
        );
        unproven.push(
            "Whether unsynced data survives a power loss, unless a command file takes the power away: a process that is \
             killed leaves its data in the machine's memory.",
        );
        if result.facts.kubernetes.is_some() && result.agents.is_empty() {
            unproven.push(
                "What clients within the cluster would have seen. Those of this run reach a pod through its node, not by \
                 the network of pods: cutting that does not cut them off.",
            );
        }
    } else if result.volumes.is_empty() {
        unproven.push(
            "Whether unsynced data survives a power loss. In this run a node's volume is a plain directory: a \
             power-off ends all processes of a host at once, but data written without fsync stays. A database that \
             acknowledges before fsync is not caught.",
        );
    }
    unproven.push(match result.facts.is_external {
        true if !result.agents.is_empty() => {
            "Absolute speed on other hardware or in another network."
        }
        true => {
            "Absolute speed on other hardware or in another network. All clients share one machine, which may be the limit."
        }
        false => {
            "Absolute speed on other hardware. Everything here shares one machine; only ratios, the order of events and \
             data survival carry over."
        }
    });
    unproven.push("Other timings of the same fault. One run is one sample; repeat it with other seeds.");
    let list = |sentences: &[&str]| -> String {
        sentences.iter().map(|sentence| format!("<li>{sentence}</li>")).collect()
    };
    format!("<h3>What this run does not prove</h3><ul>{}</ul>", list(&unproven))
}

/// What the time of a boot is until.
fn time_until(facts: &RunFacts) -> &'static str {
    match facts.site.has_database() {
        true => "Time until the database accepted a write",
        false => "Time until the volumes were ready",
    }
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
    versions
        .extend(facts.kubernetes.as_ref().map(|cluster| ("Kubernetes".to_owned(), cluster.versions.clone())));
    versions.extend(result.lab.boot_s.map(|boot_s| (time_until(facts).to_owned(), format::seconds(boot_s))));
    if result.lab.from_snapshot {
        let how =
            "returned to a snapshot, taken when the tables were loaded and the database had ended in order";
        versions.push(("Volumes at the start".to_owned(), how.to_owned()));
    }
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
    html.push_str(&facts_list("Kernel's own path", kernel_path(result)));
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
        ("configured latency", format::latency_or_zero(syncs.asked_us as f64)),
        ("late answers, mean", format::latency_or_zero(syncs.late_us_mean)),
        ("late answers, longest", format::latency_or_zero(syncs.late_us_max as f64)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

/// Most pairs that are named: more of them are a number.
const PAIRS_NAMED: usize = 12;

fn kernel_path(result: &RunResult) -> Vec<(String, String)> {
    let Some(path) = &result.lab.kernel_path else { return Vec::new() };
    let by_fabric = match path.pairs_by_fabric.len() {
        0 => "none".to_owned(),
        count if count > PAIRS_NAMED => format::count(count as u64),
        _ => {
            let named = path.pairs_by_fabric.iter().map(|pair| format!("{} -> {}", pair.from, pair.to));
            named.collect::<Vec<_>>().join(", ")
        }
    };
    let mut rows = vec![
        ("pairs of places by the kernel at the end", format::count(path.pairs_by_kernel)),
        ("pairs through the simulated network at the end", by_fabric),
        ("moves to the simulated network", format::count(path.moved_to_fabric)),
        ("moves to the kernel's path", format::count(path.moved_to_kernel)),
        ("longest move", format::latency_or_zero(path.longest_change_us as f64)),
    ];
    rows.extend(path.frames.map(|frames| ("frames by the kernel", format::count(frames))));
    rows.extend(path.bytes.map(|bytes| ("bytes by the kernel", format::bytes(bytes))));
    rows.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn cpu(result: &RunResult) -> Vec<(String, String)> {
    let parts = &result.lab.cpu_seconds;
    let known = CPU_PARTS.iter().filter_map(|part| Some(((*part).to_owned(), *parts.get(*part)?)));
    let others = parts
        .iter()
        .filter(|(part, _)| !CPU_PARTS.contains(&part.as_str()))
        .map(|(part, value)| (part.clone(), *value));
    let mut rows: Vec<(String, String)> =
        known.chain(others).map(|(part, value)| (part, format::seconds(value))).collect();
    rows.push((
        "the lab's share while loads ran".to_owned(),
        result.lab.cpu_share_of_lab.map_or_else(|| "not measured".to_owned(), format::percent),
    ));
    let anyway = result.lab.cpu_share_without_lab.map(format::percent);
    rows.extend(
        anyway.map(|share| ("of it syncs and network stacks, used without a lab too".to_owned(), share)),
    );
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
        "<p>To repeat this run with the same seed, use the resolved scenario beside this report:</p>\
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

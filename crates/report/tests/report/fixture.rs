//! A synthetic run: 60 s, the leader's host loses power at 20 s, its node starts again elsewhere, service is back after 7.3 s.
//!
//! Deterministic. Figures are plausible, not measured: they stand for a run so that the report can be looked at and held to.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::path::Path;

use history::{
    ErrorClass, Event, EventKind, FaultId, FirstError, HostFacts, LinkFacts, LoadFacts, NodeFacts,
    PhaseFacts, PlatformAction, Receipt, RunFacts, SiteFacts, Verdict,
};
use results::{
    CheckResult, ExpectationResult, FaultLoadResult, FaultResult, LabResult, LatencyUs, LoadFigures,
    LoadResult, OperationResult, PhaseResult, RecoveryResult, RunResult, WarningResult,
};

const PHASES: [(&str, f64, f64); 4] =
    [("warm-up", 0.0, 5.0), ("baseline", 5.0, 20.0), ("fault", 20.0, 45.0), ("recovery", 45.0, 60.0)];

/// TPC-B's statements with their usual latency, microseconds.
const STATEMENTS: [(&str, u64); 7] = [
    ("BEGIN", 96),
    ("UPDATE accounts", 412),
    ("SELECT accounts", 171),
    ("UPDATE tellers", 538),
    ("UPDATE branches", 2_310),
    ("INSERT history", 204),
    ("END", 4_870),
];

/// A run directory in memory.
#[derive(Debug, Clone)]
pub struct Fixture {
    pub result: RunResult,
    pub events: Vec<Event>,
    pub timeline: String,
    /// `links.csv`; empty: the file is not written.
    pub links: String,
}

impl Fixture {
    /// Writes all files of the run.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        std::fs::write(directory.join("result.json"), serde_json::to_string_pretty(&self.result)?)?;
        self.write_killed(directory)
    }

    /// Writes the files a killed run leaves: all but the result.
    pub fn write_killed(&self, directory: &Path) -> io::Result<()> {
        let mut lines = String::new();
        for event in &self.events {
            lines.push_str(&serde_json::to_string(event)?);
            lines.push('\n');
        }
        std::fs::write(directory.join("events.jsonl"), lines)?;
        std::fs::write(directory.join("scenario.yaml"), "name: host-failure\nseed: 42\n")?;
        if !self.links.is_empty() {
            std::fs::write(directory.join("links.csv"), &self.links)?;
        }
        std::fs::write(directory.join("timeline.csv"), &self.timeline)
    }

    /// Leaves only what was written before a moment, as SIGKILL would.
    pub fn cut_at(mut self, moment_s: f64) -> Fixture {
        self.events.retain(|event| event.t_s < moment_s);
        let is_before = |line: &&str| {
            line.split(',')
                .next()
                .and_then(|t_s| t_s.parse::<f64>().ok())
                .is_none_or(|t_s| t_s + 1.0 <= moment_s)
        };
        self.timeline = self.timeline.lines().filter(is_before).map(|line| format!("{line}\n")).collect();
        self
    }
}

/// The whole job: the leader's host off, its node started again on another host, nothing lost.
pub fn host_failure() -> Fixture {
    let facts = facts();
    let (timeline, seconds) = timeline();
    let loads = facts.loads.iter().map(|load| load_result(load, &seconds)).collect();
    let events = events(&facts);
    let result = RunResult {
        verdict: Verdict::Pass,
        reasons: vec![
            "every expectation holds, every check passes and every fault has its receipt".to_owned(),
        ],
        expectations: expectations(),
        checks: checks(),
        faults: vec![fault(&events)],
        loads,
        lab: LabResult {
            boot_s: Some(2.4),
            nodes: 3,
            cpu_seconds: [("database", 41.2), ("load", 5.1), ("fabric", 7.9), ("disk", 0.0), ("other", 1.3)]
                .map(|(part, value)| (part.to_owned(), value))
                .into(),
            modelled_syncs: Some(results::ModelledSyncsResult {
                count: 51_204,
                asked_us: 400,
                late_us_mean: 31.0,
                late_us_max: 2_140,
            }),
            cpu_share_of_lab: Some(0.243),
            cpu_share_without_lab: Some(0.118),
            warnings: vec![WarningResult {
                what: "the machine's 2 cores were 93 % busy during the baseline".to_owned(),
                remedy: "use fewer clients or a larger machine: latencies include waiting for a core"
                    .to_owned(),
            }],
            ..LabResult::default()
        },
        ..RunResult::blank(facts)
    };
    Fixture { result, events, timeline, links: String::new() }
}

fn site() -> SiteFacts {
    let host = |rack: &str, name: &str, last: u32| HostFacts {
        path: format!("dc1/a/{rack}/{name}"),
        region: "dc1".to_owned(),
        zone: "a".to_owned(),
        rack: Some(rack.to_owned()),
        name: name.to_owned(),
        address: format!("10.77.0.{last}"),
    };
    let node = |name: &str, host: &str, last: u32, role: &str| NodeFacts {
        name: name.to_owned(),
        host: host.to_owned(),
        address: format!("10.77.1.{last}"),
        role: role.to_owned(),
    };
    SiteFacts {
        edges: Vec::new(),
        hosts: vec![
            host("r1", "h1", 11),
            host("r1", "h2", 12),
            host("r2", "h1", 21),
            host("r2", "h2", 22),
            host("r3", "h1", 31),
        ],
        nodes: vec![
            node("n1", "dc1/a/r1/h1", 1, "leader"),
            node("n2", "dc1/a/r2/h1", 2, "follower"),
            node("n3", "dc1/a/r3/h1", 3, "follower"),
        ],
        links: Vec::new(),
    }
}

fn facts() -> RunFacts {
    let load = |name: &str, workload: &str, clients, transaction: &str, statements: Vec<String>| LoadFacts {
        name: name.to_owned(),
        workload: workload.to_owned(),
        clients,
        rate_range_per_s: None,
        from: "dc1".to_owned(),
        transaction: transaction.to_owned(),
        statements,
    };
    let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    RunFacts {
        holdfast: "0.1.0".to_owned(),
        scenario: "host-failure".to_owned(),
        description: "The host of the leader loses power; the platform starts its node on another host."
            .to_owned(),
        seed: 42,
        started_at: "2026-11-21T20:04:11Z".to_owned(),
        engine: "postgres".to_owned(),
        engine_version: "PostgreSQL 15.18".to_owned(),
        engine_settings: map(&[
            ("synchronous", "any 1"),
            ("failover", "ha-restart after 5 s"),
            ("fsync", "on"),
            ("shared_buffers", "128MB"),
        ]),
        machine: map(&[
            ("kernel", "Linux 6.18.5"),
            ("cpu", "AMD EPYC 7B13"),
            ("cores", "2"),
            ("memory_bytes", "25276502016"),
            ("user", "ordinary"),
            ("cpu_limit", "none: no writable cgroup"),
        ]),
        site: site(),
        loads: vec![
            load(
                "bank",
                "tpcb",
                4,
                "transaction",
                STATEMENTS.iter().map(|(name, _)| (*name).to_owned()).collect(),
            ),
            load("ledger", "ledger", 2, "insert", Vec::new()),
        ],
        phases: PHASES
            .iter()
            .map(|&(name, from_s, to_s)| PhaseFacts { name: name.to_owned(), from_s, to_s })
            .collect(),
        ..RunFacts::default()
    }
}

/// The same in two regions with a delay between them, asymmetrical when `back_ms` differs.
pub fn two_regions(there_ms: u64, back_ms: u64) -> Fixture {
    let mut fixture = host_failure();
    let mut facts = fixture.result.facts.clone();
    for host in facts.site.hosts.iter_mut().filter(|host| host.rack.as_deref() != Some("r1")) {
        host.region = "dc2".to_owned();
        host.path = host.path.replacen("dc1", "dc2", 1);
    }
    for node in &mut facts.site.nodes[1..] {
        node.host = node.host.replacen("dc1", "dc2", 1);
    }
    let link = |from: &str, to: &str, delay_ms: u64| LinkFacts {
        conditions: format!("delay {delay_ms} ms"),
        from: from.to_owned(),
        to: to.to_owned(),
        delay_us: delay_ms * 1_000,
        rate_bits_per_s: None,
    };
    facts.site.links = vec![link("dc1", "dc2", there_ms), link("dc2", "dc1", back_ms)];
    for event in &mut fixture.events {
        if let EventKind::NodeUp { node, host } = &mut event.kind
            && node != "n1"
        {
            *host = host.replacen("dc1", "dc2", 1);
        }
    }
    fixture.events[0].kind = EventKind::RunStarted { facts: Box::new(facts.clone()) };
    fixture.result.facts = facts;
    fixture
}

/// What one operation did in one second, as the fixture knows it.
#[derive(Debug, Clone, Copy)]
struct Sample {
    count: u64,
    errors: u64,
    p50: u64,
    p95: u64,
    p99: u64,
    max: u64,
}

type Seconds = BTreeMap<(String, String), BTreeMap<u64, Sample>>;

/// A small generator of noise between 0 and 1; the same on every machine.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f64 / (1_u64 << 24) as f64
    }
}

/// How much of the usual throughput a second sees: none in the outage, a slow return after it.
fn vigour(second: u64) -> f64 {
    match second {
        0 => 0.55,
        1 => 0.86,
        20..=26 => 0.0,
        27 => 0.32,
        28 => 0.81,
        29..=40 => 0.97,
        _ => 1.0,
    }
}

fn timeline() -> (String, Seconds) {
    let mut noise = Noise(42);
    let mut seconds = Seconds::new();
    let mut csv = "t_s,load,operation,count,errors,p50_us,p95_us,p99_us,max_us\n".to_owned();
    for second in 0..60 {
        let share = vigour(second) * (0.96 + 0.08 * noise.next());
        let slow = if second == 27 || second == 28 { 3.0 } else { 1.0 };
        let bank = (412.0 * share) as u64;
        let bank_errors = if second == 20 { 4 } else { 0 };
        let mut sample =
            |load: &str, operation: &str, count: u64, errors: u64, usual: f64, longest: Option<u64>| {
                if count == 0 && errors == 0 {
                    return;
                }
                let p50 = (usual * slow * (0.92 + 0.16 * noise.next())) as u64;
                let p99 = (p50 as f64 * (3.1 + 1.8 * noise.next())) as u64;
                let row =
                    Sample { count, errors, p50, p95: (p50 + p99) / 2, p99, max: longest.unwrap_or(p99 * 2) };
                let row = if count == 0 { Sample { p50: 0, p95: 0, p99: 0, max: 0, ..row } } else { row };
                let Sample { p50, p95, p99, max, .. } = row;
                let _ = writeln!(csv, "{second},{load},{operation},{count},{errors},{p50},{p95},{p99},{max}");
                seconds.entry((load.to_owned(), operation.to_owned())).or_default().insert(second, row);
            };
        sample("bank", "transaction", bank, bank_errors, 8_900.0, (second == 27).then_some(1_982_000));
        for (statement, usual) in STATEMENTS {
            sample("bank", statement, bank, 0, usual as f64, None);
        }
        let attempts = if (20..=26).contains(&second) { 9 } else { 0 };
        sample("bank", "connect", 0, attempts, 0.0, None);
        let ledger = (338.0 * share) as u64;
        sample(
            "ledger",
            "insert",
            ledger,
            if second == 20 { 2 } else { 0 },
            5_600.0,
            (second == 27).then_some(1_990_000),
        );
        sample("ledger", "connect", 0, attempts / 2, 0.0, None);
    }
    (csv, seconds)
}

/// Figures over a stretch of time: sums, means, and the highest of the seconds' percentiles.
fn figures(samples: &BTreeMap<u64, Sample>, from_s: f64, to_s: f64) -> OperationResult {
    let within: Vec<&Sample> = samples.range(from_s as u64..to_s as u64).map(|(_, sample)| sample).collect();
    let count: u64 = within.iter().map(|sample| sample.count).sum();
    let mean_of = |value: fn(&Sample) -> u64| {
        let sum: u64 = within.iter().map(|sample| value(sample) * sample.count).sum();
        sum.checked_div(count).unwrap_or(0)
    };
    let highest = |value: fn(&Sample) -> u64| within.iter().map(|sample| value(sample)).max().unwrap_or(0);
    OperationResult {
        count,
        latency_us: LatencyUs {
            mean: mean_of(|sample| sample.p50 + sample.p50 / 7) as f64,
            stdev: mean_of(|sample| sample.p50 / 3) as f64,
            p50: mean_of(|sample| sample.p50),
            p90: mean_of(|sample| (sample.p50 + sample.p95) / 2),
            p95: mean_of(|sample| sample.p95),
            p99: mean_of(|sample| sample.p99),
            p99_9: highest(|sample| sample.p99),
            max: highest(|sample| sample.max),
        },
        ..OperationResult::default()
    }
}

fn phase_result(load: &LoadFacts, seconds: &Seconds, name: &str, from_s: f64, to_s: f64) -> PhaseResult {
    let mut phase = PhaseResult { name: name.to_owned(), from_s, to_s, ..PhaseResult::default() };
    for ((_, operation), samples) in seconds.iter().filter(|((name, _), _)| *name == load.name) {
        let errors: u64 = samples.range(from_s as u64..to_s as u64).map(|(_, sample)| sample.errors).sum();
        if errors > 0 {
            *phase.measured.errors.entry("connection".to_owned()).or_default() += errors;
        }
        phase.measured.operations.insert(operation.clone(), figures(samples, from_s, to_s));
    }
    if let Some(transaction) = phase.measured.operations.get(&load.transaction) {
        phase.measured.transactions = transaction.count;
        phase.measured.latency_us = transaction.latency_us.clone();
    }
    phase.measured.throughput_per_s = phase.measured.transactions as f64 / (to_s - from_s);
    phase
}

fn load_result(load: &LoadFacts, seconds: &Seconds) -> LoadResult {
    let all = phase_result(load, seconds, "all", 5.0, 60.0);
    LoadResult {
        name: load.name.clone(),
        workload: load.workload.clone(),
        measured: LoadFigures { clients: Some(load.clients), ..all.measured },
        first_errors: vec![FirstError {
            class: ErrorClass::Other,
            code: Some("42P01".to_owned()),
            text: "ERROR: relation \"<t>\" does not exist".to_owned(),
            node: Some("n1".to_owned()),
            at_s: 40.25,
        }],
        phases: PHASES
            .iter()
            .map(|&(name, from_s, to_s)| phase_result(load, seconds, name, from_s, to_s))
            .collect(),
        ..LoadResult::default()
    }
}

fn expectations() -> Vec<ExpectationResult> {
    [("lost_writes", "0", "0"), ("invented_writes", "0", "0"), ("recovery", "< 30s", "7.3 s")]
        .map(|(name, wanted, measured)| ExpectationResult {
            name: name.to_owned(),
            wanted: wanted.to_owned(),
            measured: measured.to_owned(),
            verdict: Verdict::Pass,
        })
        .into()
}

fn checks() -> Vec<CheckResult> {
    let check = |name: &str, explanation: &str| CheckResult::new(name, Verdict::Pass, explanation);
    vec![
        CheckResult {
            acknowledged: Some(17_310),
            lost: Some(0),
            invented: Some(0),
            indeterminate: Some(2),
            ..check(
                "ledger",
                "all 17,310 acknowledged inserts are there; of 2 inserts without a definite answer 1 happened; no row is there \
                 that nobody asked for",
            )
        },
        CheckResult {
            counts: [("history_rows".to_owned(), 21_006), ("sum".to_owned(), -48_211)].into(),
            ..check(
                "tpcb-sums",
                "accounts, tellers, branches and history all sum to -48,211; 21,006 history rows",
            )
        },
    ]
}

fn fault(events: &[Event]) -> FaultResult {
    let evidence = events.iter().filter_map(|event| match &event.kind {
        EventKind::FaultTookEffect { receipt, .. } | EventKind::FaultHealed { receipt, .. } => {
            Some(&receipt.evidence)
        }
        _ => None,
    });
    let recovery = |first_s: f64| RecoveryResult {
        first_success: Some(first_s),
        back_to_95_percent: Some(9.96),
        sustained: Some(9.96),
    };
    let load = |name: &str, gap_s: f64| FaultLoadResult {
        load: name.to_owned(),
        gap_s: Some(gap_s),
        gap_from_s: Some(20.03),
        gap_is_open: false,
        baseline_gap_s: Some(0.02),
        interrupted: Some(true),
        below_50_percent_s: Some(8.0),
        below_95_percent_s: Some(9.0),
        below_50_percent_at_end: false,
        below_95_percent_at_end: false,
        below_95_percent_per_s: Some(310.0),
        baseline_per_s: Some(340.0),
        incomparable: None,
        recovery_s: recovery(gap_s + 0.02),
        lost_operations: Some(1_639.5),
        throughput_ratio_during: Some(0.598),
        throughput_ratio_lowest: None,
    };
    FaultResult {
        hits: vec!["dc1/a/r1/h1".to_owned()],
        nodes: vec!["n1".to_owned()],
        took_effect_s: Some(20.041),
        healed_s: Some(40.213),
        receipt: Receipt { verdict: Verdict::Pass, evidence: evidence.flatten().cloned().collect() },
        gap_s: Some(7.35),
        below_50_percent_s: Some(8.0),
        below_95_percent_s: Some(9.0),
        interrupted: Some(true),
        recovery_s: recovery(7.37),
        charged_until_s: Some(60.0),
        loads: vec![load("bank", 7.31), load("ledger", 7.35)],
        lost_operations: Some(3_279.0),
        lost_writes: Some(0),
        throughput_ratio_during: Some(0.598),
        ..FaultResult::asked("power-off", "host: leader", 20.0)
    }
}

fn lab_up() -> EventKind {
    EventKind::LabUp { boot_s: 2.4, cpu_seconds: [("database".to_owned(), 1.9)].into(), from_snapshot: false }
}

fn passed(check: &str) -> EventKind {
    EventKind::Check { name: check.to_owned(), verdict: Verdict::Pass, explanation: String::new() }
}

fn events(facts: &RunFacts) -> Vec<Event> {
    let at = |t_s: f64, kind: EventKind| Event { t_s, kind };
    let text = str::to_owned;
    let receipt = |evidence: &[&str]| Receipt {
        verdict: Verdict::Pass,
        evidence: evidence.iter().map(|sentence| (*sentence).to_owned()).collect(),
    };
    let phase = |index: usize| {
        let (name, from_s, to_s) = PHASES[index];
        at(from_s, EventKind::Phase { name: name.to_owned(), for_s: to_s - from_s })
    };
    let up = |t_s, node: &str, host: &str| at(t_s, EventKind::NodeUp { node: text(node), host: text(host) });
    let success = |t_s, load: &str, after_s| {
        at(t_s, EventKind::FirstSuccess { fault: FaultId::FIRST, load: text(load), after_s })
    };
    let restart = "the platform starts n1 on dc1/a/r1/h2, 5.0 s after its host was lost";
    vec![
        at(-6.2, EventKind::RunStarted { facts: Box::new(facts.clone()) }),
        at(-6.1, EventKind::Progress { what: text("starting 5 hosts") }),
        up(-5.9, "n1", "dc1/a/r1/h1"),
        up(-5.9, "n2", "dc1/a/r2/h1"),
        up(-5.9, "n3", "dc1/a/r3/h1"),
        at(-3.8, lab_up()),
        at(-3.7, EventKind::Progress { what: text("loading 100,000 accounts") }),
        phase(0),
        phase(1),
        phase(2),
        at(
            20.0,
            EventKind::FaultAsked {
                fault: FaultId::FIRST,
                kind: text("power-off"),
                target: text("host: leader"),
                hits: vec![text("dc1/a/r1/h1")],
                nodes: vec![text("n1")],
            },
        ),
        at(20.02, EventKind::NodeDown { node: text("n1"), host: text("dc1/a/r1/h1") }),
        at(
            20.041,
            EventKind::FaultTookEffect {
                fault: FaultId::FIRST,
                receipt: receipt(&[
                    "none of the 11 processes that ran on dc1/a/r1/h1 is left",
                    "10.77.1.1 did not answer 3 of 3 probes from dc1/a/r2/h1 within 200 ms each",
                ]),
            },
        ),
        at(
            25.04,
            EventKind::Platform { action: PlatformAction::HaRestart, node: text("n1"), what: text(restart) },
        ),
        up(25.3, "n1", "dc1/a/r1/h2"),
        at(27.2, EventKind::Leader { node: text("n1") }),
        success(27.35, "bank", 7.31),
        success(27.41, "ledger", 7.37),
        at(
            40.213,
            EventKind::FaultHealed {
                fault: FaultId::FIRST,
                receipt: receipt(&["dc1/a/r1/h1 answers probes from dc1/a/r2/h1 again, after 0.2 s"]),
            },
        ),
        phase(3),
        at(61.2, passed("ledger")),
        at(61.4, passed("tpcb-sums")),
        at(61.5, EventKind::RunEnded { verdict: Verdict::Pass }),
    ]
}

//! What is done with the cluster: it is started, gets a database, and holdfast's scenarios are run against it as against any other.
//!
//! Owns the order, what must come of each run, and the lines that a person reads. A line begins with the seconds since the lab was
//! there.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail, ensure};
use engine::{Engine as _, Node};
use history::{RecoveryPhase, Verdict};
use kubernetes::{Kind, Seen, Watch};
use kubernetes_lab::Programs;
use results::FaultResult;

use super::runs::{
    AGENTS, CLAIMED, EVICTED, Ended, NODE_CUT_OFF, NODE_LOSS, NODE_LOSS_TAINTED, Runs, SHIPPED,
};
use super::switch::Switch;
use super::trial_lab::TrialLab;
use super::{Order, agents, claims};

/// How long one command may take.
const ONE_COMMAND: Duration = Duration::from_secs(30);
/// How long the API server is away, and how long a watch may take to go on.
const API_AWAY: Duration = Duration::from_secs(4);
const RESUMED_WITHIN: Duration = Duration::from_secs(60);
/// A label that is not there before.
const MARK: (&str, &str) = ("watched", "again");
/// The database's user, whom the engine makes.
pub(super) const USER: &str = "holdfast";
/// An account without a right, and the one whose roles `holdfast manifests` prints.
const NOBODY: &str = "nobody";
const ACCOUNT: &str = "holdfast";
/// Acknowledges what is not on the volume yet, and leaves it so for as long as PostgreSQL can.
const DO_NOT_SYNC: [&str; 4] = [
    "alter system set synchronous_commit = off",
    "alter system set wal_writer_delay = '10s'",
    "alter system set wal_writer_flush_after = '1GB'",
    "select pg_reload_conf()",
];

/// The story as far as it was told.
struct Teller<'a> {
    trial_lab: &'a TrialLab,
    began: Instant,
}

/// Tells all of it.
///
/// # Errors
/// When a step does not come about.
pub(super) fn tell(trial_lab: &TrialLab, order: &Order) -> anyhow::Result<()> {
    let teller = Teller { trial_lab, began: Instant::now() };
    teller.start()?;
    agents::bring(trial_lab, &Programs::at(&order.programs), &order.holdfast)?;
    let switch = Switch::make(trial_lab)?;
    let runs = Runs::make(trial_lab, &order.holdfast, &switch)?;
    let has_ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let answering = scope.spawn(|| switch.answer(trial_lab, &has_ended));
        let told = trial_lab.in_the_office(|| {
            teller.kubectl(&["label", "pod", &teller.primary(), "role=primary"])?;
            teller.api_restarts()?;
            teller.rights(&runs)?;
            teller.agents(&runs)?;
            teller.claims(&runs, &order.definitions)?;
            teller.lost_nodes(&runs)
        });
        has_ended.store(true, Ordering::Relaxed);
        let answered = answering.join().unwrap_or_else(|_| bail!("the thread of the switch panicked"));
        told.and(answered)
    })
}

impl Teller<'_> {
    fn say(&self, line: &str) {
        println!("{:6.1} s  {line}", self.began.elapsed().as_secs_f64());
    }

    fn start(&self) -> anyhow::Result<()> {
        let trial_lab = self.trial_lab;
        trial_lab.control.power_on()?;
        trial_lab.workers.iter().try_for_each(|worker| worker.power_on())?;
        let nodes: Vec<Arc<dyn Node>> =
            trial_lab.workers.iter().map(|worker| worker.clone() as Arc<dyn Node>).collect();
        for (step, took_s) in trial_lab.cluster.bootstrap(&nodes)?.steps {
            println!("          {step}: {took_s:.1} s");
        }
        self.say(&format!("{} PostgreSQL pods are ready; {} is the primary", nodes.len(), self.primary()));
        Ok(())
    }

    /// A login without rights strikes nothing, and `check` says why; the roles that holdfast prints suffice.
    fn rights(&self, runs: &Runs<'_>) -> anyhow::Result<()> {
        self.kubectl(&["create", "serviceaccount", NOBODY])?;
        let nobody = runs.login_of(NOBODY)?;
        let checked = runs.check(SHIPPED, &nobody)?;
        ensure!(checked.contains("a run would not get far"), "a login without rights may do all:\n{checked}");
        if let Ok(ended) = runs.run(SHIPPED, &nobody) {
            let is_struck = ended.result.faults.iter().any(|fault| fault.took_effect_s.is_some());
            let verdict = ended.result.verdict;
            ensure!(verdict != Verdict::Pass && !is_struck, "a login without rights ran a scenario");
        }
        self.say("a login without rights: `check` lists what is not allowed, and a run strikes nothing");
        runs.allow()?;
        let login = runs.login_of(ACCOUNT)?;
        let checked = runs.check(SHIPPED, &login)?;
        let refused: Vec<&str> = checked.lines().filter(|line| line.starts_with("  no ")).collect();
        ensure!(refused.is_empty(), "the roles are not enough: {}", refused.join("; "));
        let ended = runs.run(SHIPPED, &login)?;
        self.expect(SHIPPED, &ended, Verdict::Pass)
    }

    /// A watch goes on when the API server that it asked is there again, and says that it was interrupted.
    fn api_restarts(&self) -> anyhow::Result<()> {
        let trial_lab = self.trial_lab;
        let (give, seen) = mpsc::channel();
        let watch = Watch::begin(&trial_lab.kubectl, &[Kind::Pods], give)?;
        trial_lab.cluster.restart_api(API_AWAY)?;
        let mark = format!("{}={}", MARK.0, MARK.1);
        self.kubectl(&["label", "pod", &self.primary(), &mark])?;
        let (mut was_interrupted, deadline) = (false, Instant::now() + RESUMED_WITHIN);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let sighting =
                seen.recv_timeout(left).map_err(|_| anyhow!("the watch of pods was not resumed"))?;
            match sighting.what {
                Seen::Gap { .. } => was_interrupted = true,
                Seen::Pod { pod, .. } if pod.labels.get(MARK.0).is_some_and(|value| value == MARK.1) => break,
                _ => {}
            }
        }
        ensure!(was_interrupted, "the watch of pods says nothing of its interruption");
        drop(watch);
        let away_s = API_AWAY.as_secs();
        self.say(&format!(
            "the API server was away for {away_s} s; a watch was resumed, and says that it was interrupted"
        ));
        Ok(())
    }

    /// Chaos Mesh's own definitions take the objects of the command files; a controller that only claims is believed nothing.
    fn claims(&self, runs: &Runs<'_>, definitions: &Result<Vec<PathBuf>, String>) -> anyhow::Result<()> {
        let files = match definitions {
            Ok(files) => files,
            Err(why) => {
                self.say(&format!("skipped: Chaos Mesh's definitions could not be downloaded: {why}"));
                return Ok(());
            }
        };
        claims::define(&self.trial_lab.kubectl, files)?;
        let has_ended = AtomicBool::new(false);
        let (ended, marked) = thread::scope(|scope| {
            let claiming = scope.spawn(|| claims::claim(&self.trial_lab.kubectl, &has_ended));
            let ended = runs.run(CLAIMED, &runs.administrator());
            has_ended.store(true, Ordering::Relaxed);
            (ended, claiming.join().unwrap_or(0))
        });
        let ended = ended?;
        self.expect(CLAIMED, &ended, Verdict::Unknown)?;
        ensure!(
            marked == ended.result.faults.len(),
            "{marked} experiments were taken by Chaos Mesh's definitions"
        );
        for fault in &ended.result.faults {
            let verdict = fault.receipt.verdict;
            ensure!(verdict != Verdict::Pass, "{} has a receipt, though nothing happened", fault.target);
        }
        self.say(&format!(
            "{marked} experiments of Chaos Mesh were claimed to be injected: no receipt, no pass"
        ));
        Ok(())
    }

    /// Load from pods that the run makes and removes.
    fn agents(&self, runs: &Runs<'_>) -> anyhow::Result<()> {
        let ended = runs.run(AGENTS, &runs.administrator())?;
        self.expect(AGENTS, &ended, Verdict::Pass)?;
        let agents = &ended.result.agents;
        let on: BTreeSet<&str> = agents.iter().filter_map(|agent| agent.host.rsplit(' ').next()).collect();
        ensure!(agents.len() == 2 && on.len() == 2, "agents are not two pods on two nodes: {agents:?}");
        let label = "app.kubernetes.io/managed-by=holdfast";
        let left = ["get", "jobs,services,pods", "--selector", label, "--output", "name"];
        let left = self.trial_lab.kubectl.text(&left, ONE_COMMAND)?;
        ensure!(left.trim().is_empty(), "of the agents something is left: {left}");
        self.say("load came from a Job's two pods on two nodes, and nothing of them is left");
        Ok(())
    }

    fn lost_nodes(&self, runs: &Runs<'_>) -> anyhow::Result<()> {
        let login = runs.administrator();
        let evicted = runs.run(EVICTED, &login)?;
        self.expect(EVICTED, &evicted, Verdict::Pass)?;
        for name in [NODE_LOSS, NODE_LOSS_TAINTED, NODE_CUT_OFF] {
            let ended = runs.run(name, &login)?;
            self.expect(name, &ended, Verdict::Pass)?;
            for phase in [RecoveryPhase::NodeLost, RecoveryPhase::PodDeleted, RecoveryPhase::PodReady] {
                let mut told = ended.result.faults.iter().flat_map(|fault| &fault.phases);
                let is_told = told.any(|step| step.phase == phase);
                ensure!(is_told, "{name}: {phase:?} is not among the phases of its recovery");
            }
        }
        DO_NOT_SYNC.iter().try_for_each(|statement| self.sql(statement))?;
        self.say("PostgreSQL acknowledges now what it has not synced");
        let ended = runs.run(NODE_LOSS, &login)?;
        self.expect(NODE_LOSS, &ended, Verdict::Fail)?;
        let lost = ended.result.faults[0].lost_writes.unwrap_or(0);
        ensure!(lost > 0, "{NODE_LOSS}: no lost write was named: {}", ended.result.reasons.join("; "));
        self.say(&format!("{lost} lost writes are named"));
        Ok(())
    }

    fn expect(&self, name: &str, ended: &Ended, verdict: Verdict) -> anyhow::Result<()> {
        let Ended { code, result } = ended;
        self.say(&format!("holdfast run {name}: {:?}, exit code {}", result.verdict, code.unwrap_or(-1)));
        for fault in &result.faults {
            tell_recovery(fault);
        }
        let reasons = result.reasons.join("\n");
        ensure!(result.verdict == verdict, "{name} ended with {:?}:\n{reasons}", result.verdict);
        Ok(())
    }

    fn kubectl(&self, arguments: &[&str]) -> anyhow::Result<()> {
        self.trial_lab.kubectl.text(arguments, ONE_COMMAND)?;
        Ok(())
    }

    fn sql(&self, statement: &str) -> anyhow::Result<()> {
        let psql = self.trial_lab.postgres.join("psql").display().to_string();
        let arguments = [
            "exec",
            &self.primary(),
            "--",
            &psql,
            "-U",
            USER,
            "-h",
            "127.0.0.1",
            "-d",
            "postgres",
            "-c",
            statement,
        ];
        self.kubectl(&arguments)
    }

    fn primary(&self) -> String {
        self.trial_lab.cluster.set().pods().remove(0)
    }
}

/// Each part of the recovery, with its time after the strike.
fn tell_recovery(fault: &FaultResult) {
    let struck_s = fault.took_effect_s.unwrap_or(fault.asked_s);
    let gap = fault.gap_s.map_or("unknown".to_owned(), |gap_s| format!("{gap_s:.2} s"));
    println!("          {}: longest time without a success {gap}", fault.target);
    for step in &fault.phases {
        let phase = serde_json::to_value(step.phase).ok();
        let phase = phase.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default();
        let late = if step.after_gap { ", at the latest" } else { "" };
        println!("             {:7.2} s after  {phase} ({}){late}", step.at_s - struck_s, step.of);
    }
}

//! What is done with the cluster: it is started, gets a database, loses a pod, then a node; and what was seen is told.
//!
//! Owns the order and the lines that a person reads. A line begins with the seconds since the lab was there.

use std::fs;
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail, ensure};
use kubernetes::{Kind, Phase, Pod, Sighting, Watch, members, told};
use kubernetes_lab::ready;
use lab::protocol::VOLUME;

use super::ground::Ground;
use super::postgres;

/// How long nodes may take to be ready, and pods.
const READY_PATIENCE: Duration = Duration::from_secs(120);
/// How long a recovery may take beyond what the cluster's own times add up to.
const RECOVERY_PATIENCE: Duration = Duration::from_secs(120);
/// How long one command may take.
const ONE_COMMAND: Duration = Duration::from_secs(30);
/// How often is looked.
const GLANCE: Duration = Duration::from_millis(200);
/// How long is still watched once the pod is ready, for what comes after that.
const AFTERWARDS: Duration = Duration::from_secs(2);

/// The story as far as it was told.
struct Teller<'a> {
    ground: &'a Ground,
    began: Instant,
    arriving: Receiver<Sighting>,
    seen: Vec<Sighting>,
}

/// Tells all of it.
///
/// # Errors
/// When a step does not come about.
pub(super) fn tell(ground: &Ground) -> anyhow::Result<()> {
    let began = Instant::now();
    let say = |line: &str| println!("{:6.1} s  {line}", began.elapsed().as_secs_f64());
    start(ground, &say)?;
    ground.in_the_office(|| {
        let (sender, arriving) = mpsc::channel();
        let watch = Watch::begin(&ground.kubectl, Kind::ALL, sender)?;
        let mut teller = Teller { ground, began, arriving, seen: Vec::new() };
        teller.database()?;
        teller.deleted_pod()?;
        teller.lost_node()?;
        drop(watch);
        Ok(())
    })
}

fn start(ground: &Ground, say: &dyn Fn(&str)) -> anyhow::Result<()> {
    ground.control.power_on()?;
    ground.cluster.prepare_control(&ground.control, &ground.control_files)?;
    ground.cluster.start_control(&ground.control)?;
    say("the control plane is up");
    for (worker, files) in ground.workers.iter().zip(&ground.worker_files) {
        worker.power_on()?;
        ground.cluster.prepare_worker(worker, files)?;
        ground.cluster.start_worker(worker)?;
    }
    ground.in_the_office(|| {
        ready::nodes(&ground.kubectl, &node_names(ground), READY_PATIENCE)?;
        Ok(())
    })?;
    say(&format!("{} nodes are ready", ground.workers.len()));
    Ok(())
}

fn node_names(ground: &Ground) -> Vec<String> {
    ground.cluster.plan().workers().iter().map(|worker| worker.member.name.clone()).collect()
}

fn unix_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

impl Teller<'_> {
    fn say(&self, line: &str) {
        println!("{:6.1} s  {line}", self.began.elapsed().as_secs_f64());
    }

    fn database(&mut self) -> anyhow::Result<()> {
        let ground = self.ground;
        let nodes = node_names(ground);
        for volume in postgres::class(&nodes).volumes {
            volume.make(ground.worker(&volume.node)?, &ground.programs)?;
        }
        let objects = postgres::objects(&nodes, Path::new(VOLUME), &ground.postgres);
        let file = ground.run_directory.join("database.json");
        fs::write(&file, objects.to_string()).context("write the database's objects")?;
        ready::apply(&ground.kubectl, &file)?;
        ready::pods(&ground.kubectl, &postgres::pods(nodes.len()), READY_PATIENCE)?;
        self.say(&format!("{} PostgreSQL pods are ready", nodes.len()));
        Ok(())
    }

    fn deleted_pod(&mut self) -> anyhow::Result<()> {
        let pod = self.pod(&format!("{}-1", postgres::NAME))?;
        self.sql(&pod.name, "create table t (x int); insert into t values (42)")?;
        self.say(&format!("deleting {}", pod.name));
        let struck_unix_s = unix_s();
        let delete = ["delete", "pod", &pod.name, "--wait=false"];
        self.ground.kubectl.text(&delete, ONE_COMMAND)?;
        self.successor(&pod, RECOVERY_PATIENCE)?;
        self.tell_recovery(&pod, struck_unix_s);
        self.expect_row(&pod.name, "42")
    }

    fn lost_node(&mut self) -> anyhow::Result<()> {
        let pod = self.pod(&format!("{}-2", postgres::NAME))?;
        let node = pod.node.clone().context("the pod has no node")?;
        self.sql(&pod.name, "create table t (x int); insert into t values (7)")?;
        let machine = self.ground.worker(&node)?;
        let struck_unix_s = unix_s();
        let lost = machine.power_off()?.context("it had no power")?;
        self.say(&format!(
            "{node} has lost its power, and its volume {} blocks of {} files that were not synced",
            lost.blocks_restored, lost.files
        ));
        let timing = *self.ground.cluster.plan().timing();
        let patience = RECOVERY_PATIENCE + timing.lost_after + timing.evicted_after;
        self.until("the pod of the lost node is evicted", patience, |teller| {
            let steps = told(&teller.seen, &pod.name, struck_unix_s, unix_s());
            let is_told = |phase: Phase| steps.iter().any(|step| step.phase == phase);
            Ok(is_told(Phase::NodeLost) && is_told(Phase::PodDeleted))
        })?;
        self.say(&format!("{node} is lost and {} evicted; giving it power", pod.name));
        machine.power_on()?;
        self.ground.cluster.start_worker(machine)?;
        self.successor(&pod, RECOVERY_PATIENCE)?;
        self.tell_recovery(&pod, struck_unix_s);
        self.expect_row(&pod.name, "7")
    }

    fn pod(&self, name: &str) -> anyhow::Result<Pod> {
        let found = members::pods(&self.ground.kubectl, &[name.to_owned()])?;
        found.into_iter().next().with_context(|| format!("no pod {name}"))
    }

    /// Waits until another pod of this name is ready.
    fn successor(&mut self, pod: &Pod, patience: Duration) -> anyhow::Result<()> {
        self.until("the pod is there again and ready", patience, |teller| {
            // While there is none of this name, there is none that is ready.
            Ok(teller.pod(&pod.name).is_ok_and(|found| found.uid != pod.uid && found.is_ready))
        })?;
        thread::sleep(AFTERWARDS);
        self.seen.extend(self.arriving.try_iter());
        Ok(())
    }

    fn until(
        &mut self,
        what: &str,
        patience: Duration,
        is_so: impl Fn(&Teller<'_>) -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let began = Instant::now();
        loop {
            self.seen.extend(self.arriving.try_iter());
            if is_so(self)? {
                return Ok(());
            }
            if began.elapsed() >= patience {
                bail!("{what}: timed out after {patience:?}");
            }
            thread::sleep(GLANCE);
        }
    }

    /// Each part of the recovery, with its time after the strike.
    fn tell_recovery(&self, pod: &Pod, struck_unix_s: f64) {
        for step in told(&self.seen, &pod.name, struck_unix_s, unix_s()) {
            let phase = serde_json::to_value(step.phase).ok();
            let phase = phase.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default();
            let gap = if step.after_gap { ", at the latest" } else { "" };
            println!("             {:7.2} s after  {phase} ({}){gap}", step.unix_s - struck_unix_s, step.of);
        }
    }

    fn sql(&self, pod: &str, statement: &str) -> anyhow::Result<String> {
        let psql = self.ground.postgres.join("psql").display().to_string();
        let ask = ["exec", pod, "--", &psql, "-U", "postgres", "-h", "127.0.0.1", "-qAt", "-c", statement];
        Ok(self.ground.kubectl.text(&ask, ONE_COMMAND)?.trim().to_owned())
    }

    fn expect_row(&self, pod: &str, expected: &str) -> anyhow::Result<()> {
        let found = self.sql(pod, "select x from t")?;
        ensure!(found == expected, "{pod} has lost an acknowledged row: `{found}` in place of `{expected}`");
        self.say(&format!("{pod} has its row"));
        Ok(())
    }
}

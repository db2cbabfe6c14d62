//! `holdfast` against the cluster, from a place that reaches it: which scenarios, by whose login, and how they ended.
//!
//! Owns how it is called, and the files of the scenarios that do not ship. What must come of them is `story`'s.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use results::RunResult;
use serde_json::{Value, json};

use super::claims;
use super::story::USER;
use super::switch::Switch;
use super::trial_lab::TrialLab;

/// The scenario that ships, whose objects the trial's database has.
pub(super) const SHIPPED: &str = "kubernetes-postgres";
/// What the first scenario's runs are called, and its command file.
pub(super) const NODE_LOSS: &str = "node-loss";
/// The same for the second.
pub(super) const NODE_CUT_OFF: &str = "node-cut-off";
/// The first once more, with the taint `out-of-service` for the node.
pub(super) const NODE_LOSS_TAINTED: &str = "node-loss-tainted";
/// A scenario in which a pod is evicted, and one whose load comes from agents as pods.
pub(super) const EVICTED: &str = "evicted";
pub(super) const AGENTS: &str = "agents";
/// How long one command may take.
const ONE_COMMAND: Duration = Duration::from_secs(30);
/// How much longer a node stays away than the cluster waits for it.
const BEYOND: Duration = Duration::from_secs(8);
/// A scenario whose faults are claimed and not made.
pub(super) const CLAIMED: &str = "chaos";
const WITH_AGENTS: &str = include_str!("agents.yaml");
const EVICTION: &str = include_str!("evicted.yaml");
const CHAOS: &str = include_str!("chaos.yaml");
const SCENARIO: &str = include_str!("node-fault.yaml");
const COMMAND_FILE: &str = include_str!("node-switch.yaml");

/// How a run ended.
pub(super) struct Ended {
    pub(super) code: Option<i32>,
    pub(super) result: RunResult,
}

/// The program, with what its runs need.
pub(super) struct Runs<'a> {
    trial_lab: &'a TrialLab,
    holdfast: &'a Path,
    folder: PathBuf,
}

impl<'a> Runs<'a> {
    /// Writes the scenarios that do not ship, with their command files, which turn this switch.
    pub(super) fn make(
        trial_lab: &'a TrialLab,
        holdfast: &'a Path,
        switch: &Switch,
    ) -> anyhow::Result<Runs<'a>> {
        let folder = trial_lab.run_directory.join("scenarios");
        fs::create_dir(&folder).with_context(|| format!("make {}", folder.display()))?;
        let program = switch.program().display().to_string();
        let timing = *trial_lab.cluster.plan().timing();
        // Long enough that the pod's deletion is asked for while the node is away.
        let away = timing.lost_after + timing.evicted_after + BEYOND;
        let phase = away + BEYOND * 3;
        // Who gives the taint takes it away when the node is back.
        let tainted = format!(
            ", {{ external: {{ command: kubernetes-out-of-service, of: pg-0 }}, at: 3s, for: {}s }}",
            (away + BEYOND).as_secs()
        );
        let power_off = ("node-power-off", ("a node of the lab loses its power", "off", "on"));
        let cut = ("node-cut", ("a node of the lab is cut off", "cut", "join"));
        let scenarios =
            [(NODE_LOSS, power_off, ""), (NODE_LOSS_TAINTED, power_off, &tainted), (NODE_CUT_OFF, cut, "")];
        for (name, (command, (summary, strike, undo)), together) in scenarios {
            let scenario = SCENARIO
                .replace("NAME", name)
                .replace("TOGETHER", together)
                .replace("COMMAND", command)
                .replace("AWAY", &format!("{}s", away.as_secs()))
                .replace("PHASE", &format!("{}s", phase.as_secs()));
            let file = COMMAND_FILE
                .replace("NAME", command)
                .replace("SUMMARY", summary)
                .replace("SWITCH", &program)
                .replace("STRIKE", strike)
                .replace("UNDO", undo);
            fs::write(folder.join(format!("{name}.yaml")), scenario)?;
            fs::write(folder.join(format!("{command}.yaml")), file)?;
        }
        fs::write(folder.join(format!("{CLAIMED}.yaml")), CHAOS)?;
        fs::write(folder.join(format!("{EVICTED}.yaml")), EVICTION)?;
        fs::write(folder.join(format!("{AGENTS}.yaml")), WITH_AGENTS)?;
        fs::write(folder.join("partition.yaml"), claims::partition_command())?;
        Ok(Runs { trial_lab, holdfast, folder })
    }

    /// The scenario of this name.
    pub(super) fn scenario(&self, name: &str) -> PathBuf {
        match name {
            SHIPPED => crate::repository_root().join(format!("scenarios/{SHIPPED}.yaml")),
            _ => self.folder.join(format!("{name}.yaml")),
        }
    }

    /// Runs it by a login. Only in the office.
    pub(super) fn run(&self, name: &str, login: &Path) -> anyhow::Result<Ended> {
        let mut command = self.command("run", name, login);
        command.args(["--yes-break", name, "--json", "--out"]).arg(self.folder.join("runs"));
        let output = command.output().context("holdfast run")?;
        let result = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("{name} left no result ({}): {}", output.status, said(&output)))?;
        Ok(Ended { code: output.status.code(), result })
    }

    /// What `holdfast check` says of it to whoever has this login. Only in the office.
    pub(super) fn check(&self, name: &str, login: &Path) -> anyhow::Result<String> {
        let output = self.command("check", name, login).output().context("holdfast check")?;
        ensure!(output.status.success(), "holdfast check ({}): {}", output.status, said(&output));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Applies the roles that it prints for the scenario that ships, as its user does. They are in more than one namespace.
    pub(super) fn allow(&self) -> anyhow::Result<()> {
        let output = Command::new(self.holdfast).arg("manifests").arg(self.scenario(SHIPPED)).output()?;
        ensure!(output.status.success(), "holdfast manifests ({}): {}", output.status, said(&output));
        let file = self.trial_lab.run_directory.join("roles.yaml");
        fs::write(&file, &output.stdout)?;
        let output = Command::new(&self.trial_lab.kubectl.program)
            .arg("--kubeconfig")
            .arg(self.administrator())
            .args(["apply", "-f"])
            .arg(&file)
            .output()?;
        ensure!(output.status.success(), "kubectl apply ({}): {}", output.status, said(&output));
        Ok(())
    }

    /// A login of a service account of the namespace.
    pub(super) fn login_of(&self, account: &str) -> anyhow::Result<PathBuf> {
        let token = self.trial_lab.kubectl.text(&["create", "token", account], ONE_COMMAND)?;
        let mut login: Value = serde_json::from_str(&fs::read_to_string(self.administrator())?)?;
        login["users"][0]["user"] = json!({ "token": token.trim() });
        let file = self.trial_lab.run_directory.join(format!("{account}.kubeconfig"));
        fs::write(&file, login.to_string())?;
        fs::set_permissions(&file, Permissions::from_mode(0o600))?;
        Ok(file)
    }

    /// The login of whoever may do everything.
    pub(super) fn administrator(&self) -> PathBuf {
        self.trial_lab.kubectl.kubeconfig.clone().unwrap_or_default()
    }

    fn command(&self, what: &str, name: &str, login: &Path) -> Command {
        // Its kubectl is the one of the cluster.
        let mut path = OsString::from(&self.trial_lab.run_directory);
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut command = Command::new(self.holdfast);
        command.arg(what).arg(self.scenario(name)).arg("--set");
        command.arg(format!("cluster.kubernetes.kubeconfig={}", login.display()));
        command.args(["--set", &format!("cluster.user={USER}")]);
        command.env("PATH", path).stdin(Stdio::null());
        command
    }
}

/// The last that a program complained of.
fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

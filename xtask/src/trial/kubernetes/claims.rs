//! Chaos Mesh's own definitions in the cluster, and in place of its controller a program that only claims: each experiment is marked as
//! injected, and nothing is done.
//!
//! Owns where the definitions come from, and that program. What must come of such a run is `story`'s.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use kubernetes::Kubectl;
use serde::Deserialize;

/// The Go module whose archive has them. Go's proxy does not serve earlier versions.
const MODULE: &str = "github.com/chaos-mesh/chaos-mesh@v0.9.1-0.20260902003049-47411975a8cb";
/// Their files in it.
const DEFINITIONS: [&str; 2] =
    ["config/crd/bases/chaos-mesh.org_podchaos.yaml", "config/crd/bases/chaos-mesh.org_networkchaos.yaml"];
/// The kinds of experiments that they define.
const KINDS: [&str; 2] = ["podchaos", "networkchaos"];
/// What a controller says of an experiment that it has injected.
const INJECTED: &str = r#"{"status":{"conditions":[{"type":"Selected","status":"True"},{"type":"AllInjected","status":"True"}],"experiment":{"desiredPhase":"Run"}}}"#;
/// How long one command may take.
const ONE_COMMAND: Duration = Duration::from_secs(30);
/// How often is looked for experiments.
const GLANCE: Duration = Duration::from_millis(200);

/// The command file that ships, with another program that looks: the `nc` of the pods' static shell has no `-z`.
pub(super) fn partition_command() -> String {
    const SHIPPED: &str = include_str!("../../../../faults/external/kubernetes-chaos-partition.yaml");
    let look =
        |host: &str, port: &str| format!(r#"timeout, "2", bash, -c, "exec 3<>/dev/tcp/{host}/{port}""#);
    SHIPPED
        .replace(r#"nc, -z, -w, "2", "{peer}", "{port}""#, &look("{peer}", "{port}"))
        .replace(r#"nc, -z, -w, "2", "{control}", "{control-port}""#, &look("{control}", "{control-port}"))
        .replace("fault: kubernetes-chaos-partition", "fault: partition")
}

/// Of what Go says of a download.
#[derive(Deserialize)]
struct Download {
    #[serde(rename = "Dir")]
    folder: PathBuf,
}

/// The files of the definitions, downloaded once into Go's cache.
///
/// # Errors
/// When there is no Go, or its proxy does not have them.
pub(super) fn definitions(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut go = Command::new("go");
    go.args(["mod", "download", "-json", MODULE]).env("GOFLAGS", "-modcacherw").current_dir(folder);
    let output = go.output().context("go mod download")?;
    ensure!(output.status.success(), "{MODULE}: {}", String::from_utf8_lossy(&output.stdout).trim());
    let download: Download = serde_json::from_slice(&output.stdout).context("what Go says of a download")?;
    Ok(DEFINITIONS.map(|file| download.folder.join(file)).to_vec())
}

/// Gives the cluster the definitions, and returns when it knows them.
pub(super) fn define(kubectl: &Kubectl, files: &[PathBuf]) -> anyhow::Result<()> {
    for file in files {
        kubectl.text(&["apply", "--filename", &file.display().to_string()], ONE_COMMAND)?;
    }
    for kind in KINDS {
        let name = format!("crd/{kind}.chaos-mesh.org");
        kubectl.text(&["wait", "--for=condition=Established", "--timeout=20s", &name], ONE_COMMAND)?;
    }
    Ok(())
}

/// Marks every experiment as injected until `has_ended` is set; how many were marked. Only in the office.
pub(super) fn claim(kubectl: &Kubectl, has_ended: &AtomicBool) -> usize {
    let mut marked = std::collections::BTreeSet::new();
    while !has_ended.load(Ordering::Relaxed) {
        for kind in KINDS {
            // One that is deleted meanwhile needs no mark.
            let names = kubectl.text(&["get", kind, "--output", "name"], ONE_COMMAND).unwrap_or_default();
            for name in names.lines() {
                if kubectl.text(&["patch", name, "--type=merge", "--patch", INJECTED], ONE_COMMAND).is_ok() {
                    marked.insert(name.to_owned());
                }
            }
        }
        thread::sleep(GLANCE);
    }
    marked.len()
}

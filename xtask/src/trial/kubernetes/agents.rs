//! Agents as pods of the cluster: the image that they run from, made of this machine's own program and its libraries.
//!
//! Owns the image. That agents are made, spoken to and removed is `pods`' business.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use engine::Node as _;
use kubernetes_lab::{Programs, make_image};
use lab::protocol::{PROGRAMS, ShownPrograms};

use super::trial_lab::TrialLab;

/// The image, as `agents.yaml` names it.
const IMAGE: &str = "docker.io/lab/holdfast:1";
/// Its archive, in a folder of the run that every node sees.
const ARCHIVE: &str = "agents.tar";
const FOLDER: &str = "image";

/// How nodes see the folder of the archive.
pub(super) fn shown(run_directory: &Path) -> anyhow::Result<ShownPrograms> {
    let outside = run_directory.join(FOLDER);
    fs::create_dir_all(&outside).with_context(|| format!("make {}", outside.display()))?;
    Ok(ShownPrograms { outside, inside: inside(), system: None })
}

fn inside() -> PathBuf {
    Path::new(PROGRAMS).with_file_name(FOLDER)
}

/// Makes the image from a program, and gives it to every node that runs pods.
pub(super) fn bring(trial_lab: &TrialLab, programs: &Programs, holdfast: &Path) -> anyhow::Result<()> {
    let folder = trial_lab.run_directory.join(FOLDER);
    let smaller = folder.join("holdfast");
    // Each node keeps it on its volume, and most of it are lines for stack traces.
    let stripped = Command::new("strip").arg("--strip-debug").arg("-o").arg(&smaller).arg(holdfast).status();
    if !stripped.is_ok_and(|status| status.success()) {
        fs::copy(holdfast, &smaller).with_context(|| format!("copy {}", holdfast.display()))?;
    }
    let mut files = libraries_of(holdfast)?;
    files.push((smaller, "bin/holdfast".to_owned()));
    let archive = make_image(programs, IMAGE, &files)?;
    fs::write(folder.join(ARCHIVE), archive).context("write the image")?;
    for worker in &trial_lab.workers {
        let brought = trial_lab.cluster.bring_archive(worker.as_ref(), &inside().join(ARCHIVE));
        brought.with_context(|| format!("the image on {}", worker.name()))?;
    }
    Ok(())
}

/// The libraries that a program is loaded with, by ldd(1): each with its path in the image, which is its own.
fn libraries_of(program: &Path) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let output = Command::new("ldd").arg(program).output().context("ldd")?;
    ensure!(output.status.success(), "ldd {}: {}", program.display(), output.status);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let files = text.split_whitespace().filter(|word| word.starts_with('/'));
    Ok(files.map(|path| (PathBuf::from(path), path.trim_start_matches('/').to_owned())).collect())
}

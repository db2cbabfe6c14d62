//! One run of a campaign: drawn, treated, and what became of it.

use std::fs::{self, File};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use nix::unistd::Pid;
use serde_json::Value;

use super::dice::Dice;
use super::scenario::{self, Drawn};
use super::treatment::{Treatment, TreatmentGuard};
use super::{judge, leftovers};

/// A run takes no longer than its schedule and this; longer, and it hangs.
const PATIENCE: Duration = Duration::from_secs(150);

/// What became of a run.
#[derive(Debug)]
pub(super) struct Became {
    pub(super) seed: u64,
    pub(super) treatment: Treatment,
    /// `pass`, `fail`, `unknown`, `refused`, `no lab`, `killed`, or what else it ended with.
    pub(super) ended: String,
    /// The first reason of its verdict, or the last line of its complaint.
    pub(super) why: String,
    /// What should not have been; empty for a run without a defect of ours.
    pub(super) complaints: Vec<String>,
    pub(super) scenario: String,
}

/// What a run left for its judge.
pub(super) struct Left {
    /// None where it had to be ended because it hung.
    pub(super) status: Option<ExitStatus>,
    pub(super) stdout: String,
    pub(super) stderr: String,
    /// Its directory, where it made one.
    pub(super) directory: Option<PathBuf>,
    /// Of `result.json`, where it is whole.
    pub(super) result: Option<Value>,
    /// What it had said when the treatment struck; none where it ended before.
    pub(super) said_when_struck: Option<String>,
    /// What is still on the machine.
    pub(super) leftovers: Vec<String>,
    /// The exit code of `holdfast report` on its directory, and what it said.
    pub(super) reported: Option<(ExitStatus, String)>,
}

/// Draws a run from its seed, carries it out and judges it.
///
/// # Errors
/// When the campaign cannot do its own part.
pub(super) fn one(holdfast: &Path, seed: u64, among: &[Treatment]) -> anyhow::Result<Became> {
    let mut dice = Dice::of(seed);
    let drawn = scenario::draw(&mut dice, seed);
    let treatment = Treatment::draw(&mut dice, among);
    let folder = tempfile::Builder::new().prefix("holdfast-campaign-").tempdir().context("a folder")?;
    let run = Run { folder: folder.path(), treatment, drawn: &drawn };
    for folder in ["runs", "temporary"] {
        fs::create_dir(run.file(folder)).context(folder)?;
    }
    let guard = TreatmentGuard::prepare(treatment, &mut dice, &run.file("runs"))?;
    let left = run.carry_out(holdfast, seed, &mut dice, &guard)?;
    let (ended, complaints) = judge::judge(treatment, &left);
    let why = judge::why(&left);
    // Its files are gone with it.
    drop(guard);
    Ok(Became { seed, treatment, ended, why, complaints, scenario: drawn.text })
}

struct Run<'a> {
    folder: &'a Path,
    treatment: Treatment,
    drawn: &'a Drawn,
}

impl Run<'_> {
    fn mark(&self) -> String {
        self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.file(name)).unwrap_or_default()).into_owned()
    }

    fn carry_out(
        &self,
        holdfast: &Path,
        seed: u64,
        dice: &mut Dice,
        guard: &TreatmentGuard,
    ) -> anyhow::Result<Left> {
        // A name of its own, so that its processes are told from those of every other run.
        let program = self.file("holdfast");
        fs::hard_link(holdfast, &program)
            .or_else(|_| fs::copy(holdfast, &program).map(drop))
            .context("the program")?;
        fs::write(self.file("drawn.yaml"), &self.drawn.text).context("the scenario")?;
        let mut child = self
            .treatment
            .command(&program, guard)
            .args(["run", "drawn.yaml", "--out", "runs", "--seed", &seed.to_string()])
            .current_dir(self.folder)
            .env("TMPDIR", self.file("temporary"))
            .stdin(Stdio::null())
            .stdout(File::create(self.file("stdout")).context("stdout")?)
            .stderr(File::create(self.file("stderr")).context("stderr")?)
            // A group of its own: a signal to it is a Ctrl-C, and reaches nobody else.
            .process_group(0)
            .spawn()
            .context("the program")?;
        let said_when_struck = self.treat(&mut child, dice)?;
        let status = self.end_of(&mut child)?;
        let leftovers = leftovers::left(&self.mark(), self.folder, child.id());
        let directory = self.directory();
        let reported = directory.as_ref().map(|directory| self.report(&program, directory)).transpose()?;
        let result = directory.as_ref().and_then(|directory| fs::read(directory.join("result.json")).ok());
        Ok(Left {
            status,
            stdout: self.text("stdout"),
            stderr: self.text("stderr"),
            result: result.and_then(|bytes| serde_json::from_slice(&bytes).ok()),
            directory,
            said_when_struck,
            leftovers,
            reported,
        })
    }

    /// Strikes when the moment has come; what was said by then, or nothing where the run ended before.
    fn treat(&self, child: &mut Child, dice: &mut Dice) -> anyhow::Result<Option<String>> {
        let Some((awaited, later)) = self.treatment.moment(dice, self.drawn.length_s) else {
            return Ok(None);
        };
        let until = Instant::now() + PATIENCE;
        while !self.text("stdout").contains(awaited) && Instant::now() < until {
            if child.try_wait()?.is_some() {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(later);
        if child.try_wait()?.is_some() {
            return Ok(None);
        }
        let said = self.text("stdout");
        self.treatment.strike(Pid::from_raw(child.id().cast_signed()), &self.mark());
        Ok(Some(said))
    }

    /// Waits for its end; one that hangs is killed, and has no status.
    fn end_of(&self, child: &mut Child) -> anyhow::Result<Option<ExitStatus>> {
        let until = Instant::now() + PATIENCE + Duration::from_secs(self.drawn.length_s);
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            if Instant::now() > until {
                child.kill()?;
                child.wait()?;
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn directory(&self) -> Option<PathBuf> {
        let entries = fs::read_dir(self.file("runs")).ok()?.flatten();
        let scenario = entries.map(|entry| entry.path()).find(|path| path.is_dir() && !path.is_symlink())?;
        fs::read_dir(scenario).ok()?.flatten().map(|entry| entry.path()).find(|path| path.is_dir())
    }

    fn report(&self, program: &Path, directory: &Path) -> anyhow::Result<(ExitStatus, String)> {
        let output = std::process::Command::new(program)
            .arg("report")
            .arg(directory)
            .current_dir(self.folder)
            .stdin(Stdio::null())
            .output()
            .context("holdfast report")?;
        Ok((output.status, String::from_utf8_lossy(&output.stderr).into_owned()))
    }
}

/// The exit code, or the signal that ended it.
pub(super) fn code_or_signal(status: ExitStatus) -> Result<i32, i32> {
    status.code().ok_or_else(|| status.signal().unwrap_or_default())
}

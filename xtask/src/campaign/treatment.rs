//! What is done to a run: signals at any moment, a machine without room, memory or devices.
//!
//! Owns how each is done. What a run may say after it is the judge's business (`judge`).

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::dice::Dice;
use super::leftovers;

/// What is done to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Treatment {
    /// Nothing.
    None,
    /// SIGKILL to the program.
    Kill,
    /// SIGKILL to the first process inside the lab.
    KillSupervisor,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-C, and again at once.
    InterruptTwice,
    /// SIGTERM.
    Terminate,
    /// The lab's supervisor stands still for some seconds while the load is under way.
    Suspend,
    /// The file system of the run directory becomes full while the load is under way.
    FullDisk,
    /// 1 GB of memory for all of it.
    LittleMemory,
    /// No `/dev/fuse`.
    WithoutFuse,
    /// No `/dev/net/tun`.
    WithoutTun,
}

/// How often each is drawn, of all together; its name in the page and for `--only`.
pub(super) const TREATMENTS: [(Treatment, u64, &str); 11] = [
    (Treatment::None, 30, "none"),
    (Treatment::Kill, 16, "kill"),
    (Treatment::KillSupervisor, 8, "kill-supervisor"),
    (Treatment::Interrupt, 8, "interrupt"),
    (Treatment::InterruptTwice, 4, "interrupt-twice"),
    (Treatment::Terminate, 4, "terminate"),
    (Treatment::Suspend, 10, "suspend"),
    (Treatment::FullDisk, 8, "full-disk"),
    (Treatment::LittleMemory, 4, "little-memory"),
    (Treatment::WithoutFuse, 4, "without-fuse"),
    (Treatment::WithoutTun, 4, "without-tun"),
];

/// How long a suspended supervisor stands still.
pub(super) const SUSPENDED: Duration = Duration::from_secs(3);

const MEMORY_BYTES: u64 = 1 << 30;

impl Treatment {
    pub(super) fn name(self) -> &'static str {
        TREATMENTS.iter().find(|(one, ..)| *one == self).map_or("", |(_, _, name)| name)
    }

    /// One of these, each as often as the table says.
    pub(super) fn draw(dice: &mut Dice, among: &[Treatment]) -> Treatment {
        let of = |treatment: &Treatment| {
            TREATMENTS.iter().find(|(one, ..)| one == treatment).map_or(0, |(_, weight, _)| *weight)
        };
        let mut left = dice.from(1, among.iter().map(of).sum());
        for treatment in among {
            let weight = of(treatment);
            if left <= weight {
                return *treatment;
            }
            left -= weight;
        }
        Treatment::None
    }

    /// What the run must have said before it may strike, and how much later it strikes at most.
    pub(super) fn moment(self, dice: &mut Dice, length_s: u64) -> Option<(&'static str, Duration)> {
        let anywhere = || [("", 300), ("run directory", 3_000), ("phase baseline", (length_s + 2) * 1_000)];
        let (said, within_ms) = match self {
            Treatment::Suspend => ("phase baseline", 1_000),
            Treatment::KillSupervisor | Treatment::FullDisk => ("phase baseline", length_s * 1_000),
            Treatment::Kill | Treatment::Interrupt | Treatment::InterruptTwice | Treatment::Terminate => {
                anywhere()[dice.from(0, 2) as usize]
            }
            _ => return None,
        };
        Some((said, Duration::from_millis(dice.from(0, within_ms))))
    }

    /// Strikes the run whose program has this process number and whose files carry this mark.
    pub(super) fn strike(self, program: Pid, mark: &str) {
        let program_and_its_own = || Pid::from_raw(-program.as_raw());
        // What has ended by itself cannot be struck any more, which the judge sees by what it said.
        let send = |to: Pid, signal: Signal| {
            let _ = kill(to, signal);
        };
        match self {
            Treatment::Kill => send(program, Signal::SIGKILL),
            Treatment::Interrupt => send(program_and_its_own(), Signal::SIGINT),
            Treatment::InterruptTwice => {
                send(program_and_its_own(), Signal::SIGINT);
                std::thread::sleep(Duration::from_millis(50));
                send(program_and_its_own(), Signal::SIGINT);
            }
            Treatment::Terminate => send(program, Signal::SIGTERM),
            Treatment::KillSupervisor => {
                if let Some(inner) = leftovers::supervisors(mark).into_iter().max() {
                    send(Pid::from_raw(inner), Signal::SIGKILL);
                }
            }
            Treatment::Suspend => {
                let inner = leftovers::supervisors(mark).into_iter().max().map(Pid::from_raw);
                if let Some(inner) = inner {
                    send(inner, Signal::SIGSTOP);
                    std::thread::sleep(SUSPENDED);
                    send(inner, Signal::SIGCONT);
                }
            }
            Treatment::FullDisk => fill(&std::env::temp_dir().join(mark).join("runs/ballast")),
            _ => {}
        }
    }

    /// The program's command on a machine that lacks what this takes away.
    pub(super) fn command(self, program: &Path, guard: &TreatmentGuard) -> Command {
        let script = |before: &str| ["-c".to_owned(), format!("{before} && exec \"$@\""), "sh".to_owned()];
        let with_own_mounts = |before: &str| {
            let mut command = Command::new("unshare");
            command.args(["--mount", "--propagation", "private", "sh"]).args(script(before)).arg(program);
            command
        };
        match (self, &guard.group) {
            (Treatment::WithoutFuse, _) => with_own_mounts("mount --bind /dev/null /dev/fuse"),
            (Treatment::WithoutTun, _) => with_own_mounts("mount --bind /dev/null /dev/net/tun"),
            (Treatment::LittleMemory, Some(group)) => {
                let mut command = Command::new("sh");
                command.args(script(&format!("echo $$ > '{}/cgroup.procs'", group.display()))).arg(program);
                command
            }
            _ => Command::new(program),
        }
    }
}

/// Writes until there is no room left.
fn fill(path: &Path) {
    let Ok(mut file) = std::fs::File::create(path) else { return };
    let block = vec![0; 1 << 20];
    while std::io::Write::write_all(&mut file, &block).is_ok() {}
}

/// What is made for a treatment outside the run, and taken away on drop.
pub(super) struct TreatmentGuard {
    mount: Option<std::path::PathBuf>,
    group: Option<std::path::PathBuf>,
}

impl TreatmentGuard {
    /// Makes it; `runs` is the folder of run directories.
    ///
    /// # Errors
    /// When the machine does not allow it.
    pub(super) fn prepare(
        treatment: Treatment,
        dice: &mut Dice,
        runs: &Path,
    ) -> anyhow::Result<TreatmentGuard> {
        let mut guard = TreatmentGuard { mount: None, group: None };
        match treatment {
            Treatment::FullDisk => {
                let size = format!("size={}m", dice.from(450, 900));
                let arguments = ["-t", "tmpfs", "-o", &size, "tmpfs"];
                let status = Command::new("mount").args(arguments).arg(runs).status().context("mount")?;
                ensure!(status.success(), "mount: {status}");
                guard.mount = Some(runs.to_owned());
            }
            Treatment::LittleMemory => {
                let mark = runs.parent().and_then(Path::file_name).unwrap_or_default();
                let group = Path::new(MEMORY_GROUPS).join(mark);
                std::fs::create_dir(&group).with_context(|| group.display().to_string())?;
                let limit = group.join("memory.limit_in_bytes");
                guard.group = Some(group);
                std::fs::write(&limit, MEMORY_BYTES.to_string())
                    .with_context(|| limit.display().to_string())?;
            }
            _ => {}
        }
        Ok(guard)
    }
}

/// Where groups with a limit of memory are made.
const MEMORY_GROUPS: &str = "/sys/fs/cgroup/memory";

impl Drop for TreatmentGuard {
    fn drop(&mut self) {
        if let Some(mount) = &self.mount {
            let _ = Command::new("umount").arg("--lazy").arg(mount).status();
        }
        if let Some(group) = &self.group {
            let _ = std::fs::remove_dir(group);
        }
    }
}

/// Those that this machine allows, and why not the others.
pub(super) fn possible() -> (Vec<Treatment>, Vec<String>) {
    let is_root = nix::unistd::geteuid().is_root();
    let why_not = |treatment: Treatment| match treatment {
        Treatment::FullDisk | Treatment::WithoutFuse | Treatment::WithoutTun if !is_root => {
            Some("only root may mount".to_owned())
        }
        Treatment::LittleMemory if !Path::new(MEMORY_GROUPS).is_dir() => {
            Some(format!("there is no {MEMORY_GROUPS}"))
        }
        Treatment::LittleMemory if !is_root => Some("only root may limit memory".to_owned()),
        _ => None,
    };
    let (mut may, mut may_not) = (Vec::new(), Vec::new());
    for (treatment, _, name) in TREATMENTS {
        match why_not(treatment) {
            Some(why) => may_not.push(format!("{name}: {why}")),
            None => may.push(treatment),
        }
    }
    (may, may_not)
}

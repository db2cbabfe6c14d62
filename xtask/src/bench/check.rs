//! The checkers beside porcupine, each judging generated histories in a process of its own, in turn.
//!
//! CPU time and peak memory are the kernel's account of that process (wait4(2)), generator included on both sides. Where
//! porcupine has nothing to set beside, the figure stands beside the limit that it must keep to. Before anything is
//! measured the two must agree on 1,000 small register histories, ok and bad.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, ensure};

use super::table::{Row, conclude};

/// Seconds and megabytes of one process.
#[derive(Debug, Clone, Copy)]
struct Used {
    cpu_s: f64,
    peak_mb: f64,
}

/// One thing to judge, by the arguments that both sides understand.
type Task = &'static [&'static str];

const LIST_APPEND: Task = &["list-append", "1000000", "0"];
const LIST_APPEND_TEN_TIMES: Task = &["list-append", "10000000", "0"];
const LIST_APPEND_ONE_STALE: Task = &["list-append", "1000000", "1000000"];
const LIST_APPEND_MANY_STALE: Task = &["list-append", "1000000", "1000"];
const LIST_APPEND_LOST: Task = &["list-append", "1000000", "0", "1001"];
const REGISTER_ONE_KEY: Task = &["register", "100000", "1", "10"];
const REGISTER_ONE_KEY_SHORT: Task = &["register", "10000", "1", "10"];
const REGISTER_MANY_KEYS: Task = &["register", "1000000", "1000", "10"];

/// Small register histories on which the two must agree.
const AGREED: &str = "1000";

/// Measures and prints. `times` is how often each is measured.
///
/// # Errors
/// When a side cannot be built or does not judge as it must.
pub fn run(times: usize) -> anyhow::Result<ExitCode> {
    ensure!(times > 0, "nothing to measure: --times 0");
    let ours = build_ours()?;
    let theirs = build_porcupine()?;
    agree(&ours, &theirs)?;
    let mut rows = Vec::new();
    for _ in 0..times {
        rows.push(measure(&ours, &theirs)?);
    }
    Ok(if conclude("check", &joined(&rows))? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One row of one round: what, beside whom, the unit, ours, theirs, the goal.
struct Figure {
    what: &'static str,
    peer: &'static str,
    unit: &'static str,
    pair: (f64, f64),
    goal: Option<f64>,
}

fn measure(ours: &Path, theirs: &Path) -> anyhow::Result<Vec<Figure>> {
    let judge = |task: Task, verdict: &str| judged(ours, task, verdict);
    let porcupine = |task: Task| judged(theirs, task, "pass");
    let append = judge(LIST_APPEND, "pass")?;
    let append_ten_times = judge(LIST_APPEND_TEN_TIMES, "pass")?;
    let one_stale = judge(LIST_APPEND_ONE_STALE, "fail")?;
    let many_stale = judge(LIST_APPEND_MANY_STALE, "fail")?;
    let lost = judge(LIST_APPEND_LOST, "fail")?;
    let one_key = judge(REGISTER_ONE_KEY, "pass")?;
    let short = (judge(REGISTER_ONE_KEY_SHORT, "pass")?, porcupine(REGISTER_ONE_KEY_SHORT)?);
    let many = (judge(REGISTER_MANY_KEYS, "pass")?, porcupine(REGISTER_MANY_KEYS)?);
    let figure = |what, peer, unit, pair, goal| Figure { what, peer, unit, pair, goal };
    let limit = "limit";
    Ok(vec![
        figure("1M list-append transactions, CPU", limit, "s", (append.cpu_s, 2.0), Some(1.0)),
        figure("1M list-append transactions, memory", limit, "MB", (append.peak_mb, 1000.0), Some(1.0)),
        figure(
            "10M list-append transactions, CPU",
            "ten times 1M",
            "s",
            (append_ten_times.cpu_s, 10.0 * append.cpu_s),
            Some(1.3),
        ),
        figure(
            "1M list-append, one stale transaction, CPU",
            "the valid history",
            "s",
            (one_stale.cpu_s, append.cpu_s),
            Some(3.0),
        ),
        figure(
            "1M list-append, one in 1000 stale, CPU",
            "the valid history",
            "s",
            (many_stale.cpu_s, append.cpu_s),
            Some(3.0),
        ),
        figure(
            "1M list-append, one append lost, CPU",
            "the valid history",
            "s",
            (lost.cpu_s, append.cpu_s),
            Some(3.0),
        ),
        figure("100k operations on 1 register, CPU", limit, "s", (one_key.cpu_s, 1.0), Some(1.0)),
        figure("100k operations on 1 register, memory", limit, "MB", (one_key.peak_mb, 200.0), Some(1.0)),
        figure("10k operations on 1 register, CPU", "porcupine", "s", cpu(short), None),
        figure("10k operations on 1 register, memory", "porcupine", "MB", peak(short), None),
        figure("1M operations on 1000 registers, CPU", "porcupine", "s", cpu(many), Some(0.5)),
        figure("1M operations on 1000 registers, memory", "porcupine", "MB", peak(many), Some(0.5)),
    ])
}

fn cpu((ours, theirs): (Used, Used)) -> (f64, f64) {
    (ours.cpu_s, theirs.cpu_s)
}

fn peak((ours, theirs): (Used, Used)) -> (f64, f64) {
    (ours.peak_mb, theirs.peak_mb)
}

/// The rounds' figures, row by row.
fn joined(rounds: &[Vec<Figure>]) -> Vec<Row> {
    let Some(first) = rounds.first() else { return Vec::new() };
    let row = |(at, figure): (usize, &Figure)| {
        let pairs: Vec<(f64, f64)> =
            rounds.iter().filter_map(|round| round.get(at)).map(|one| one.pair).collect();
        Row::of_pairs(figure.what, figure.peer, figure.unit, &pairs, figure.goal)
    };
    first.iter().enumerate().map(row).collect()
}

/// Runs one side on one task; what it says must be the verdict.
fn judged(program: &Path, task: Task, verdict: &str) -> anyhow::Result<Used> {
    let output = tempfile::tempfile().context("a file for what it says")?;
    let child = Command::new(program)
        .args(task)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("start {}", program.display()))?;
    let used = reap(child)?;
    let said = read_from_start(output)?;
    ensure!(said.trim() == verdict, "{} {task:?}: `{}`, not `{verdict}`", program.display(), said.trim());
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    println!("{name} {}: {verdict}, {:.2} CPU s, {:.0} MB", task.join(" "), used.cpu_s, used.peak_mb);
    Ok(used)
}

fn read_from_start(mut file: File) -> anyhow::Result<String> {
    use std::io::{Read, Seek};
    file.rewind()?;
    let mut said = String::new();
    file.read_to_string(&mut said)?;
    Ok(said)
}

/// Waits for a child; gives what the kernel says it used.
fn reap(child: Child) -> anyhow::Result<Used> {
    let pid = libc::pid_t::try_from(child.id()).context("a process's number")?;
    let mut status = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both pointers are to live variables of the right type. There is no safe form of wait4.
        let waited = unsafe { libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()) };
        if waited == pid {
            break;
        }
        let error = std::io::Error::last_os_error();
        ensure!(error.kind() == std::io::ErrorKind::Interrupted, "wait for process {pid}: {error}");
    }
    ensure!(
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
        "process {pid} ended with {status:#x}"
    );
    // SAFETY: all zeroes is a value of it, and the kernel has filled it in.
    let usage = unsafe { usage.assume_init() };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(Used {
        cpu_s: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        // Kilobytes, says getrusage(2).
        peak_mb: usage.ru_maxrss as f64 * 1024.0 / 1e6,
    })
}

fn build_ours() -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["build", "--release", "--quiet", "--package", "check", "--example", "judge"];
    let status = Command::new(cargo).args(arguments).current_dir(crate::repository_root()).status()?;
    ensure!(status.success(), "cargo build --release --example judge: {status}");
    Ok(crate::target_directory().join("release/examples/judge"))
}

fn build_porcupine() -> anyhow::Result<PathBuf> {
    let folder = crate::target_directory().join("bench");
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    let program = folder.join("porcupine");
    let status = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(crate::repository_root().join("xtask/src/bench/porcupine"))
        .status()
        .context("start go, which builds porcupine; install Go 1.22 or later")?;
    ensure!(status.success(), "go build porcupine: {status}");
    Ok(program)
}

/// Both judge the same small histories and must come to the same verdicts, of which some must be ok and some bad.
fn agree(ours: &Path, theirs: &Path) -> anyhow::Result<()> {
    let histories = tempfile::NamedTempFile::new().context("a file for the histories")?;
    let status = Command::new(ours).args(["agree", AGREED]).stdout(histories.reopen()?).status()?;
    ensure!(status.success(), "{} agree: {status}", ours.display());
    let output = Command::new(theirs).arg("agree").arg(histories.path()).output()?;
    ensure!(output.status.success(), "{} agree: {}", theirs.display(), output.status);
    let said = String::from_utf8_lossy(&output.stdout);
    let counts: Vec<u32> = said.split_whitespace().filter_map(|count| count.parse().ok()).collect();
    let [passed, failed, differ] = counts[..] else { anyhow::bail!("porcupine said `{said}`") };
    println!(
        "{AGREED} register histories: porcupine finds {passed} ok and {failed} bad; we differ on {differ}"
    );
    ensure!(differ == 0, "the verdicts differ on {differ} histories");
    ensure!(passed >= 100 && failed >= 100, "{passed} ok and {failed} bad are too few of one kind");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_childs_account_is_its_own() {
        let spin = |count: u32| {
            let script = format!("i=0; while [ $i -lt {count} ]; do i=$((i+1)); done");
            let child = Command::new("/bin/sh").args(["-c", &script]).spawn().expect("a shell");
            reap(child).expect("its account")
        };
        let (long, short) = (spin(300_000), spin(0));
        assert!(long.cpu_s > short.cpu_s && short.peak_mb > 0.1, "{long:?} {short:?}");
        let failing = Command::new("/bin/false").spawn().expect("a program");
        assert!(reap(failing).is_err());
    }
}

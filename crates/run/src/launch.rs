//! The outer process's side of a run: reads the scenario, finds the database, makes the run directory, starts the
//! lab's supervisor, relays its news, tidies up, writes the report.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use engine::client_program::install_driver;
use engine::installation::cache_directory;
use engine::{Installation, Origin};
use faults::{Lie, Planted};
use history::Verdict;
use lab::janitor::Janitor;
use lab::supervisor;
use remote::permit::PermitError;
use scenario::{Rejection, Scenario, Source};

use crate::beside_scenario::BesideError;
use crate::captures::{self, CaptureError};
use crate::directory::{DirectoryError, RunDirectory};
use crate::engine_files::{self, PlanError};
use crate::external;
use crate::kept_lab::KeptLab;
use crate::orders::{INTERRUPT, InstallationOrders, News, Orders, VolumeOrders};
use crate::planted_stall;
use crate::preparation::check_workloads;
use crate::room::{self, RoomError};

/// The second of the run in which a planted stall begins.
const STALL_AT_S: u64 = 3;
/// How long the control groups of a lab that has ended may take to be removed.
const GROUPS_GONE_WITHIN: Duration = Duration::from_secs(5);

/// What can go wrong outside the lab, or be told of what went wrong inside.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The scenario is wrong.
    #[error(transparent)]
    Rejected(#[from] Box<Rejection>),
    /// An engine file cannot be read.
    #[error(transparent)]
    EngineFile(#[from] BesideError),
    /// A workload cannot be had as the scenario asks for it.
    #[error("{0}")]
    Workload(String),
    /// The database is not there and cannot be installed.
    #[error("database: {0}")]
    Install(#[from] engine::InstallError),
    /// The engine is unknown.
    #[error("database: {0}")]
    Engine(#[from] engine::EngineError),
    /// What is to be captured.
    #[error("--capture: {0}")]
    Capture(#[from] CaptureError),
    /// What only a lab has.
    #[error("{option} is for runs in the lab, and this scenario runs on a cluster that exists; take it out")]
    NeedsLab {
        /// The option.
        option: &'static str,
    },
    /// Nobody has confirmed that machines which exist may be broken.
    #[error(transparent)]
    NotPermitted(#[from] PermitError),
    /// The machine has no room for it.
    #[error("this machine: {0}")]
    Room(#[from] RoomError),
    /// The run directory.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The supervisor could not be started or spoken to.
    #[error("lab: {0}")]
    Supervisor(String),
    /// The lab, or the process of a run on a cluster that exists, could not do its job.
    #[error("{part}: {why}")]
    Lab {
        /// Which of the two: `lab` or `cluster`.
        part: &'static str,
        /// Why.
        why: String,
        /// What was recorded until then.
        run_directory: PathBuf,
    },
}

impl From<PlanError> for LaunchError {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Rejected(rejection) => rejection.into(),
            PlanError::Unreadable(error) => error.into(),
        }
    }
}

/// Where a run directory is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// `<scenario>/<timestamp>` below this folder, whose `latest` then points at it.
    Below(PathBuf),
    /// Here; it must not be there yet.
    At(PathBuf),
}

/// What is to be run, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// The scenario's text.
    pub source: Source,
    /// The folder of the scenario's file: where the paths in it begin.
    pub folder: PathBuf,
    /// `--set path=value`.
    pub overrides: Vec<(String, String)>,
    /// The seed; drawn when neither this nor the scenario gives one.
    pub seed: Option<u64>,
    /// Where the run directory is made.
    pub place: Placement,
    /// Leave the lab up at the end.
    pub keep: bool,
    /// Announce faults without carrying them out.
    pub prevent_faults: bool,
    /// Lies planted by a test; empty in every honest run.
    pub planted: Planted,
    /// What packets are to be written down of: nodes, places, links.
    pub captures: Vec<String>,
    /// The name under which somebody confirms that a cluster which exists may be broken: the scenario's.
    pub confirmed: Option<String>,
    /// This program's version.
    pub version: &'static str,
}

/// What the outer process reacts to.
#[derive(Debug)]
pub enum Message {
    /// A signal asks the run to end.
    Interrupt,
    /// The supervisor has news.
    News(Box<News>),
    /// The supervisor hung up.
    HungUp,
}

/// What the outer process shows.
#[derive(Debug)]
pub enum Show<'a> {
    /// A step before the lab is started.
    Step(&'a str),
    /// News of the lab.
    News(&'a News),
    /// What can be entered of a lab that is kept.
    Reach {
        /// The nodes that have power.
        nodes: &'a [String],
        /// Hosts, and places where clients stand.
        others: &'a [String],
        /// The run directory.
        run_directory: &'a Path,
    },
    /// The run directory is known.
    Directory(&'a Path),
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The verdict; unknown when the run was cut short.
    pub verdict: Verdict,
    /// The run directory.
    pub run_directory: PathBuf,
    /// Clean-up that failed, told beside whatever else there is to tell.
    pub left_behind: Vec<String>,
}

/// Does the whole job. `sender` and `receiver` are two ends of one channel; a signal handler holds another sender.
///
/// # Errors
/// When the scenario is wrong, the database is not to be had, or the lab cannot do its job.
pub fn launch(
    options: &Options,
    sender: Sender<Message>,
    receiver: &Receiver<Message>,
    show: &mut dyn FnMut(Show<'_>),
) -> Result<Ended, LaunchError> {
    let start = start(options, VolumeOrders::New, show)?;
    let (relayed, janitor) = start.relay(None, sender, receiver, show)?;
    drop(janitor);
    start.end(relayed)
}

/// Boots a lab whose volumes are kept: with a database that is loaded and has ended in order. No run is made, and nothing of
/// the lab is left but its volumes. None when it was interrupted.
///
/// # Errors
/// As [`launch`]; when the database cannot be ended in order, or its volumes have no snapshots.
pub fn boot_to_keep(
    options: &Options,
    sender: Sender<Message>,
    receiver: &Receiver<Message>,
    show: &mut dyn FnMut(Show<'_>),
) -> Result<Option<KeptLab>, LaunchError> {
    let start = start(options, VolumeOrders::Remember, show)?;
    let (relayed, janitor) = start.relay(None, sender, receiver, show)?;
    match (relayed.is_remembered, janitor) {
        (true, Some(janitor)) => {
            // The lab is gone; what else it had must not wait for its volumes.
            let _ = lab::cgroup::remove_all(&start.orders.run_name, GROUPS_GONE_WITHIN);
            let run_directory = start.directory.path().to_owned();
            let failed = |error: std::io::Error| LaunchError::Lab {
                part: "lab",
                why: format!("its log cannot be locked: {error}"),
                run_directory,
            };
            KeptLab::new(start.directory, janitor).map(Some).map_err(failed)
        }
        (_, janitor) => {
            drop(janitor);
            start.end(relayed).map(|_| None)
        }
    }
}

/// Does the whole job as [`launch`], but begins with the volumes of a kept lab. Beside how it ended: that lab again, or why it
/// was thrown away.
pub fn launch_on(
    lab: KeptLab,
    options: &Options,
    sender: Sender<Message>,
    receiver: &Receiver<Message>,
    show: &mut dyn FnMut(Show<'_>),
) -> (Result<Ended, LaunchError>, Result<KeptLab, Vec<String>>) {
    let not_begun = || vec!["the run on it did not begin".to_owned()];
    let start = match start(options, VolumeOrders::Return, show) {
        Ok(start) => start,
        Err(error) => return (Err(error), Err(not_begun())),
    };
    let (relayed, janitor) = match start.relay(Some(&lab), sender, receiver, show) {
        Ok(relayed) => relayed,
        Err(error) => return (Err(error), Err(not_begun())),
    };
    let mut why = match &relayed.doubts {
        Some(doubts) => doubts.clone(),
        None => vec!["the run did not end in order".to_owned()],
    };
    if why.is_empty()
        && let Err(error) = lab.take_back(&start.directory)
    {
        why.push(format!("its volumes could not be taken back: {error}"));
    }
    drop(janitor);
    let lab = match why.is_empty() {
        true => Ok(lab),
        false => {
            why.extend(lab.end());
            Err(why)
        }
    };
    (start.end(relayed), lab)
}

/// All that is known before the process that does the run is started.
struct Start {
    directory: RunDirectory,
    orders: Orders,
    in_a_lab: bool,
}

/// Reads the scenario, finds what it needs, and makes the run directory.
fn start(
    options: &Options,
    volumes: VolumeOrders,
    show: &mut dyn FnMut(Show<'_>),
) -> Result<Start, LaunchError> {
    let mut scenario = engine_files::plan(&options.source, &options.overrides, &options.folder)?.scenario;
    check_workloads(&mut scenario, &options.folder).map_err(|error| {
        match error.rejection(&options.source, &options.overrides) {
            Some(rejection) => LaunchError::Rejected(Box::new(rejection)),
            None => LaunchError::Workload(error.to_string()),
        }
    })?;
    let (installation, driver) = match scenario.cluster {
        Some(_) => {
            check_external(&mut scenario, options)?;
            (InstallationOrders::default(), None)
        }
        None => check_lab(&scenario, options, volumes, show)?,
    };
    let seed = options.seed.or(scenario.seed).unwrap_or_else(drawn_seed);
    let now = jiff::Timestamp::now();
    let timestamp = now.strftime("%Y-%m-%dT%H-%M-%SZ").to_string();
    let directory = match &options.place {
        Placement::Below(out) => RunDirectory::make(out, &scenario.name, &timestamp)?,
        Placement::At(path) => RunDirectory::make_at(path)?,
    };
    if let Placement::Below(out) = &options.place {
        for left in lab::leftovers::remove(out) {
            show(Show::Step(&left));
        }
    }
    match volumes {
        VolumeOrders::Remember => {
            show(Show::Step(&format!("booting a lab to keep in {}", directory.path().display())));
        }
        VolumeOrders::New | VolumeOrders::Return => show(Show::Directory(directory.path())),
    }
    let text = scenario::to_yaml(&scenario, seed);
    directory.write("scenario.yaml", &text)?;
    let orders = Orders {
        holdfast: options.version.to_owned(),
        scenario: text,
        seed,
        started_at: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        run_directory: directory.path().to_owned(),
        run_name: run_name(&timestamp, volumes),
        installation,
        driver,
        machine: crate::machine::facts(),
        prevent_faults: options.prevent_faults,
        planted: options.planted.clone(),
        keep: options.keep,
        captures: options.captures.clone(),
        confirmed: options.confirmed.clone(),
        volumes,
    };
    Ok(Start { directory, orders, in_a_lab: scenario.cluster.is_none() })
}

/// Unique on this machine for as long as the run lasts, or the lab is kept: a run on it may begin in the same second.
fn run_name(timestamp: &str, volumes: VolumeOrders) -> String {
    let of = if volumes == VolumeOrders::Remember { "-lab" } else { "" };
    format!("{timestamp}{of}-{}", std::process::id())
}

impl Start {
    /// Starts the process that does the run, on the volumes of `kept` where there is such a lab, and passes on its news until it
    /// ends. The janitor of its lab has not been sent to work yet.
    fn relay(
        &self,
        kept: Option<&KeptLab>,
        sender: Sender<Message>,
        receiver: &Receiver<Message>,
        show: &mut dyn FnMut(Show<'_>),
    ) -> Result<(Relayed, Option<Janitor>), LaunchError> {
        let failed = |what: &str, error: std::io::Error| LaunchError::Supervisor(format!("{what}: {error}"));
        let janitor = self.in_a_lab.then(|| Janitor::start(&self.orders.run_name, self.directory.path()));
        let janitor = janitor.transpose().map_err(|error| failed("start the janitor", error))?;
        if let Some(kept) = kept {
            kept.lend(&self.directory).map_err(|error| failed("the volumes of the kept lab", error))?;
        }
        let relayed = relay((&self.orders, self.in_a_lab), &self.directory, sender, receiver, show)?;
        Ok((relayed, janitor))
    }

    /// What came of it, once the janitor has done its work.
    fn end(&self, relayed: Relayed) -> Result<Ended, LaunchError> {
        let left_behind = self.directory.left_behind();
        let part = if self.in_a_lab { "lab" } else { "cluster" };
        let verdict = conclude(part, relayed, &self.directory)?;
        Ok(Ended { verdict, run_directory: self.directory.path().to_owned(), left_behind })
    }
}

/// Whether a cluster that exists can be run against: its command files, and the leave to break it.
fn check_external(scenario: &mut Scenario, options: &Options) -> Result<(), LaunchError> {
    for (option, given) in [("--keep", options.keep), ("--capture", !options.captures.is_empty())] {
        if given {
            return Err(LaunchError::NeedsLab { option });
        }
    }
    external::check_commands(scenario, &options.source, &options.overrides, &options.folder)?;
    external::permit(scenario, options.confirmed.as_deref())?;
    Ok(())
}

/// Whether a lab can be had, and what it needs from outside: the database's programs, and the driver of the program that speaks
/// for clients.
fn check_lab(
    scenario: &Scenario,
    options: &Options,
    volumes: VolumeOrders,
    show: &mut dyn FnMut(Show<'_>),
) -> Result<(InstallationOrders, Option<PathBuf>), LaunchError> {
    for name in &options.captures {
        captures::tap(name, scenario)?;
    }
    let folder = match &options.place {
        Placement::Below(folder) | Placement::At(folder) => folder,
    };
    // Volumes that are returned lie on the disk already.
    if volumes != VolumeOrders::Return
        && let Some(short) = room::check(scenario, folder)?
    {
        show(Show::Step(&short.to_string()));
    }
    Ok((installation(scenario, show)?, driver(scenario, show)?))
}

fn installation(
    scenario: &Scenario,
    show: &mut dyn FnMut(Show<'_>),
) -> Result<InstallationOrders, LaunchError> {
    let engine = engine::registry::of(scenario.database.engine)?;
    let explicit = scenario.database.path.as_deref().map(Path::new);
    let found = match engine.find(explicit) {
        Ok(found) => found,
        Err(error) if explicit.is_some() => return Err(error.into()),
        Err(_) => engine.install(&mut |step| show(Show::Step(step)))?,
    };
    show(Show::Step(&format!("{} {} {}", engine.name, found.version, found.origin)));
    let orders = orders_for(found);
    let home = std::env::var_os("HOME").map(PathBuf::from).and_then(|home| home.canonicalize().ok());
    if orders.shows_to_nodes(Path::new("/")) || home.is_some_and(|home| orders.shows_to_nodes(&home)) {
        let why = "nodes can read the whole folder of the database, and this folder contains your home: move the database into a separate folder";
        return Err(engine::InstallError::Explicit { path: orders.root, why: why.to_owned() }.into());
    }
    Ok(orders)
}

/// The folder of the driver of the program that speaks for clients, where one does and its driver is to be installed.
fn driver(scenario: &Scenario, show: &mut dyn FnMut(Show<'_>)) -> Result<Option<PathBuf>, LaunchError> {
    let program = scenario.database.engine.file.and_then(|file| file.client_program.as_ref());
    let Some(program) = program else { return Ok(None) };
    let cache = cache_directory(|name| std::env::var_os(name))?;
    Ok(install_driver(program, &cache, &mut |step| show(Show::Step(step)))?)
}

fn orders_for(found: Installation) -> InstallationOrders {
    // A cache lies in a home directory, which the node's user, another than ours when we are root, cannot enter; so may
    // this program itself.
    let shown = matches!(found.origin, Origin::Cache | Origin::Installed | Origin::Itself);
    InstallationOrders {
        bin: found.bin,
        version: found.version,
        origin: found.origin.to_string(),
        library_path: found.library_path,
        root: found.root,
        programs: found.programs,
        shown,
    }
}

/// A seed nobody chose. Printed and kept, so that the run can be repeated. Within 53 bits, so that every JSON reader
/// reads it exactly.
pub(crate) fn drawn_seed() -> u64 {
    let mut random = [0u8; 8];
    let drawn =
        File::open("/dev/urandom").and_then(|mut file| std::io::Read::read_exact(&mut file, &mut random));
    let seed = match drawn {
        Ok(()) => u64::from_ne_bytes(random),
        Err(_) => jiff::Timestamp::now().as_nanosecond() as u64 ^ u64::from(std::process::id()),
    };
    seed >> 11
}

/// How the supervisor ended.
#[derive(Debug, Default)]
struct Relayed {
    verdict: Option<Verdict>,
    /// Whether the volumes were remembered, as was asked for.
    is_remembered: bool,
    /// What of a lab on returned volumes is not as it was at the start, once that was looked at.
    doubts: Option<Vec<String>>,
    failed: Option<String>,
    interrupted: bool,
    status: Option<ExitStatus>,
}

/// Starts the process that does the run, in a lab or outside, and passes on its news until it ends.
fn relay(
    (orders, in_a_lab): (&Orders, bool),
    directory: &RunDirectory,
    sender: Sender<Message>,
    receiver: &Receiver<Message>,
    show: &mut dyn FnMut(Show<'_>),
) -> Result<Relayed, LaunchError> {
    let failed =
        |what: &str, error: &dyn std::fmt::Display| LaunchError::Supervisor(format!("{what}: {error}"));
    directory.make_lab_logs()?;
    let log =
        File::create(lab::janitor::log_path(directory.path())).map_err(|error| failed("lab.log", &error))?;
    let launched = if in_a_lab { supervisor::launch(log) } else { supervisor::launch_outside(log) };
    let mut child = launched.map_err(|error| LaunchError::Supervisor(error.to_string()))?;
    let announced = if in_a_lab { lab::entrance::announce(directory.path(), child.id()) } else { Ok(()) };
    let line = serde_json::to_string(orders).map_err(|error| failed("orders", &error))?;
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(LaunchError::Supervisor("its input and output are missing".to_owned()));
    };
    announced.map_err(|error| LaunchError::Supervisor(error.to_string()))?;
    // A supervisor that ends before it reads its orders says why in its news.
    let _ = writeln!(input, "{line}");
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Ok(news) = serde_json::from_str(&line)
                && sender.send(Message::News(Box::new(news))).is_err()
            {
                return;
            }
        }
        let _ = sender.send(Message::HungUp);
    });
    let mut stall = orders.planted.contains(&Lie::LabStall);
    let mut relayed = Relayed::default();
    while let Ok(message) = receiver.recv() {
        match message {
            Message::HungUp => break,
            Message::Interrupt if relayed.interrupted => {
                // RequestedNetwork a second time: at once. The supervisor's death takes the lab along.
                let _ = child.kill();
            }
            Message::Interrupt => {
                relayed.interrupted = true;
                let _ = writeln!(input, "{INTERRUPT}");
            }
            Message::News(news) => {
                if stall && matches!(&*news, News::Pulse(pulse) if pulse.t_s >= STALL_AT_S) {
                    stall = false;
                    planted_stall::stop_for_a_while(child.id());
                }
                take_news(&news, directory.path(), &mut relayed, show);
            }
        }
    }
    drop(input);
    relayed.status = child.wait().ok();
    // The janitor removes it as well, and whoever reads it looks whether the process is still there.
    let _ = lab::entrance::withdraw(directory.path());
    Ok(relayed)
}

fn take_news(news: &News, run_directory: &Path, relayed: &mut Relayed, show: &mut dyn FnMut(Show<'_>)) {
    match news {
        News::Finished { verdict } => relayed.verdict = Some(*verdict),
        News::Failed { why } => relayed.failed = Some(why.clone()),
        News::Remembered => relayed.is_remembered = true,
        News::Emptied { doubts } => relayed.doubts = Some(doubts.clone()),
        News::Kept { nodes, others } => show(Show::Reach { nodes, others, run_directory }),
        News::Event { .. } | News::Pulse(_) | News::Preparing { .. } => {}
    }
    show(Show::News(news));
}

fn conclude(part: &'static str, relayed: Relayed, directory: &RunDirectory) -> Result<Verdict, LaunchError> {
    let run_directory = directory.path().to_owned();
    match (relayed.verdict, relayed.failed) {
        (Some(verdict), _) => Ok(verdict),
        (None, _) if relayed.interrupted => Ok(Verdict::Unknown),
        (None, Some(why)) => Err(LaunchError::Lab { part, why, run_directory }),
        (None, None) => {
            let status =
                relayed.status.map_or_else(|| "no exit status".to_owned(), |status| status.to_string());
            let why = format!("the supervisor ended without a message ({status}); see logs/lab/lab.log");
            Err(LaunchError::Lab { part, why, run_directory })
        }
    }
}

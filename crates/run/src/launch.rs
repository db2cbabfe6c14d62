//! The outer process's side of a run: reads the scenario, finds the database, makes the run directory, starts the
//! lab's supervisor, relays its news, tidies up, writes the report.

mod error;
mod installing;
mod options;
mod relay;

use std::fs::File;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use lab::janitor::Janitor;
use platform::room;
use scenario::Scenario;
use scenario_files::{check_commands, check_workloads, permit, plan};
use watch::captures;

pub use self::error::LaunchError;
use self::installing::{cluster, driver, installation, upgrade};
pub use self::options::{Ended, Message, Options, Placement, Show};
use self::relay::{Relayed, conclude, relay};
use crate::directory::RunDirectory;
use crate::kept_lab::KeptLab;
use crate::orders::{InstallationOrders, Orders, VolumeOrders};

/// How long the control groups of a lab that has ended may take to be removed.
const GROUPS_GONE_WITHIN: Duration = Duration::from_secs(5);

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
            let run_name = start.orders.run_name.clone();
            let run_directory = start.directory.path().to_owned();
            let failed = |error: std::io::Error| LaunchError::Lab {
                part: "lab",
                why: format!("its log cannot be locked: {error}"),
                run_directory,
            };
            // Locked at once: whoever removes what gone labs left must not take it for one.
            let kept = KeptLab::new(start.directory, janitor).map_err(failed)?;
            // The lab is gone; what else it had must not wait for its volumes.
            let _ = lab::cgroup::remove_all(&run_name, GROUPS_GONE_WITHIN);
            Ok(Some(kept))
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
    let mut scenario = plan(&options.source, &options.overrides, &options.folder)?.scenario;
    check_workloads(&mut scenario, &options.folder).map_err(|error| {
        match error.rejection(&options.source, &options.overrides) {
            Some(rejection) => LaunchError::Rejected(Box::new(rejection)),
            None => LaunchError::Workload(error.to_string()),
        }
    })?;
    let programs = match scenario.cluster {
        Some(_) => {
            check_external(&mut scenario, options)?;
            ProgramsOfALab::default()
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
        installation: programs.installation,
        upgrade: programs.upgrade,
        driver: programs.driver,
        cluster_programs: programs.cluster,
        machine: paper::facts_of_this_host(),
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
    check_commands(scenario, &options.source, &options.overrides, &options.folder)?;
    permit(scenario, options.confirmed.as_deref())?;
    Ok(())
}

/// What a lab needs from outside.
#[derive(Default)]
struct ProgramsOfALab {
    installation: InstallationOrders,
    upgrade: Option<InstallationOrders>,
    driver: Option<PathBuf>,
    cluster: Option<PathBuf>,
}

/// Whether a lab can be had, and what it needs from outside: the database's programs, and the driver of the program that speaks
/// for clients.
fn check_lab(
    scenario: &Scenario,
    options: &Options,
    volumes: VolumeOrders,
    show: &mut dyn FnMut(Show<'_>),
) -> Result<ProgramsOfALab, LaunchError> {
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
    let installation = installation(scenario, show)?;
    if scenario.database.on.kubernetes().is_some() && installation.system.is_some() {
        // Before its cluster's programs are built, which takes minutes.
        return Err(engine::EngineError::ImageInPods { engine: scenario.database.engine.name }.into());
    }
    let upgrade = upgrade(scenario, &installation, show)?;
    let (driver, cluster) = (driver(scenario, show)?, cluster(scenario, show)?);
    Ok(ProgramsOfALab { installation, upgrade, driver, cluster })
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

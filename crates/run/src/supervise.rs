//! The supervisor: PID 1 of the lab. Reads its orders, does the run, tells the news, ends. A run on a cluster that exists has
//! such a process too, outside of any lab.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use history::{EventKind, EventSink, Verdict};
use lab::supervisor::{self, SupervisorError};
use load::Clock;
use scenario::{Scenario, Source};
use scenario_agents::AgentPods;

use crate::chronicle::{Chronicle, ChronicleError, news};
use crate::conductor::{Conductor, ConductorError};
use crate::directory::{DirectoryError, RunDirectory};
use crate::external::{self, ExternalError};
use crate::in_the_lab::Lab;
use crate::lab_end::{self, LabDoubt};
use crate::orders::{INTERRUPT, News, Orders, VolumeOrders};
use crate::outcome;
use crate::preparation::{PreparationError, prepare, remember};
use crate::prepared::Prepared;

/// Why a run ends early that was told to.
pub(crate) const INTERRUPTED: &str = "interrupted by a signal";

/// Why a run on a cluster that exists ends early when nobody waits for it any more.
const ABANDONED: &str = "the process that started the run is gone";

/// Exit code of a lab that could not do its job.
const LAB_FAILED: u8 = 255;

/// What keeps a supervisor from doing its job.
#[derive(Debug, thiserror::Error)]
enum SuperviseError {
    #[error("lab: {0}")]
    Lab(#[from] SupervisorError),
    #[error("orders: {0}")]
    Orders(#[source] io::Error),
    #[error("the resolved scenario does not parse: {0}")]
    Scenario(String),
    #[error(transparent)]
    Preparation(#[from] PreparationError),
    #[error(transparent)]
    External(#[from] ExternalError),
    #[error(transparent)]
    Conductor(#[from] ConductorError),
    #[error(transparent)]
    Chronicle(#[from] ChronicleError),
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error("result.json: {0}")]
    Result(#[source] serde_json::Error),
}

/// The whole life of the supervisor; the calling process must have one thread. Returns the exit code.
#[must_use]
pub fn supervise() -> u8 {
    told(supervised())
}

/// The whole life of the process that does a run on a cluster that exists. When nobody waits for it any more it undoes what
/// stands, and ends. Returns the exit code.
#[must_use]
pub fn supervise_outside() -> u8 {
    told(supervised_outside())
}

/// What came of it.
enum Done {
    Run(Verdict),
    /// Volumes that are remembered.
    Remembered,
}

fn told(ended: Result<Done, SuperviseError>) -> u8 {
    match ended {
        Ok(Done::Run(verdict)) => {
            news(&News::Finished { verdict });
            verdict.exit_code()
        }
        Ok(Done::Remembered) => {
            news(&News::Remembered);
            0
        }
        Err(error) => {
            let why = with_causes(&error);
            // Twice on purpose: the news may have no reader any more, the log stays.
            eprint_log(&why);
            news(&News::Failed { why });
            LAB_FAILED
        }
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        let source_text = source.to_string();
        if !text.contains(&source_text) {
            text.push_str(": ");
            text.push_str(&source_text);
        }
        cause = source.source();
    }
    text
}

/// The supervisor's standard error is the file `logs/lab/lab.log`.
fn eprint_log(why: &str) {
    use io::Write;
    let _ = writeln!(io::stderr(), "{why}");
}

fn supervised() -> Result<Done, SuperviseError> {
    let entered = supervisor::enter()?;
    let orders = read_orders()?;
    let volumes = lab::janitor::volumes_path(&orders.run_directory);
    // PID 1 of the namespace goes, and the kernel kills the rest.
    let (building, interrupts) = listen(|_| std::process::exit(LAB_FAILED.into()))?;
    supervisor::guard_volumes(&volumes)?;
    let run = Run::begin(orders, interrupts)?;
    building.begin(&run.chronicle);
    run.do_and_tell(|| {
        if run.orders.volumes == VolumeOrders::Remember {
            remember(&run.scenario, &run.orders, entered.users_mapped, &run.chronicle)?;
            building.end();
            return Ok(Done::Remembered);
        }
        let prepared = prepare(&run.scenario, &run.orders, entered.users_mapped, &run.chronicle)?;
        building.end();
        run.perform(&prepared).map(Done::Run)
    })
}

fn supervised_outside() -> Result<Done, SuperviseError> {
    let orders = read_orders()?;
    let (building, interrupts) = listen(|interrupt| {
        // A run that has ended listens no more.
        let _ = interrupt.send(ABANDONED.to_owned());
    })?;
    let run = Run::begin(orders, interrupts)?;
    building.begin(&run.chronicle);
    run.do_and_tell(|| {
        // While pods are made an interrupt waits: what is half there cannot be removed from beside.
        let pause = || {
            building.end();
        };
        let go_on = |agents: AgentPods| building.go_on(&run.chronicle, agents);
        let prepared = external::prepare(&run.scenario, &run.orders, &run.chronicle, (&pause, &go_on));
        let agents = building.end();
        let done = prepared.map_err(SuperviseError::from);
        let done = done.and_then(|prepared| run.perform(&prepared).map(Done::Run));
        // There are none any more where the run came to its end.
        agents.dismiss(run.chronicle.as_ref());
        done
    })
}

fn read_orders() -> Result<Orders, SuperviseError> {
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(SuperviseError::Orders)?;
    serde_json::from_str(&line).map_err(|error| SuperviseError::Orders(error.into()))
}

/// Listens to the outer process; `when_it_is_gone` is called when it is, except while there is nothing to undo, when this
/// process ends.
fn listen(
    when_it_is_gone: impl FnOnce(&Sender<String>) + Send + 'static,
) -> Result<(Building, Receiver<String>), SuperviseError> {
    let (interrupt, interrupts) = channel();
    let building = Building::default();
    let (watched, abandoned, gone) = (building.clone(), building.clone(), interrupt.clone());
    let order = move |order: &str| {
        if order == INTERRUPT {
            watched.abandon(INTERRUPTED);
            // A run that has ended listens no more; then there is nothing to interrupt.
            let _ = interrupt.send(INTERRUPTED.to_owned());
        }
    };
    let at_end = move || {
        abandoned.abandon(ABANDONED);
        when_it_is_gone(&gone);
    };
    supervisor::watch_orders(order, at_end)?;
    raise_open_files_limit();
    Ok((building, interrupts))
}

/// The time in which there is nothing to heal and nothing to write but that it ended: an interrupt need not wait for a
/// database that is just starting. Agents that are pods are removed before this process ends.
#[derive(Clone, Default)]
struct Building(Arc<Mutex<Stage>>);

/// How far it is.
#[derive(Default)]
struct Stage {
    /// Where the end is recorded; none while an interrupt has to wait, and once preparation is over.
    chronicle: Option<Arc<Chronicle>>,
    /// None before they are there.
    agents: AgentPods,
    /// The interrupt that waits.
    waiting: Option<String>,
}

impl Building {
    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, chronicle: &Arc<Chronicle>) {
        self.stage().chronicle = Some(chronicle.clone());
    }

    /// It is over, and who ends it has its agents.
    fn end(&self) -> AgentPods {
        std::mem::take(&mut *self.stage()).agents
    }

    /// Agents that are pods are there now, and an interrupt need not wait any longer.
    fn go_on(&self, chronicle: &Arc<Chronicle>, agents: AgentPods) {
        let mut stage = self.stage();
        stage.chronicle = Some(chronicle.clone());
        stage.agents = agents;
        let waiting = stage.waiting.take();
        drop(stage);
        if let Some(why) = waiting {
            self.abandon(&why);
        }
    }

    /// While it lasts: ends this process, PID 1 of the lab, and the lab with it.
    fn abandon(&self, why: &str) {
        // Held until the end: the run does not begin meanwhile.
        let mut stage = self.stage();
        let Some(chronicle) = stage.chronicle.take() else {
            stage.waiting = Some(why.to_owned());
            return;
        };
        chronicle.say(EventKind::Interrupted { why: why.to_owned() });
        stage.agents.dismiss(chronicle.as_ref());
        std::process::exit(Verdict::Unknown.exit_code().into());
    }
}

struct Run {
    scenario: Scenario,
    orders: Orders,
    directory: RunDirectory,
    chronicle: Arc<Chronicle>,
    clock: Clock,
    interrupts: Receiver<String>,
}

impl Run {
    fn begin(orders: Orders, interrupts: Receiver<String>) -> Result<Run, SuperviseError> {
        let directory = RunDirectory::at(orders.run_directory.clone());
        let source = Source { name: "scenario.yaml".to_owned(), text: orders.scenario.clone() };
        let scenario =
            scenario::parse(&source, &[]).map_err(|error| SuperviseError::Scenario(error.to_string()))?;
        let clock = Clock::set_later();
        // A lab that makes no run leaves a log of its making, and no directory of a run.
        let told_in = match orders.volumes {
            VolumeOrders::Remember => RunDirectory::at(directory.lab_logs()),
            VolumeOrders::New | VolumeOrders::Return => directory.clone(),
        };
        let chronicle = Arc::new(Chronicle::begin(&told_in, clock.clone())?);
        Ok(Run { scenario, orders, directory, chronicle, clock, interrupts })
    }

    /// Does the run's job. Where it fails, the run's events say why.
    fn do_and_tell(
        &self,
        job: impl FnOnce() -> Result<Done, SuperviseError>,
    ) -> Result<Done, SuperviseError> {
        let done = job();
        if let Err(error) = &done {
            self.chronicle.say(EventKind::RunFailed { why: with_causes(error) });
        }
        done
    }

    fn perform(&self, prepared: &Prepared) -> Result<Verdict, SuperviseError> {
        if let Ok(why) = self.interrupts.try_recv() {
            self.chronicle.say(EventKind::Interrupted { why });
            return Ok(Verdict::Unknown);
        }
        let conductor = Conductor {
            scenario: &self.scenario,
            seed: self.orders.seed,
            prevented: self.orders.prevent_faults,
            prepared,
            directory: &self.directory,
            chronicle: &self.chronicle,
            clock: self.clock.clone(),
            interrupts: &self.interrupts,
        };
        let shown = conductor.conduct()?;
        let result = outcome::draw(&self.scenario, prepared, &shown, &self.directory, &self.chronicle);
        let text = serde_json::to_string_pretty(&result).map_err(SuperviseError::Result)?;
        self.directory.write("result.json", &format!("{text}\n"))?;
        if let (VolumeOrders::Return, Some(lab)) = (self.orders.volumes, &prepared.lab) {
            let doubts = lab_end::end(&result, shown.interrupted.is_some(), &lab.datacentre);
            news(&News::Emptied { doubts: doubts.iter().map(LabDoubt::to_string).collect() });
        }
        self.chronicle.say(EventKind::RunEnded { verdict: result.verdict });
        if let (true, None, Some(lab)) = (self.orders.keep, &shown.interrupted, &prepared.lab) {
            self.keep(lab);
        }
        Ok(result.verdict)
    }

    /// Leaves the lab up until the outer process says otherwise, and tells what can be entered.
    fn keep(&self, lab: &Lab) {
        let datacentre = &lab.datacentre;
        let nodes = datacentre.vms.iter().filter(|vm| vm.is_on());
        news(&News::Kept {
            nodes: nodes.map(|vm| engine::Node::name(vm.as_ref()).to_owned()).collect(),
            others: datacentre.places_without_a_database(),
        });
        let _ = self.interrupts.recv();
    }
}

/// Every host, node and connection takes descriptors; the soft limit is often 1,024.
fn raise_open_files_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

//! The fabric beside what else carries packets: a plain veth pair of the kernel, and toxiproxy.
//!
//! All are measured in one lab of namespaces, pair by pair, in turn. From outside, [`run`] builds, starts the lab and
//! makes the table; inside, [`measure_inside`] takes the readings; [`play`] is the measuring programs. What carries is
//! in a process of its own, and so is each of those it carries for.

mod crowd;
mod instrument;
mod measures;
mod rows;
mod test_places;
mod toxiproxy;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use fabric::{Options, Rule};
use lab::RoutingNamespace;
use lab::accounting::machine_busy_and_total_ticks;
use lab::supervisor::{self, Entered, SupervisorError};
use nix::unistd::{SysconfVar, sysconf};
use serde::{Deserialize, Serialize};

use self::instrument::Job;
pub use self::instrument::play;
use self::measures::{Carried, RATES, Reading, loopback};
use self::test_places::{Instrument, Place, Route, fabric_over, join_by_kernel_path, join_by_veth};
use self::toxiproxy::{Toxic, Toxiproxy};
use super::cpu_account::cpu_of_reaped_children;
use super::table::conclude;

/// Hidden subcommand of `xtask` that makes it a measuring program.
pub const INSTRUMENT_SUBCOMMAND: &str = "bench-instrument";

/// How long the fabric looks for packets awake, where that is measured.
const BUSY_POLL: Duration = Duration::from_micros(50);

/// The name of the reading that says how quiet the machine was.
const OTHERS_BUSY: &str = "others busy percent";

/// All that can be measured.
const MEASUREMENTS: [&str; 8] = [
    "round-trips",
    "halting-round-trips",
    "throughput",
    "flood",
    "delay",
    "rates",
    "all-to-all",
    "thousand-hosts",
];

/// What the lab is asked to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Plan {
    pairs: usize,
    only: Vec<String>,
    toxiproxy: Option<PathBuf>,
}

/// What the lab has to say.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum News {
    Measured { pair: usize, readings: Vec<Reading> },
    Failed(String),
    Done,
}

/// Readings by name; of each, those of the pairs.
type Readings = BTreeMap<String, BTreeMap<usize, f64>>;

/// Measures and prints.
///
/// # Errors
/// When no lab is to be had, or a measurement cannot be made.
pub fn run(pairs: usize, only: &[String]) -> anyhow::Result<ExitCode> {
    ensure!(pairs > 0, "nothing to measure: --pairs 0");
    if let Some(unknown) = only.iter().find(|name| !MEASUREMENTS.contains(&name.as_str())) {
        bail!("there is no measurement `{unknown}`; there are {}", MEASUREMENTS.join(", "));
    }
    if cfg!(debug_assertions) {
        return run_as_shipped();
    }
    let toxiproxy = toxiproxy::build();
    let missing = toxiproxy.as_ref().err().map(|error| format!("{error:#}"));
    if let Some(why) = &missing {
        eprintln!("NO PEER: toxiproxy cannot be had, its columns stay empty: {why}");
    }
    let plan = Plan { pairs, only: only.to_vec(), toxiproxy: toxiproxy.ok() };
    let (before, own_before) = (machine_busy_and_total_ticks()?, cpu_of_reaped_children()?);
    let mut readings = measure_in_lab(&plan)?;
    let (after, own_after) = (machine_busy_and_total_ticks()?, cpu_of_reaped_children()?);
    let own_ticks =
        (own_after - own_before).as_secs_f64() * sysconf(SysconfVar::CLK_TCK)?.unwrap_or(100) as f64;
    let share = ((after.0 - before.0) as f64 - own_ticks).max(0.0) / (after.1 - before.1).max(1) as f64;
    readings.insert(OTHERS_BUSY.to_owned(), BTreeMap::from([(0, share * 100.0)]));
    let rows = rows::rows(&readings, pairs, missing.as_deref());
    Ok(if conclude("fabric", &rows)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A build for debugging says nothing about speed: hands over to one as it is shipped.
fn run_as_shipped() -> anyhow::Result<ExitCode> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["build", "--release", "--quiet", "--package", "xtask"];
    let status = Command::new(cargo).args(arguments).current_dir(crate::repository_root()).status()?;
    ensure!(status.success(), "cargo build --release --package xtask: {status}");
    let program = crate::target_directory().join("release/xtask");
    let status = Command::new(&program)
        .args(std::env::args_os().skip(1))
        .status()
        .with_context(|| format!("start {}", program.display()))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn measure_in_lab(plan: &Plan) -> anyhow::Result<Readings> {
    let folder = tempfile::Builder::new().prefix("holdfast-bench-").tempdir().context("a folder")?;
    let log = folder.path().join("log");
    let mut lab = supervisor::launch(std::fs::File::create(&log)?)?;
    let orders = lab.stdin.as_mut().context("the lab's input")?;
    writeln!(orders, "{}", serde_json::to_string(plan)?)?;
    let mut readings = Readings::new();
    let mut ended = None;
    for line in BufReader::new(lab.stdout.take().context("the lab's output")?).lines() {
        match serde_json::from_str(&line?).context("read the lab's news")? {
            News::Measured { pair, readings: new } => {
                for Reading { name, value } in new {
                    println!("pair {}: {name}: {value:.3}", pair + 1);
                    readings.entry(name).or_default().insert(pair, value);
                }
            }
            News::Failed(why) => ended = Some(Err(why)),
            News::Done => ended = Some(Ok(())),
        }
    }
    lab.wait()?;
    match ended {
        Some(Ok(())) => Ok(readings),
        Some(Err(why)) => bail!("in the lab: {why}"),
        None => bail!("the lab ended early: {}", std::fs::read_to_string(&log).unwrap_or_default()),
    }
}

/// The life of the lab's first process, once it has tried to enter the lab and read its plan: measures, and tells.
///
/// # Errors
/// When the plan cannot be read or nobody listens.
pub fn measure_inside(entered: Result<Entered, SupervisorError>, plan: &str) -> anyhow::Result<()> {
    let plan: Plan = serde_json::from_str(plan).context("read the plan")?;
    let measured = entered.map_err(anyhow::Error::from).and_then(|_| {
        supervisor::watch_orders(|_| {}, || std::process::exit(255))?;
        measure(&plan)
    });
    tell(&measured.map_or_else(|error| News::Failed(format!("{error:#}")), |()| News::Done))
}

fn tell(news: &News) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string(news)?);
    Ok(())
}

/// Everything that stands while is measured.
struct Bench {
    veth: [Place; 2],
    veth_address: IpAddr,
    joined: [Place; 2],
    past: [Place; 2],
    _routing: RoutingNamespace,
    alone: Place,
    proxy: Option<Toxiproxy>,
}

fn measure(plan: &Plan) -> anyhow::Result<()> {
    let alone = Place::make(5)?;
    let proxy =
        plan.toxiproxy.as_ref().map(|program| alone.inside(|| Toxiproxy::start(program))).transpose()?;
    let veth = [Place::make(1)?, Place::make(2)?];
    let veth_address = join_by_veth(&veth[0], &veth[1])?.into();
    let (routing, past) = (RoutingNamespace::make()?, [Place::make(6)?, Place::make(7)?]);
    join_by_kernel_path(&routing, &past)?;
    let joined = [Place::make(3)?, Place::make(4)?];
    let bench = Bench { veth, veth_address, joined, past, _routing: routing, alone, proxy };
    for pair in 0..plan.pairs {
        for name in MEASUREMENTS
            .iter()
            .filter(|name| plan.only.is_empty() || plan.only.iter().any(|only| only == *name))
        {
            bench.measure(name, pair, &mut |readings| tell(&News::Measured { pair, readings }))?;
        }
    }
    Ok(())
}

/// A reading that is to be taken.
type Pending<'a> = Box<dyn Fn() -> anyhow::Result<Vec<Reading>> + 'a>;

impl Bench {
    /// Takes one measurement's readings of every side; who goes first takes turns, so that what one leaves behind in the
    /// machine's caches favours nobody.
    fn measure(
        &self,
        name: &str,
        pair: usize,
        tell: &mut dyn FnMut(Vec<Reading>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut pending = self.pending(name).with_context(|| name.to_owned())?;
        // A processor that has gone to sleep takes longer to wake than a packet takes to be carried, and whether it slept
        // is chance. Where that would drown what is asked for, the processors are kept awake.
        let _awake = if name == "round-trips" { self.keep_awake()? } else { Vec::new() };
        if pair % 2 == 1 {
            pending.reverse();
        }
        for take in pending {
            tell(take().with_context(|| name.to_owned())?)?;
        }
        Ok(())
    }

    fn keep_awake(&self) -> anyhow::Result<Vec<Instrument>> {
        let processors = std::thread::available_parallelism()?.get();
        let start = |processor| {
            let mut instrument = self.alone.start(&Job::StayAwake { processor })?;
            instrument.next()?;
            Ok(instrument)
        };
        (0..processors).map(start).collect()
    }

    fn pending(&self, name: &str) -> anyhow::Result<Vec<Pending<'_>>> {
        let mut pending: Vec<Pending<'_>> = Vec::new();
        match name {
            "halting-round-trips" => {
                pending.push(self.by_kernel("halting veth", self.by_veth(), measures::round_trips));
                pending.push(self.by_kernel("halting kernel path", self.by_path(), measures::round_trips));
                pending.push(self.by_fabric("halting fabric", Options::default(), measures::round_trips));
            }
            "round-trips" => {
                let busy = Options { busy_poll: BUSY_POLL, ..Options::default() };
                pending.push(self.by_kernel("veth", self.by_veth(), measures::round_trips));
                pending.push(self.by_kernel("kernel path", self.by_path(), measures::round_trips));
                pending.push(self.by_fabric("fabric", Options::default(), measures::round_trips));
                pending.push(self.by_fabric("busy fabric", busy, measures::round_trips));
                pending.push(self.by_kernel("loopback", loopback(&self.alone), measures::round_trips));
                pending.extend(self.by_toxiproxy(measures::round_trips));
            }
            "throughput" => {
                pending.push(self.by_kernel("veth", self.by_veth(), measures::throughput));
                pending.push(self.by_kernel("kernel path", self.by_path(), measures::throughput));
                pending.push(self.by_fabric("fabric", Options::default(), measures::throughput));
                pending.push(self.by_kernel("loopback", loopback(&self.alone), measures::throughput));
                pending.extend(self.by_toxiproxy(measures::throughput));
            }
            "flood" => {
                pending.push(Box::new(|| measures::kernel_flood("veth", &self.by_veth())));
                pending.push(Box::new(|| measures::kernel_flood("kernel path", &self.by_path())));
                pending.push(Box::new(|| {
                    let [one, two] = &self.joined;
                    let fabric = fabric_over(&[one, two], Options::default(), Rule::default())?;
                    measures::flood(&self.over_fabric(), &fabric)
                }));
            }
            "delay" => {
                pending.push(Box::new(|| measures::fabric_lateness(&self.over_fabric())));
                if let Some(proxy) = &self.proxy {
                    pending.push(Box::new(|| measures::toxiproxy_lateness(&loopback(&self.alone), proxy)));
                }
            }
            "rates" => {
                for rate in RATES {
                    pending.push(Box::new(move || measures::fabric_rate(&self.over_fabric(), rate)));
                    if let Some(proxy) = &self.proxy {
                        let take = move || measures::toxiproxy_rate(&loopback(&self.alone), proxy, rate);
                        pending.push(Box::new(take));
                    }
                }
            }
            "all-to-all" => pending.push(Box::new(crowd::all_to_all)),
            "thousand-hosts" => pending.push(Box::new(|| crowd::thousand_hosts(self.namespaces()))),
            _ => bail!("not a measurement"),
        }
        Ok(pending)
    }

    /// Network namespaces that stand all the time: the lab's own, the routing one and the places'.
    fn namespaces(&self) -> usize {
        1 + 1 + self.veth.len() + self.joined.len() + self.past.len() + 1
    }

    fn by_veth(&self) -> Route<'_> {
        Route { client: &self.veth[0], server: &self.veth[1], address: self.veth_address }
    }

    fn by_path(&self) -> Route<'_> {
        let [client, server] = &self.past;
        Route { client, server, address: server.address.into() }
    }

    fn over_fabric(&self) -> Route<'_> {
        let [client, server] = &self.joined;
        Route { client, server, address: server.address.into() }
    }

    fn by_kernel<'a>(&'a self, whose: &'static str, route: Route<'a>, measure: Measure) -> Pending<'a> {
        Box::new(move || measure(whose, &route, Carried::Kernel))
    }

    fn by_fabric(&self, whose: &'static str, options: Options, measure: Measure) -> Pending<'_> {
        Box::new(move || {
            let route = self.over_fabric();
            let fabric = fabric_over(&[route.client, route.server], options, Rule::default())?;
            measure(whose, &route, Carried::Fabric(&fabric))
        })
    }

    fn by_toxiproxy(&self, measure: Measure) -> Option<Pending<'_>> {
        let proxy = self.proxy.as_ref()?;
        Some(Box::new(move || {
            measure("toxiproxy", &loopback(&self.alone), Carried::Toxiproxy(proxy, Toxic::None))
        }))
    }
}

/// Takes readings of one side, under its name.
type Measure = fn(&str, &Route<'_>, Carried<'_>) -> anyhow::Result<Vec<Reading>>;

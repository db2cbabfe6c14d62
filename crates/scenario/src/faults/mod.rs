//! Faults: the list of their kinds, and what all have in common: when one strikes, how long it stands, whether it comes and
//! goes.
//!
//! Each kind has a file of its own: its words and keys, how it is read and written back, whom it strikes and what it takes
//! away. When faults may strike is in `schedule`; `faulting` imposes them.

mod clock;
mod clock_drift;
mod clock_jump;
mod clock_race;
mod clock_stop;
mod disk;
mod external;
mod migrate;
mod network;
mod partition;
mod power_off;
mod pressure;
mod process;
pub(crate) mod receipts;
mod rolling_restart;
mod rolling_upgrade;
mod targets;

use std::time::Duration;

use serde::Serialize;

pub use self::clock::{ClockDeviation, ClockFault, ClockTarget};
use self::receipts::OfAllFaults;
pub use self::receipts::SHARE_OF_RATE;
use self::targets::ElectedRole;
pub(crate) use self::targets::Surroundings;
pub use self::targets::{FaultTarget, NodeTarget};
use crate::decode::Decoder;
use crate::language::{Fields, Shape, optional, required};
use crate::rejection::{Findings, Spanned, Spot};
use crate::resolved::{Conditions, Place};
use crate::tree::{Entry, Node};
use crate::units::format_duration;

/// Shortest time that a flapping fault stands, or stays away.
const LEAST_FLAP: Duration = Duration::from_millis(100);

/// The kinds of faults, in the order in which they are told to people: of each its name here, its checked values and the
/// file that has all of it.
macro_rules! kinds {
    ($($kind:ident($values:ident) in $file:ident: $doc:literal;)*) => {
        $(
            #[allow(unused_imports, reason = "the kinds of clock faults have their values in common")]
            pub use self::$file::*;
        )*

        /// What a fault does, and to what.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum FaultAction {
            $(#[doc = $doc] $kind($values),)*
        }

        impl FaultAction {
            /// What the registry says of faults like it.
            #[must_use]
            pub fn kind(&self) -> &'static FaultKind {
                match self {
                    $(FaultAction::$kind(_) => const { &$file::KIND },)*
                }
            }

            fn facts(&self) -> &dyn Facts {
                match self {
                    $(FaultAction::$kind(fault) => fault,)*
                }
            }
        }

        /// Every kind there is.
        pub const FAULT_KINDS: &[FaultKind] = &[$($file::KIND),*];

        /// An element of `faults`.
        pub(crate) static FAULT: Fields = Fields {
            what: "a fault",
            fields: &[
                $(optional($file::KIND.name, Shape::Map($file::KIND.keys), $file::KIND.key_meaning),)*
                optional("at", Shape::Duration, "when it starts, counted from the start of its phase; default 0s"),
                optional(
                    "for",
                    Shape::Duration,
                    "how long it lasts; default until the end of its phase. Not allowed for a kill or restart of \
                     processes, or for a migration",
                ),
                optional(
                    "every",
                    Shape::Duration,
                    "repeats the fault at this interval until its phase ends, each time for `for`; a role such as \
                     random is chosen again each time",
                ),
                optional(
                    "flap",
                    Shape::Map(&FLAP),
                    "the fault comes and goes until it is healed; only for network faults and partitions",
                ),
            ],
            exactly_one_of: &[$($file::KIND.name),*],
            at_least_one_of: &[],
            pair: None,
        };
    };
}

kinds! {
    PowerOff(PowerOffFault) in power_off: "Every host of a place loses power.";
    Network(NetworkFault) in network: "The network between places changes.";
    Partition(PartitionFault) in partition: "Nothing gets through.";
    Disk(DiskFault) in disk: "A disk goes wrong.";
    Process(ProcessFault) in process: "Something is done to the processes of a node.";
    RollingRestart(RollingRestart) in rolling_restart: "The database is restarted on one node after the other.";
    RollingUpgrade(RollingUpgrade) in rolling_upgrade: "The database is upgraded on one node after the other.";
    Pressure(PressureFault) in pressure: "A node gets less of what it runs on.";
    ClockJump(ClockFault) in clock_jump: "A node's clock is set.";
    ClockDrift(ClockFault) in clock_drift: "A node's clock runs a little too fast or too slowly.";
    ClockRace(ClockFault) in clock_race: "A node's clock races.";
    ClockStop(ClockFault) in clock_stop: "A node's clock stops.";
    Migrate(MigrationFault) in migrate: "A node moves to another host while it runs.";
    External(ExternalFault) in external: "A command file strikes a machine that exists.";
}

/// The kind of that name.
#[must_use]
pub fn fault_kind(name: &str) -> Option<&'static FaultKind> {
    FAULT_KINDS.iter().find(|kind| kind.name == name)
}

/// A kind of fault in general.
#[derive(Debug)]
pub struct FaultKind {
    /// As written in a scenario, in files and reports.
    pub name: &'static str,
    /// A fault of this kind, in messages.
    pub(crate) noun: &'static str,
    /// What it does, one line.
    pub summary: &'static str,
    /// What it breaks, and when it counts as shown.
    pub meaning: &'static str,
    /// Elements of a phase's `faults` that hold it, the plainest first.
    pub examples: &'static [&'static str],
    /// How a report tells one that took effect.
    pub story: Story,
    /// What may be said of it.
    keys: &'static Fields,
    /// What it does, beside its key.
    key_meaning: &'static str,
    /// Whether it may come and go while it stands.
    comes_and_goes: bool,
    /// Whether it strikes machines that exist, and not the lab's.
    is_external: bool,
    /// Whether it strikes a database in pods as well: what is done to nodes, and not to the processes of a database.
    in_pods: bool,
    read: fn(&Entry, &mut Decoder) -> Option<Box<dyn Written>>,
}

/// How a report tells of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Story {
    /// What happened.
    pub clause: Clause,
    /// How the nodes follow that it struck.
    pub nodes: Nodes,
}

/// A clause about what happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clause {
    /// After the hosts that it struck: `the host dc1/a/h1 lost power`.
    Hosts(&'static str),
    /// Before its target: `a disk went wrong (of: leader)`.
    Target(&'static str),
}

/// How nodes stand to a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nodes {
    /// On what it struck: `with n1 on it`.
    With,
    /// They are what it struck: `on n1`.
    On,
    /// It lies around them: `around n1`.
    Around,
}

/// What is taken away while a fault stands: what is judged without running it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Takes<'f> {
    /// The power of hosts.
    Power(&'f FaultTarget),
    /// The way of all packets between some.
    Reach(&'f PartitionShape),
    /// A disk, or what it is good for.
    Disk(&'f DiskFault),
    /// The processes of a node, for a time.
    Processes(&'f ProcessFault),
    /// The right time of day on a node.
    Time(&'f ClockFault),
    /// A node's processes, for as long as it is stunned to be moved; it loses nothing.
    Pause(&'f MigrationFault),
    /// Nothing that decides who serves or what is lost; why.
    NothingJudged(&'static str),
}

/// What makes a fault like others of its kind, wherever it strikes and however strong it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Form<'f> {
    /// Which of its kind it is: `isolate` of partitions; empty where there is only one.
    pub name: String,
    /// Whom it is aimed at.
    pub aim: Aim<'f>,
}

impl<'f> Form<'f> {
    fn new(name: &str, aim: Aim<'f>) -> Form<'f> {
        Form { name: name.to_owned(), aim }
    }
}

/// Whom a fault is aimed at, whatever its kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Aim<'f> {
    /// A place, or the place of a role.
    Target(&'f FaultTarget),
    /// A host by name.
    Host(&'f Place),
    /// The node that has this name or role when the fault begins.
    Node(NodeTarget),
    /// Every node of the database at once.
    AllNodes,
    /// What is between two places.
    Between(&'f FaultTarget, &'f FaultTarget),
}

/// What not every machine allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Control groups for nodes.
    ControlGroups,
    /// Control groups that limit nodes' memory.
    MemoryGroups,
    /// Wall clocks of nodes' own.
    Clocks,
}

/// What is known of a fault from its values, whatever its kind.
trait Facts {
    /// The roles it is aimed at that nodes have only while one of them leads.
    fn elected_roles(&self) -> Vec<ElectedRole>;

    /// What it takes away.
    fn takes(&self) -> Takes<'_>;

    /// What makes it like others of its kind; `None` where nobody knows which those are.
    fn form(&self) -> Option<Form<'_>>;

    /// What stands in its map in a scenario.
    fn written(&self) -> String;

    /// How long it stands by its own nature, whatever the schedule says; `None` where the schedule says it.
    fn own_length(&self) -> Option<Duration> {
        None
    }

    /// What the machine must allow for it beside what every lab needs.
    fn needs(&self) -> Option<Need> {
        None
    }
}

/// A fault as written, not yet held against the rest of the scenario.
trait Written {
    /// What it does, every name resolved; `None` when something is wrong with it. Its kind stands at `kind_at`.
    fn resolve(
        &self,
        kind_at: Spot,
        around: &Surroundings<'_>,
        findings: &mut Findings,
    ) -> Option<FaultAction>;

    /// Where its target stands, where others may struck the same.
    fn target_at(&self) -> Option<Spot> {
        None
    }

    /// Why it takes no `for`, and what to do instead; `None` where it takes one.
    fn refuses_length(&self) -> Option<(&'static str, &'static str)> {
        None
    }

    /// After how long it is over by its own words or defaults; `None` where the schedule says it.
    fn over_after(&self) -> Option<&Spanned<Duration>> {
        None
    }

    /// What it does to packets.
    fn conditions(&self) -> Option<&Conditions> {
        None
    }

    /// Refuses what cannot come and go.
    fn check_flap(&self, _flap_at: Spot, _decoder: &mut Decoder) {}

    /// Refuses what could not be shown of the fault, which stands for so long.
    fn check_receipt(
        &self,
        _action: &FaultAction,
        _stands: Duration,
        _around: (&Surroundings<'_>, OfAllFaults),
        _findings: &mut Findings,
    ) {
    }
}

impl FaultAction {
    /// The kind's name in files and reports.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        self.kind().name
    }

    /// Whether it is aimed at whoever leads when it strikes.
    #[must_use]
    pub fn aims_at_leader(&self) -> bool {
        self.facts().elected_roles().contains(&ElectedRole::Leader)
    }

    /// Whether nobody knows whom it strikes while no node leads.
    #[must_use]
    pub fn depends_on_leader(&self) -> bool {
        !self.facts().elected_roles().is_empty()
    }

    /// What it takes away while it stands.
    #[must_use]
    pub fn takes(&self) -> Takes<'_> {
        self.facts().takes()
    }

    /// What makes it like others of its kind; `None` where nobody knows which those are.
    #[must_use]
    pub fn form(&self) -> Option<Form<'_>> {
        self.facts().form()
    }

    /// How long it stands by its own nature, whatever the schedule says; `None` where the schedule says it.
    #[must_use]
    pub fn own_length(&self) -> Option<Duration> {
        self.facts().own_length()
    }

    /// What the machine must allow for it beside what every lab needs.
    #[must_use]
    pub fn needs(&self) -> Option<Need> {
        self.facts().needs()
    }

    /// As it stands in a scenario: `power-off: { host: leader }`.
    pub(crate) fn written(&self) -> String {
        format!("{}: {{ {} }}", self.kind_name(), self.facts().written())
    }
}

/// A fault, when it strikes and how long it stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fault {
    /// What is broken.
    pub action: FaultAction,
    /// From the start of its phase.
    pub at: Duration,
    /// How long until it is healed (the host's power returns); until the end of its phase when absent.
    pub length: Option<Duration>,
    /// Whether it comes and goes until it is healed; only network faults and partitions do.
    pub flap: Option<Flap>,
}

/// How a fault comes and goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Flap {
    /// How long the fault stands each time; it stands first.
    pub down: Duration,
    /// How long everything is as it was in between.
    pub up: Duration,
}

/// How a fault comes and goes.
static FLAP: Fields = Fields {
    what: "a flap",
    fields: &[
        required(
            "down",
            Shape::Duration,
            "how long the fault is active each time, 100ms or more; it starts active",
        ),
        required("up", Shape::Duration, "how long the fault is inactive in between, 100ms or more"),
    ],
    exactly_one_of: &[],
    at_least_one_of: &[],
    pair: None,
};

/// A fault as written.
pub(crate) struct FaultDocument {
    action: Box<dyn Written>,
    /// Where its kind stands.
    pub(crate) kind_at: Spot,
    /// When it strikes, from the start of its phase.
    pub(crate) at: Option<Spanned<Duration>>,
    /// How long it stands.
    pub(crate) length: Option<Spanned<Duration>>,
    /// How often it strikes again in its phase.
    pub(crate) every: Option<Spanned<Duration>>,
    /// Whether it comes and goes.
    pub(crate) flap: Option<Flap>,
    /// Where it says that.
    flap_at: Option<Spot>,
}

/// Reads a fault.
pub(crate) fn decode(node: &Node, decoder: &mut Decoder) -> Option<FaultDocument> {
    let record = decoder.record(node, &FAULT)?;
    let at = record.get("at").and_then(|node| decoder.duration(node, "`at`", "s"));
    let length = record.get("for").and_then(|node| decoder.duration(node, "`for`", "s"));
    if let Some(length) = length.as_ref().filter(|length| length.value.is_zero()) {
        decoder.findings.add(
            "too-small",
            length.at,
            "a fault cannot last 0s",
            "too short",
            "write 1s or more",
        );
    }
    let every = record.get("every").and_then(|node| decoder.duration(node, "`every`", "s"));
    let (name, entry) = record.first_of(FAULT.exactly_one_of)?;
    let kind = fault_kind(name)?;
    let action = (kind.read)(entry, decoder)?;
    let flap = record.get("flap").and_then(|node| decode_flap(node, decoder));
    let flap_at = record.key_at("flap");
    if let Some(flap_at) = flap_at {
        let noun = kind.noun;
        match kind.comes_and_goes {
            true => action.check_flap(flap_at, decoder),
            false => decoder.findings.add(
                "bad-flap",
                flap_at,
                format!("a {noun} does not flap"),
                "not of this fault",
                format!("remove `flap`, or write several {noun}s with `at` and `for`"),
            ),
        }
    }
    if let (Some((message, help)), Some(length_at)) = (action.refuses_length(), record.key_at("for")) {
        decoder.findings.add("bad-length", length_at, message, "not of this fault", help);
    }
    Some(FaultDocument { action, kind_at: entry.key_at, at, length, every, flap, flap_at })
}

fn decode_flap(node: &Node, decoder: &mut Decoder) -> Option<Flap> {
    let record = decoder.record(node, &FLAP)?;
    let mut time = |name: &'static str| {
        let time = record.get(name).and_then(|node| decoder.duration(node, &format!("`{name}`"), "s"))?;
        if time.value < LEAST_FLAP {
            decoder.findings.add(
                "too-small",
                time.at,
                format!("a fault that flaps every {}", format_duration(time.value)),
                "too short",
                format!("write {} or more: shorter changes cannot be measured", format_duration(LEAST_FLAP)),
            );
        }
        Some(time.value)
    };
    let (down, up) = (time("down"), time("up"));
    Some(Flap { down: down?, up: up? })
}

impl FaultDocument {
    /// What the fault does, every name resolved; `None` when something is wrong with it.
    pub(crate) fn resolve(&self, around: &Surroundings<'_>, findings: &mut Findings) -> Option<FaultAction> {
        let action = self.action.resolve(self.kind_at, around, findings)?;
        let kind = action.kind();
        let (message, label, help) = match (around.cluster, kind.is_external) {
            (Some(_), false) => (
                format!(
                    "a {} is made by the lab, and this scenario runs on a cluster that exists",
                    kind.noun
                ),
                "of the lab alone",
                "write `external: { command: NAME, of: MEMBER }`; `holdfast list faults` names the command files",
            ),
            (None, true) => (
                "a command file strikes machines that exist, and this scenario runs in the lab".to_owned(),
                "outside the lab",
                "use another fault, or write `target: external` and a `cluster`",
            ),
            _ if around.on.kubernetes().is_some() && !kind.in_pods => (
                format!("a {} does not reach a database in pods", kind.noun),
                "not in pods",
                "use `power-off`, `partition`, `network`, `disk` or `process`; or remove `on` from the database",
            ),
            _ => return Some(action),
        };
        findings.add("wrong-target", self.kind_at, message, label, help);
        None
    }

    /// Where what loses power stands; the kind, where it is another fault.
    pub(crate) fn target_at(&self) -> Spot {
        self.action.target_at().unwrap_or(self.kind_at)
    }

    /// How long it stands, by the schedule or by itself; `None` where it is to the end of its phase, or for good.
    pub(crate) fn length_given(&self) -> Option<&Spanned<Duration>> {
        self.length.as_ref().or_else(|| self.action.over_after())
    }

    /// What it does to packets.
    pub(crate) fn conditions(&self) -> Option<&Conditions> {
        self.action.conditions()
    }

    /// Whether it is over by itself, so that nobody says how long it stands.
    pub(crate) fn takes_no_length(&self) -> bool {
        self.action.refuses_length().is_some()
    }

    /// Refuses one that is over before it would go for the first time; it stands for so long.
    pub(crate) fn check_flap(&self, length: Duration, findings: &mut Findings) {
        let (Some(flap), Some(at)) = (self.flap, self.flap_at) else { return };
        if length.is_zero() || flap.down < length {
            return;
        }
        let (down, length) = (format_duration(flap.down), format_duration(length));
        let message = format!("a fault of {length} that is active for {down} at a time does not flap");
        let help = format!("write a `down` of less than {length}, or remove `flap`");
        findings.add("bad-flap", at, message, "never inactive", help);
    }

    /// Refuses what could not be shown of the fault, which stands for so long.
    pub(crate) fn check_receipt(
        &self,
        action: &FaultAction,
        length: Duration,
        around: (&Surroundings<'_>, OfAllFaults),
        findings: &mut Findings,
    ) {
        let down =
            self.flap.map_or(1.0, |flap| flap.down.as_secs_f64() / (flap.down + flap.up).as_secs_f64());
        self.action.check_receipt(action, length.mul_f64(down.min(1.0)), around, findings);
    }
}

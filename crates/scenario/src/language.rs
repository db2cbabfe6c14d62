//! The scenario language as tables: every key, what it holds and what it means. The decoder, the JSON Schema and
//! `holdfast explain` all read these, so they cannot drift apart.
//!
//! Owns words and shapes only; which values make sense together is for the sections.

use crate::disk_tables::{DISK, DISKS};
use crate::network_tables::{EDGE, FLAP, LINK, NETWORK, PARTITION};
use crate::storage::{STORAGE, STORAGE_CLASS};

/// The keys of one kind of map.
#[derive(Debug)]
pub(crate) struct Fields {
    /// What the map is, with its article, for messages.
    pub(crate) what: &'static str,
    /// Its keys.
    pub(crate) fields: &'static [Field],
    /// Keys of which exactly one must be given; empty where there is no such choice.
    pub(crate) exactly_one_of: &'static [&'static str],
    /// Keys of which at least one must be given; empty where there is no such choice.
    pub(crate) at_least_one_of: &'static [&'static str],
    /// Keys that only make sense together.
    pub(crate) pair: Option<(&'static str, &'static str)>,
}

/// One key.
#[derive(Debug)]
pub(crate) struct Field {
    /// The key as written.
    pub(crate) name: &'static str,
    /// Whether the map is refused without it.
    pub(crate) required: bool,
    /// What it holds.
    pub(crate) shape: Shape,
    /// What it means, one sentence without a full stop.
    pub(crate) meaning: &'static str,
}

/// What a value looks like.
#[derive(Debug)]
pub(crate) enum Shape {
    /// Any text.
    Text,
    /// A path of a file in the scenario's folder or below it.
    PathWithin,
    /// A name: small letters, digits, hyphens.
    Name,
    /// A place of the site, or where roles are allowed one of those.
    Place,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A whole number within these bounds.
    Count {
        /// Smallest.
        least: u64,
        /// Largest.
        most: u64,
    },
    /// A decimal number above zero.
    Positive,
    /// A number with a unit of time.
    Duration,
    /// A number with a unit of bits a second.
    BitRate,
    /// A number of events a second.
    Rate,
    /// One of these numbers.
    Version(&'static [&'static str]),
    /// A number with a unit of bytes.
    Size,
    /// true or false.
    Flag,
    /// A number of packets: `100 packets`.
    Packets,
    /// A number and a percent sign.
    Percent,
    /// `off`, `all` or `any N`.
    Synchronous,
    /// Text, number or boolean, handed on as text.
    Setting,
    /// A map with the keys of one of [`crate::workload_options::OPTIONS`], by the workload beside it.
    Options,
    /// `< 30s` and its like, one per quantity of [`crate::quantity::QUANTITIES`].
    Expectations,
    /// A map with these keys.
    Map(&'static Fields),
    /// A map whose keys the user chooses.
    Named(&'static Shape),
    /// A map of numbers by names of the user's choice, possibly empty.
    Figures,
    /// A map of settings, whose keys belong to the database.
    Settings(&'static Shape),
    /// A list of at least so many.
    List {
        /// What each element is.
        of: &'static Shape,
        /// Fewest elements.
        least: usize,
        /// Most elements, where there is a bound.
        most: Option<usize>,
    },
    /// A map of axes: the path of a setting with a list of values, or a name with named sets of settings by path.
    Axes,
    /// Any of these.
    Either(&'static [Shape]),
}

/// Most hosts of a site.
pub(crate) const MOST_HOSTS: u64 = 100_000;
/// Most database nodes.
pub(crate) const MOST_NODES: u64 = 1_000;
/// Longest name that is not ours to shape: a setting's, a figure's. YAML itself refuses keys of more than 1024 characters,
/// which an escaped one must not reach.
pub(crate) const MOST_FREE_NAME_BYTES: usize = 100;
/// Longest name, as for host names.
pub(crate) const MOST_NAME_BYTES: usize = 63;

pub(crate) const fn required(name: &'static str, shape: Shape, meaning: &'static str) -> Field {
    Field { name, required: true, shape, meaning }
}

pub(crate) const fn optional(name: &'static str, shape: Shape, meaning: &'static str) -> Field {
    Field { name, required: false, shape, meaning }
}

pub(crate) const fn plain(what: &'static str, fields: &'static [Field]) -> Fields {
    Fields { what, fields, exactly_one_of: &[], at_least_one_of: &[], pair: None }
}

pub(crate) const fn choice(
    what: &'static str,
    fields: &'static [Field],
    exactly_one_of: &'static [&'static str],
) -> Fields {
    Fields { what, fields, exactly_one_of, at_least_one_of: &[], pair: None }
}

/// The whole file.
pub(crate) static SCENARIO: Fields = plain(
    "a scenario",
    &[
        required("name", Shape::Name, "the scenario's name, also of its folder under runs/"),
        optional("description", Shape::Text, "what it shows"),
        optional(
            "reproduces",
            Shape::Map(&REPRODUCES),
            "the published report it reproduces, and that report's figures",
        ),
        optional(
            "seed",
            Shape::Count { least: 0, most: u64::MAX },
            "the seed of every random choice; drawn when absent",
        ),
        optional(
            "target",
            Shape::Word(&["lab", "external"]),
            "what it runs against; this version has only the lab",
        ),
        required("site", Shape::Map(&SITE), "the pretend datacentre"),
        required("database", Shape::Map(&DATABASE), "the database and how it is laid out"),
        required(
            "loads",
            Shape::List { of: &Shape::Map(&LOAD), least: 1, most: None },
            "what the clients do",
        ),
        required(
            "schedule",
            Shape::List { of: &Shape::Map(&PHASE), least: 1, most: None },
            "phases in order, with their faults",
        ),
        optional("expect", Shape::Expectations, "what must hold for the verdict pass"),
        optional("matrix", Shape::Map(&MATRIX), "settings to run the scenario over, and how often"),
    ],
);

/// `reproduces`.
pub(crate) static REPRODUCES: Fields = plain(
    "a reproduction",
    &[
        required("report", Shape::Text, "the report's id"),
        optional("figures", Shape::Figures, "its figures, by name with the unit last"),
    ],
);

/// `matrix`.
pub(crate) static MATRIX: Fields = plain(
    "a matrix",
    &[
        required(
            "axes",
            Shape::Axes,
            "what differs: every combination of one value of each axis is run; the order is drawn from the seed",
        ),
        optional(
            "repeat",
            Shape::Count { least: 1, most: crate::matrix::MOST_REPETITIONS },
            "how often each combination is run; 1 when absent; from 2 on differences are told from noise between runs, 5 are better",
        ),
    ],
);

/// What volumes may be.
pub(crate) static VOLUMES: &[&str] = &["virtual", "torn", "directory"];

/// What somebody outside the schedule who stops or kills nodes' processes may be.
pub(crate) static INTERFERENCE: &[&str] = &["unexpected", EXPECTED];

/// The run is judged all the same.
pub(crate) const EXPECTED: &str = "expected";

/// `site`.
pub(crate) static SITE: Fields = plain(
    "a site",
    &[
        required("regions", Shape::Named(&Shape::Map(&REGION)), "regions by name"),
        optional(
            "links",
            Shape::List { of: &Shape::Map(&LINK), least: 0, most: None },
            "what lies between places; of several that speak of the same pair and condition the narrowest places count, then the last",
        ),
        optional(
            "ip",
            Shape::Version(IP_VERSIONS),
            "the version of IP that the database and its clients speak: 4 (as without it) or 6; every place has an address of both",
        ),
        optional(
            "edges",
            Shape::List { of: &Shape::Map(&EDGE), least: 0, most: None },
            "what all that leaves or enters a place shares: an edge router, a host's network card",
        ),
        optional("disks", Shape::Map(&DISKS), "the disks of every host; one capacity disk when absent"),
        optional(
            "busy-poll",
            Shape::Duration,
            "how long the network looks for packets without sleeping, at most 1ms: shorter round trips for a processor that is never idle",
        ),
        optional(
            "storage_classes",
            Shape::Named(&Shape::Map(&STORAGE_CLASS)),
            "storage classes by name, beside basic and tuned, which are always there",
        ),
    ],
);

/// Versions of the internet protocol, the first one when nothing is said.
pub(crate) static IP_VERSIONS: &[&str] = &["4", "6"];

/// A region.
pub(crate) static REGION: Fields =
    plain("a region", &[required("zones", Shape::Named(&Shape::Map(&ZONE)), "zones by name")]);

/// A zone.
pub(crate) static ZONE: Fields = choice(
    "a zone",
    &[
        optional("racks", Shape::Named(&Shape::Map(&RACK)), "racks by name"),
        optional("hosts", HOSTS, "hosts straight in the zone: how many (h1, h2 ...), or their names"),
    ],
    &["racks", "hosts"],
);

/// A rack.
pub(crate) static RACK: Fields =
    plain("a rack", &[required("hosts", HOSTS, "its hosts: how many (h1, h2 ...), or their names")]);

const HOSTS: Shape = Shape::Either(&[
    Shape::Count { least: 1, most: MOST_HOSTS },
    Shape::List { of: &Shape::Name, least: 1, most: None },
]);

/// `database`.
pub(crate) static DATABASE: Fields = plain(
    "a database",
    &[
        required("engine", Shape::Word(crate::catalogue::ENGINES), "which database"),
        optional(
            "path",
            Shape::Text,
            "absolute path of the folder with the database's programs; searched for when absent",
        ),
        required(
            "nodes",
            Shape::Either(&[
                Shape::Count { least: 1, most: MOST_NODES },
                Shape::List { of: &Shape::Place, least: 1, most: Some(MOST_NODES as usize) },
            ]),
            "how many, spread over the site; or a list of places, the leader's first",
        ),
        optional("leader", Shape::Place, "where the first leader stands; only with a number of nodes"),
        optional("replication", Shape::Map(&REPLICATION), "what a commit waits for"),
        optional(
            "failover",
            Shape::Either(&[Shape::Word(&["none"]), Shape::Map(&FAILOVER)]),
            "what the platform does when a node's host is gone; none when absent",
        ),
        optional(
            "settings",
            Shape::Settings(&Shape::Setting),
            "further settings for the database's own configuration",
        ),
        optional("cpus", Shape::Positive, "CPUs each node may use; no limit when absent"),
        optional(
            "volumes",
            Shape::Word(VOLUMES),
            "what nodes keep their data on: virtual disks that lose at a power-off what was not synced; such that also tear the last write; or plain directories, which lose nothing. virtual when absent",
        ),
        optional(
            "storage",
            Shape::Map(&STORAGE),
            "how each node's volume is mirrored; when absent it is not, and outlives its host",
        ),
        optional(
            "interference",
            Shape::Word(INTERFERENCE),
            "what it means when somebody outside the schedule stops or kills a node's process, such as a script of yours: unexpected, and the verdict is unknown; or expected, and it is only told. unexpected when absent",
        ),
    ],
);

/// `replication`.
pub(crate) static REPLICATION: Fields = plain(
    "a replication",
    &[required("synchronous", Shape::Synchronous, "which standbys a commit waits for: any N, all or off")],
);

/// `failover`.
pub(crate) static FAILOVER: Fields = choice(
    "a failover",
    &[
        optional("ha-restart", Shape::Map(&AFTER), "the node's VM is started on another host"),
        optional("promote", Shape::Map(&AFTER), "the most advanced standby becomes the leader"),
    ],
    &["ha-restart", "promote"],
);

/// When failover acts.
pub(crate) static AFTER: Fields =
    plain("a failover", &[required("after", Shape::Duration, "time from the loss until the platform acts")]);

/// An element of `loads`.
pub(crate) static LOAD: Fields = plain(
    "a load",
    &[
        required("workload", Shape::Word(crate::catalogue::WORKLOADS), "what is asked of the database"),
        optional("name", Shape::Name, "the load's name; the workload's when absent"),
        required(
            "clients",
            Shape::Count { least: 1, most: 100_000 },
            "connections that work at the same time",
        ),
        optional("scale", Shape::Count { least: 1, most: 100_000 }, "scale factor; 1 when absent"),
        optional("from", Shape::Place, "where the clients stand; the first leader's region when absent"),
        optional(
            "reads",
            Shape::Word(READS),
            "where reads go: to the leader (as without it), to replicas only, or to any node, each client at one of its own; \
             PostgreSQL, and workloads whose reads no check takes for the latest",
        ),
        optional("timeout", Shape::Duration, "how long a client waits for an answer; 2s when absent"),
        optional("options", Shape::Options, "options of the workload"),
        optional(
            "rate",
            Shape::Rate,
            "open loop: transactions due a second, whatever becomes of those before; `clients` is then the most \
             connections at once",
        ),
        optional(
            "arrival",
            Shape::Word(crate::pace::ARRIVALS),
            "open loop: how they are spread; constant when absent",
        ),
        optional(
            "think_time",
            Shape::Either(&[Shape::Duration, Shape::Map(&THINK_TIME)]),
            "closed loop: how long a client waits between an answer and its next transaction",
        ),
        optional(
            "sweep",
            Shape::Map(&SWEEP),
            "one value for each phase beside warm-up, which takes the first",
        ),
        optional(
            "ramp",
            Shape::Map(&RAMP),
            "clients or a rate that rise or fall evenly once the warm-up has ended, and stay",
        ),
    ],
);

/// Where reads may go.
pub(crate) static READS: &[&str] = &["leader", "replicas", "any"];

/// `think_time` of a load that is not always the same.
pub(crate) static THINK_TIME: Fields = plain(
    "a think time",
    &[required("exponential", Shape::Duration, "the mean of an exponential think time")],
);

/// `sweep` of a load.
pub(crate) static SWEEP: Fields = choice(
    "a sweep",
    &[
        optional(
            "clients",
            Shape::List { of: &Shape::Count { least: 1, most: 100_000 }, least: 2, most: None },
            "numbers of clients",
        ),
        optional("rate", Shape::List { of: &Shape::Rate, least: 2, most: None }, "rates"),
    ],
    &["clients", "rate"],
);

/// `ramp` of a load.
pub(crate) static RAMP: Fields = plain(
    "a ramp",
    &[
        required("from", RAMP_END, "clients or a rate at first, and in the warm-up"),
        required("to", RAMP_END, "clients or a rate at last, and for the rest of the run"),
        required("over", Shape::Duration, "how long it takes from the one to the other"),
    ],
);

/// Where a ramp begins or ends.
const RAMP_END: Shape = Shape::Either(&[Shape::Count { least: 1, most: 100_000 }, Shape::Rate]);

/// An element of `schedule`.
pub(crate) static PHASE: Fields = plain(
    "a phase",
    &[
        required(
            "phase",
            Shape::Name,
            "its name; warm-up is left out of totals, recovery is compared with baseline",
        ),
        required("for", Shape::Duration, "how long it lasts, in whole seconds"),
        optional(
            "faults",
            Shape::List { of: &Shape::Map(&FAULT), least: 0, most: None },
            "faults that begin in it",
        ),
    ],
);

/// An element of `faults`.
pub(crate) static FAULT: Fields = choice(
    "a fault",
    &[
        optional("power-off", Shape::Map(&TARGET), "every host of the target loses power"),
        optional(
            "network",
            Shape::Map(&NETWORK),
            "between two places the network becomes as given; what is not given stays as the links have it",
        ),
        optional("partition", Shape::Map(&PARTITION), "nothing gets through"),
        optional("disk", Shape::Map(&DISK), "a disk under a node's volume goes wrong"),
        optional("at", Shape::Duration, "when it strikes, from the start of its phase; 0s when absent"),
        optional(
            "for",
            Shape::Duration,
            "how long until it is healed; until the end of its phase when absent",
        ),
        optional(
            "every",
            Shape::Duration,
            "strikes again so often until its phase ends, each time for `for`; a role such as random is chosen anew each time",
        ),
        optional(
            "flap",
            Shape::Map(&FLAP),
            "the fault comes and goes until it is healed; of network faults and partitions only",
        ),
    ],
    &["power-off", "network", "partition", "disk"],
);

/// What a fault is aimed at.
pub(crate) static TARGET: Fields = choice(
    "a fault's target",
    &[
        optional("host", Shape::Place, "a host by name, or of a role: leader, a-follower, random"),
        optional("rack", Shape::Place, "a rack by name, or of a role"),
        optional("zone", Shape::Place, "a zone by name, or of a role"),
        optional("region", Shape::Place, "a region by name, or of a role"),
    ],
    &["host", "rack", "zone", "region"],
);

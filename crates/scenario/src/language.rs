//! The scenario language as tables: every key, what it holds and what it means, and the shapes that only scenarios have.
//!
//! Owns words and shapes only; which values make sense together is for the sections.

use crate::disk_tables::{DISK, DISKS};
use crate::network_tables::{EDGE, FLAP, LINK, NETWORK, PARTITION};
use crate::schema;
use crate::storage::{STORAGE, STORAGE_CLASS};
use crate::workload_options::OPTIONS;

pub(crate) use yaml::language::{
    Field, Fields, Language, MOST_FREE_NAME_BYTES, MOST_NAME_BYTES, OwnShape, Shape, choice, no_keys,
    no_tables, optional, plain, required,
};

/// What the language calls itself.
pub(crate) static LANGUAGE: Language = Language {
    family: "scenario",
    noun: "scenario",
    begin: "begin with `name: my-scenario`, or copy one of the shipped scenarios",
    shorten: "write `hosts: 1000` instead of a list of names, and leave generated parts out",
    example,
};

/// Values that make more sense at some keys than what their shape gives.
fn example(field: &Field) -> Option<String> {
    let name = field.name;
    let value = match &field.shape {
        Shape::Name if name == "name" => "my-scenario",
        Shape::Name => "baseline",
        Shape::Duration if name == "delay" => "5ms",
        Shape::Own(own) if std::ptr::eq(*own, &raw const SYNCHRONOUS_SHAPE) => "any 1",
        Shape::Own(own) if std::ptr::eq(*own, &raw const ENGINE_SHAPE) => "postgres",
        _ if matches!(name, "isolate" | "bridge") => "leader",
        Shape::Own(_) if name == "from" => "dc1",
        Shape::Own(_) if name == "to" => "dc2",
        Shape::List { of: Shape::Own(_), .. } => "[dc1, dc2]",
        _ => return None,
    };
    Some(value.to_owned())
}

/// A place of the site, or where roles are allowed one of those.
pub(crate) const PLACE: Shape = Shape::Own(&PLACE_SHAPE);
static PLACE_SHAPE: OwnShape = OwnShape {
    holds: || "a place (dc1, dc1/a/r1/h2)".to_owned(),
    schema: schema::place,
    keys: no_keys,
    tables: no_tables,
};

/// `off`, `all` or `any N`.
pub(crate) const SYNCHRONOUS: Shape = Shape::Own(&SYNCHRONOUS_SHAPE);
static SYNCHRONOUS_SHAPE: OwnShape = OwnShape {
    holds: || "off, all, or any N".to_owned(),
    schema: schema::synchronous,
    keys: no_keys,
    tables: no_tables,
};

/// A map with the keys of one of [`OPTIONS`], by the workload beside it.
const WORKLOAD_OPTIONS: Shape = Shape::Own(&WORKLOAD_OPTIONS_SHAPE);
static WORKLOAD_OPTIONS_SHAPE: OwnShape = OwnShape {
    holds: || "a map of the workload's own options".to_owned(),
    schema: schema::options,
    keys: no_keys,
    tables: || OPTIONS.iter().map(|table| (table.fields, format!(" of {}", table.workload))).collect(),
};

/// `< 30s` and its like, one per quantity of [`crate::quantity::QUANTITIES`].
const EXPECTATIONS: Shape = Shape::Own(&EXPECTATIONS_SHAPE);
static EXPECTATIONS_SHAPE: OwnShape = OwnShape {
    holds: || HOLDS_EXPECTATIONS.to_owned(),
    schema: schema::expectations,
    keys: crate::explain::quantity_keys,
    tables: no_tables,
};
const HOLDS_EXPECTATIONS: &str = "quantities, each with a comparison; a quantity's name may have a scope before it, \
    LOAD.PHASE.QUANTITY or LOAD.FAULT.QUANTITY. A part that is left out, or `*`, stands for each: the expectation must hold in \
    the worst load, phase (warm-up left out) and fault; errors are added up. PHASE `all` is all phases but warm-up taken \
    together. FAULT is the phase it strikes in, its kind, or fault-1, fault-2 ... in the order of the schedule";

/// A map of numbers by names of the user's choice, possibly empty.
const FIGURES: Shape = Shape::Own(&FIGURES_SHAPE);
static FIGURES_SHAPE: OwnShape =
    OwnShape { holds: crate::figures::in_words, schema: schema::figures, keys: no_keys, tables: no_tables };

/// A database by its name, or by its file.
const ENGINE: Shape = Shape::Own(&ENGINE_SHAPE);
static ENGINE_SHAPE: OwnShape = OwnShape {
    holds: || {
        let names = crate::catalogue::engines().join(", ");
        format!(
            "one of {names}; or a path of an engine file within the scenario's folder (./my-database.yaml)"
        )
    },
    schema: schema::engine,
    keys: no_keys,
    tables: no_tables,
};

/// An engine file in full, as a run directory has it.
pub(crate) static ENGINE_IN_FULL: Fields = plain(
    "an engine",
    &[
        required("file", Shape::Text, "what the file was called"),
        required("text", Shape::Text, "the whole file"),
    ],
);

/// A map of axes: the path of a setting with a list of values, or a name with named sets of settings by path.
const AXES: Shape = Shape::Own(&AXES_SHAPE);
static AXES_SHAPE: OwnShape = OwnShape {
    holds: || {
        "a map: the path of a setting with a list of values, or a name with sets of settings, each by path"
            .to_owned()
    },
    schema: schema::axes,
    keys: no_keys,
    tables: no_tables,
};

/// Most hosts of a site.
pub(crate) const MOST_HOSTS: u64 = 100_000;
/// Most database nodes.
pub(crate) const MOST_NODES: u64 = 1_000;

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
        optional("expect", EXPECTATIONS, "what must hold for the verdict pass"),
        optional("matrix", Shape::Map(&MATRIX), "settings to run the scenario over, and how often"),
    ],
);

/// `reproduces`.
pub(crate) static REPRODUCES: Fields = plain(
    "a reproduction",
    &[
        required("report", Shape::Text, "the report's id"),
        optional("figures", FIGURES, "its figures, by name with the unit last"),
    ],
);

/// `matrix`.
pub(crate) static MATRIX: Fields = plain(
    "a matrix",
    &[
        required(
            "axes",
            AXES,
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
        required("engine", ENGINE, "which database"),
        optional(
            "path",
            Shape::Text,
            "absolute path of the folder with the database's programs; searched for when absent",
        ),
        required(
            "nodes",
            Shape::Either(&[
                Shape::Count { least: 1, most: MOST_NODES },
                Shape::List { of: &PLACE, least: 1, most: Some(MOST_NODES as usize) },
            ]),
            "how many, spread over the site; or a list of places, the leader's first",
        ),
        optional("leader", PLACE, "where the first leader stands; only with a number of nodes"),
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
    &[required("synchronous", SYNCHRONOUS, "which standbys a commit waits for: any N, all or off")],
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
        optional("from", PLACE, "where the clients stand; the first leader's region when absent"),
        optional(
            "reads",
            Shape::Word(READS),
            "where reads go: to the leader (as without it), to replicas only, or to any node, each client at one of its own; \
             PostgreSQL, and workloads whose reads no check takes for the latest",
        ),
        optional("timeout", Shape::Duration, "how long a client waits for an answer; 2s when absent"),
        optional("options", WORKLOAD_OPTIONS, "options of the workload"),
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
        optional("host", PLACE, "a host by name, or of a role: leader, a-follower, random"),
        optional("rack", PLACE, "a rack by name, or of a role"),
        optional("zone", PLACE, "a zone by name, or of a role"),
        optional("region", PLACE, "a region by name, or of a role"),
    ],
    &["host", "rack", "zone", "region"],
);

//! An engine as a file: what it says, read and checked.
//!
//! Owns the typed result. How it is written is `language`'s and `read`'s; carrying it out is the crate `engine`'s. Whoever
//! has such a file hands its text in: nothing here reads one.

pub mod image;
mod killed;
mod language;
mod names;
mod read;

use std::collections::BTreeMap;
use std::time::Duration;

pub use image::{ImageName, ImageSource};
pub use killed::KilledLines;
pub use language::{explain, json_schema, words};
pub use names::{FOUNDING, LEADING};
pub use read::read;
pub use yaml::template::{Scope, Template};

use crate::{Isolation, NoPods};

/// The ports at which a node of Kubernetes listens: the kubelet's health and its own, kube-proxy's figures and its health
/// (Kubernetes documentation, "Ports and Protocols", and each program's flags).
const PORTS_OF_A_POD_S_NODE: [u16; 4] = [10_248, 10_249, 10_250, 10_256];

/// Everything that an engine file says of how its database is run. What the database can do stands in
/// [`crate::Capabilities`].
#[derive(Debug, Clone, PartialEq)]
pub struct EngineFile {
    /// The file's name, as messages have it.
    pub source: String,
    pub text: String,
    /// The engine's name.
    pub name: String,
    /// How its programs are found.
    pub find: Find,
    /// How it is installed, the preferred way first.
    pub install: Vec<Way>,
    /// What a person types instead, by the distribution's name in its `os-release`.
    pub by_hand: Vec<(String, String)>,
    /// What every process and command has in its environment.
    pub environment: BTreeMap<String, Template>,
    /// Ports by name; `client` is among them.
    pub ports: BTreeMap<String, u16>,
    /// The processes of a node, in the order in which they are started. The last one is the database itself.
    pub processes: Vec<Process>,
    /// How a node is asked for its role; `None` where every node takes writes.
    pub roles: Option<Roles>,
    /// How the node that leads is asked to hand over to another.
    pub hand_over: Option<Ask>,
    /// What is done on a node whenever its processes have become ready.
    pub once_ready: Vec<Ask>,
    /// What is done once all processes are ready at first.
    pub bootstrap: Vec<Step>,
    /// What a person's shell has in its environment.
    pub shell: BTreeMap<String, Template>,
    /// The user that clients connect as; empty where there is none.
    pub user: String,
    /// The database that clients connect to; empty where there is none.
    pub database: String,
    /// The program that speaks for clients, where the protocol is `process`.
    pub client_program: Option<ClientProgram>,
    /// The isolation claimed for a transaction that asks for nothing special.
    pub isolation: Isolation,
    /// Whether the database has symbolic links of its own on its volume.
    pub has_links: bool,
    /// About what a node's processes take, bytes; none where the file does not say.
    pub memory_bytes: Option<u64>,
    /// What was tried.
    pub tested: Tested,
}

/// How an engine's programs are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Find {
    /// Their names; the first one's folder is the engine's.
    pub programs: Vec<String>,
    /// Folders beside those of PATH, from the root of the machine or of what was installed. A `*` stands for any name, the
    /// greatest version first.
    pub folders: Vec<String>,
    /// What tells the version.
    pub version: VersionSource,
    /// The oldest version that will do.
    pub at_least: String,
}

/// What tells an engine's version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionSource {
    /// A program.
    Command {
        /// Its name.
        program: String,
        arguments: Vec<String>,
        /// What stands before the version in its output.
        after: String,
    },
    /// The name of a file, which begins and ends so, the version between. The first that is there.
    File(Vec<(String, String)>),
}

/// A way of installing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// Debian's packages, unpacked without root.
    Apt {
        /// Their names.
        packages: Vec<String>,
        /// Whether what they depend on is unpacked with them, where the machine lacks it.
        dependencies: bool,
    },
    /// A wheel of PyPI.
    Pip {
        name: String,
        version: String,
        /// Its size, for people.
        megabytes: u32,
        /// SHA-256 of it for each architecture.
        checksums: Vec<(String, String)>,
    },
    /// Jars of Maven Central.
    Maven {
        /// Each of them.
        jars: Vec<Jar>,
        /// The size of them all, for people.
        megabytes: Option<u32>,
    },
    /// An image, as container engines run them: a whole system with the programs in it.
    Image {
        /// Where it is.
        source: ImageSource,
        /// Its size, for people.
        megabytes: Option<u32>,
    },
}

/// A wheel of PyPI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedWheel {
    pub name: String,
    pub version: String,
    /// The SHA-256 of each build of it: one where it is the same on every machine.
    pub sha256: Vec<String>,
}

/// The program that speaks for clients, and what it needs to know.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientProgram {
    /// The program.
    pub speaker: Speaker,
    /// What it speaks.
    pub speaks: Speaks,
    /// The driver, in the program's own words.
    pub driver: String,
    /// Where the driver comes from.
    pub files: DriverFiles,
    /// The URL of a node, where the driver has one.
    pub url: Template,
    /// What else the driver is given.
    pub options: BTreeMap<String, Template>,
    /// A query and what its first cell is where a node takes writes; `None` where each does.
    pub takes_writes: Option<(String, Vec<String>)>,
    /// Statements that a session runs before the loads' tables are made; done twice they do no harm.
    pub prepare: Vec<Template>,
}

/// A client program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Speaker {
    /// Ours for drivers of Python's DB-API.
    Dbapi,
    /// Ours for JDBC drivers.
    Jdbc {
        /// Where classes are looked for beside what was installed for it.
        class_path: Vec<Template>,
    },
    /// Ours for MongoDB, by its driver for Python.
    Mongo,
    /// Somebody else's.
    Own {
        /// Its name in [`Find::programs`].
        program: String,
        arguments: Vec<Template>,
    },
}

/// What a client program speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    /// Statements, in this dialect.
    Sql(SqlDialect),
    /// Transactions over keys and values.
    Keys,
}

/// Whose SQL a database takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SqlDialect {
    /// PostgreSQL's.
    Postgres,
    /// MySQL's.
    Mysql,
    /// The standard's, ISO/IEC 9075, without what databases add to it; every table has a primary key.
    Standard,
}

/// Where the driver of a client program comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DriverFiles {
    /// It is among the machine's programs.
    OfTheMachine,
    /// From PyPI.
    Wheels(Vec<PinnedWheel>),
    /// From Maven Central.
    Jars(Vec<Jar>),
}

/// A jar of Maven Central.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jar {
    /// Its group: `org.apache.cassandra`.
    pub group: String,
    pub artifact: String,
    pub version: String,
    /// Which of several builds of it.
    pub classifier: Option<String>,
    /// Its SHA-256.
    pub sha256: String,
}

/// A process of each node.
#[derive(Debug, Clone, PartialEq)]
pub struct Process {
    /// Its name, also of its log.
    pub name: String,
    /// Its program, by its name in [`Find::programs`].
    pub program: String,
    /// The program that runs in the end: another one where a script replaces itself.
    pub becomes: String,
    pub arguments: Vec<Template>,
    /// What it has in its environment beside what all have.
    pub environment: BTreeMap<String, Template>,
    /// Files on the volume that are written before it starts.
    pub files: Vec<WrittenFile>,
    /// What is run to its end before it starts for the first time, in order.
    pub prepare: Vec<Preparation>,
    /// Whether at first the first node's is started alone, and the others' once that is ready.
    pub first_alone: bool,
    /// What makes a cluster of the processes that have been started for the first time, asked of the first node.
    pub form: Vec<Ask>,
    /// What shows that it is ready.
    pub ready: Ask,
    /// Texts of lines in its log by which it turns down a setting.
    pub turns_down: Vec<String>,
    /// Lines in its log by which it tells that a signal has ended a process that it had started.
    pub killed: Vec<KilledLines>,
    /// The signal that asks it to end.
    pub stop: StopSignal,
}

/// What is run to its end before a process starts for the first time.
#[derive(Debug, Clone, PartialEq)]
pub struct Preparation {
    pub program: String,
    pub arguments: Vec<Template>,
    /// Whether on every node; else on the first.
    pub everywhere: bool,
}

/// A file on a node's volume.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenFile {
    /// Its path from the volume's root.
    pub path: String,
    /// What is written.
    pub content: Template,
    /// Whether the database writes to it as well: then it is left as it is once it is there.
    pub is_kept: bool,
}

impl EngineFile {
    /// The program that a pod of it runs, or why no pod can.
    ///
    /// # Errors
    /// Where it is not known what a pod would run.
    pub fn pod_program(&self) -> Result<&str, NoPods> {
        match self.processes.as_slice() {
            [process] if process.uses_list(LEADING) => Err(NoPods::AsksWhoLeads),
            [_] if !self.once_ready.is_empty() => Err(NoPods::AskedOnceReady),
            [process] => match self.ports.values().find(|port| PORTS_OF_A_POD_S_NODE.contains(port)) {
                Some(port) => Err(NoPods::PortTaken(*port)),
                None => Ok(&process.becomes),
            },
            _ => Err(NoPods::SeveralProcesses),
        }
    }
}

impl Process {
    /// Whether a text that is filled before it starts has this list in it.
    #[must_use]
    pub fn uses_list(&self, name: &str) -> bool {
        let texts = self.arguments.iter().chain(self.environment.values());
        texts.chain(self.files.iter().map(|file| &file.content)).any(|text| text.uses_list(name))
    }
}

/// A signal that asks a process to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    /// SIGTERM.
    Terminate,
    /// SIGINT.
    Interrupt,
}

/// A question to a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// How it is asked.
    pub how: How,
    /// What the answer must be.
    pub expect: Expect,
    /// For how long it is asked again until it is so.
    pub within: Duration,
}

/// How a question is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum How {
    /// An HTTP request.
    Http {
        method: &'static str,
        path: Template,
        /// The name of the port.
        port: String,
        body: Option<Template>,
    },
    /// A connection to the port of this name.
    Tcp(String),
    /// A command on the node.
    Command { program: String, arguments: Vec<Template> },
    /// A command in Redis' protocol.
    Redis {
        words: Vec<Template>,
        /// The name of the port.
        port: String,
    },
    /// A statement in MySQL's protocol.
    Mysql {
        /// The statement.
        query: Template,
        /// The name of the port.
        port: String,
        /// The user, who has no password.
        user: String,
    },
    /// A statement in PostgreSQL's protocol.
    Postgres {
        /// The statement.
        query: Template,
        /// The name of the port.
        port: String,
        /// The user, who has no password.
        user: String,
        database: String,
    },
    /// A statement in CQL.
    Cql {
        /// The statement.
        query: Template,
        /// The name of the port.
        port: String,
        /// How many of the nodes that hold a row must answer.
        consistency: Consistency,
    },
    /// A command of MongoDB.
    Mongo {
        /// The command, in JSON.
        command: Template,
        /// The name of the port.
        port: String,
    },
}

/// How many of the nodes that hold a row must answer a statement in CQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consistency {
    /// One of them.
    One,
    /// More than half.
    Quorum,
    All,
}

/// What an answer must be, beside that there is one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Expect {
    /// The HTTP status; 200 when absent.
    pub status: Option<u16>,
    /// A field of the JSON and the values of which it must have one.
    pub field: Option<(FieldPath, Vec<String>)>,
    /// A text that stands in it.
    pub text: Option<Template>,
}

/// Where a field stands in an answer in JSON: `header.member_id`, or `0` for the first element of a list.
pub type FieldPath = String;

/// How a node is asked for its role.
#[derive(Debug, Clone, PartialEq)]
pub struct Roles {
    /// The question.
    pub ask: Ask,
    /// When it leads.
    pub leads: Leads,
    /// The field by which the database knows the node.
    pub identity: Option<FieldPath>,
    /// How far it has got: the first of these fields that is there.
    pub position: Vec<FieldPath>,
}

/// When a node leads, by its answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Leads {
    /// When this field has one of these values.
    Is(FieldPath, Vec<String>),
    /// When both fields have the same value.
    Same(FieldPath, FieldPath),
}

/// Something done once all processes are ready.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What, again until it is as expected.
    pub ask: Ask,
    /// Whether on every node; else on the one that leads, or on the first where none does.
    pub everywhere: bool,
    /// Only where commits wait for standbys, or only where they do not.
    pub only: Option<Only>,
}

/// When a step is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Only {
    /// Where commits wait for acknowledgements of standbys.
    Synchronous,
    /// Where they do not.
    Asynchronous,
}

/// What was tried of an engine file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tested {
    /// Whether the project's tests run it.
    pub here: bool,
    /// The versions that were run.
    pub versions: Vec<String>,
    /// Where it is from, where it was not run.
    pub from: Option<String>,
}

impl std::fmt::Display for Tested {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let versions = self.versions.join(", ");
        match (self.here, &self.from) {
            (true, _) => write!(f, "tested with {versions}"),
            (false, Some(from)) => write!(f, "not run here; from {from}"),
            (false, None) => f.write_str("not run here"),
        }
    }
}

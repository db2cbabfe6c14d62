//! What can go wrong in an engine, each with the node, path or value it concerns.
//!
//! Owns the errors' forms and their words.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::Status;

/// A node could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The node has no power.
    #[error("node {node} is down")]
    Down { node: String },
    /// A program could not be started.
    #[error("{program} could not be started on {node}: {source}")]
    Start {
        node: String,
        program: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
    /// Anything else between us and the node.
    #[error("{what} on {node}: {source}")]
    Io {
        node: String,
        /// What was being done.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
}

/// An engine could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// There is no engine of that name.
    #[error("no engine named `{name}`; there are: {known}")]
    UnknownEngine {
        name: String,
        /// The names there are.
        known: String,
    },
    /// It does not start again from what lies on its volumes.
    #[error("{engine} cannot be started again as a whole")]
    DoesNotResume { engine: &'static str },
    /// Its processes are started and ended by a cluster that runs containers.
    #[error("{node}: the database runs in a pod, which its cluster alone starts and ends")]
    InAPod { node: String },
    /// The cluster that runs its pods.
    #[error("{why}")]
    Containers {
        /// What went wrong, with the part and the node.
        why: String,
    },
    /// It has no form in pods.
    #[error("{engine} does not run in pods")]
    NotInPods { engine: &'static str },
    /// Its programs are those of an image, which pods in a lab are not made of.
    #[error(
        "{engine} was installed from an image, and its pods can run programs of this machine alone: install {engine} on it"
    )]
    ImageInPods { engine: &'static str },
    /// The run has no other programs for its nodes.
    #[error("{node} cannot be upgraded: the run has no other version of its database")]
    NothingToUpgradeTo { node: String },
    /// A node could not do what it was asked.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// A file on a node's volume.
    #[error("{path} on the volume of {node}: {source}")]
    File {
        node: String,
        /// The file, relative to the volume.
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
    /// A program ended badly.
    #[error("{program} on {node} ended with {status}: {output}")]
    Program {
        node: String,
        program: String,
        /// How it ended.
        status: Status,
        /// The last of what it wrote.
        output: String,
    },
    /// The database could not be spoken to.
    #[error("the database on {node} gave no usable answer: {source}")]
    Silent {
        node: String,
        /// What its connection failed with, or what was wrong with its answer.
        source: io::Error,
    },
    /// The database refused.
    #[error("the database on {node} refused `{statement}`: {message} (SQLSTATE {code})")]
    Refused {
        node: String,
        /// What was asked; empty for the connection itself.
        statement: String,
        /// Its five-letter code.
        code: String,
        /// Its own words.
        message: String,
    },
    /// The database answered something that makes no sense here.
    #[error("the database on {node} gave an unexpected answer to `{statement}`: {answer}")]
    Answer {
        node: String,
        /// What was asked.
        statement: String,
        answer: String,
    },
    /// The database's process ended before it was ready.
    #[error("the database on {node} ended before it was ready; its log ends:\n{log}")]
    Exited {
        node: String,
        /// The end of its log.
        log: String,
    },
    /// Something did not come about in time.
    #[error(
        "{node}: {what}: timed out after {waited:?}; if the machine is busy, use fewer nodes or stop other \
         programs{log}"
    )]
    NotReady {
        node: String,
        /// What was awaited.
        what: String,
        /// How long.
        waited: Duration,
        /// The end of its log, on lines of its own, or nothing.
        log: String,
    },
    /// The cluster has gone on without this node.
    #[error("{node} must rejoin before it starts: {leader} is the leader now")]
    Fenced {
        node: String,
        /// Who leads.
        leader: String,
    },
    /// The database is still running there.
    #[error("the database on {node} is running already")]
    Running { node: String },
    /// A node the cluster was not made with, or no cluster yet.
    #[error("{node} is not a node of this cluster")]
    Stranger { node: String },
    /// The node that was to be followed does not lead.
    #[error("no node can follow {node}: it does not take writes")]
    NotLeader { node: String },
    /// One of the candidates leads already.
    #[error("{node} takes writes already: nothing to promote")]
    AlreadyLeads { node: String },
    /// Nobody could be promoted.
    #[error("no standby could be promoted: {reasons}")]
    NoCandidate {
        /// Why each was not.
        reasons: String,
    },
    /// More acknowledgements asked for than there are standbys, or none.
    #[error("`synchronous: {wanted}` is not possible with {standbys} standbys")]
    Synchronous {
        /// What was asked for.
        wanted: String,
        /// How many there are.
        standbys: usize,
    },
    /// A node's name will not do.
    #[error("node name `{name}`: {why}")]
    NodeName {
        name: String,
        /// Why not.
        why: &'static str,
    },
    /// A setting the scenario gives will not do.
    #[error("setting `{name}`: {why}")]
    Setting {
        /// The setting.
        name: String,
        /// Why not.
        why: &'static str,
    },
}

/// A database was neither found nor could it be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The path given holds no usable database.
    #[error("{path}: {why}")]
    Explicit {
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Nothing was found.
    #[error("no usable {wanted} was found{seen}")]
    NotFound {
        /// The database and the versions that will do.
        wanted: String,
        /// What was looked at and why it would not do, on lines of its own, or nothing.
        seen: String,
    },
    /// There is no place to install into.
    #[error("no cache directory: set HOLDFAST_CACHE, XDG_CACHE_HOME or HOME")]
    NoCache,
    /// Somebody else can write in the cache directory.
    #[error("the cache directory: {0}, or set HOLDFAST_CACHE to another")]
    Untrusted(#[from] crate::trust::Untrusted),
    /// A file or folder of the cache.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
    /// Every way of installing failed.
    #[error("{title} could not be installed:{attempts}\n{remedy}")]
    Failed {
        /// The database.
        title: String,
        /// Each way and why it failed, each on a line of its own.
        attempts: String,
        /// What to do instead.
        remedy: String,
    },
}

//! Any database by a file: found, started, asked for its roles as the file says.
//!
//! Owns carrying an engine file out. Its nodes elect their leader themselves, or have none: what a platform asks of such a
//! database is seldom more than to start its processes.

mod asking;
mod clients;
mod cql;
mod find;
mod images;
mod killed;
mod mongo;
mod mysql;
mod places;
mod pods;
mod redis;
mod scope;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use capabilities::file::{self, EngineFile, FOUNDING, LEADING, Only, Scope, Step, StopSignal, Template};
use capabilities::{Capabilities, Quorum};

use self::asking::{Means, Role};
use self::scope::{acknowledgements, element, place};
use crate::client_program::{ClientCommand, ClientTarget};
use crate::installation::Installation;
use crate::process::{GLANCE, LOG_LINES};
use crate::processes::Processes;
use crate::releases::Releases;
use crate::{
    Cluster, Command, Configuration, Endpoint, Engine, EngineError, Isolation, Killed, Node, Promotion,
    RejoinMethod, Rejoined, Roles, Signal,
};

pub(crate) use find::{describe, find, install_into};
pub(crate) use pods::FileInPods;

/// More lines than the usage has that a program may print.
const USAGE_LINES: usize = 60;
/// How long a node may take over its answer about itself.
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);
/// How long the nodes may take to agree on who leads.
const ELECTION_PATIENCE: Duration = Duration::from_secs(30);
/// After how long without a result the leader is asked again to hand over.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Which start of a process it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// The first on the node that the cluster begins with.
    Founding,
    /// The first on another node.
    First,
    /// A later one.
    Again,
}

/// A node of the cluster.
#[derive(Clone)]
struct Member {
    name: String,
    address: IpAddr,
    node: Weak<dyn Node>,
}

impl Member {
    fn new(node: &Arc<dyn Node>) -> Member {
        Member { name: node.name().to_owned(), address: node.address(), node: Arc::downgrade(node) }
    }
}

/// See the module.
pub struct ByFile {
    engine: &'static Capabilities,
    file: &'static EngineFile,
    releases: Releases,
    configuration: Configuration,
    ports: BTreeMap<String, u16>,
    processes: Vec<Processes>,
    /// The nodes of the cluster, in their order.
    members: Mutex<Vec<Member>>,
    /// Nodes on which something is to be done once they are ready.
    returning: Mutex<BTreeSet<String>>,
}

impl ByFile {
    /// The engine over an installation as nodes see it.
    #[must_use]
    pub fn new(
        engine: &'static Capabilities,
        file: &'static EngineFile,
        installation: Installation,
        configuration: Configuration,
    ) -> ByFile {
        let mut ports = file.ports.clone();
        ports.insert("client".to_owned(), configuration.port);
        let processes = file.processes.iter().map(|process| Processes::new(&process.name, &process.name));
        let processes = processes.collect();
        ByFile {
            engine,
            file,
            releases: Releases::new(installation, configuration.upgrade.clone()),
            configuration,
            ports,
            processes,
            members: Mutex::default(),
            returning: Mutex::default(),
        }
    }

    fn members(&self) -> MutexGuard<'_, Vec<Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn returning(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.returning.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The environment of a process or a command on a node.
    fn environment(&self, more: &BTreeMap<String, Template>, scope: &Scope) -> BTreeMap<String, String> {
        let mut environment = self.environment_of_system();
        environment.extend(self.environment_of_file(more, scope));
        environment
    }

    /// What the file says of the environment: the whole of it, where the database's programs are the machine's.
    fn environment_of_file(
        &self,
        more: &BTreeMap<String, Template>,
        scope: &Scope,
    ) -> BTreeMap<String, String> {
        let all = self.file.environment.iter().chain(more);
        all.map(|(name, value)| (name.clone(), value.filled(scope))).collect()
    }

    /// What an image says of the environment of its programs.
    fn environment_of_system(&self) -> BTreeMap<String, String> {
        self.releases.first().system.as_ref().map(|system| system.environment.clone()).unwrap_or_default()
    }

    /// Starts one of the node's processes, by its number.
    fn launch(&self, node: &dyn Node, number: usize, start: Start) -> Result<(), EngineError> {
        self.processes[number].start(node, &self.prepared(node, number, start)?)
    }

    /// Does what comes before a start of one of the node's processes; what starts it.
    fn prepared(&self, node: &dyn Node, number: usize, start: Start) -> Result<Command, EngineError> {
        let process = &self.file.processes[number];
        let mut scope = self.scope(node)?;
        if process.uses_list(LEADING) {
            scope.lists.insert(LEADING.to_owned(), self.leading(node));
        }
        if start == Start::Founding {
            let founder = self.members().first().map(|member| element(0, member));
            scope.lists.insert(FOUNDING.to_owned(), founder.into_iter().collect());
        }
        for file in &process.files {
            let path = Path::new(&file.path);
            let written = match file.is_kept && node.exists(path).unwrap_or(false) {
                true => Ok(()),
                false => node.write_file(path, &file.content.filled(&scope)),
            };
            written.map_err(|source| EngineError::File {
                node: node.name().to_owned(),
                path: path.to_owned(),
                source,
            })?;
        }
        let installation = self.releases.of(node.name());
        let command = |program: &str, arguments: &[Template]| Command {
            program: installation.programs.get(program).cloned().unwrap_or_default(),
            arguments: arguments.iter().flat_map(|argument| argument.all_filled(&scope)).collect(),
            environment: self.environment(&process.environment, &scope),
        };
        for preparation in process.prepare.iter().filter(|_| start != Start::Again) {
            if preparation.everywhere || start == Start::Founding {
                to_its_end(node, &command(&preparation.program, &preparation.arguments))?;
            }
        }
        Ok(command(&process.program, &process.arguments))
    }

    fn ask(
        &self,
        node: &dyn Node,
        scope: &Scope,
        patience: Duration,
        ask: impl FnOnce(&Means<'_>) -> std::io::Result<Role>,
    ) -> Result<Role, EngineError> {
        let environment = self.environment(&BTreeMap::new(), scope);
        let means = Means {
            scope,
            programs: &self.releases.of(node.name()).programs,
            environment: &environment,
            ports: &self.ports,
            patience,
        };
        ask(&means).map_err(|source| EngineError::Silent { node: node.name().to_owned(), source })
    }

    /// Puts a question to a node; that it is answered as expected.
    fn answers(&self, node: &dyn Node, question: &file::Ask, patience: Duration) -> Result<(), EngineError> {
        let scope = self.scope(node)?;
        let asked = |means: &Means<'_>| asking::ask(node, question, means).map(|_| Role::default());
        self.ask(node, &scope, patience, asked).map(drop)
    }

    fn role(&self, node: &dyn Node) -> Result<Role, EngineError> {
        if !self.database().is_running(node) {
            let source = std::io::Error::other("its process is not running");
            return Err(EngineError::Silent { node: node.name().to_owned(), source });
        }
        let scope = self.scope(node)?;
        self.ask(node, &scope, ANSWER_PATIENCE, |means| match &self.file.roles {
            Some(roles) => asking::role(node, roles, means),
            // Every node that is ready takes writes.
            None => asking::ask(node, &self.main_process().ready, means).map(|_| Role::default()),
        })
    }

    fn main_process(&self) -> &file::Process {
        &self.file.processes[self.file.processes.len() - 1]
    }

    /// Asks one of the node's processes to end, as the file says, and ends it where it does not.
    fn end(&self, node: &dyn Node, number: usize, timeout: Duration) -> Result<(), EngineError> {
        let signal = match self.file.processes[number].stop {
            StopSignal::Terminate => Signal::Terminate,
            StopSignal::Interrupt => Signal::Interrupt,
        };
        self.processes[number].stop_with(node, signal, timeout)
    }

    /// The process that is the database itself.
    fn database(&self) -> &Processes {
        &self.processes[self.processes.len() - 1]
    }

    fn await_process(&self, node: &dyn Node, number: usize, patience: Duration) -> Result<(), EngineError> {
        let process = &self.file.processes[number];
        let answers = || self.answers(node, &process.ready, ANSWER_PATIENCE);
        let ready = self.processes[number].wait_ready(node, patience, answers);
        ready.map_err(|error| match (error, turned_down(node, process)) {
            (EngineError::Exited { node, .. }, Some(log)) => EngineError::Exited { node, log },
            (error, _) => error,
        })
    }

    /// Starts every process on all nodes for the first time.
    fn start_all(&self, nodes: &[Arc<dyn Node>]) -> Result<(), EngineError> {
        for (number, process) in self.file.processes.iter().enumerate() {
            let alone = usize::from(process.first_alone);
            for (before, group) in [(0, &nodes[..alone]), (alone, &nodes[alone..])] {
                for (place, node) in group.iter().enumerate() {
                    let start = if before + place == 0 { Start::Founding } else { Start::First };
                    self.launch(node.as_ref(), number, start)?;
                }
                if let (0, Some(first)) = (before, group.first()) {
                    self.form(first.as_ref(), number)?;
                }
                for node in group {
                    self.await_process(node.as_ref(), number, process.ready.within)?;
                }
            }
        }
        Ok(())
    }

    /// Makes a cluster of the processes of this number, which have just been started on their nodes for the first time.
    fn form(&self, first: &dyn Node, number: usize) -> Result<(), EngineError> {
        for ask in &self.file.processes[number].form {
            let deadline = Instant::now() + ask.within;
            while let Err(error) = self.answers(first, ask, ask.within) {
                if !self.processes[number].is_running(first) {
                    // It says in its log why it has ended.
                    return self.await_process(first, number, Duration::ZERO);
                }
                if Instant::now() >= deadline {
                    return Err(error);
                }
                std::thread::sleep(GLANCE);
            }
        }
        Ok(())
    }

    /// Does what is to be done on a node that has just become ready.
    fn settle(&self, node: &dyn Node) -> Result<(), EngineError> {
        self.file.once_ready.iter().try_for_each(|ask| self.answers_in_time(node, ask))
    }

    /// Puts a question again and again until it is answered as expected.
    fn answers_in_time(&self, node: &dyn Node, question: &file::Ask) -> Result<(), EngineError> {
        let deadline = Instant::now() + question.within;
        while let Err(error) = self.answers(node, question, question.within) {
            if Instant::now() >= deadline {
                return Err(error);
            }
            std::thread::sleep(GLANCE);
        }
        Ok(())
    }

    /// Who leads once the nodes have agreed on it: `wanted`, where the file says how a leader hands over.
    fn elect(&self, wanted: &dyn Node, nodes: &[Arc<dyn Node>]) -> Result<Arc<dyn Node>, EngineError> {
        let deadline = Instant::now() + ELECTION_PATIENCE;
        let mut ask_at = Instant::now();
        while Instant::now() < deadline {
            let leads = |node: &&Arc<dyn Node>| self.role(node.as_ref()).is_ok_and(|role| role.leads);
            match (nodes.iter().find(leads), &self.file.hand_over) {
                (Some(leader), None) => return Ok(leader.clone()),
                (Some(leader), Some(_)) if leader.name() == wanted.name() => return Ok(leader.clone()),
                (Some(leader), Some(hand_over)) if Instant::now() >= ask_at => {
                    ask_at = Instant::now() + ASK_AGAIN;
                    // It refuses while the other lags behind, and is then asked again.
                    let _ = self.hand_over(leader.as_ref(), wanted, hand_over);
                }
                _ => {}
            }
            std::thread::sleep(GLANCE);
        }
        Err(self.database().not_ready(wanted, "it did not become the leader", ELECTION_PATIENCE))
    }

    fn hand_over(&self, from: &dyn Node, to: &dyn Node, question: &file::Ask) -> Result<(), EngineError> {
        let identity = self.role(to)?.identity;
        let mut scope = self.scope(from)?;
        let mut know = |name: &str, value: String| drop(scope.values.insert(name.to_owned(), value));
        know("from.name", from.name().to_owned());
        know("to.name", to.name().to_owned());
        know("to.identity", identity);
        let asked = |means: &Means<'_>| asking::ask(from, question, means).map(|_| Role::default());
        self.ask(from, &scope, ANSWER_PATIENCE, asked).map(drop)
    }

    fn take_step(
        &self,
        step: &Step,
        leader: &Arc<dyn Node>,
        nodes: &[Arc<dyn Node>],
    ) -> Result<(), EngineError> {
        let is_synchronous = acknowledgements(self.configuration.synchronous, nodes.len()) > 0;
        let applies = match step.only {
            None => true,
            Some(Only::Synchronous) => is_synchronous,
            Some(Only::Asynchronous) => !is_synchronous,
        };
        let on = if step.everywhere { nodes } else { std::slice::from_ref(leader) };
        on.iter().filter(|_| applies).try_for_each(|node| self.answers_in_time(node.as_ref(), &step.ask))
    }

    fn await_follower(&self, node: &dyn Node, leader: &Role) -> Result<(), EngineError> {
        let deadline = Instant::now() + ELECTION_PATIENCE;
        while Instant::now() < deadline {
            if self.role(node).is_ok_and(|role| !role.leads && role.position >= leader.position) {
                return Ok(());
            }
            std::thread::sleep(GLANCE);
        }
        Err(self.database().not_ready(node, "it did not become a follower", ELECTION_PATIENCE))
    }

    /// Everybody who answers, and why the others do not.
    fn all_asked(&self, nodes: &[Arc<dyn Node>]) -> (Vec<(String, Role)>, Vec<String>) {
        let (mut asked, mut reasons) = (Vec::new(), Vec::new());
        for node in nodes {
            match self.role(node.as_ref()) {
                Ok(role) => asked.push((node.name().to_owned(), role)),
                Err(error) => reasons.push(error.to_string()),
            }
        }
        (asked, reasons)
    }
}

/// Runs a command on a node, which must succeed.
fn to_its_end(node: &dyn Node, command: &Command) -> Result<(), EngineError> {
    let finished = node.run(command)?;
    if finished.status.success() {
        return Ok(());
    }
    let text = if finished.stderr.trim().is_empty() { &finished.stdout } else { &finished.stderr };
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    Err(EngineError::Program {
        node: node.name().to_owned(),
        program: command.program.display().to_string(),
        status: finished.status,
        output: lines[lines.len().saturating_sub(LOG_LINES)..].join("\n"),
    })
}

/// The line with which a process turned down a setting, where it did: much may stand behind it.
fn turned_down(node: &dyn Node, process: &file::Process) -> Option<String> {
    let log = node.log_tail(&process.name, USAGE_LINES);
    let refused = |line: &&str| process.turns_down.iter().any(|text| line.contains(text.as_str()));
    log.lines().find(refused).map(ToOwned::to_owned)
}

impl Engine for ByFile {
    fn name(&self) -> &'static str {
        self.engine.name
    }

    fn version(&self) -> String {
        self.releases.first().version.clone()
    }

    fn isolation(&self) -> Isolation {
        self.file.isolation
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = self.configuration.settings.clone();
        let synchronous = match self.engine.quorum {
            Quorum::AsAsked => self.configuration.synchronous.to_string(),
            Quorum::Majority => "a majority, always".to_owned(),
            Quorum::PerRequest => "as each load asks (`consistency`)".to_owned(),
        };
        if self.engine.quorum == Quorum::PerRequest {
            settings.insert("copies".to_owned(), format!("{} in each region", self.configuration.copies));
        }
        settings.insert("synchronous".to_owned(), synchronous);
        settings.insert("installation".to_owned(), self.releases.first().bin.display().to_string());
        if let Some(system) = &self.releases.first().system {
            settings.insert("image".to_owned(), system.image.clone());
        }
        settings.insert("engine file".to_owned(), format!("{}, {}", self.file.source, self.file.tested));
        settings
    }

    fn endpoint(&self, node: &dyn Node) -> Endpoint {
        Endpoint {
            node: node.name().to_owned(),
            address: node.address(),
            port: self.configuration.port,
            user: self.file.user.clone(),
            database: self.file.database.clone(),
        }
    }

    fn client_command(&self, folder: &str) -> Option<ClientCommand> {
        self.command_of_clients(folder)
    }

    fn client_target(&self, node: &dyn Node) -> Result<ClientTarget, EngineError> {
        self.target_of_clients(node)
    }

    fn shell_environment(&self, on: Option<&dyn Node>, nodes: &[Arc<dyn Node>]) -> BTreeMap<String, String> {
        let reached: Vec<(String, IpAddr)> = match on {
            Some(node) => vec![(node.name().to_owned(), node.address())],
            None => nodes.iter().map(|node| (node.name().to_owned(), node.address())).collect(),
        };
        let installation = on.map_or(self.releases.first(), |node| self.releases.of(node.name()));
        let mut scope = self.machine(installation);
        let reached =
            reached.iter().enumerate().map(|(at, (name, address))| place(at, name, *address)).collect();
        scope.lists.insert("reached".to_owned(), reached);
        let mut environment = self.environment_of_system();
        let usual = environment.get("PATH").map_or("/usr/local/bin:/usr/bin:/bin", String::as_str);
        let path = format!("{}:{usual}", installation.bin.display());
        environment.insert("PATH".to_owned(), path);
        environment.extend(self.environment_of_file(&self.file.shell, &scope));
        environment
    }

    fn follows_links(&self) -> bool {
        self.file.has_links
    }

    fn bootstrap(&self, nodes: &[Arc<dyn Node>]) -> Result<Cluster, EngineError> {
        let first =
            nodes.first().ok_or_else(|| EngineError::NoCandidate { reasons: "no nodes".to_owned() })?;
        *self.members() = nodes.iter().map(Member::new).collect();
        let began = Instant::now();
        self.start_all(nodes)?;
        let started_s = began.elapsed().as_secs_f64();
        let leader =
            if self.file.roles.is_some() { self.elect(first.as_ref(), nodes)? } else { first.clone() };
        nodes.iter().try_for_each(|node| self.settle(node.as_ref()))?;
        for step in &self.file.bootstrap {
            self.take_step(step, &leader, nodes)?;
        }
        if self.file.roles.is_none() {
            let set_up_s = began.elapsed().as_secs_f64() - started_s;
            return Ok(Cluster {
                leader: None,
                followers: nodes.iter().map(|node| node.name().to_owned()).collect(),
                steps: vec![("start".to_owned(), started_s), ("set up".to_owned(), set_up_s)],
            });
        }
        let leads = self.role(leader.as_ref())?;
        let followers: Vec<_> = nodes.iter().filter(|node| node.name() != leader.name()).collect();
        for node in &followers {
            self.await_follower(node.as_ref(), &leads)?;
        }
        let elected_s = began.elapsed().as_secs_f64() - started_s;
        Ok(Cluster {
            leader: Some(leader.name().to_owned()),
            followers: followers.iter().map(|node| node.name().to_owned()).collect(),
            steps: vec![("start".to_owned(), started_s), ("elect".to_owned(), elected_s)],
        })
    }

    fn start(&self, node: &dyn Node) -> Result<(), EngineError> {
        let ended: Vec<usize> =
            (0..self.processes.len()).filter(|number| !self.processes[*number].is_running(node)).collect();
        if ended.is_empty() {
            return Err(EngineError::Running { node: node.name().to_owned() });
        }
        if !self.file.once_ready.is_empty() {
            self.returning().insert(node.name().to_owned());
        }
        ended.into_iter().try_for_each(|number| self.launch(node, number, Start::Again))
    }

    fn wait_ready(&self, node: &dyn Node, timeout: Duration) -> Result<(), EngineError> {
        let deadline = Instant::now() + timeout;
        (0..self.processes.len()).try_for_each(|number| {
            self.await_process(node, number, deadline.saturating_duration_since(Instant::now()))
        })?;
        if self.returning().contains(node.name()) {
            self.settle(node)?;
            self.returning().remove(node.name());
        }
        Ok(())
    }

    fn upgrade(&self, node: &dyn Node) -> Result<(), EngineError> {
        self.releases.upgrade(node)
    }

    fn stop(&self, node: &dyn Node, timeout: Duration) -> Result<(), EngineError> {
        let deadline = Instant::now() + timeout;
        (0..self.processes.len())
            .rev()
            .try_for_each(|number| self.end(node, number, deadline.saturating_duration_since(Instant::now())))
    }

    fn stop_process(&self, node: &dyn Node, name: &str, timeout: Duration) -> Result<(), EngineError> {
        let of_name = |number: &usize| self.file.processes[*number].name == name;
        (0..self.processes.len()).filter(of_name).try_for_each(|number| self.end(node, number, timeout))
    }

    fn leader(&self, nodes: &[Arc<dyn Node>]) -> Roles {
        let mut roles = Roles::asked(nodes, |node| self.role(node).map(|role| role.leads));
        if self.file.roles.is_none() {
            roles.equals = std::mem::take(&mut roles.followers);
        }
        roles
    }

    fn promote(&self, candidates: &[Arc<dyn Node>]) -> Result<Promotion, EngineError> {
        if self.file.roles.is_none() {
            let reasons = "every node takes writes, and none can be promoted".to_owned();
            return Err(EngineError::NoCandidate { reasons });
        }
        let deadline = Instant::now() + ELECTION_PATIENCE;
        loop {
            let (asked, mut notes) = self.all_asked(candidates);
            let mut leaders = asked.iter().filter(|(_, role)| role.leads).map(|(node, _)| node);
            if let (Some(leader), None) = (leaders.next(), leaders.next()) {
                notes.push("the nodes had already elected it".to_owned());
                let is_other = |node: &String| node != leader;
                return Ok(Promotion {
                    positions: asked
                        .iter()
                        .map(|(node, role)| (node.clone(), role.position.to_string()))
                        .collect(),
                    followers: asked.iter().map(|(node, _)| node.clone()).filter(is_other).collect(),
                    leader: leader.clone(),
                    notes,
                });
            }
            if asked.is_empty() || Instant::now() >= deadline {
                notes.push("the nodes elect no leader by themselves".to_owned());
                return Err(EngineError::NoCandidate { reasons: notes.join("; ") });
            }
            std::thread::sleep(GLANCE);
        }
    }

    fn killed_by_signals(&self, node: &dyn Node) -> Vec<Killed> {
        let told = |process| killed::in_log_of(process, |log, mark| node.log_lines_with(log, mark));
        self.file.processes.iter().flat_map(told).collect()
    }

    fn rejoin(&self, node: &dyn Node, leader: &dyn Node) -> Result<Rejoined, EngineError> {
        if self.file.roles.is_some() && !self.role(leader)?.leads {
            return Err(EngineError::NotLeader { node: leader.name().to_owned() });
        }
        self.start(node)?;
        Ok(Rejoined { method: RejoinMethod::Follow, notes: Vec::new() })
    }
}

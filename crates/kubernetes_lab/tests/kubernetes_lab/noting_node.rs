//! A node that runs nothing and notes what it is asked to run.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use engine::{Command, Finished, Node, NodeError, ProcessId, Signal, Status};

/// What happens when a program is run whose words have this in them: its exit code, and what it says.
type Answers = BTreeMap<&'static str, (i32, &'static str)>;

pub struct NotingNode {
    name: &'static str,
    listener: TcpListener,
    /// Programs that end as soon as they are started.
    ending: Vec<&'static str>,
    answers: Answers,
    noted: Mutex<Noted>,
}

#[derive(Default)]
struct Noted {
    lines: Vec<String>,
    files: BTreeMap<PathBuf, String>,
    started: Vec<String>,
}

impl NotingNode {
    pub fn new(name: &'static str) -> NotingNode {
        NotingNode {
            name,
            listener: TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener"),
            ending: Vec::new(),
            answers: Answers::new(),
            noted: Mutex::default(),
        }
    }

    /// The same, on which this program ends at once.
    pub fn ending(mut self, program: &'static str) -> NotingNode {
        self.ending.push(program);
        self
    }

    /// The same, on which a program whose words have this in them ends so.
    pub fn answering(mut self, words: &'static str, code: i32, said: &'static str) -> NotingNode {
        self.answers.insert(words, (code, said));
        self
    }

    /// What was started and run, in order: `start NAME`, `run NAME ARGUMENTS`.
    pub fn lines(&self) -> Vec<String> {
        self.noted().lines.clone()
    }

    /// The names of the files that were written.
    pub fn files(&self) -> Vec<String> {
        self.noted().files.keys().map(|path| path.display().to_string()).collect()
    }

    fn noted(&self) -> std::sync::MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name_of(command: &Command) -> String {
    command.program.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl Node for NotingNode {
    fn name(&self) -> &str {
        self.name
    }

    fn address(&self) -> IpAddr {
        Ipv4Addr::LOCALHOST.into()
    }

    fn boot(&self) -> u64 {
        1
    }

    fn data_directory(&self) -> PathBuf {
        PathBuf::from("/v")
    }

    fn socket_directory(&self) -> PathBuf {
        PathBuf::from("/s")
    }

    fn socket_directory_outside(&self) -> PathBuf {
        PathBuf::from("/s")
    }

    fn write_file(&self, path_in_volume: &Path, content: &str) -> io::Result<()> {
        self.noted().files.insert(path_in_volume.to_owned(), content.to_owned());
        Ok(())
    }

    fn read_file(&self, path_in_volume: &Path) -> io::Result<String> {
        self.noted().files.get(path_in_volume).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn remove_file(&self, path_in_volume: &Path) -> io::Result<()> {
        let removed = self.noted().files.remove(path_in_volume).map(drop);
        removed.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn exists(&self, path_in_volume: &Path) -> io::Result<bool> {
        Ok(self.noted().files.contains_key(path_in_volume))
    }

    fn connect(&self, _port: u16, patience: Duration) -> io::Result<TcpStream> {
        TcpStream::connect_timeout(&self.listener.local_addr()?, patience)
    }

    fn run(&self, command: &Command) -> Result<Finished, NodeError> {
        let words = format!("{} {}", name_of(command), command.arguments.join(" "));
        let found = self.answers.iter().find(|(part, _)| words.contains(**part));
        let (code, said) = found.map_or((0, ""), |(_, answer)| *answer);
        self.noted().lines.push(format!("run {words}"));
        let (status, stdout) = (Status::Exited(code), said.to_owned());
        Ok(Finished { status, stdout, stderr: said.to_owned() })
    }

    fn spawn(&self, command: &Command, _log: &str) -> Result<ProcessId, NodeError> {
        let mut noted = self.noted();
        let name = name_of(command);
        noted.lines.push(format!("start {name}"));
        noted.started.push(name);
        Ok(ProcessId(noted.started.len() as u64 - 1))
    }

    fn signal(&self, _process: ProcessId, _signal: Signal) -> Result<(), NodeError> {
        Ok(())
    }

    fn is_running(&self, process: ProcessId) -> bool {
        let noted = self.noted();
        let name = noted.started.get(process.0 as usize);
        name.is_some_and(|name| !self.ending.iter().any(|ending| ending == name))
    }

    fn log_tail(&self, log: &str, _lines: usize) -> String {
        format!("the end of {log}")
    }
}

//! A folder in which somebody runs the whole program, and what is found there afterwards.
//!
//! Owns how the program is started and how long is waited. What the folder's scenario runs on is each test's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

/// A folder with the scenario `mine.yaml`.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn with(scenario: &str) -> Folder {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("mine.yaml"), scenario).expect("written");
        Folder(folder)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
        command.args(arguments).current_dir(self.path()).stdin(Stdio::null());
        command
    }

    pub fn said(&self, arguments: &[&str]) -> (i32, String) {
        said(&mut self.command(arguments))
    }

    pub fn started(&self, arguments: &[&str]) -> Running {
        started(&mut self.command(arguments))
    }

    pub fn run_directory(&self) -> PathBuf {
        self.newest_run().expect("a run directory")
    }

    pub fn newest_run(&self) -> Option<PathBuf> {
        let runs = fs::read_dir(self.path().join("runs/mine")).ok()?;
        let found = runs.map(|entry| entry.expect("an entry").path());
        found.filter(|path| path.is_dir() && !path.is_symlink()).max()
    }
}

/// A program that is ended with the test.
pub struct Running(Child);

impl Running {
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    pub fn exit_code(mut self) -> Option<i32> {
        self.0.wait().expect("waited for").code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the program; nobody reads what it says.
pub fn started(command: &mut Command) -> Running {
    Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts"))
}

/// The program's exit code, and its standard output with standard error behind it.
pub fn said(command: &mut Command) -> (i32, String) {
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    let text = [stdout, stderr].concat();
    (status.code().expect("an exit code"), String::from_utf8(text).expect("text"))
}

pub fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("readable")).expect("JSON")
}

/// Waits until something holds that takes as long as the machine lets it.
pub fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..1200 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("never {what}");
}

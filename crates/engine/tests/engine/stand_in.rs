//! An engine by file over loopback machines, with a stand-in in Python for the database's program.
//!
//! Owns how it is put in place and opened. What the stand-in is strict about is its own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use capabilities::Capabilities;
use engine::{Configuration, Engine, NodePlace};

use crate::loopback::Machines;
use crate::shipped::configuration;

/// A stand-in for a database's program.
pub struct StandIn {
    /// The file name of the program that it stands in for.
    pub program: &'static str,
    pub text: &'static str,
    /// The version that it says it has.
    pub version: &'static str,
    /// Where the node of this number stands, from 1.
    pub place: fn(usize) -> NodePlace,
}

impl StandIn {
    /// Three machines and the engine of a file over them, with the folder of the program; nothing, and said so, where there is
    /// no Python.
    pub fn open(
        &self,
        test: &str,
        file: &'static Capabilities,
        settings: &[(&str, &str)],
    ) -> Option<(Machines, Box<dyn Engine>, tempfile::TempDir)> {
        if !Path::new("/usr/bin/python3").is_file() {
            eprintln!("skipped: {test}: no /usr/bin/python3");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join(self.program);
        fs::write(&program, self.text).expect("written");
        for path in [folder.path(), &program] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("permissions");
        }
        let entry = engine::registry::of(file).expect("an engine by file");
        let installation = entry.find(Some(folder.path())).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(installation.version, self.version);
        let machines = Machines::new(3);
        let places = (1..=3).map(self.place).collect();
        let port = machines.port;
        let configuration = Configuration { port, copies: 3, places, ..configuration(settings) };
        let opened = entry.open(installation, configuration).unwrap_or_else(|error| panic!("{error}"));
        Some((machines, opened, folder))
    }
}

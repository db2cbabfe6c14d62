//! How a client program that ships is started by a test: by this process, over a socket, with a driver from a folder.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::Arc;

use capabilities::file::{ClientProgram, Scope};
use client::process::{GREETING_WITHIN, Settings, Starter};
use engine::client_program::command;
use engine::{Installation, Origin};

/// What starts the program that an engine file names, whose driver is in this folder.
pub fn settings(written: &ClientProgram, folder: &str) -> Settings {
    let nowhere = Installation {
        bin: "".into(),
        version: String::new(),
        origin: Origin::Explicit,
        library_path: None,
        root: "".into(),
        programs: BTreeMap::new(),
        system: None,
    };
    let command = command(written, folder, &nowhere, &Scope::default(), BTreeMap::new());
    let name = command.name.clone();
    let starter: Starter = Arc::new(move |socket: OwnedFd| {
        let output = socket.try_clone()?;
        let mut program = Command::new(&command.program);
        program.args(&command.arguments).env_clear().stdin(socket).stdout(output).spawn()
    });
    Settings {
        name,
        starter,
        driver: written.driver.clone(),
        folder: folder.to_owned(),
        log: None,
        patience: GREETING_WITHIN,
        accountant: None,
    }
}

//! `holdfast shell`: a person, or a command, inside a node of a lab that is up.

use anyhow::anyhow;
use lab::entrance::{Door, EntranceError, Lab};
use lab::shell::{self, ShellError};

use crate::arguments::ShellOptions;
use crate::complained;
use crate::exit::Exit;

/// Exit code of a command that is not there, as shells give it.
const NOT_FOUND: u8 = 127;
/// Exit code of a command that cannot be executed.
const NOT_EXECUTABLE: u8 = 126;
/// Exit code of a shell that was killed, as it is when its node loses power: 128 and the number of SIGKILL.
const KILLED: u8 = 137;

/// Opens the shell and ends with its exit code.
pub fn shell(options: &ShellOptions) -> Result<Exit, Exit> {
    let door = door(options)?;
    match shell::run(&door, &options.command) {
        Ok(code) => {
            let code = u8::try_from(code).unwrap_or(u8::MAX);
            if code == KILLED {
                tell_why(options);
            }
            Ok(Exit::Reported(code))
        }
        Err(error @ ShellError::Program { .. }) => {
            complained!("holdfast: {error}");
            let is_missing = matches!(&error, ShellError::Program { source, .. } if source.kind() == std::io::ErrorKind::NotFound);
            Ok(Exit::Reported(if is_missing { NOT_FOUND } else { NOT_EXECUTABLE }))
        }
        Err(error) => Err(Exit::failed(error)),
    }
}

fn door(options: &ShellOptions) -> Result<Door, Exit> {
    let found = Lab::find(&options.run).and_then(|lab| lab.door(&options.node));
    found.map_err(|error| match error {
        EntranceError::NoLab { .. } => Exit::wrong(anyhow!(
            "{error}; start one with `holdfast run --keep SCENARIO`, or name its run directory with `--run DIR`"
        )),
        EntranceError::Unknown { .. } | EntranceError::NotYours { .. } => Exit::wrong(error),
        EntranceError::BeingBuilt { .. } | EntranceError::NoPower { .. } | EntranceError::File { .. } => {
            Exit::failed(error)
        }
    })
}

/// Whether what ended the shell was the node's end.
fn tell_why(options: &ShellOptions) {
    match Lab::find(&options.run).and_then(|lab| lab.door(&options.node)) {
        Err(EntranceError::NoLab { .. }) => complained!("holdfast: the lab has ended"),
        Err(error @ EntranceError::NoPower { .. }) => complained!("holdfast: {error}"),
        _ => {}
    }
}

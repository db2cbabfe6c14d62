//! The program that speaks for clients of an engine by file: what starts it, and what it is told of a node.
//!
//! Owns the filling in of the file's templates; starting it is the load's.

use std::collections::BTreeMap;

use super::ByFile;
use crate::client_program::{self, ClientCommand, ClientTarget};
use crate::{EngineError, Node};

impl ByFile {
    pub(super) fn command_of_clients(&self, folder: &str) -> Option<ClientCommand> {
        let program = self.file.client_program.as_ref()?;
        let installation = self.releases.first();
        let machine = self.machine(installation);
        // Its place is among the machine's programs, whatever the database's system is.
        let environment = self.environment_of_file(&BTreeMap::new(), &machine);
        Some(client_program::command(program, folder, installation, &machine, environment))
    }

    pub(super) fn target_of_clients(&self, node: &dyn Node) -> Result<ClientTarget, EngineError> {
        let Some(program) = &self.file.client_program else { return Ok(ClientTarget::default()) };
        let scope = self.scope(node)?;
        let options = program.options.iter();
        let options = options.map(|(name, value)| (name.clone(), value.filled(&scope))).collect();
        let prepare = program.prepare.iter().map(|statement| statement.filled(&scope)).collect();
        Ok(ClientTarget { url: program.url.filled(&scope), options, prepare })
    }
}

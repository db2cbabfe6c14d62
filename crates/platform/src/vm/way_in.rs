//! The way onto a VM for a person, told anew with every boot.

use std::collections::BTreeMap;

use lab::entrance::{self, Entrance, Inside};

use super::{State, Vm, VmError};

impl Vm {
    /// Lets people in, now and after every boot, with this environment for their shells.
    ///
    /// # Errors
    /// When the lab's file for it cannot be written.
    pub fn let_in(&self, shell_environment: BTreeMap<String, String>) -> Result<(), VmError> {
        let mut state = self.state();
        state.shell_environment = Some(shell_environment);
        self.tell_the_way_in(&state)
    }

    pub(super) fn tell_the_way_in(&self, state: &State) -> Result<(), VmError> {
        let Some(environment) = &state.shell_environment else { return Ok(()) };
        let inside = state.boot.as_ref().map(|boot| Inside::Node {
            init: boot.node.init_pid(),
            pid_namespace: boot.node.pid_namespace(),
        });
        let environment = environment.clone();
        let entrance = Entrance { inside, environment, users_mapped: self.set_up.users_mapped };
        entrance::open(&self.name, &entrance)
            .map_err(|source| VmError::Entrance { node: self.name.clone(), source })
    }
}

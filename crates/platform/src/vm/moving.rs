//! A VM's part in its live migration: it is stopped with all that runs on it, and is on another host when it goes on. Its
//! namespaces, its processes and its interface live on; only where they belong changes.

use std::time::{Duration, Instant};

use fabric::{Block, Rule, RuleGuard};
use history::HostId;
use lab::process_table::{self, Seen};

use super::{Holder, Vm, VmError};

/// How long processes may take to stand still once they were stopped: one may wait for a disk.
const STILL_WITHIN: Duration = Duration::from_secs(3);
/// How often those that do not are signalled again.
const AGAIN_EVERY: Duration = Duration::from_millis(100);

/// A time in which a VM stands still to be moved: nothing comes from it or reaches it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standstill {
    /// Just before it was stopped.
    pub began: Instant,
    /// Just after its network was let go on; none while it stands still.
    pub ended: Option<Instant>,
    /// Its path in the network from then on, where it was moved.
    pub moved_to: Option<Vec<String>>,
}

/// A VM that stands still: its processes are stopped, and nothing comes from it or reaches it. Dropping it lets the VM go on.
#[derive(Debug)]
pub(crate) struct Stun<'v> {
    vm: &'v Vm,
    quiet: Option<RuleGuard>,
}

impl Drop for Stun<'_> {
    fn drop(&mut self) {
        // First the network: what the processes say then must not be lost.
        drop(self.quiet.take());
        if let Some(last) = self.vm.state().standstills.last_mut() {
            last.ended = Some(Instant::now());
        }
        self.vm.resume_processes(Holder::Migration);
    }
}

impl Stun<'_> {
    /// Lets the processes go on, but not the network yet: a lie that tests plant.
    pub(crate) fn end_keeping_the_rules(mut self) -> Option<RuleGuard> {
        self.quiet.take()
    }
}

impl Vm {
    /// Stops all processes on it and keeps the network from it, at each of the paths that it has meanwhile. `block` is what becomes
    /// of its packets.
    ///
    /// # Errors
    /// When it has no power or does not answer, or the fabric is gone; it runs on then.
    pub(crate) fn stun(&self, paths: &[Vec<String>], block: Block) -> Result<Stun<'_>, VmError> {
        let began = Instant::now();
        self.state().standstills.push(Standstill { began, ended: None, moved_to: None });
        let mut stun = Stun { vm: self, quiet: None };
        self.stop_processes()?;
        let both_ways = |path: &Vec<String>| {
            let to_it = Rule { to: path.clone(), block: Some(block), ..Rule::default() };
            let from_it = Rule { from: path.clone(), block: Some(block), ..Rule::default() };
            [to_it, from_it]
        };
        let quiet = self.network.fabric.impose_all(paths.iter().flat_map(both_ways).collect());
        stun.quiet = Some(quiet.map_err(|source| VmError::Network { node: self.name.clone(), source })?);
        self.wait_until_still();
        Ok(stun)
    }

    fn stop_processes(&self) -> Result<(), VmError> {
        self.strike_processes(Holder::Migration, libc::SIGSTOP, (None, None)).map_err(VmError::Signal)
    }

    /// Waits until all processes are seen to stand still, or for as long as that may take. One that another began while it was
    /// signalled itself is signalled later.
    fn wait_until_still(&self) {
        let deadline = Instant::now() + STILL_WITHIN;
        let mut signalled = Instant::now();
        while Instant::now() < deadline
            && let Some(namespace) = self.pid_namespace()
            && !process_table::look(namespace).is_ok_and(|table| table.values().all(Seen::is_stopped))
        {
            if signalled.elapsed() >= AGAIN_EVERY {
                // Whoever looks at the processes tells of one that runs on.
                let _ = self.stop_processes();
                signalled = Instant::now();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// From here on it is on another host, whose path is `place`: that host's links are its own, and it ends with that host. It
    /// keeps its boot, its addresses and its connections.
    ///
    /// # Errors
    /// When it is not in that boot any more, or the fabric is gone; it is where it was then.
    pub(crate) fn relocate(&self, boot: u64, host: HostId, place: &[String]) -> Result<(), VmError> {
        let mut state = self.state();
        let port = state.boot.as_ref().filter(|of| of.number == boot).map(|of| of.port);
        let port = port.ok_or_else(|| VmError::Off { node: self.name.clone() })?;
        let moved = self.network.fabric.relocate(port, self.path_on(place));
        moved.map_err(|source| VmError::Network { node: self.name.clone(), source })?;
        state.come_to(host);
        if let Some(last) = state.standstills.last_mut() {
            last.moved_to = Some(self.path_on(place));
        }
        Ok(())
    }

    /// The times in which it stood still to be moved, in order; the last may go on.
    #[must_use]
    pub fn standstills(&self) -> Vec<Standstill> {
        self.state().standstills.clone()
    }

    /// Its path in the network while it is on the host of that path.
    pub(crate) fn path_on(&self, place: &[String]) -> Vec<String> {
        let mut path = place.to_vec();
        path.push(self.name.clone());
        path
    }

    /// Process number of its init in the lab, until its power-off begins: that takes it off the network first, and its init may
    /// end long after, where many nodes lose their power at once.
    #[must_use]
    pub fn init_pid_on_network(&self) -> Option<u32> {
        self.state().boot.as_ref().filter(|boot| !boot.is_cut_off).map(|boot| boot.node.init_pid())
    }

    /// The number of the boot that it is in; none while it is off.
    pub(crate) fn boot_number(&self) -> Option<u64> {
        self.state().boot.as_ref().map(|boot| boot.number)
    }
}

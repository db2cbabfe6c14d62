//! What is done about a node whose database's processes were killed, stopped or restarted while its host stands: a service
//! manager starts what has ended, and where a standby is promoted when the leader is lost, a leader that does not answer for
//! as long as that takes is switched off first.
//!
//! Owns the watch and the steps. Which of them follow says `decisions`.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use faults::Lie;
use history::NodeId;
use scenario::Failover;

use crate::decisions::Occurrence;
use crate::platform::Platform;

/// How often a leader is asked whether it is there. A question that is not answered takes its own time.
const ASK_EVERY: Duration = Duration::from_millis(200);
/// How long a database has to end in order before it is killed.
pub const STOP_PATIENCE: Duration = Duration::from_secs(60);
/// How long it may take until it is known that killed processes have ended.
const END_PATIENCE: Duration = Duration::from_secs(5);

impl Platform {
    /// Where clients reach the database on a VM.
    #[must_use]
    pub fn client_address(&self, vm: NodeId) -> SocketAddr {
        let endpoint = self.engine.endpoint(self.node(vm).as_ref());
        SocketAddr::new(endpoint.address, endpoint.port)
    }

    /// The processes of this VM's database were struck. A leader that does not answer is watched until it does again, after
    /// `over` is set, or is switched off and another promoted.
    pub fn processes_struck(self: &Arc<Self>, vm: NodeId, over: Arc<AtomicBool>) {
        let Failover::Promote { after } = self.failover else { return };
        self.clone().begin(format!("watch {vm}"), move |platform| {
            let mut silent_since: Option<Instant> = None;
            loop {
                let asked = Instant::now();
                if !platform.datacentre.vms[vm].is_on() {
                    // It was lost in another way, and what follows from that follows.
                    return;
                }
                // One that is being promoted may have been struck before it was known to lead.
                let answers =
                    platform.leader() != vm || platform.engine.leader(&[platform.node(vm)]).silent.is_empty();
                silent_since = if answers { None } else { silent_since.or(Some(asked)) };
                if silent_since.is_some_and(|since| since.elapsed() >= after) {
                    let why =
                        format!("the database on {vm} has not answered for {:.1} s", after.as_secs_f64());
                    if platform.fence(vm, &why) {
                        platform.follow(&Occurrence::LeaderSilent(vm));
                    }
                    return;
                }
                if (answers && over.load(Ordering::Acquire)) || !platform.pause(ASK_EVERY) {
                    return;
                }
            }
        });
    }

    /// A fault of this VM's processes is over: what has ended is started again, and a VM that was switched off meanwhile is
    /// started where it was.
    pub fn processes_may_run(self: &Arc<Self>, vm: NodeId) {
        self.happens(&Occurrence::ProcessesMayRun(vm));
    }

    /// Stops the database on a VM in order, or the one process of that name, and starts it again.
    pub fn restart_processes(self: &Arc<Self>, vm: NodeId, only: Option<String>) {
        self.restart(vm, only, false);
    }

    /// Stops the database on a VM in order, and starts it with the programs that the run upgrades it to.
    pub fn upgrade_processes(self: &Arc<Self>, vm: NodeId) {
        self.restart(vm, None, true);
    }

    fn restart(self: &Arc<Self>, vm: NodeId, only: Option<String>, upgrades: bool) {
        self.clone().begin(format!("restart {vm}"), move |platform| {
            let hand = platform.hands[vm].lock().unwrap_or_else(PoisonError::into_inner);
            let (node, handle) = (vm.to_string(), platform.node(vm));
            // From now on whoever starts it starts the new programs.
            let upgrades = upgrades && !platform.datacentre.planted.contains(&Lie::OldPrograms);
            let upgraded = if upgrades { platform.engine.upgrade(handle.as_ref()) } else { Ok(()) };
            let stopped = upgraded.and_then(|()| match &only {
                Some(name) => platform.engine.stop_process(handle.as_ref(), name, STOP_PATIENCE),
                None => platform.engine.stop(handle.as_ref(), STOP_PATIENCE),
            });
            drop(hand);
            match stopped {
                Ok(()) => platform.start_processes(vm),
                Err(error) => platform.trouble(&format!("stop the database on {node}"), &error.to_string()),
            }
        });
    }

    /// What a node's service manager does: the processes that have ended are started again. What they start themselves is
    /// theirs.
    pub(crate) fn start_processes(&self, vm: NodeId) {
        let node = vm.to_string();
        let what = format!("the service manager of {node} starts the database's processes again");
        self.start_once_ended(vm, END_PATIENCE, what);
    }
}

//! Live migration carried out: a VM's memory is copied to another host while it runs, then it is stopped for the rest, and goes
//! on there with its address, its connections and its processes.
//!
//! Owns the steps and what becomes of a migration that fails in the midst: the VM goes on where it was. How often is copied
//! `migration` says. The bytes are as many as the memory's and cross the fabric from host to host; the processes themselves stay
//! what they are.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use fabric::Block;
use faults::Lie;
use history::{EventKind, HostId, MigratedConnections, MigrationFacts, MigrationRound, NodeId};
use lab::round_trip::End;
use lab::{Bulk, Connections, NodeMemory};
use paper::obstacles_in_words;
use placement::{Left, Wanted};
use storage::OpenError;

use crate::datacentre::DatacentreError;
use crate::migration::{Bounds, Next, Precopy, Round};
use crate::placing::{Placing, Reservation};
use crate::platform::Platform;
use crate::vm::{Holder, Vm, VmError};

/// How long the last round may take where the scenario does not ask for a longer stun: what hypervisors allow themselves by
/// default.
const LAST_ROUND: Duration = Duration::from_millis(300);
/// The share of its processors that is taken from a VM while its memory is copied: what a hypervisor takes first from one that
/// dirties its memory fast (QEMU's `cpu-throttle-initial`).
const SLOWED_BY: f64 = 0.2;
/// How long the other host may give no sign.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long after it runs again connections are looked for: what was sent on one that was cut has been answered by then.
const CONNECTIONS_AFTER: Duration = Duration::from_secs(1);
/// How often it is asked, during a stun, whether to go on.
const GLANCE: Duration = Duration::from_millis(20);

/// What is to be moved, where to, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MigrationOrder {
    /// The VM, by number.
    pub vm: NodeId,
    /// The host to move to, by number; the platform's choice when absent.
    pub to: Option<HostId>,
    /// Its memory; what its processes hold when absent.
    pub memory_bytes: Option<u64>,
    /// How long it stands still at least.
    pub stun: Duration,
    /// Rounds of copying before it counts as not converging.
    pub max_rounds: u32,
    /// Whether one that does not converge is stopped for as long as it takes, instead of being given up.
    pub moves_anyway: bool,
}

/// Whoever looks on while a VM is moved. Each call is made at that moment and holds it up.
pub trait MigrationWatch {
    /// Whether the migration is still wanted.
    fn goes_on(&self) -> bool {
        true
    }

    /// Copying is about to begin, from the first of these hosts to the second.
    fn begins(&self, _from: HostId, _to: HostId) {}

    /// The VM stands still.
    fn stunned(&self) {}

    /// It is on the other host, and about to run.
    fn arrived(&self) {}

    /// It runs there.
    fn runs_again(&self) {}
}

/// Nobody.
impl MigrationWatch for () {}

/// Why a VM was not moved.
#[derive(Debug, thiserror::Error)]
pub enum NotMigrated {
    /// It has no power.
    #[error("{node} has no power")]
    Off { node: String },
    /// It lost its power in the midst.
    #[error("{node} lost power during the migration")]
    Lost { node: String },
    /// The platform is at something else with it.
    #[error("{node} is being started, stopped or moved already")]
    Busy { node: String },
    /// Nowhere to go.
    #[error("no other host can run {node}")]
    NoTarget { node: String },
    #[error("{node} is on {host} already")]
    AlreadyThere { node: String, host: String },
    /// The other host has no power, or lost it in the midst.
    #[error("{host} has no power")]
    TargetOff { host: String },
    /// Nobody would notice it there before the other host is heard again.
    #[error("{host} was cut off from the other hosts meanwhile and counts as isolated")]
    TargetIsolated { host: String },
    /// The other host may not have it.
    #[error("{node} cannot run there: {why}")]
    NotAllowed {
        node: String,
        /// What stands against it.
        why: String,
    },
    /// The other host would not have its volume.
    #[error(transparent)]
    Volume(#[from] OpenError),
    /// The volume could not be served to the other host.
    #[error("the volume of {node} could not be handed over to {host}")]
    VolumeStays { node: String, host: String },
    /// It dirties its memory faster than it can be copied.
    #[error(
        "it does not converge: after round {rounds}, the last one, {left_mib:.1} MiB were left; the node dirtied \
         {dirty_mib_per_s:.1} MiB/s, and {copied_mib_per_s:.1} MiB/s were copied"
    )]
    DoesNotConverge {
        /// Rounds that were copied.
        rounds: usize,
        /// What was left, MiB.
        left_mib: f64,
        /// What it dirtied, MiB a second.
        dirty_mib_per_s: f64,
        /// What was copied, MiB a second.
        copied_mib_per_s: f64,
    },
    /// What it writes could not be measured.
    #[error("what {node} writes cannot be measured: {source}")]
    Memory {
        node: String,
        /// What the operating system answered.
        source: io::Error,
    },
    /// The network between the hosts.
    #[error("copy the memory of {node} from {from} to {to}: {source}")]
    Copy {
        node: String,
        /// The one host.
        from: String,
        /// The other.
        to: String,
        /// What the operating system answered.
        source: io::Error,
    },
    /// It was called off.
    #[error("it was cancelled because the run ended")]
    CalledOff,
    #[error(transparent)]
    Vm(#[from] VmError),
    #[error(transparent)]
    Datacentre(#[from] DatacentreError),
}

/// A VM that has a part of its processors taken while this lives.
struct Slowed<'v>(&'v Vm);

impl<'v> Slowed<'v> {
    fn begin(vm: &'v Vm) -> Option<Slowed<'v>> {
        let left = vm.processors() * (1.0 - SLOWED_BY);
        vm.hold_to_processors(Holder::Migration, Some(left)).ok().map(|()| Slowed(vm))
    }
}

impl Drop for Slowed<'_> {
    fn drop(&mut self) {
        // One that is off has no limit either.
        let _ = self.0.hold_to_processors(Holder::Migration, None);
    }
}

/// One of the migrations under way, for whoever waits for them to end.
struct Counted<'p>(&'p AtomicUsize);

impl<'p> Counted<'p> {
    fn begin(migrations: &'p AtomicUsize) -> Counted<'p> {
        migrations.fetch_add(1, Ordering::AcqRel);
        Counted(migrations)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A migration under way.
struct Journey<'p> {
    platform: &'p Arc<Platform>,
    order: &'p MigrationOrder,
    watch: &'p dyn MigrationWatch,
    vm: &'p Vm,
    boot: u64,
    from: HostId,
    to: HostId,
    _place: Reservation<'p>,
}

impl Platform {
    /// Moves a VM to another host while it runs. What came of it is told as an event; where it is not made the VM goes on where
    /// it was.
    ///
    /// # Errors
    /// Why it was not moved.
    pub fn migrate(
        self: &Arc<Self>,
        order: &MigrationOrder,
        watch: &dyn MigrationWatch,
    ) -> Result<MigrationFacts, NotMigrated> {
        let node = order.vm.to_string();
        let _hand = match self.hands[order.vm].try_lock() {
            Ok(hand) => hand,
            Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
            Err(TryLockError::WouldBlock) => return Err(NotMigrated::Busy { node }),
        };
        let _counted = Counted::begin(&self.migrations);
        let mut facts = MigrationFacts { node, began_s: self.events.now_s(), ..MigrationFacts::default() };
        let moved = self.journey(order, watch, &mut facts).and_then(|journey| journey.make(&mut facts));
        if let Err(error) = &moved {
            facts.ended_s = self.events.now_s();
            facts.given_up = Some(error.to_string());
        }
        self.events.say_at(facts.ended_s, EventKind::Migration { facts: Box::new(facts.clone()) });
        moved.map(|()| facts)
    }

    /// Whether somebody starts, stops or moves a VM now.
    pub(crate) fn is_in_hand(&self, vm: NodeId) -> bool {
        matches!(self.hands[vm].try_lock(), Err(TryLockError::WouldBlock))
    }

    /// What is moved from where to where, if it may be.
    fn journey<'p>(
        self: &'p Arc<Self>,
        order: &'p MigrationOrder,
        watch: &'p dyn MigrationWatch,
        facts: &mut MigrationFacts,
    ) -> Result<Journey<'p>, NotMigrated> {
        let node = || order.vm.to_string();
        let vm = self.datacentre.vms[order.vm].as_ref();
        let boot = vm.boot_number().ok_or_else(|| NotMigrated::Off { node: node() })?;
        let from = vm.host();
        facts.from = self.datacentre.hosts[from].name();
        let place = Reservation::make(&self.placing, order.vm, |placing| self.target(order, placing))?;
        let to = place.host;
        let host = self.datacentre.hosts[to].name();
        facts.to.clone_from(&host);
        if to == from {
            return Err(NotMigrated::AlreadyThere { node: node(), host });
        }
        if !self.datacentre.hosts[to].is_on() {
            return Err(NotMigrated::TargetOff { host });
        }
        vm.volume().mirrored().map_or(Ok(()), |disk| disk.may_follow(to))?;
        Ok(Journey { platform: self, order, watch, vm, boot, from, to, _place: place })
    }

    /// Where a VM is moved to: where it was asked for, if it may run there, or else where it is best.
    fn target(&self, order: &MigrationOrder, placing: &Placing) -> Result<HostId, NotMigrated> {
        let (vm, node, cluster) = (order.vm, order.vm.to_string(), self.cluster_now(placing));
        if let Some(to) = order.to {
            return match cluster.obstacle(vm, to) {
                Some(obstacle) => {
                    let why = obstacles_in_words(&[(to, obstacle)], &self.cluster);
                    Err(NotMigrated::NotAllowed { node, why })
                }
                None => Ok(to),
            };
        }
        let (data, tried) = (self.datacentre.data_of(vm), BTreeSet::new());
        let wanted = Wanted { vm, left: Left::Host, data, only: None, tried };
        let from = self.datacentre.vms[vm].host();
        let mut others =
            placement::hosts_in_order(&cluster, &wanted).into_iter().filter(|host| *host != from);
        others.next().ok_or(NotMigrated::NoTarget { node })
    }
}

impl Journey<'_> {
    fn make(&self, facts: &mut MigrationFacts) -> Result<(), NotMigrated> {
        let platform = self.platform;
        self.watch.begins(self.from, self.to);
        facts.began_s = platform.events.now_s();
        let (from, to) = (self.end(self.from), self.end(self.to));
        let mut bulk = Bulk::open(from, to, PATIENCE).map_err(|error| self.broken(error))?;
        let left = self.copy(&mut bulk, facts)?;
        let block = match platform.datacentre.planted.contains(&Lie::MigrationDrops) {
            true => Block::Reset,
            false => Block::BlackHole,
        };
        let paths = [self.from, self.to].map(|host| self.vm.path_on(&platform.datacentre.hosts[host].path));
        let (began, stunned_s) = (Instant::now(), platform.events.now_s());
        let stun = self.vm.stun(&paths, block)?;
        facts.stunned_s = Some(stunned_s);
        let before = self.connections();
        self.watch.stunned();
        if let Err(why) = self.go_while_it_stands_still(&mut bulk, (left, began), facts) {
            drop(stun);
            facts.stun_s = Some(began.elapsed().as_secs_f64());
            return Err(why);
        }
        self.watch.arrived();
        // What the lie leaves standing goes with the end of this function.
        let _left_standing = match block {
            Block::Reset => stun.end_keeping_the_rules(),
            _ => {
                drop(stun);
                None
            }
        };
        facts.stun_s = Some(began.elapsed().as_secs_f64());
        facts.ended_s = platform.events.now_s();
        self.watch.runs_again();
        platform.pause(CONNECTIONS_AFTER);
        facts.connections = before.zip(self.connections()).map(|(before, after)| MigratedConnections {
            before: before.standing.len() as u64,
            survived: before.surviving(&after) as u64,
            cut_off: after.cut_off.saturating_sub(before.cut_off),
        });
        Ok(())
    }

    /// Copies the rest, and waits until its stun has been as long as was asked.
    fn go_while_it_stands_still(
        &self,
        bulk: &mut Bulk,
        (left, began): (u64, Instant),
        facts: &mut MigrationFacts,
    ) -> Result<(), NotMigrated> {
        bulk.send(left, &|| self.goes_on()).map_err(|error| self.broken(error))?;
        facts.last_bytes = left;
        while began.elapsed() < self.order.stun {
            if !self.goes_on() {
                return Err(self.broken(io::ErrorKind::Interrupted.into()));
            }
            std::thread::sleep(GLANCE.min(self.order.stun.saturating_sub(began.elapsed())));
        }
        self.switch_over()
    }

    /// Copies while the VM runs. Returns what is left to be copied while it stands still.
    fn copy(&self, bulk: &mut Bulk, facts: &mut MigrationFacts) -> Result<u64, NotMigrated> {
        let mut memory = self.memory()?;
        let memory_bytes = self.order.memory_bytes.unwrap_or(memory.held_bytes);
        facts.memory_bytes = memory_bytes;
        let last_round = self.order.stun.max(LAST_ROUND);
        let bounds = Bounds { memory_bytes, last_round, max_rounds: self.order.max_rounds };
        let mut precopy = Precopy::new(bounds);
        let slowed = Slowed::begin(self.vm);
        facts.slowed = slowed.is_some();
        let mut bytes = memory_bytes;
        loop {
            let took = bulk.send(bytes, &|| self.goes_on()).map_err(|error| self.broken(error))?;
            let now = self.memory()?;
            let dirtied_bytes = now.dirtied_since(&memory);
            memory = now;
            facts.rounds.push(MigrationRound { bytes, seconds: took.as_secs_f64(), dirtied_bytes });
            match precopy.after(Round { bytes, took, dirtied_bytes }) {
                Next::Copy(next) => bytes = next,
                Next::SwitchOver(left) => return Ok(left),
                Next::DoesNotConverge(left) if self.order.moves_anyway => return Ok(left),
                Next::DoesNotConverge(left) => {
                    let mib = |bytes: f64| bytes / f64::from(1 << 20);
                    return Err(NotMigrated::DoesNotConverge {
                        rounds: facts.rounds.len(),
                        left_mib: mib(left as f64),
                        dirty_mib_per_s: mib(facts.dirty_bytes_per_s().unwrap_or(0.0)),
                        copied_mib_per_s: mib(facts.copied_bytes_per_s().unwrap_or(0.0)),
                    });
                }
            }
        }
    }

    /// The VM, which stands still, belongs to the other host from here on, and its volume with it.
    fn switch_over(&self) -> Result<(), NotMigrated> {
        let (datacentre, vm) = (&self.platform.datacentre, self.order.vm);
        let target = &datacentre.hosts[self.to];
        let (node, host) = (vm.to_string(), target.name());
        if self.platform.state().isolated.contains(&self.to) {
            return Err(NotMigrated::TargetIsolated { host });
        }
        if !self.vm.volume().mirrored().is_none_or(|disk| disk.follow(self.to)) {
            return Err(NotMigrated::VolumeStays { node, host });
        }
        self.vm.relocate(self.boot, self.to, &target.path)?;
        if target.is_on() {
            return Ok(());
        }
        // A host that lost its power in the midst did not find the VM on it.
        let switched_off = datacentre.power_off_vm(vm);
        self.platform.tell_failed_rollbacks();
        switched_off?;
        self.platform.events.say(EventKind::NodeDown { node, host: host.clone() });
        self.platform.lost(&[vm]);
        Err(NotMigrated::TargetOff { host })
    }

    fn goes_on(&self) -> bool {
        let is_there = self.vm.boot_number() == Some(self.boot);
        is_there
            && self.platform.datacentre.hosts[self.to].is_on()
            && self.watch.goes_on()
            && self.platform.pause(Duration::ZERO)
    }

    /// Why copying ended.
    fn broken(&self, source: io::Error) -> NotMigrated {
        let (node, host) =
            (self.order.vm.to_string(), |host: HostId| self.platform.datacentre.hosts[host].name());
        if self.vm.boot_number() != Some(self.boot) {
            NotMigrated::Lost { node }
        } else if !self.platform.datacentre.hosts[self.to].is_on() {
            NotMigrated::TargetOff { host: host(self.to) }
        } else if source.kind() == io::ErrorKind::Interrupted {
            NotMigrated::CalledOff
        } else {
            NotMigrated::Copy { node, from: host(self.from), to: host(self.to), source }
        }
    }

    fn end(&self, host: HostId) -> End<'_> {
        let host = &self.platform.datacentre.hosts[host];
        End { namespace: host.namespace(), address: host.address }
    }

    fn memory(&self) -> Result<NodeMemory, NotMigrated> {
        let node = || self.order.vm.to_string();
        let namespace = self.vm.pid_namespace().ok_or_else(|| NotMigrated::Lost { node: node() })?;
        NodeMemory::of(namespace).map_err(|source| NotMigrated::Memory { node: node(), source })
    }

    fn connections(&self) -> Option<Connections> {
        Connections::of(self.vm.init_pid()?).ok()
    }
}

//! Starts of VMs that were lost: where, asked of the core `placement` with the site as it is at that moment; and again while
//! no host can have them.
//!
//! Owns carrying that out. Which host it is `placement` says, and nobody else.

use std::collections::BTreeSet;
use std::sync::{MutexGuard, PoisonError};
use std::time::Instant;

use faults::Lie;
use history::{EventKind, HostId, NodeId, PlatformAction};
use paper::obstacles_in_words;
use placement::{Cluster, Data, Decision, Holds, Left, Wanted};
use scenario::Failover;
use storage::MirroredDisk;

use crate::datacentre::Datacentre;
use crate::decisions::Return;
use crate::placing::{self, Placing, Where};
use crate::platform::{Platform, Promotions, RETRY};
use crate::reasons;

impl Platform {
    fn placing(&self) -> MutexGuard<'_, Placing> {
        placing::lock(&self.placing)
    }

    /// The VM waits for a host from now on: whoever comes after it is placed after it.
    pub(crate) fn waits_for_a_host(&self, vm: NodeId, left: Left) {
        self.placing().waiting.insert(vm, left);
    }

    /// Nothing is being tried for the VM any more, or it runs.
    pub(crate) fn is_placed(&self, vm: NodeId) {
        let mut placing = self.placing();
        placing.waiting.remove(&vm);
        placing.booting.remove(&vm);
    }

    /// Its host did not take it: another may have the place.
    pub(crate) fn did_not_boot(&self, vm: NodeId) {
        self.placing().booting.remove(&vm);
    }

    /// Where the VM is started, if it can be. The place is its own until it is told what became of it.
    pub(crate) fn place(&self, vm: NodeId, to: Where, tried: &BTreeSet<HostId>) -> Decision {
        let mut placing = self.placing();
        let cluster = self.cluster_now(&placing);
        let datacentre = &self.datacentre;
        let others =
            placing.waiting.iter().filter(|(other, _)| **other != vm && cluster.vms[**other].at.is_none());
        let of_other = |(vm, left): (&NodeId, &Left)| {
            let (data, tried) = (datacentre.data_of(*vm), BTreeSet::new());
            Wanted { vm: *vm, left: *left, data, only: None, tried }
        };
        let mut wanted: Vec<Wanted> = others.map(of_other).collect();
        let tried = tried.clone();
        wanted.push(match to {
            Where::Anywhere(left) => Wanted { vm, left, data: datacentre.data_of(vm), only: None, tried },
            Where::Home => {
                // Where its data can be had from is found when it boots.
                let only = Some(vec![datacentre.vms[vm].host()]);
                Wanted { vm, left: Left::Host, data: Data::Anywhere, only, tried }
            }
        });
        let decisions = placement::start(&cluster, &wanted);
        let is_mine = |decision: &Decision| matches!(decision, Decision::Start { vm: of, .. } | Decision::Wait { vm: of, .. } if *of == vm);
        let mine = decisions.into_iter().find(is_mine);
        if let Some(Decision::Start { host, .. }) = &mine {
            placing.booting.insert(vm, *host);
        }
        mine.unwrap_or(Decision::Wait { vm, obstacles: Vec::new() })
    }

    /// Starts it on whichever host can have it, unless it has power. One that was lost again since `began` has a decision of its
    /// own, with its own wait.
    pub(crate) fn restart_elsewhere(&self, vm: NodeId, left: Left, began: Instant) {
        self.waits_for_a_host(vm, left);
        let mut told = false;
        let mut told_waiting = String::new();
        loop {
            // Not held while waiting: its own host may return first.
            let hand = self.hands[vm].lock().unwrap_or_else(PoisonError::into_inner);
            if self.datacentre.vms[vm].is_on() {
                return self.is_placed(vm);
            }
            if self.was_lost_since(vm, began) {
                return;
            }
            // Its own host may have had power again since: then it may run there as well.
            let left_now = self.placing().waiting.get(&vm).copied().unwrap_or(left);
            match self.start_somewhere(vm, (left, left_now), &mut told_waiting) {
                Ok(()) => return,
                // Its volume may be out of reach for now. Told once, however often it is tried.
                Err(refused) if !told && !refused.is_empty() => {
                    told = true;
                    self.trouble(&format!("boot {vm} on another host"), &refused.join("; "));
                }
                Err(_) => {}
            }
            drop(hand);
            if !self.pause(RETRY) {
                return;
            }
        }
    }

    /// Boots the VM on the best host that can have it; why those that were tried could not. What is behind is promoted only
    /// where nothing that is up to date can be had from anywhere. `lost` is told, `left` decides.
    fn start_somewhere(
        &self,
        vm: NodeId,
        (lost, left): (Left, Left),
        told_waiting: &mut String,
    ) -> Result<(), Vec<String>> {
        let from = self.datacentre.host_of(vm).name();
        let forces = self.datacentre.vms[vm].volume().mirrored().is_some_and(MirroredDisk::promotes_by_force);
        let mut refused: Vec<String> = Vec::new();
        for may_force in [false, true] {
            // Why a host was refused without force says nothing about the same host with it.
            refused.clear();
            let mut tried = BTreeSet::new();
            loop {
                let (host, reason) = match self.place(vm, Where::Anywhere(left), &tried) {
                    Decision::Start { host, reason, .. } => (host, reason),
                    Decision::Wait { obstacles, .. } if tried.is_empty() => {
                        self.tell_waiting(vm, &obstacles_in_words(&obstacles, &self.cluster), told_waiting);
                        return Err(Vec::new());
                    }
                    Decision::Wait { .. } | Decision::Move { .. } => break,
                };
                let mut why = match lost {
                    Left::Host => format!("lost with {from}"),
                    Left::Volume => format!("after its volume was lost on {from}"),
                    Left::Room => format!("for lack of capacity on {from}"),
                };
                if !refused.is_empty() {
                    why = format!("{why} ({})", refused.join("; "));
                }
                let chosen = reasons::start(&reason, &self.cluster);
                let told = (PlatformAction::HaRestart, why.as_str(), Some(chosen.as_str()));
                match self.start_on(vm, (host, may_force), told, None) {
                    Ok(()) => return Ok(()),
                    Err(error) if !refused.contains(&error) => refused.push(error),
                    Err(_) => {}
                }
                tried.insert(host);
                if self.state().stopping {
                    return Err(refused);
                }
            }
            if !forces {
                break;
            }
        }
        Err(refused)
    }

    /// Says why no host can have the VM, once as long as the reason stays the same.
    fn tell_waiting(&self, vm: NodeId, why: &str, told: &mut String) {
        if why == told {
            return;
        }
        why.clone_into(told);
        let node = vm.to_string();
        let what = format!("{node} stays off until a host can run it; {why}");
        self.events.say(EventKind::Platform { action: PlatformAction::Wait, node, what });
    }

    pub(crate) fn start_at_home(&self, vm: NodeId, why: Return) {
        let mut told = String::new();
        loop {
            let hand = self.hands[vm].lock().unwrap_or_else(PoisonError::into_inner);
            if self.datacentre.vms[vm].is_on() {
                return;
            }
            // A standby may start at any time.
            let turn = match self.failover {
                Failover::Promote { .. } if self.leader() == vm => match self.turn_to_return(vm) {
                    None => return,
                    turn => turn,
                },
                _ => None,
            };
            let home = self.datacentre.vms[vm].host();
            let obstacles = match self.place(vm, Where::Home, &BTreeSet::new()) {
                Decision::Wait { obstacles, .. } if self.datacentre.hosts[home].is_on() => obstacles,
                // One without power says so when it is tried.
                _ => return self.boot_at_home(vm, home, (why, turn)),
            };
            drop((hand, turn));
            if matches!(self.failover, Failover::HaRestart { .. }) {
                return self.restart_elsewhere(vm, Left::Room, Instant::now());
            }
            let at_home: Vec<_> = obstacles.into_iter().filter(|(host, _)| *host == home).collect();
            self.tell_waiting(vm, &obstacles_in_words(&at_home, &self.cluster), &mut told);
            if !self.pause(RETRY) {
                return;
            }
        }
    }

    /// The turn, where promotions wait for this, is over as soon as the VM has power.
    fn boot_at_home(
        &self,
        vm: NodeId,
        home: HostId,
        (why, turn): (Return, Option<MutexGuard<'_, Promotions>>),
    ) {
        let told = (PlatformAction::Return, why.in_words(), None);
        if let Err(error) = self.start_on(vm, (home, true), told, turn) {
            if self.datacentre.vms[vm].volume().mirrored().is_some() {
                self.state().waiting_for_their_volume.insert(vm);
            }
            let host = &self.datacentre.hosts[home];
            if host.is_on() {
                // Whoever looks for a host for it may take this one as well from now on.
                if let Some(left) = self.placing().waiting.get_mut(&vm) {
                    *left = Left::Room;
                }
                return self.trouble(&format!("boot {vm} on its own host"), &error);
            }
            // Whoever took its power has a reason, and starts the VM once it is back.
            let (node, place) = (vm.to_string(), host.name());
            let what = format!("{node} did not boot on its own host: {place} lost power meanwhile ({error})");
            self.events.say(EventKind::Platform { action: PlatformAction::CutShort, node, what });
        }
    }

    /// Whether a VM is on its way to a host, or waits for one.
    pub(crate) fn is_placing(&self) -> bool {
        let placing = self.placing();
        !placing.waiting.is_empty() || !placing.booting.is_empty()
    }

    /// Who runs where now.
    pub(crate) fn cluster_as_it_is(&self) -> Cluster {
        self.cluster_now(&self.placing())
    }

    /// Who runs, boots or is moved where now.
    pub(crate) fn cluster_now(&self, placing: &Placing) -> Cluster {
        let mut cluster = self.cluster.clone();
        if self.datacentre.planted.contains(&Lie::RulesForgotten) {
            cluster.rules.clear();
            cluster.hosts.iter_mut().for_each(|host| host.capacity = placement::Capacity::default());
        }
        let state = self.state();
        for ((number, host), of) in cluster.hosts.numbered_mut().zip(&self.datacentre.hosts) {
            host.is_on = of.is_on();
            host.is_isolated = host.is_on && state.isolated.contains(&number);
        }
        drop(state);
        for (vm, of) in cluster.vms.numbered_mut() {
            let real = &self.datacentre.vms[vm];
            of.last = real.host();
            of.at = real.is_on().then_some(of.last);
        }
        placing.add_to(&mut cluster);
        cluster
    }
}

impl Datacentre {
    /// Where a VM's data can be had now.
    pub(crate) fn data_of(&self, vm: NodeId) -> Data {
        let Some(disk) = self.vms[vm].volume().mirrored() else { return Data::Anywhere };
        let rank = |(rank, (host, is_up_to_date)): (usize, (HostId, bool))| {
            (host, if is_up_to_date { Holds::UpToDate(rank) } else { Holds::Behind(rank) })
        };
        let with_power = MirroredDisk::hosts_to_start(disk).into_iter().enumerate();
        let holds = with_power.filter(|(_, (host, _))| self.hosts[*host].is_on()).map(rank).collect();
        Data::On { holds }
    }
}

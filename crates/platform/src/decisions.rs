//! What the platform does when something happens, as a pure function: what it knows and what happened in, steps out.
//!
//! Owns which policy asks for which step, and how long it waits first. On which host a VM is started is for `placement`;
//! how a step is carried out, and tried again, for `platform`.

use std::time::Duration;

use history::{HostId, NodeId, PerHost, PerNode};
use placement::Left;
use scenario::{Failover, IsolationResponse};

/// What the platform knows at a moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct View {
    /// What is done when a node is lost.
    pub(crate) failover: Failover,
    /// What is done with the nodes of a host that reaches no other.
    pub(crate) isolation: Option<IsolationResponse>,
    /// The node that takes the writes, as far as the platform knows.
    pub(crate) leader: NodeId,
    /// Each VM.
    pub(crate) vms: PerNode<VmView>,
    /// Of each host whether it has power.
    pub(crate) hosts_on: PerHost<bool>,
}

/// A VM as the platform knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VmView {
    /// Whether it has power.
    pub(crate) is_on: bool,
    /// The host it runs on, or ran on last.
    pub(crate) host: HostId,
    /// Whether its volume has components on several hosts.
    pub(crate) is_mirrored: bool,
    /// Whether it is off because its volume could not be reached.
    pub(crate) waits_for_volume: bool,
}

/// What happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Occurrence {
    /// These VMs died with their hosts.
    VmsLost(Vec<NodeId>),
    /// These hosts have power again.
    HostsReturned(Vec<HostId>),
    /// The network reaches further than before.
    NetworkImproved,
    /// A VM was switched off because its volume was lost where it ran.
    VolumeFenced(NodeId),
    /// The disks of these VMs' volumes are sound again.
    DisksCleared(Vec<NodeId>),
    /// A VM was switched off because its database had ended on a bad disk.
    DatabaseFenced(NodeId),
    /// The leader's VM was switched off because its database had not answered for as long as a promotion waits.
    LeaderSilent(NodeId),
    /// Nothing holds the processes of this VM's database down any more.
    ProcessesMayRun(NodeId),
    /// This host has reached no other host for as long as the failover waits.
    HostIsolated(HostId),
    /// A VM was switched off because its host is isolated.
    IsolatedFenced(NodeId),
}

/// Why a VM is started where it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Return {
    /// Its host can have it again.
    HostHasPower,
    /// Its volume may be in reach again.
    VolumeTriedAgain,
    /// It was switched off because its database did not answer, and what kept that from answering is over.
    FaultIsOver,
}

impl Return {
    /// As a person would say it.
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Return::HostHasPower => "because its host has power again",
            Return::VolumeTriedAgain => "because its volume may work again",
            Return::FaultIsOver => "because its process fault has ended",
        }
    }
}

/// One thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Start the VM on the best host that can have it.
    RestartElsewhere {
        /// Which.
        vm: NodeId,
        /// What it has left behind.
        left: Left,
    },
    /// Promote the best of the others.
    Promote {
        /// The leader that is lost.
        lost: NodeId,
    },
    /// Start the VM where it was.
    StartAtHome {
        /// Which.
        vm: NodeId,
        /// What lets it start now.
        why: Return,
    },
    /// Start the database of a VM that has power, if it has ended.
    RestartDatabase {
        /// Whose.
        vm: NodeId,
    },
    /// Start those processes of a VM's database that have ended.
    StartProcesses {
        /// Whose.
        vm: NodeId,
    },
    /// Let a VM run although its host is isolated.
    LeaveIsolated {
        /// Which.
        vm: NodeId,
    },
    /// Switch a VM off because its host is isolated.
    SwitchOffIsolated {
        /// Which.
        vm: NodeId,
    },
}

/// A step, and how long is waited before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) step: Step,
    pub(crate) after: Duration,
}

impl Decision {
    fn at_once(step: Step) -> Decision {
        Decision { step, after: Duration::ZERO }
    }

    /// What is done, for a person to read.
    pub(crate) fn name(&self) -> String {
        match self.step {
            Step::RestartElsewhere { vm, .. }
            | Step::RestartDatabase { vm }
            | Step::StartProcesses { vm } => {
                format!("restart {vm}")
            }
            Step::Promote { .. } => "promote".to_owned(),
            Step::LeaveIsolated { vm } => format!("leave {vm}"),
            Step::SwitchOffIsolated { vm } => format!("switch off {vm}"),
            Step::StartAtHome { vm, .. } => format!("return {vm}"),
        }
    }
}

/// What follows.
pub(crate) fn decide(view: &View, occurrence: &Occurrence) -> Vec<Decision> {
    match occurrence {
        Occurrence::VmsLost(vms) => vms_lost(view, vms),
        Occurrence::HostsReturned(hosts) => hosts_returned(view, hosts),
        Occurrence::NetworkImproved => {
            let waits = |vm: &NodeId| {
                let of = view.vms[*vm];
                of.waits_for_volume && view.hosts_on[of.host]
            };
            let step = |vm| Step::StartAtHome { vm, why: Return::VolumeTriedAgain };
            view.vms.ids().filter(waits).map(step).map(Decision::at_once).collect()
        }
        Occurrence::VolumeFenced(vm) => match view.failover {
            Failover::HaRestart { .. } => {
                // It has been waited for until the volume counted as lost.
                vec![Decision::at_once(Step::RestartElsewhere { vm: *vm, left: Left::Volume })]
            }
            Failover::Promote { .. } => vms_lost(view, &[*vm]),
            Failover::None => Vec::new(),
        },
        Occurrence::DisksCleared(vms) => {
            let step = |vm: NodeId| {
                let of = view.vms[vm];
                match of.is_on {
                    true => Some(Step::RestartDatabase { vm }),
                    false => {
                        view.hosts_on[of.host].then_some(Step::StartAtHome { vm, why: Return::HostHasPower })
                    }
                }
            };
            vms.iter().filter_map(|vm| step(*vm)).map(Decision::at_once).collect()
        }
        Occurrence::DatabaseFenced(vm) => match view.failover {
            Failover::Promote { after } => vec![Decision { step: Step::Promote { lost: *vm }, after }],
            Failover::HaRestart { .. } | Failover::None => Vec::new(),
        },
        Occurrence::LeaderSilent(vm) => match view.failover {
            // It has been waited for while it did not answer.
            Failover::Promote { .. } => vec![Decision::at_once(Step::Promote { lost: *vm })],
            Failover::HaRestart { .. } | Failover::None => Vec::new(),
        },
        Occurrence::ProcessesMayRun(vm) => {
            let of = view.vms[*vm];
            let home = Step::StartAtHome { vm: *vm, why: Return::FaultIsOver };
            let step = if of.is_on {
                Some(Step::StartProcesses { vm: *vm })
            } else {
                view.hosts_on[of.host].then_some(home)
            };
            step.map(Decision::at_once).into_iter().collect()
        }
        Occurrence::HostIsolated(host) => host_isolated(view, *host),
        // It has been waited for until its host counted as isolated.
        Occurrence::IsolatedFenced(vm) => {
            vms_lost(view, &[*vm]).into_iter().map(|lost| Decision::at_once(lost.step)).collect()
        }
    }
}

/// What the response says of each VM that runs there.
fn host_isolated(view: &View, host: HostId) -> Vec<Decision> {
    let Some(response) = view.isolation else { return Vec::new() };
    let step = |vm| match response {
        IsolationResponse::LeaveRunning => Step::LeaveIsolated { vm },
        IsolationResponse::PowerOff => Step::SwitchOffIsolated { vm },
    };
    let runs_there = |vm: &NodeId| view.vms[*vm].is_on && view.vms[*vm].host == host;
    view.vms.ids().filter(runs_there).map(step).map(Decision::at_once).collect()
}

/// Whether the database of the leader is watched while the disks under these VMs' volumes are bad. Where a standby is
/// promoted when the leader is lost, a leader whose database ends is lost.
pub(crate) fn leader_to_watch(view: &View, vms: &[NodeId]) -> Option<NodeId> {
    let promotes = matches!(view.failover, Failover::Promote { .. });
    (promotes && vms.contains(&view.leader)).then_some(view.leader)
}

fn vms_lost(view: &View, vms: &[NodeId]) -> Vec<Decision> {
    match view.failover {
        Failover::None => Vec::new(),
        Failover::HaRestart { after } => {
            let step = |vm: &NodeId| Step::RestartElsewhere { vm: *vm, left: Left::Host };
            vms.iter().map(step).map(|step| Decision { step, after }).collect()
        }
        Failover::Promote { after } if vms.contains(&view.leader) => {
            vec![Decision { step: Step::Promote { lost: view.leader }, after }]
        }
        Failover::Promote { .. } => Vec::new(),
    }
}

/// VMs that died on these hosts and were not started elsewhere start there; and, where nobody promotes another, those whose
/// volume they hold start where they were.
fn hosts_returned(view: &View, hosts: &[HostId]) -> Vec<Decision> {
    let promotes = matches!(view.failover, Failover::Promote { .. });
    let returns = |vm: &NodeId| {
        let of = view.vms[*vm];
        let may_have_data = of.is_mirrored && (of.waits_for_volume || !promotes);
        !of.is_on && (hosts.contains(&of.host) || (may_have_data && view.hosts_on[of.host]))
    };
    let step = |vm| Step::StartAtHome { vm, why: Return::HostHasPower };
    view.vms.ids().filter(returns).map(step).map(Decision::at_once).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFTER: Duration = Duration::from_secs(3);
    const PROMOTE: Failover = Failover::Promote { after: AFTER };
    const RESTART: Failover = Failover::HaRestart { after: AFTER };

    /// VM by VM on hosts of the same number: `+` on, `-` off, `m` off and mirrored, `w` the same and waiting for its volume.
    fn view(failover: Failover, vms: &str, hosts_on: &str) -> View {
        let vm = |(host, sign): (usize, char)| VmView {
            is_on: sign == '+',
            host: HostId::new(host),
            is_mirrored: matches!(sign, 'm' | 'w'),
            waits_for_volume: sign == 'w',
        };
        View {
            failover,
            isolation: None,
            leader: NodeId::FIRST,
            vms: vms.chars().enumerate().map(vm).collect(),
            hosts_on: hosts_on.chars().map(|sign| sign == '+').collect(),
        }
    }

    fn nodes(indexes: &[usize]) -> Vec<NodeId> {
        indexes.iter().copied().map(NodeId::new).collect()
    }

    fn check(view: &View, occurrence: &Occurrence, expected: &[(&str, Duration)]) {
        let found: Vec<(String, Duration)> =
            decide(view, occurrence).iter().map(|of| (of.name(), of.after)).collect();
        let expected: Vec<(String, Duration)> =
            expected.iter().map(|(name, after)| ((*name).to_owned(), *after)).collect();
        assert_eq!(found, expected, "{view:?} {occurrence:?}");
    }

    #[test]
    fn a_lost_vm_is_restarted_elsewhere_or_another_is_promoted_or_nothing_is_done_as_the_policy_says() {
        let lost = |vms: &[usize]| Occurrence::VmsLost(nodes(vms));
        check(&view(RESTART, "--+", "--+"), &lost(&[0, 1]), &[("restart n1", AFTER), ("restart n2", AFTER)]);
        check(&view(PROMOTE, "--+", "--+"), &lost(&[0, 1]), &[("promote", AFTER)]);
        check(&view(PROMOTE, "+-+", "+-+"), &lost(&[1]), &[]);
        check(&view(Failover::None, "-++", "-++"), &lost(&[0]), &[]);
    }

    #[test]
    fn a_host_that_returns_starts_what_it_lost_and_a_mirrored_vm_only_where_nobody_else_was_promoted() {
        let returned = Occurrence::HostsReturned(vec![HostId::new(1)]);
        check(&view(RESTART, "+--", "++-"), &returned, &[("return n2", Duration::ZERO)]);
        check(
            &view(RESTART, "m-+", "+++"),
            &returned,
            &[("return n1", Duration::ZERO), ("return n2", Duration::ZERO)],
        );
        check(&view(PROMOTE, "m-+", "+++"), &returned, &[("return n2", Duration::ZERO)]);
        check(
            &view(PROMOTE, "w-+", "+++"),
            &returned,
            &[("return n1", Duration::ZERO), ("return n2", Duration::ZERO)],
        );
        check(&view(RESTART, "m++", "-++"), &returned, &[]);
    }

    #[test]
    fn when_the_network_improves_only_what_waits_for_its_volume_on_a_host_with_power_is_tried_again() {
        check(&view(RESTART, "wmw+", "++-+"), &Occurrence::NetworkImproved, &[("return n1", Duration::ZERO)]);
    }

    #[test]
    fn a_vm_fenced_off_its_volume_has_been_waited_for_and_is_restarted_at_once() {
        check(
            &view(RESTART, "m++", "+++"),
            &Occurrence::VolumeFenced(NodeId::FIRST),
            &[("restart n1", Duration::ZERO)],
        );
        check(&view(PROMOTE, "m++", "+++"), &Occurrence::VolumeFenced(NodeId::FIRST), &[("promote", AFTER)]);
        check(&view(PROMOTE, "+m+", "+++"), &Occurrence::VolumeFenced(NodeId::new(1)), &[]);
        check(&view(Failover::None, "m++", "+++"), &Occurrence::VolumeFenced(NodeId::FIRST), &[]);
    }

    #[test]
    fn when_disks_are_sound_again_a_database_that_ended_is_started_or_its_vm_where_it_was() {
        let cleared = Occurrence::DisksCleared(nodes(&[0, 1, 2]));
        let expected = [("restart n1", Duration::ZERO), ("return n2", Duration::ZERO)];
        check(&view(RESTART, "+--", "++-"), &cleared, &expected);
    }

    #[test]
    fn a_silent_leader_has_been_waited_for_and_processes_start_where_their_vm_is_or_was() {
        let silent = Occurrence::LeaderSilent(NodeId::FIRST);
        check(&view(PROMOTE, "-++", "+++"), &silent, &[("promote", Duration::ZERO)]);
        check(&view(RESTART, "-++", "+++"), &silent, &[]);
        let over = Occurrence::ProcessesMayRun(NodeId::FIRST);
        check(&view(PROMOTE, "+++", "+++"), &over, &[("restart n1", Duration::ZERO)]);
        check(&view(PROMOTE, "-++", "+++"), &over, &[("return n1", Duration::ZERO)]);
        check(&view(PROMOTE, "-++", "-++"), &over, &[]);
    }

    #[test]
    fn vms_of_an_isolated_host_run_on_or_are_switched_off_and_then_what_follows_their_loss_follows_at_once() {
        let isolated = Occurrence::HostIsolated(HostId::FIRST);
        let responding = |failover, response| View { isolation: response, ..view(failover, "+++", "+++") };
        check(&responding(RESTART, None), &isolated, &[]);
        let stays = responding(RESTART, Some(IsolationResponse::LeaveRunning));
        check(&stays, &isolated, &[("leave n1", Duration::ZERO)]);
        let ends = responding(RESTART, Some(IsolationResponse::PowerOff));
        check(&ends, &isolated, &[("switch off n1", Duration::ZERO)]);
        check(&view(RESTART, "-++", "+++"), &isolated, &[]);
        let fenced = Occurrence::IsolatedFenced(NodeId::FIRST);
        check(&view(RESTART, "-++", "+++"), &fenced, &[("restart n1", Duration::ZERO)]);
        check(&view(PROMOTE, "-++", "+++"), &fenced, &[("promote", Duration::ZERO)]);
        check(&view(PROMOTE, "+-+", "+++"), &Occurrence::IsolatedFenced(NodeId::new(1)), &[]);
    }

    #[test]
    fn only_the_leader_is_watched_and_only_where_another_would_be_promoted() {
        assert_eq!(leader_to_watch(&view(PROMOTE, "+++", "+++"), &nodes(&[0, 1])), Some(NodeId::FIRST));
        assert_eq!(leader_to_watch(&view(PROMOTE, "+++", "+++"), &nodes(&[1])), None);
        assert_eq!(leader_to_watch(&view(RESTART, "+++", "+++"), &nodes(&[0])), None);
        check(
            &view(PROMOTE, "-++", "+++"),
            &Occurrence::DatabaseFenced(NodeId::FIRST),
            &[("promote", AFTER)],
        );
        check(&view(RESTART, "-++", "+++"), &Occurrence::DatabaseFenced(NodeId::FIRST), &[]);
    }
}

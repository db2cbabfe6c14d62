//! What somebody outside the schedule did to the pods of a run, on the run's clock. Pure.
//!
//! Owns which faults explain the end of a container. How a deed shows is `kubernetes`' business, and what follows from it is
//! `verdict`'s.

use faults::{FaultRecord, Struck};
use history::{Deed, Interference, PerNode};
use kubernetes::{EXACT_TO_S, StrangeDeed, StrangeEnd};

use crate::sightings::Seen;

/// For so long after it a fault that ends processes may end those again that were started meanwhile, seconds.
const AGAIN_S: f64 = 3.0;

/// A fault that ends the container of a pod.
struct Ending<'a> {
    pod: &'a str,
    /// From when it was asked for until it was shown, by the cluster's clock.
    unix_s: (f64, f64),
    /// Whether an end was explained by it.
    has_explained: bool,
}

/// Which ends of a lab's pods its faults explain: those that cut the power of a pod's node, or kill its processes. Each explains one
/// end of each pod. No fault of a lab deletes a pod.
pub(crate) fn in_a_lab(
    seen: &Seen,
    faults: &[FaultRecord],
    pods: &PerNode<String>,
) -> Vec<(f64, Interference)> {
    let mut endings: Vec<Ending<'_>> = Vec::new();
    for fault in faults.iter().filter(|fault| ends_processes(fault)) {
        let (from_s, to_s) = (fault.asked_s, fault.took_effect_s.unwrap_or(fault.asked_s));
        let unix_s = (seen.zero_unix_s + from_s, seen.zero_unix_s + to_s);
        let struck = fault.vms.iter().chain(&fault.vms_elsewhere).filter_map(|vm| pods.get(*vm));
        endings.extend(struck.map(|pod| Ending { pod, unix_s, has_explained: false }));
    }
    let explained = |deed: &StrangeDeed, since_unix_s: f64| {
        let until_unix_s = deed.unix_s + EXACT_TO_S;
        let may_be = |ending: &&mut Ending<'_>| {
            let (from, to) = ending.unix_s;
            let is_there = ending.pod == deed.pod && since_unix_s <= to && from <= until_unix_s;
            is_there && (!ending.has_explained || until_unix_s <= to + AGAIN_S)
        };
        if deed.end == StrangeEnd::Deleted {
            return false;
        }
        let ending = endings.iter_mut().find(may_be);
        ending.map(|ending| ending.has_explained = true).is_some()
    };
    told(seen, pods, kubernetes::strange_deeds(&seen.sightings, explained))
}

/// Of a cluster that exists, whose operators end pods after a fault: what was seen to be done to pods before the first fault was asked
/// for. The clocks of such a cluster are not this machine's.
pub(crate) fn before_any_fault(
    seen: &Seen,
    faults: &[FaultRecord],
    pods: &PerNode<String>,
) -> Vec<(f64, Interference)> {
    let first_s = faults.iter().map(|fault| fault.asked_s).fold(f64::INFINITY, f64::min);
    let is_later = |deed: &StrangeDeed, _: f64| deed.seen_unix_s >= seen.zero_unix_s + first_s;
    told(seen, pods, kubernetes::strange_deeds(&seen.sightings, is_later))
}

fn ends_processes(fault: &FaultRecord) -> bool {
    matches!(fault.struck, Struck::Hosts(_) | Struck::Processes { ends: true, .. })
}

/// Of the run's own pods, on its clock; what ended before its beginning is none of its.
fn told(seen: &Seen, pods: &PerNode<String>, deeds: Vec<StrangeDeed>) -> Vec<(f64, Interference)> {
    let told = |deed: StrangeDeed| {
        let (node, pod) = pods.numbered().find(|(_, pod)| **pod == deed.pod)?;
        let at_s = deed.unix_s - seen.zero_unix_s;
        let (program, deed) = match deed.end {
            StrangeEnd::Signal(signal) => (format!("the container of pod {pod}"), Deed::Killed { signal }),
            StrangeEnd::InOrder => (format!("the container of pod {pod}"), Deed::Ended),
            StrangeEnd::Deleted => (format!("pod {pod}"), Deed::Deleted),
        };
        let interference = Interference { node: node.to_string(), program, deed, expected: false };
        (at_s + EXACT_TO_S > 0.0).then_some((at_s.max(0.0), interference))
    };
    deeds.into_iter().filter_map(told).collect()
}

#[cfg(test)]
mod tests {
    use history::NodeId;
    use kubernetes::{Change, Pod, Sighting};
    use serde_json::json;

    use super::*;

    /// 2026-03-01T10:00:00Z, at which a run's clock is zero here.
    const ZERO: f64 = 1_772_359_200.0;

    fn at(second: u32) -> String {
        format!("2026-03-01T10:00:{second:02}Z")
    }

    fn pods() -> PerNode<String> {
        ["pg-0", "pg-1"].map(str::to_owned).into_iter().collect()
    }

    /// The first pod: its container was killed at these seconds, each after having run for at least 5.
    fn killed_at(seconds: &[u32]) -> Seen {
        let pod = |restarts: usize, ended: Option<u32>| {
            let last = ended.map(|second| {
                json!({ "terminated": { "exitCode": 137, "startedAt": at(second - 5), "finishedAt": at(second) } })
            });
            let status = json!({ "name": "db", "restartCount": restarts, "lastState": last });
            Pod::read(&json!({
                "metadata": { "name": "pg-0", "uid": "a", "creationTimestamp": at(0) },
                "spec": { "containers": [{ "name": "db" }] },
                "status": { "containerStatuses": [status] },
            }))
            .expect("a pod")
        };
        let mut sightings = vec![seen(0, Change::Added, pod(0, None))];
        let ends = seconds.iter().enumerate();
        sightings.extend(ends.map(|(number, at)| seen(*at, Change::Modified, pod(number + 1, Some(*at)))));
        Seen { sightings, zero_unix_s: ZERO }
    }

    fn seen(second: u32, change: Change, pod: Pod) -> Sighting {
        Sighting { unix_s: ZERO + f64::from(second), what: kubernetes::Seen::Pod { change, pod } }
    }

    fn fault(struck: Struck, vm: usize, asked_s: f64) -> FaultRecord {
        let (vms, took_effect_s) = (vec![NodeId::new(vm)], Some(asked_s + 0.4));
        FaultRecord { struck, vms, asked_s, took_effect_s, ..FaultRecord::default() }
    }

    fn killed(vm: usize, asked_s: f64) -> FaultRecord {
        fault(Struck::Processes { host: Vec::new(), all: true, ends: true }, vm, asked_s)
    }

    fn seconds(told: &[(f64, Interference)]) -> Vec<f64> {
        told.iter().map(|(at_s, _)| *at_s).collect()
    }

    #[test]
    fn a_stranger_s_kill_is_told_with_its_pod_and_node_and_a_fault_s_is_not() {
        let told = in_a_lab(&killed_at(&[10, 30]), &[killed(0, 10.2)], &pods());
        let [(at_s, interference)] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!((*at_s, interference.node.as_str()), (30.0, "n1"));
        assert_eq!(interference.to_string(), "the container of pod pg-0 on n1 was killed (signal 9)");
        assert!(interference.is_doubtful());
    }

    #[test]
    fn a_fault_explains_one_end_and_those_that_follow_at_once() {
        let one = |seen: &[u32]| seconds(&in_a_lab(&killed_at(seen), &[killed(0, 10.2)], &pods()));
        assert_eq!(
            one(&[10, 15]),
            [15.0],
            "a container that ran on after the fault was ended by somebody else"
        );
        assert_eq!(one(&[10, 11, 12]), [] as [f64; 0]);
    }

    #[test]
    fn a_fault_of_another_node_or_one_that_ends_no_process_explains_nothing() {
        let stop = Struck::Processes { host: Vec::new(), all: true, ends: false };
        for other in [killed(1, 10.2), fault(stop, 0, 10.2), fault(Struck::Nodes(Vec::new()), 0, 10.2)] {
            assert_eq!(seconds(&in_a_lab(&killed_at(&[10]), &[other], &pods())), [10.0]);
        }
        let power = fault(Struck::Hosts(Vec::new()), 0, 10.2);
        assert_eq!(seconds(&in_a_lab(&killed_at(&[10]), &[power], &pods())), [] as [f64; 0]);
    }

    #[test]
    fn of_a_cluster_that_exists_only_what_came_before_the_first_fault_is_told() {
        let told =
            |faults: &[FaultRecord]| seconds(&before_any_fault(&killed_at(&[10, 30]), faults, &pods()));
        assert_eq!(told(&[killed(1, 20.0)]), [10.0]);
        assert_eq!(told(&[]), [10.0, 30.0]);
        assert_eq!(told(&[killed(1, 5.0)]), [] as [f64; 0]);
    }

    #[test]
    fn a_pod_that_is_none_of_the_run_s_is_nobody_s_business() {
        let others: PerNode<String> = ["pg-7".to_owned()].into_iter().collect();
        assert_eq!(in_a_lab(&killed_at(&[10]), &[], &others), []);
    }
}

//! How each pod recovered from a fault, on the run's clock. Pure.
//!
//! Owns which stretch of time is a fault's. What the phases of a recovery are is `kubernetes`' business.

use std::collections::BTreeMap;

use history::{FaultId, RecoveryPhase, RecoveryStep};
use kubernetes::{Phase, Sighting, told};

/// A fault that took effect on a pod.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Hit {
    /// Its number.
    pub(crate) fault: FaultId,
    pub(crate) pod: String,
    /// When.
    pub(crate) effect_s: f64,
}

/// The recovery from each, until the next one took effect. `zero_unix_s` is the zero of the run's clock.
pub(crate) fn recoveries(
    sightings: &[Sighting],
    zero_unix_s: f64,
    hits: &[Hit],
) -> BTreeMap<FaultId, Vec<RecoveryStep>> {
    let of = |hit: &Hit| {
        let later = hits.iter().map(|other| other.effect_s).filter(|effect_s| *effect_s > hit.effect_s);
        let until_s = later.fold(f64::INFINITY, f64::min);
        let steps = told(sightings, &hit.pod, zero_unix_s + hit.effect_s, zero_unix_s + until_s);
        let step = |step: kubernetes::Step| RecoveryStep {
            phase: phase(step.phase),
            of: step.of,
            // As exact as the times of events.
            at_s: ((step.unix_s - zero_unix_s) * 1e6).round() / 1e6,
            after_gap: step.after_gap,
        };
        (hit.fault, steps.into_iter().map(step).collect())
    };
    hits.iter().map(of).collect()
}

fn phase(phase: Phase) -> RecoveryPhase {
    match phase {
        Phase::NodeLost => RecoveryPhase::NodeLost,
        Phase::LeaseExpired => RecoveryPhase::LeaseExpired,
        Phase::PodDeleted => RecoveryPhase::PodDeleted,
        Phase::PodGone => RecoveryPhase::PodGone,
        Phase::PodCreated => RecoveryPhase::PodCreated,
        Phase::PodScheduled => RecoveryPhase::PodScheduled,
        Phase::VolumeDetached => RecoveryPhase::VolumeDetached,
        Phase::VolumeAttached => RecoveryPhase::VolumeAttached,
        Phase::ContainerStarted => RecoveryPhase::ContainerStarted,
        Phase::PodReady => RecoveryPhase::PodReady,
        Phase::EndpointUpdated => RecoveryPhase::EndpointUpdated,
    }
}

#[cfg(test)]
mod tests {
    use kubernetes::{Change, Pod, Seen};
    use serde_json::json;

    use super::*;

    /// The pod as it was seen then.
    fn seen(unix_s: f64, change: Change, uid: &str, is_ready: bool) -> Sighting {
        let ready = if is_ready { "True" } else { "False" };
        let pod = Pod::read(&json!({
            "kind": "Pod",
            "metadata": { "name": "pg-0", "uid": uid, "creationTimestamp": "2026-11-25T10:00:00Z" },
            "spec": { "nodeName": "worker-1", "containers": [{ "name": "db" }] },
            "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": ready }] }
        }));
        Sighting { unix_s, what: Seen::Pod { change, pod: pod.expect("a pod") } }
    }

    #[test]
    fn a_recovery_is_told_on_the_runs_clock_and_ends_where_the_next_fault_took_effect() {
        let sightings = [
            seen(1_000.0, Change::Added, "a", true),
            seen(1_011.0, Change::Deleted, "a", false),
            seen(1_012.0, Change::Added, "b", false),
            seen(1_013.5, Change::Modified, "b", true),
            seen(1_021.0, Change::Deleted, "b", false),
            seen(1_022.0, Change::Added, "c", false),
        ];
        let hit = |fault, effect_s| Hit { fault, pod: "pg-0".to_owned(), effect_s };
        let [first, third] = [0, 2].map(FaultId::new);
        let told = recoveries(&sightings, 1_000.0, &[hit(first, 10.5), hit(third, 20.5)]);
        let ready = |fault: FaultId| -> Vec<f64> {
            let ready = told[&fault].iter().filter(|step| step.phase == RecoveryPhase::PodReady);
            ready.map(|step| step.at_s).collect()
        };
        assert_eq!(told.keys().copied().collect::<Vec<_>>(), [first, third]);
        assert_eq!((ready(first), ready(third)), (vec![13.5], vec![]), "{told:?}");
        let gone = |fault: FaultId| told[&fault].iter().any(|step| step.phase == RecoveryPhase::PodGone);
        assert!(gone(first) && gone(third), "{told:?}");
        assert!(told[&first].iter().all(|step| step.at_s < 20.5), "{told:?}");
    }
}

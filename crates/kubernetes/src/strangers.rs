//! What was done to pods by somebody who is neither the cluster nor whoever says what explains it. Pure.
//!
//! Owns how such a deed shows in a pod's object. A container that a signal ended has 128 and the signal's number as its exit code, and
//! one that is started again leaves its last end behind. A pod that the cluster itself ends has the condition `DisruptionTarget`
//! (Kubernetes' documentation, "Pod disruption conditions"; of versions before 1.26 nobody can tell). What an end with another exit
//! code says, the container's program knows.

use std::collections::BTreeMap;

use crate::objects::{ContainerEnd, Pod};
use crate::sightings::{Change, Kind, Seen, Sighting};

/// Times in a pod's object have whole seconds: what is written is at most so much before what was, seconds.
pub const EXACT_TO_S: f64 = 1.0;
/// An exit code that tells of a signal is this much above its number.
const OF_A_SIGNAL: i64 = 128;
/// The highest number of a signal (signal(7)).
const LAST_SIGNAL: i32 = 64;
/// The reason of an end for want of memory.
const OUT_OF_MEMORY: &str = "OOMKilled";

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StrangeEnd {
    /// A signal ended the container.
    Signal(i32),
    /// The container's program ended in order, with exit code 0.
    InOrder,
    /// The pod was deleted.
    Deleted,
}

/// Something done to a pod.
#[derive(Debug, Clone, PartialEq)]
pub struct StrangeDeed {
    pub pod: String,
    /// When it was done, or seen where that is not known, by the cluster's clock.
    pub unix_s: f64,
    /// When it was seen, by this machine's clock.
    pub seen_unix_s: f64,
    pub end: StrangeEnd,
}

/// All that was done and that nothing explains, in the order in which it was seen. What a pod went through before its first
/// sighting is not told. `explained` is asked once of each deed, in that order, with since when its container had run, or
/// its pod been there: whether something is known that did it.
pub fn strange_deeds(
    sightings: &[Sighting],
    mut explained: impl FnMut(&StrangeDeed, f64) -> bool,
) -> Vec<StrangeDeed> {
    let mut stories: BTreeMap<&str, Looked> = BTreeMap::new();
    let mut deeds = Vec::new();
    for sighting in sightings {
        let Seen::Pod { change, pod } = &sighting.what else { continue };
        let now = Looked::at(pod, sighting.unix_s);
        let before = match change {
            // What is deleted is not what comes next.
            Change::Deleted => stories.remove(pod.name.as_str()),
            Change::Added | Change::Modified => stories.insert(&pod.name, now.clone()),
        };
        let Some(before) = before else { continue };
        for (since_unix_s, unix_s, end) in before.ended_until(&now, *change) {
            let seen_unix_s = sighting.unix_s;
            let deed = StrangeDeed { pod: pod.name.clone(), unix_s, seen_unix_s, end };
            if !explained(&deed, since_unix_s) {
                deeds.push(deed);
            }
        }
    }
    deeds
}

/// Since when pods were not watched any more, up to the last sighting: after their last gap nothing was seen of them.
#[must_use]
pub fn unwatched_since(sightings: &[Sighting]) -> Option<f64> {
    let mut since = None;
    for sighting in sightings {
        match &sighting.what {
            Seen::Gap { kind: Kind::Pods, .. } => since = since.or(Some(sighting.unix_s)),
            Seen::Pod { .. } => since = None,
            _ => {}
        }
    }
    since
}

/// What counts of a pod.
#[derive(Debug, Clone)]
struct Looked {
    uid: String,
    seen_unix_s: f64,
    since_unix_s: f64,
    last_end: Option<ContainerEnd>,
    deletion_asked_unix_s: Option<f64>,
    is_disrupted: bool,
}

impl Looked {
    fn at(pod: &Pod, seen_unix_s: f64) -> Looked {
        Looked {
            uid: pod.uid.clone(),
            seen_unix_s,
            since_unix_s: pod.created_unix_s,
            last_end: pod.last_end.clone(),
            deletion_asked_unix_s: pod.deletion_asked_unix_s,
            is_disrupted: pod.is_disrupted,
        }
    }

    /// What ended from this look to the next one of the same name: since when it had been there, when, and how.
    fn ended_until(&self, now: &Looked, change: Change) -> impl Iterator<Item = (f64, f64, StrangeEnd)> {
        let container = self.new_end_of(now).and_then(|end| {
            let at_s = end.finished_unix_s.unwrap_or(now.seen_unix_s);
            let asked = now.deletion_asked_unix_s.is_some_and(|asked_s| asked_s <= at_s + EXACT_TO_S);
            let end_of = (end.started_unix_s.unwrap_or(self.since_unix_s), at_s, strange_end(end)?);
            (!asked).then_some(end_of)
        });
        let deleted =
            self.deleted_until(now, change).map(|at_s| (self.since_unix_s, at_s, StrangeEnd::Deleted));
        container.into_iter().chain(deleted)
    }

    /// When its deletion was asked for, where it was and the cluster does not say that it was the cluster.
    fn deleted_until(&self, now: &Looked, change: Change) -> Option<f64> {
        if self.deletion_asked_unix_s.is_some() {
            return None;
        }
        if self.uid != now.uid {
            // Of the one before, nobody saw the end.
            return Some(now.since_unix_s);
        }
        let asked = now.deletion_asked_unix_s.or((change == Change::Deleted).then_some(now.seen_unix_s));
        asked.filter(|_| !now.is_disrupted)
    }

    /// The last end, where it is not the one that was known before. Of the ends between two looks only the last is known.
    fn new_end_of<'a>(&self, now: &'a Looked) -> Option<&'a ContainerEnd> {
        now.last_end.as_ref().filter(|end| self.uid == now.uid && self.last_end.as_ref() != Some(end))
    }
}

/// What an end tells of whoever caused it: nothing where the program ended itself, or memory was short.
fn strange_end(end: &ContainerEnd) -> Option<StrangeEnd> {
    if end.reason.as_deref() == Some(OUT_OF_MEMORY) {
        return None;
    }
    match end.exit_code {
        0 => Some(StrangeEnd::InOrder),
        code => {
            let signal = i32::try_from(code.saturating_sub(OF_A_SIGNAL)).ok()?;
            (1..=LAST_SIGNAL).contains(&signal).then_some(StrangeEnd::Signal(signal))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const UID: &str = "a";
    /// 2026-03-01T10:00:00Z.
    const ZERO: f64 = 1_772_359_200.0;

    fn at(second: u32) -> String {
        format!("2026-03-01T10:00:{second:02}Z")
    }

    /// A pod whose container ended so, having run from one second to the other.
    fn ended(restarts: u32, exit_code: i64, (from, to): (u32, u32)) -> Value {
        let ended = json!({ "exitCode": exit_code, "startedAt": at(from), "finishedAt": at(to) });
        let mut pod = running();
        pod["status"]["containerStatuses"][0]["restartCount"] = json!(restarts);
        pod["status"]["containerStatuses"][0]["lastState"] = json!({ "terminated": ended });
        pod
    }

    fn running() -> Value {
        json!({
            "metadata": { "name": "pg-0", "uid": UID, "creationTimestamp": at(0) },
            "spec": { "nodeName": "n1", "containers": [{ "name": "db" }] },
            "status": { "containerStatuses": [{ "name": "db", "restartCount": 0 }] },
        })
    }

    fn deletion_asked(mut pod: Value, second: u32, is_disrupted: bool) -> Value {
        pod["metadata"]["deletionTimestamp"] = json!(at(second));
        let reason = if is_disrupted { "DeletionByTaintManager" } else { "EvictionByEvictionAPI" };
        pod["status"]["conditions"] =
            json!([{ "type": "DisruptionTarget", "status": "True", "reason": reason }]);
        pod
    }

    fn seen(second: u32, change: Change, pod: &Value) -> Sighting {
        let pod = Pod::read(pod).expect("a pod");
        Sighting { unix_s: ZERO + f64::from(second), what: Seen::Pod { change, pod } }
    }

    fn deeds(sightings: &[Sighting], faults: &[u32]) -> Vec<(f64, StrangeEnd)> {
        let explains = |deed: &StrangeDeed, since_unix_s: f64| {
            faults.iter().any(|at| (since_unix_s..=deed.unix_s).contains(&(ZERO + f64::from(*at))))
        };
        strange_deeds(sightings, explains).into_iter().map(|deed| (deed.unix_s - ZERO, deed.end)).collect()
    }

    #[test]
    fn a_container_that_a_signal_or_nobody_s_fault_ended_is_told_and_what_a_fault_did_is_not() {
        let story = |exit_code| {
            [seen(1, Change::Added, &running()), seen(22, Change::Modified, &ended(1, exit_code, (1, 20)))]
        };
        assert_eq!(deeds(&story(137), &[]), [(20.0, StrangeEnd::Signal(9))]);
        assert_eq!(deeds(&story(0), &[]), [(20.0, StrangeEnd::InOrder)]);
        assert_eq!(deeds(&story(137), &[20]), []);
        for of_its_own in [1, 2, 127, 128, 255] {
            assert_eq!(deeds(&story(of_its_own), &[]), [], "{of_its_own}");
        }
    }

    #[test]
    fn what_ended_for_want_of_memory_is_nobodys_deed() {
        let mut short = ended(1, 137, (1, 20));
        short["status"]["containerStatuses"][0]["lastState"]["terminated"]["reason"] = json!("OOMKilled");
        assert_eq!(deeds(&[seen(1, Change::Added, &running()), seen(22, Change::Modified, &short)], &[]), []);
    }

    #[test]
    fn a_fault_does_not_explain_the_end_of_a_container_that_began_after_it() {
        let story = [
            seen(1, Change::Added, &running()),
            seen(11, Change::Modified, &ended(1, 137, (1, 10))),
            seen(31, Change::Modified, &ended(2, 137, (12, 30))),
        ];
        assert_eq!(deeds(&story, &[10]), [(30.0, StrangeEnd::Signal(9))]);
    }

    #[test]
    fn an_end_is_told_once_whether_it_is_seen_as_it_is_or_when_the_next_runs() {
        let next_runs = ended(1, 137, (1, 20));
        let mut as_it_is = next_runs.clone();
        let status = as_it_is["status"]["containerStatuses"][0].as_object_mut().expect("a status");
        let last = status.remove("lastState").expect("a last state");
        status.insert("state".to_owned(), last);
        status.insert("restartCount".to_owned(), json!(0));
        let story = [
            seen(1, Change::Added, &running()),
            seen(20, Change::Modified, &as_it_is),
            seen(21, Change::Modified, &next_runs),
            seen(25, Change::Modified, &next_runs),
        ];
        assert_eq!(deeds(&story, &[]), [(20.0, StrangeEnd::Signal(9))]);
    }

    #[test]
    fn a_pod_that_somebody_had_evicted_is_told_and_one_that_the_cluster_ended_is_not() {
        let story = |is_disrupted| {
            let asked = deletion_asked(running(), 20, is_disrupted);
            // Its container ends as it was asked to.
            let mut ending = deletion_asked(ended(0, 137, (1, 22)), 20, is_disrupted);
            ending["status"]["phase"] = json!("Failed");
            [
                seen(1, Change::Added, &running()),
                seen(20, Change::Modified, &asked),
                seen(22, Change::Modified, &ending),
                seen(23, Change::Deleted, &ending),
            ]
        };
        assert_eq!(deeds(&story(false), &[]), [(20.0, StrangeEnd::Deleted)]);
        assert_eq!(deeds(&story(true), &[]), []);
        assert_eq!(deeds(&story(false), &[20]), []);
    }

    #[test]
    fn a_pod_that_was_replaced_while_nobody_watched_counts_as_deleted() {
        let mut other = running();
        other["metadata"]["uid"] = json!("b");
        other["metadata"]["creationTimestamp"] = json!(at(30));
        let story = [seen(1, Change::Added, &running()), seen(40, Change::Added, &other)];
        assert_eq!(deeds(&story, &[]), [(30.0, StrangeEnd::Deleted)]);
        let gone = [seen(1, Change::Added, &running()), seen(7, Change::Deleted, &running())];
        assert_eq!(deeds(&gone, &[]), [(7.0, StrangeEnd::Deleted)]);
        let asked = deletion_asked(running(), 5, true);
        let story = [
            seen(1, Change::Added, &running()),
            seen(5, Change::Modified, &asked),
            seen(40, Change::Added, &other),
        ];
        assert_eq!(deeds(&story, &[]), []);
    }

    #[test]
    fn pods_are_unwatched_from_the_first_gap_after_which_none_was_seen() {
        let gap = |second: u32, kind| Sighting {
            unix_s: ZERO + f64::from(second),
            what: Seen::Gap { kind, why: "refused".to_owned() },
        };
        let pod = seen(3, Change::Added, &running());
        assert_eq!(unwatched_since(&[gap(1, Kind::Pods), pod.clone(), gap(4, Kind::Nodes)]), None);
        assert_eq!(unwatched_since(&[pod, gap(4, Kind::Pods), gap(5, Kind::Pods)]), Some(ZERO + 4.0));
    }
}

//! What is seen of the cluster while a run lasts: kept, written to the run directory, and used to keep the ways to pods open.
//!
//! Owns the file and the thread that writes it. What a sighting is, and how the cluster is watched, is `kubernetes`' business.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use history::EventSink;
use kubernetes::{Change, Forward, Kind, Kubectl, Pod, Sighting, Watch};

use crate::error::PodsError;

/// Its name in the run directory.
const FILE: &str = "kubernetes.jsonl";
/// The machine's clock may be slewed by so much against the run's.
const SLEWED_S: f64 = 0.1;

/// The ways to pods, by pod.
pub(crate) type Ways = BTreeMap<String, Forward>;

/// A watch under way. Dropping it ends it.
pub struct Watching {
    watch: Watch,
    recorder: JoinHandle<Record>,
    zero: Instant,
    zero_unix_s: f64,
}

/// What was seen.
pub struct Seen {
    /// All of it, in the order in which it was read.
    pub(crate) sightings: Vec<Sighting>,
    /// The zero of the run's clock, by the machine's.
    pub(crate) zero_unix_s: f64,
}

/// What the thread leaves.
struct Record {
    sightings: Vec<Sighting>,
    /// Why not all of it is in the file.
    failure: Option<io::Error>,
}

impl Seen {
    /// Since when nothing is known of pods any more, on the run's clock, seconds; none where they were watched to the end.
    #[must_use]
    pub fn unwatched_since_s(&self) -> Option<f64> {
        kubernetes::unwatched_since(&self.sightings).map(|unix_s| (unix_s - self.zero_unix_s).max(0.0))
    }
}

impl Watching {
    /// Begins to watch, and renews the way to a pod when it is another one.
    pub(crate) fn begin(
        (kubectl, container): (&Kubectl, Option<String>),
        ways: Arc<Ways>,
        directory: &Path,
        zero: Instant,
    ) -> Result<Watching, PodsError> {
        let path = directory.join(FILE);
        let file = File::create(&path).map_err(|source| PodsError::File { path, source })?;
        let (give, take) = channel();
        let watch = Watch::begin(kubectl, Kind::ALL, give)?;
        let job = move || record(&take, file, &ways, container.as_deref());
        let thread = std::thread::Builder::new().name("sightings".to_owned());
        let recorder = thread.spawn(job).map_err(|source| PodsError::Thread { source })?;
        Ok(Watching { watch, recorder, zero, zero_unix_s: unix_s_at(zero) })
    }

    /// Ends it. What is in doubt is told.
    pub fn finish(self, sink: &dyn EventSink) -> Seen {
        let Watching { watch, recorder, zero, zero_unix_s } = self;
        // The thread ends with the last that gives it something.
        drop(watch);
        let record = recorder.join().unwrap_or_else(|_| Record {
            sightings: Vec::new(),
            failure: Some(io::Error::other("the thread that writes it broke off")),
        });
        if let Some(error) = record.failure {
            sink.warn(format!("{FILE} is not complete: {error}"), "make room on the disk");
        }
        if (unix_s_at(zero) - zero_unix_s).abs() > SLEWED_S {
            let what = "this machine's clock was set during the run: times of a recovery's phases may be off";
            sink.warn(what.to_owned(), "let the clock be slewed, not set");
        }
        for (kind, why) in gaps(&record.sightings) {
            let what = format!("the watch of {} was interrupted: {why}", kind.resource());
            let advice = "times just after it are at the latest; where nothing was seen at all, \
                          `holdfast check` prints what the login must be allowed";
            sink.warn(what, advice);
        }
        Seen { sightings: record.sightings, zero_unix_s }
    }
}

/// The machine's clock at a moment.
fn unix_s_at(moment: Instant) -> f64 {
    let (now, unix) = (Instant::now(), SystemTime::now());
    let unix_s = unix.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    let ahead_s = moment.saturating_duration_since(now).as_secs_f64();
    unix_s + ahead_s - now.saturating_duration_since(moment).as_secs_f64()
}

/// Takes what is seen until nobody gives any more.
fn record(seen: &Receiver<Sighting>, mut file: File, ways: &Ways, container: Option<&str>) -> Record {
    let mut record = Record { sightings: Vec::new(), failure: None };
    let mut uids = BTreeMap::new();
    for sighting in seen {
        let sighting = of_container(sighting, container);
        if let kubernetes::Seen::Pod { change, pod } = &sighting.what
            && is_another(&mut uids, *change, pod)
            && let Some(way) = ways.get(&pod.name)
        {
            way.renew();
        }
        let failure = written(&mut file, &sighting).err();
        record.failure = record.failure.or(failure);
        record.sightings.push(sighting);
    }
    record
}

fn written(file: &mut File, sighting: &Sighting) -> io::Result<()> {
    let line = serde_json::to_string(sighting)? + "\n";
    file.write_all(line.as_bytes())
}

/// A sighting with the container's facts that the scenario names.
fn of_container(sighting: Sighting, container: Option<&str>) -> Sighting {
    let what = match sighting.what {
        kubernetes::Seen::Pod { change, pod } => {
            kubernetes::Seen::Pod { change, pod: pod.of_container(container) }
        }
        other => other,
    };
    Sighting { what, ..sighting }
}

/// Whether a pod is there that is another one than the last of its name.
fn is_another(uids: &mut BTreeMap<String, String>, change: Change, pod: &Pod) -> bool {
    if change == Change::Deleted {
        return false;
    }
    let before = uids.insert(pod.name.clone(), pod.uid.clone());
    before.is_some_and(|before| before != pod.uid)
}

/// What was not seen for a while, each kind once with the first reason.
fn gaps(sightings: &[Sighting]) -> Vec<(Kind, String)> {
    let mut told = BTreeSet::new();
    let gap = |sighting: &Sighting| match &sighting.what {
        kubernetes::Seen::Gap { kind, why } if told.insert(*kind) => Some((*kind, why.clone())),
        _ => None,
    };
    sightings.iter().filter_map(gap).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(uid: &str) -> Pod {
        Pod::read(&json!({
            "metadata": { "name": "pg-0", "uid": uid, "creationTimestamp": "2026-11-25T10:00:00Z" },
            "spec": { "containers": [{ "name": "sidecar" }, { "name": "db" }] },
            "status": { "containerStatuses": [{ "name": "db", "restartCount": 3 }] }
        }))
        .expect("a pod")
    }

    #[test]
    fn a_pod_is_another_one_by_its_uid_and_its_end_is_not_yet_another() {
        let mut uids = BTreeMap::new();
        let mut is_another = |change, uid: &str| super::is_another(&mut uids, change, &pod(uid));
        assert!(!is_another(Change::Added, "a"));
        assert!(!is_another(Change::Modified, "a"));
        assert!(!is_another(Change::Deleted, "a"));
        assert!(is_another(Change::Added, "b"));
        assert!(!is_another(Change::Modified, "b"));
    }

    #[test]
    fn the_container_that_the_scenario_names_is_the_one_that_is_told_of() {
        let what = kubernetes::Seen::Pod { change: Change::Added, pod: pod("a") };
        let sighting = of_container(Sighting { unix_s: 1.0, what }, Some("db"));
        let kubernetes::Seen::Pod { pod, .. } = sighting.what else { panic!("another sighting") };
        assert_eq!(pod.restarts, 3);
    }

    #[test]
    fn what_was_not_seen_is_told_once_of_each_kind() {
        let gap = |kind, why: &str| Sighting {
            unix_s: 1.0,
            what: kubernetes::Seen::Gap { kind, why: why.to_owned() },
        };
        let all = [gap(Kind::Leases, "forbidden"), gap(Kind::Leases, "again"), gap(Kind::Pods, "late")];
        assert_eq!(gaps(&all), [(Kind::Leases, "forbidden".to_owned()), (Kind::Pods, "late".to_owned())]);
    }
}

//! The nodes' volumes as they stand in the result.

use std::collections::BTreeMap;

use disk::mirror::Standing;
use history::{BASELINE, NodeId, RunFacts};
use measure::Timeline;
use measure::meanwhile::latency_during;
use results::{CatchUpResult, ComponentResult, MeanwhileResult, OpeningResult, RequestsResult, VolumeResult};

use crate::mirrored::MirroredDisk;
use crate::mirrored::Opening;
use crate::mirrored::Role;
use crate::node_volume::NodeVolume;
use crate::resync::CatchUp;
use crate::seen::Seen;

/// What a run was and measured, as far as volumes are told beside it.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// Its phases and loads.
    pub facts: &'a RunFacts,
    /// Latencies by the second.
    pub timeline: &'a Timeline,
    /// When the loads were told to stop, seconds.
    pub ended_s: f64,
}

/// The virtual disks among the nodes' volumes; a plain directory is none.
#[must_use]
pub fn results<'a>(
    volumes: impl IntoIterator<Item = (NodeId, &'a NodeVolume)>,
    seen: &BTreeMap<NodeId, Seen>,
    run: Run<'_>,
) -> Vec<VolumeResult> {
    volumes
        .into_iter()
        .filter_map(|(node, volume)| match volume {
            NodeVolume::Directory => None,
            NodeVolume::Virtual(_) => Some(alone(node.to_string())),
            NodeVolume::Mirrored(disk) => {
                let seen = seen.get(&node).cloned().unwrap_or_default();
                Some(mirrored(node.to_string(), disk, seen, run))
            }
        })
        .collect()
}

fn alone(node: String) -> VolumeResult {
    VolumeResult {
        node,
        replicas: 1,
        resync: Vec::new(),
        acknowledge: String::new(),
        class: String::new(),
        components: Vec::new(),
        lag: Vec::new(),
        copied_bytes: 0,
        syncs: None,
        catch_ups: Vec::new(),
        openings: Vec::new(),
    }
}

fn mirrored(node: String, disk: &MirroredDisk, seen: Seen, run: Run<'_>) -> VolumeResult {
    let baseline = run.facts.phases.iter().find(|phase| phase.name == BASELINE);
    let baseline = baseline.map(|phase| (phase.from_s, phase.to_s.min(run.ended_s)));
    let (loads, timeline) = (&run.facts.loads, run.timeline);
    let loads: Vec<(&str, &str)> =
        loads.iter().map(|load| (load.name.as_str(), load.transaction.as_str())).collect();
    let storage = disk.storage();
    let components = disk.states().into_iter().map(|state| ComponentResult {
        host: state.host,
        role: role_in_words(state.role).to_owned(),
        replicated_bytes: state.moved.replicated_bytes,
        copied_bytes: state.moved.copied_bytes,
        bytes_left: state.bytes_left,
    });
    VolumeResult {
        node,
        replicas: storage.replicas,
        resync: seen.resync,
        acknowledge: storage.acknowledge.name().to_owned(),
        class: storage.class.name.clone(),
        components: components.collect(),
        lag: seen.lag,
        copied_bytes: seen.copied_bytes,
        syncs: seen.syncs.result(),
        catch_ups: seen.catch_ups.into_iter().map(|of| catch_up(of, timeline, &loads, baseline)).collect(),
        openings: disk.openings().into_iter().map(opening).collect(),
    }
}

/// With the loads, by name and transaction, and when the baseline was.
fn catch_up(
    caught: CatchUp,
    timeline: &Timeline,
    loads: &[(&str, &str)],
    baseline: Option<(f64, f64)>,
) -> CatchUpResult {
    let during = |load: &(&str, &str), stretch| latency_during(timeline, *load, stretch).ok().flatten();
    let meanwhile = |load: &(&str, &str)| {
        let stretch = during(load, (caught.from_s, caught.to_s))?;
        let before = baseline.and_then(|baseline| during(load, baseline)).filter(|of| of.count > 0);
        Some(MeanwhileResult {
            load: load.0.to_owned(),
            seconds: stretch.seconds,
            transactions: stretch.count,
            latency_us_p50: stretch.latency.p50_us,
            latency_us_p99: stretch.latency.p99_us,
            baseline_us_p50: before.map(|of| of.latency.p50_us),
            baseline_us_p99: before.map(|of| of.latency.p99_us),
        })
    };
    CatchUpResult {
        loads: loads.iter().filter_map(meanwhile).collect(),
        component: caught.host,
        from_s: caught.from_s,
        to_s: caught.to_s,
        copied_bytes: caught.copied_bytes,
        complete: caught.is_whole,
    }
}

fn opening(opening: Opening) -> OpeningResult {
    let asked = opening.requests.into_iter().map(|asked| RequestsResult {
        work: asked.work.to_owned(),
        count: asked.count,
        latency_us_mean: asked.latency.mean_us,
        latency_us_p50: asked.latency.p50_us,
        latency_us_p99: asked.latency.p99_us,
    });
    OpeningResult {
        host: opening.host,
        component: opening.component,
        asked: asked.collect(),
        broken: opening.broken,
        forced: opening.forced,
        moved: opening.moved,
        lost_after_s: opening.lost_after.map(|after| after.as_secs_f64()),
    }
}

fn role_in_words(role: Role) -> &'static str {
    match role {
        Role::Serving => "serving",
        Role::Peer(Standing::Live) => "live",
        Role::Peer(Standing::CatchingUp | Standing::Finishing(_)) => "catching up",
        Role::Peer(Standing::Away) => "away",
        Role::Retired => "given up",
        Role::Idle => "idle",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use measure::interval::{new_histogram, record_latency};

    use super::*;

    /// A load of ten seconds whose transactions take 5 ms, but 40 ms in these; what is said of a component that caught up from
    /// when to when: 99th percentiles meanwhile and in the baseline, milliseconds.
    fn check(slow: std::ops::Range<u64>, (from_s, to_s): (f64, f64), expected: &[(u64, Option<u64>)]) {
        let mut timeline = Timeline::new();
        for second in 0..10 {
            let mut histogram = new_histogram();
            let latency = Duration::from_millis(if slow.contains(&second) { 40 } else { 5 });
            (0..50).for_each(|_| record_latency(&mut histogram, latency));
            timeline.add_histogram("l", "insert", second, &histogram).expect("added");
        }
        let caught = CatchUp { host: "h".to_owned(), from_s, to_s, copied_bytes: 7, is_whole: true };
        let result = catch_up(caught, &timeline, &[("l", "insert")], Some((0.0, 4.0)));
        let in_ms = |latency_us: u64| (latency_us as f64 / 1e3).round() as u64;
        let found: Vec<(u64, Option<u64>)> =
            result.loads.iter().map(|of| (in_ms(of.latency_us_p99), of.baseline_us_p99.map(in_ms))).collect();
        assert_eq!(found, expected, "{slow:?} {from_s} {to_s}");
    }

    #[test]
    fn the_wait_that_catching_up_causes_stands_beside_the_baseline_and_none_where_there_is_none() {
        check(6..8, (5.9, 8.1), &[(40, Some(5))]);
        check(0..0, (5.9, 8.1), &[(5, Some(5))]);
        check(9..10, (5.9, 8.1), &[(5, Some(5))]);
    }

    #[test]
    fn of_what_was_over_within_a_second_no_latency_is_told() {
        check(6..8, (6.1, 6.9), &[]);
    }
}

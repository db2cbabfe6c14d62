//! A cluster of replicas in virtual time, over a network that loses, delays, repeats and reorders, with crashes and
//! partitions: what it acknowledges is strictly serializable, and with each flaw it is not.

mod cluster;
mod judge;

use control::Flaw;
use control::flaw::FLAWS;
use control::replica::Acknowledgements;

use cluster::{Cluster, Weather};

/// How many seeds out of `seeds` end with a finding, and the last finding.
fn found(nodes: usize, acknowledgements: Acknowledgements, flaw: Option<Flaw>, seeds: u64) -> (u64, String) {
    let mut found = 0;
    let mut last = String::new();
    for seed in 0..seeds {
        let mut cluster = Cluster::new(nodes, acknowledgements, flaw, Weather::Bad, seed);
        cluster.run();
        if let Err(finding) = judge::strictly_serializable(&cluster.history) {
            found += 1;
            last = format!("seed {seed}: {finding}");
        }
    }
    (found, last)
}

#[test]
fn without_a_flaw_every_history_is_strictly_serializable_whatever_the_weather() {
    for (nodes, acknowledgements) in [
        (1, Acknowledgements::Followers(1)),
        (2, Acknowledgements::Followers(1)),
        (3, Acknowledgements::Followers(1)),
        (3, Acknowledgements::All),
        (5, Acknowledgements::Followers(1)),
    ] {
        let (found, finding) = found(nodes, acknowledgements, None, 12);
        assert_eq!(found, 0, "{nodes} nodes, {acknowledgements:?}: {finding}");
    }
}

#[test]
fn a_cluster_makes_progress_between_its_troubles() {
    for seed in 0..10 {
        let mut cluster = Cluster::new(3, Acknowledgements::Followers(1), None, Weather::Bad, seed);
        cluster.run();
        let committed = cluster.history.iter().filter(|one| one.observed.is_some()).count();
        assert!(committed > 100, "seed {seed}: {committed} transactions committed");
        assert!(cluster.elections() > 1, "seed {seed}: no leader was ever lost");
    }
}

#[test]
fn in_good_weather_one_leader_stays_and_every_transaction_commits() {
    for seed in 0..10 {
        let mut cluster = Cluster::new(3, Acknowledgements::All, None, Weather::Good, seed);
        cluster.run();
        assert_eq!(cluster.elections(), 1, "seed {seed}");
        assert!(cluster.history.iter().all(|one| !one.is_unknown), "seed {seed}");
        judge::strictly_serializable(&cluster.history).expect("nothing went wrong");
    }
}

#[test]
fn each_flaw_breaks_the_promise_and_is_found() {
    const SEEDS: u64 = 10;
    for (flaw, name, _) in FLAWS {
        let (found, finding) = found(3, Acknowledgements::Followers(1), Some(*flaw), SEEDS);
        assert!(found >= SEEDS / 2, "{name}: found in {found} of {SEEDS} seeds only, {finding}");
    }
}

#[test]
fn a_leader_that_acknowledges_alone_by_its_settings_loses_what_it_acknowledged() {
    let (found, _) = found(3, Acknowledgements::Leader, None, 10);
    assert!(found >= 5, "found in {found} of 10 seeds only");
}

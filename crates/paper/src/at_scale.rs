//! A scenario's site at another scale: the same regions and zones, as many nodes and ranges as are asked for.
//!
//! Owns what is taken from the scenario where nothing is asked; the reckoning is `model`'s.

use std::collections::BTreeSet;

use model::scale::blast::{Blast, doubles, singles};
use model::scale::durability::{
    Estimate, Rates, loss_after_outage, loss_within_a_year, scatter_width, sets_in_use,
    simulated_loss_after_outage,
};
use model::scale::rebuild::{Carriers, Rebuild, after_loss};
use model::scale::{Cluster, Domain, Placement, Replicas, ShapeError, availability, place};
use scenario::Scenario;

/// Hosts in a rack where neither the scenario nor the user says how many.
const HOSTS_PER_RACK: usize = 20;
/// Ranges for each node where the user does not say how many.
const RANGES_PER_NODE: usize = 100;
/// Replicas of a range where the user does not say how many.
const REPLICAS: usize = 3;
/// What the edge around a zone carries where nobody says.
pub const EDGE_BITS_PER_S: f64 = 1e10;
/// Outages simulated.
const TRIALS: u64 = 20_000;

/// What is asked for; what is absent comes from the scenario.
#[derive(Debug, Clone)]
pub struct Scale {
    /// Nodes, one on each host.
    pub nodes: Option<usize>,
    pub ranges: Option<usize>,
    /// Replicas of each range.
    pub replicas: Option<usize>,
    /// Racks in all.
    pub racks: Option<usize>,
    /// Zones in all.
    pub zones: Option<usize>,
    pub regions: Option<usize>,
    /// Copysets of this scatter width; random placement when absent.
    pub copysets: Option<usize>,
    /// What one range holds.
    pub range_bytes: f64,
    /// What a host reads or writes for a rebuild, each way.
    pub host_bits_per_s: f64,
    /// What the edge around a zone carries; that of the narrowest the scenario has around a zone or region, else [`EDGE_BITS_PER_S`].
    pub edge_bits_per_s: Option<f64>,
    /// How often hosts fail and how soon they are replaced.
    pub rates: Rates,
    /// Share of hosts that do not return after an outage of the whole cluster.
    pub not_returning: f64,
    /// Share of time that a host is down.
    pub host_down: f64,
    pub seed: Option<u64>,
}

/// What follows.
pub struct Prediction {
    pub cluster: Cluster,
    /// Ranges placed on it.
    pub ranges: usize,
    /// Replicas of each.
    pub each: usize,
    /// How.
    pub placement: Placement,
    /// The seed of all chance in it.
    pub seed: u64,
    /// Others with which a host shares ranges, on average.
    pub scatter_width: f64,
    /// Every single failure, by level.
    pub singles: Vec<Blast>,
    /// Every double failure, by levels.
    pub doubles: Vec<Blast>,
    /// Loss of data, at random and in copysets.
    pub durability: Vec<Durability>,
    /// By number of replicas: share of time without a majority.
    pub without_majority: Vec<(usize, f64)>,
    /// What is rebuilt after a place is lost, the worst of its level.
    pub rebuilds: Vec<(Domain, u32, Rebuild)>,
}

/// How likely data is lost with one placement.
pub struct Durability {
    pub placement: Placement,
    /// Sets of hosts that hold some range.
    pub sets: f64,
    /// Hosts that do not return after the outage.
    pub failed: usize,
    /// Probability that such an outage loses something.
    pub after_outage: f64,
    /// The same simulated, for copysets.
    pub simulated: Option<Estimate>,
    /// Probability that something is lost within a year of independent failures and repairs.
    pub within_a_year: f64,
}

/// Reckons a scenario at a scale.
///
/// # Errors
/// When there cannot be such a cluster, or it is larger than this program looks at.
pub fn predict(scenario: &Scenario, scale: &Scale) -> Result<Prediction, ShapeError> {
    let hosts = &scenario.site.hosts;
    let count = |length: &dyn Fn(&[String]) -> usize| {
        let places = hosts.iter().map(scenario::Host::path).map(|path| path[..length(&path)].to_vec());
        places.collect::<BTreeSet<_>>().len()
    };
    let nodes = scale.nodes.unwrap_or(scenario.database.nodes.len());
    let regions = scale.regions.unwrap_or_else(|| count(&|_| 1));
    let zones = scale.zones.unwrap_or_else(|| count(&|_| 2).max(regions));
    let racks = scale.racks.unwrap_or_else(|| {
        let theirs = count(&|path| path.len().saturating_sub(1));
        if nodes > hosts.len() { theirs.max(nodes.div_ceil(HOSTS_PER_RACK)) } else { theirs }
    });
    // None at all is refused there.
    let racks = if racks == 0 { 0 } else { racks.max(zones) };
    let cluster = Cluster::even(regions, zones, racks, nodes)?;
    let each = scale.replicas.unwrap_or(REPLICAS.min(nodes));
    let ranges = scale.ranges.unwrap_or(nodes.saturating_mul(RANGES_PER_NODE));
    let seed = scale.seed.or(scenario.seed).unwrap_or(1);
    let placement = match scale.copysets {
        Some(scatter_width) => Placement::Copysets { scatter_width },
        None => Placement::Random,
    };
    let replicas = place(&cluster, ranges, each, placement, seed)?;
    Ok(Prediction {
        ranges,
        each,
        placement,
        seed,
        scatter_width: scatter_width(&cluster, &replicas),
        singles: singles(&cluster, &replicas),
        doubles: doubles(&cluster, &replicas),
        durability: durability(&cluster, &replicas, scale, seed)?,
        without_majority: [1, 3, 5, 7].map(|n| (n, availability::no_majority(n, scale.host_down))).to_vec(),
        rebuilds: rebuilds(scenario, &cluster, &replicas, scale, seed),
        cluster,
    })
}

fn durability(
    cluster: &Cluster,
    replicas: &Replicas,
    scale: &Scale,
    seed: u64,
) -> Result<Vec<Durability>, ShapeError> {
    let hosts = cluster.hosts();
    let each = replicas.each;
    let failed = (hosts as f64 * scale.not_returning.clamp(0.0, 1.0)).round() as usize;
    let width = scale.copysets.unwrap_or((each - 1).max(1) * 5);
    let mut found = Vec::new();
    for placement in [Placement::Random, Placement::Copysets { scatter_width: width }] {
        let sets = sets_in_use(hosts, each, replicas.count(), placement);
        let simulated = match placement {
            // Fewer ranges than sets leave sets empty, which the simulation does not know of.
            Placement::Copysets { scatter_width } if replicas.count() as f64 > 5.0 * sets => {
                // As many lookups on a large cluster as on a small one.
                let trials = (TRIALS * 5_000 / (hosts as u64 * width as u64).max(5_000)).max(200);
                Some(simulated_loss_after_outage(cluster, each, scatter_width, failed, trials, seed)?)
            }
            _ => None,
        };
        found.push(Durability {
            placement,
            sets,
            failed,
            after_outage: loss_after_outage(hosts, failed, each, sets),
            simulated,
            within_a_year: loss_within_a_year(each, scale.rates, sets),
        });
    }
    Ok(found)
}

/// Of each level above hosts the place with the most replicas; of a level with one place there is nothing left.
fn rebuilds(
    scenario: &Scenario,
    cluster: &Cluster,
    replicas: &Replicas,
    scale: &Scale,
    seed: u64,
) -> Vec<(Domain, u32, Rebuild)> {
    // An edge around a rack or a host does not stand between zones.
    let edges = scenario.site.edges.iter().filter(|edge| edge.around.path.len() <= 2);
    let narrowest = edges.map(|edge| edge.rate_bits_per_s).min();
    let theirs = narrowest.map_or(EDGE_BITS_PER_S, |rate| rate as f64);
    let carriers = Carriers {
        range_bytes: scale.range_bytes,
        host_bits_per_s: scale.host_bits_per_s,
        edge_bits_per_s: scale.edge_bits_per_s.unwrap_or(theirs),
    };
    let levels = [Domain::Rack, Domain::Zone, Domain::Region].into_iter();
    let lost = levels.filter(|level| cluster.count(*level) > 1).map(|level| {
        let mut held = vec![0_u64; cluster.count(level)];
        for host in replicas.ranges().flatten() {
            held[cluster.around(*host, level) as usize] += 1;
        }
        let fullest = (0..held.len()).max_by_key(|place| (held[*place], std::cmp::Reverse(*place)));
        let place = fullest.unwrap_or(0) as u32;
        (level, place, after_loss(cluster, replicas, level, place, carriers, seed))
    });
    lost.collect()
}

#[cfg(test)]
mod tests {
    use scenario::Source;

    use super::*;

    fn scale() -> Scale {
        Scale {
            nodes: None,
            ranges: None,
            replicas: None,
            racks: None,
            zones: None,
            regions: None,
            copysets: None,
            range_bytes: 1e9,
            host_bits_per_s: 1e9,
            edge_bits_per_s: None,
            rates: Rates { host_failure_h: 35_000.0, repair_h: 1.0 },
            not_returning: 0.01,
            host_down: 0.001,
            seed: None,
        }
    }

    fn check(name: &str, scale: &Scale) -> Result<Prediction, ShapeError> {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name);
        let text = std::fs::read_to_string(&path).expect("a shipped scenario");
        let source = Source { name: name.to_owned(), text };
        predict(&scenario::parse(&source, &[]).expect("a sound scenario"), scale)
    }

    #[test]
    fn a_scenario_keeps_its_regions_and_grows_racks_with_its_nodes() {
        let found =
            check("fr3-cloud-regions.yaml", &Scale { nodes: Some(300), ..scale() }).expect("a cluster");
        let counts = Domain::ALL.map(|level| found.cluster.count(level));
        assert_eq!(counts, [300, 15, 3, 3]);
        let small = check("host-failure.yaml", &scale()).expect("a cluster");
        assert_eq!((small.cluster.hosts(), small.ranges, small.each), (3, 300, 3));
        assert_eq!(small.singles[0].stopping, 0, "three replicas on three hosts outlive one");
    }

    #[test]
    fn the_scenarios_edge_limits_the_rebuild_unless_another_is_asked_for() {
        let wide = Scale { nodes: Some(90), edge_bits_per_s: Some(1e15), ..scale() };
        let narrow = Scale { nodes: Some(90), ..scale() };
        let time = |scale: &Scale| {
            check("fr1-topologies-edge.yaml", scale).expect("a cluster").rebuilds[0].2.clone()
        };
        assert!(time(&narrow).edge_is_narrowest && !time(&wide).edge_is_narrowest);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for scale in [
            Scale { nodes: Some(0), ..scale() },
            Scale { nodes: Some(usize::MAX), ..scale() },
            Scale { ranges: Some(usize::MAX), ..scale() },
            Scale { replicas: Some(4), ..scale() },
            Scale { replicas: Some(0), ..scale() },
            Scale { copysets: Some(1), ..scale() },
            Scale { copysets: Some(usize::MAX), ..scale() },
            Scale { racks: Some(0), ..scale() },
            Scale { racks: Some(0), zones: Some(0), ..scale() },
        ] {
            assert!(check("host-failure.yaml", &scale).is_err(), "{scale:?}");
        }
    }
}

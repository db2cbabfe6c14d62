//! Who is in a cluster, with which addresses, and how long its parts wait for each other.
//!
//! Owns that ranges are disjoint and that the times make sense together. Pure.

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::ranges::Range;

/// Addresses of pods, of which each node has a part.
pub const PODS: Range = Range::new(Ipv4Addr::new(10, 244, 0, 0), 16);
/// Addresses of services, which are nobody's: each node leads them to pods.
pub const SERVICES: Range = Range::new(Ipv4Addr::new(10, 96, 0, 0), 16);
/// First bits of a node's part of [`PODS`].
const NODE_BITS: u8 = 24;
/// Most nodes that run pods. The part with number 0 is nobody's.
const WORKERS_MAX: usize = 254;
/// Most letters of a name in the cluster.
const NAME_LETTERS_MAX: usize = 63;

/// A node of the lab that is in the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its name, which is also its name in the cluster.
    pub name: String,
    pub address: Ipv4Addr,
    /// The zone that it stands in.
    pub zone: String,
}

/// A node that runs pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    /// Which.
    pub member: Member,
    /// The addresses of its pods. The network must lead them to it.
    pub pods: Range,
}

/// How long the parts of a cluster wait for each other. Recoveries are made of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// How long a node's lease holds; it is renewed four times as often.
    pub lease: Duration,
    /// How often a node looks whether its own state has changed.
    pub status_every: Duration,
    /// How often the control plane looks at the nodes.
    pub look_every: Duration,
    /// After how long without a word a node is taken for lost.
    pub lost_after: Duration,
    /// How long a pod may stay bound to a lost node, unless it says otherwise.
    pub evicted_after: Duration,
}

impl Timing {
    /// What Kubernetes does unless it is told otherwise: a lost node is known after 50 seconds, its pods go after 5 minutes.
    pub const AS_SHIPPED: Timing = Timing {
        lease: Duration::from_secs(40),
        status_every: Duration::from_secs(10),
        look_every: Duration::from_secs(5),
        lost_after: Duration::from_secs(50),
        evicted_after: Duration::from_secs(300),
    };
    /// Short times, so that a trial takes a minute. All phases of a recovery are the same.
    pub const SHORT: Timing = Timing {
        lease: Duration::from_secs(4),
        status_every: Duration::from_secs(2),
        look_every: Duration::from_secs(1),
        lost_after: Duration::from_secs(8),
        evicted_after: Duration::from_secs(5),
    };

    /// Whether a node that is well can never be taken for lost.
    /// What becomes of a node that is silent, and of its pods: `lost after 50 s, its pods deleted 300 s later`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let (lost_s, deleted_s) = (self.lost_after.as_secs(), self.evicted_after.as_secs());
        format!("lost after {lost_s} s, its pods deleted {deleted_s} s later")
    }

    fn check(&self) -> Result<(), PlanError> {
        for (what, time) in
            [("the lease", self.lease), ("a look", self.look_every), ("a status", self.status_every)]
        {
            if time < Duration::from_secs(1) {
                return Err(PlanError::TooShort { what });
            }
        }
        if self.lost_after < self.lease + self.look_every {
            return Err(PlanError::LostTooEarly {
                lost_after: self.lost_after,
                least: self.lease + self.look_every,
            });
        }
        Ok(())
    }
}

/// Why there can be no such cluster.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PlanError {
    /// Nobody runs pods.
    #[error("a cluster needs a node that runs pods")]
    NoWorkers,
    /// More run pods than there are ranges for.
    #[error("a cluster in the lab has {WORKERS_MAX} nodes that run pods at most, and not {count}")]
    TooMany {
        /// How many there are.
        count: usize,
    },
    /// Two are called the same.
    #[error("two nodes of the cluster are called `{name}`")]
    SameName {
        /// What.
        name: String,
    },
    /// A name that Kubernetes does not take.
    #[error(
        "`{name}` is no name for a node of a cluster: small letters, digits and `-`, a letter or digit first and last, 63 at most"
    )]
    Name {
        /// Which.
        name: String,
    },
    /// A node has an address that pods or services are to have.
    #[error("{name} has the address {address}, which lies in {range}, the range of pods or services")]
    Taken {
        /// The node.
        name: String,
        address: Ipv4Addr,
        range: Range,
    },
    /// A time is shorter than Kubernetes counts.
    #[error("{what} of the cluster must last a second at least")]
    TooShort {
        /// Which.
        what: &'static str,
    },
    /// Nodes that are well would be lost.
    #[error(
        "nodes are taken for lost after {lost_after:?}, while one that is well may be silent for {least:?}"
    )]
    LostTooEarly {
        /// After how long.
        lost_after: Duration,
        /// The least that makes sense.
        least: Duration,
    },
}

/// A cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    control: Member,
    workers: Vec<Worker>,
    timing: Timing,
}

impl Plan {
    /// A cluster with its control plane on a node of its own.
    ///
    /// # Errors
    /// When names, addresses or times do not go together.
    pub fn new(control: Member, workers: Vec<Member>, timing: Timing) -> Result<Plan, PlanError> {
        if workers.is_empty() {
            return Err(PlanError::NoWorkers);
        }
        if workers.len() > WORKERS_MAX {
            return Err(PlanError::TooMany { count: workers.len() });
        }
        let members: Vec<&Member> = workers.iter().chain([&control]).collect();
        for (number, member) in members.iter().enumerate() {
            check_member(member)?;
            if members[..number].iter().any(|other| other.name == member.name) {
                return Err(PlanError::SameName { name: member.name.clone() });
            }
        }
        timing.check()?;
        let numbered = workers.into_iter().enumerate();
        let workers = numbered.map(|(number, member)| Worker { member, pods: pods_of(number) }).collect();
        Ok(Plan { control, workers, timing })
    }

    /// The node of the control plane.
    #[must_use]
    pub fn control(&self) -> &Member {
        &self.control
    }

    /// The nodes that run pods.
    #[must_use]
    pub fn workers(&self) -> &[Worker] {
        &self.workers
    }

    /// How long parts wait for each other.
    #[must_use]
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// Where the API answers, for everybody in the lab.
    #[must_use]
    pub fn api(&self) -> String {
        format!("https://{}:{}", self.control.address, API_PORT)
    }
}

/// The port at which the API answers.
pub const API_PORT: u16 = 6443;

/// The addresses of pods on the node with this number among those that run any, the first 0.
#[must_use]
pub fn pods_of(number: usize) -> Range {
    let number = u32::try_from(number + 1).unwrap_or(u32::MAX);
    Range::new(PODS.address(number << 8), NODE_BITS)
}

fn check_member(member: &Member) -> Result<(), PlanError> {
    let name = &member.name;
    let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let is_name = (1..=NAME_LETTERS_MAX).contains(&name.len())
        && name.chars().all(|letter| is_plain(letter) || letter == '-')
        && name.starts_with(is_plain)
        && name.ends_with(is_plain);
    if !is_name {
        return Err(PlanError::Name { name: name.clone() });
    }
    match [PODS, SERVICES].into_iter().find(|range| range.contains(member.address)) {
        Some(range) => Err(PlanError::Taken { name: name.clone(), address: member.address, range }),
        None => Ok(()),
    }
}

/// A cluster for tests: a node of the control plane and three that run pods.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn member(name: &str, last: u8) -> Member {
        Member { name: name.to_owned(), address: Ipv4Addr::new(10, 2, 0, last), zone: format!("z{last}") }
    }

    pub(crate) fn three_workers() -> Plan {
        let workers = vec![member("n1", 1), member("n2", 2), member("n3", 3)];
        Plan::new(member("control", 9), workers, Timing::SHORT).expect("a plan")
    }

    #[test]
    fn each_node_has_pods_of_its_own_and_no_range_overlaps_another() {
        let workers: Vec<Member> =
            (0..254).map(|number| Member { name: format!("n{number}"), ..member("n", 1) }).collect();
        let plan = Plan::new(member("control", 9), workers, Timing::AS_SHIPPED).expect("a plan");
        let mut ranges: Vec<Range> = plan.workers().iter().map(|worker| worker.pods).collect();
        assert_eq!(ranges[0].to_string(), "10.244.1.0/24");
        assert_eq!(ranges[253].to_string(), "10.244.254.0/24");
        assert!(ranges.iter().all(|range| PODS.overlaps(*range)));
        ranges.push(SERVICES);
        for (number, one) in ranges.iter().enumerate() {
            assert!(ranges[..number].iter().all(|other| !one.overlaps(*other)), "{one}");
        }
    }

    fn refused(control: Member, workers: Vec<Member>, timing: Timing) -> String {
        Plan::new(control, workers, timing).expect_err("no plan").to_string()
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let control = || member("control", 9);
        let told = refused(control(), Vec::new(), Timing::SHORT);
        assert_eq!(told, "a cluster needs a node that runs pods");
        let told = refused(control(), vec![member("n1", 1), member("n1", 2)], Timing::SHORT);
        assert_eq!(told, "two nodes of the cluster are called `n1`");
        let told = refused(control(), vec![member("control", 1)], Timing::SHORT);
        assert_eq!(told, "two nodes of the cluster are called `control`");
        let told = refused(control(), vec![member("N1", 1)], Timing::SHORT);
        assert!(told.starts_with("`N1` is no name for a node of a cluster"), "{told}");
        let taken = Member { address: Ipv4Addr::new(10, 96, 1, 1), ..member("n1", 1) };
        let told = refused(control(), vec![taken], Timing::SHORT);
        assert_eq!(
            told,
            "n1 has the address 10.96.1.1, which lies in 10.96.0.0/16, the range of pods or services"
        );
    }

    #[test]
    fn a_node_that_is_well_may_not_be_taken_for_lost() {
        let early = Timing { lost_after: Duration::from_secs(4), ..Timing::SHORT };
        let told = refused(member("control", 9), vec![member("n1", 1)], early);
        assert_eq!(told, "nodes are taken for lost after 4s, while one that is well may be silent for 5s");
        let short = Timing { lease: Duration::from_millis(500), ..Timing::SHORT };
        let told = refused(member("control", 9), vec![member("n1", 1)], short);
        assert_eq!(told, "the lease of the cluster must last a second at least");
    }
}

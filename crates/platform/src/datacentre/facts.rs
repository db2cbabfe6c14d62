//! The site as it was built, in the words of the run's record.

use history::{EdgeFacts, HostFacts, LinkFacts, NodeFacts, NodeId, SiteFacts};
use paper::network::conditions_in_words;

use super::Datacentre;

impl Datacentre {
    /// The site as built, for the report.
    #[must_use]
    pub fn facts(&self, scenario: &scenario::Scenario) -> SiteFacts {
        let hosts = self.hosts.iter().zip(&scenario.site.hosts).map(|(built, drawn)| HostFacts {
            path: built.name(),
            region: drawn.region.clone(),
            zone: drawn.zone.clone(),
            rack: drawn.rack.clone(),
            name: drawn.name.clone(),
            address: built.address.to_string(),
        });
        let nodes = scenario.database.nodes.numbered().map(|(node, host)| NodeFacts {
            name: node.to_string(),
            host: self.hosts[*host].name(),
            address: self.vms[node].address().to_string(),
            role: match node {
                _ if !scenario.database.engine.is_database() => NodeFacts::VOLUME,
                _ if scenario.database.engine.is_leaderless() => "coordinator",
                NodeId::FIRST => "leader",
                _ => "follower",
            }
            .to_owned(),
        });
        let links = scenario.site.links.iter().map(|link| LinkFacts {
            from: link.from.to_string(),
            to: link.to.to_string(),
            delay_us: u64::try_from(link.conditions.delay.unwrap_or_default().as_micros())
                .unwrap_or(u64::MAX),
            rate_bits_per_s: link.conditions.rate_bits_per_s,
            conditions: conditions_in_words(&link.conditions),
        });
        let edges = scenario.site.edges.iter().map(|edge| EdgeFacts {
            name: edge.name.clone(),
            around: edge.around.to_string(),
            rate_bits_per_s: edge.rate_bits_per_s,
        });
        let (links, edges) = (links.collect(), edges.collect());
        SiteFacts { hosts: hosts.collect(), nodes: nodes.collect(), links, edges }
    }
}

//! Whether nodes ran where the scenario's rules and capacities let them, by the events of the run.
//!
//! Owns reading the events. What is a violation says `placement::violations`, which shares nothing with what decided.

use history::{Event, EventKind, HostId};
use placement::{Bond, Violation, violations};
use results::PlacementResult;
use scenario::Scenario;
use scenario::units::format_size;

/// Every violation, once, when it was first there.
pub(crate) fn violations_of(scenario: &Scenario, events: &[Event]) -> Vec<PlacementResult> {
    let mut cluster = scenario.database.platform.cluster(&scenario.site, &scenario.database);
    let host_at = |path: &str| scenario.site.hosts.find(|host| host.path().join("/") == path);
    let mut found: Vec<PlacementResult> = Vec::new();
    // By when it happened: a migration is told once its connections have been counted, and its host may have been given away by then.
    let mut events: Vec<&Event> = events.iter().collect();
    events.sort_by(|one, other| one.t_s.total_cmp(&other.t_s));
    for event in events {
        let (node, host, is_up) = match &event.kind {
            EventKind::NodeUp { node, host } => (node, host, true),
            EventKind::NodeDown { node, host } => (node, host, false),
            EventKind::Migration { facts } if facts.given_up.is_none() => (&facts.node, &facts.to, true),
            _ => continue,
        };
        let (Some(vm), Some(host)) = (cluster.vms.named(node), host_at(host)) else { continue };
        if is_up {
            cluster.vms[vm].at = Some(host);
        } else if cluster.vms[vm].at == Some(host) {
            // One that was started elsewhere before its end was told runs on.
            cluster.vms[vm].at = None;
        }
        for violation in violations(&cluster) {
            let violation = in_words(scenario, &violation);
            if found.iter().all(|told| told.violation != violation) {
                found.push(PlacementResult { t_s: event.t_s, violation });
            }
        }
    }
    found
}

fn in_words(scenario: &Scenario, violation: &Violation) -> String {
    let path = |host: HostId| scenario.site.hosts[host].path().join("/");
    let kind = |rule: usize| match scenario.database.platform.rules[rule].bond {
        Bond::Apart { .. } => "keeps them apart",
        Bond::Within { .. } => "keeps it elsewhere",
    };
    match violation {
        Violation::Memory { host, needed_bytes, has_bytes } => format!(
            "nodes on {} need {} of memory, and it has {}",
            path(*host),
            format_size(*needed_bytes),
            format_size(*has_bytes)
        ),
        Violation::Full { host, vms, most } => {
            format!("{} runs {vms} nodes; its limit is {most}", path(*host))
        }
        Violation::Together { rule, one, other } => {
            format!("{one} and {other} run together although rule {} {}", rule + 1, kind(*rule))
        }
        Violation::Outside { rule, vm, host } => {
            format!("{vm} runs on {} although rule {} {}", path(*host), rule + 1, kind(*rule))
        }
    }
}

#[cfg(test)]
mod tests {
    use history::MigrationFacts;
    use scenario::Source;

    use super::*;

    #[test]
    fn nodes_that_share_a_host_against_a_rule_are_found_in_the_events_and_others_are_not() {
        let text = "name: t\nsite: { regions: { dc1: { zones: { a: { hosts: 3 } } } } }\n\
            database: { engine: postgres, nodes: 2, platform: { rules: [{ apart: hosts }] } }\n\
            loads: [{ workload: ledger, clients: 1, from: dc1 }]\n\
            schedule: [{ phase: baseline, for: 5s }]\n";
        let source = Source { name: "t".to_owned(), text: text.to_owned() };
        let scenario = scenario::parse(&source, &[]).expect("a sound scenario");
        let event = |t_s, is_up, node: &str, host: &str| {
            let (node, host) = (node.to_owned(), host.to_owned());
            let kind = match is_up {
                true => EventKind::NodeUp { node, host },
                false => EventKind::NodeDown { node, host },
            };
            Event { t_s, kind }
        };
        let down = event(5.0, false, "n1", "dc1/a/h1");
        let honest = [down.clone(), event(6.0, true, "n1", "dc1/a/h3")];
        assert_eq!(violations_of(&scenario, &honest), []);
        let lying = violations_of(&scenario, &[down, event(6.0, true, "n1", "dc1/a/h2")]);
        assert_eq!(lying.len(), 1);
        assert_eq!(lying[0].violation, "n1 and n2 run together although rule 1 keeps them apart");
    }

    #[test]
    fn a_host_that_a_node_has_left_is_free_although_its_migration_is_told_later() {
        let text = "name: t\nsite: { regions: { dc1: { zones: { a: { hosts: 3 } } } } }\n\
            database: { engine: postgres, nodes: 2, platform: { host_nodes: 1 } }\n\
            loads: [{ workload: ledger, clients: 1, from: dc1 }]\n\
            schedule: [{ phase: baseline, for: 5s }]\n";
        let source = Source { name: "t".to_owned(), text: text.to_owned() };
        let scenario = scenario::parse(&source, &[]).expect("a sound scenario");
        let moved = |t_s| {
            let (node, to) = ("n1".to_owned(), "dc1/a/h3".to_owned());
            let facts = MigrationFacts { node, to, ended_s: t_s, ..MigrationFacts::default() };
            Event { t_s, kind: EventKind::Migration { facts: Box::new(facts) } }
        };
        let host = || "dc1/a/h2".to_owned();
        let down = Event { t_s: 4.0, kind: EventKind::NodeDown { node: "n2".to_owned(), host: host() } };
        let up = EventKind::NodeUp { node: "n2".to_owned(), host: "dc1/a/h1".to_owned() };
        let up = Event { t_s: 6.6, kind: up };
        assert_eq!(violations_of(&scenario, &[down.clone(), up.clone(), moved(6.0)]), []);
        assert_eq!(violations_of(&scenario, &[down, up, moved(7.0)]).len(), 1);
    }
}

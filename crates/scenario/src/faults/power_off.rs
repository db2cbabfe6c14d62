//! Power-off: every host of a place loses power.

use serde::Serialize;

use super::targets::{ElectedRole, FaultTarget, Surroundings, end, level_word};
use super::{Aim, Clause, Facts, FaultAction, FaultKind, Form, Nodes, Story, Takes, Written};
use crate::decode::Decoder;
use crate::language::{Fields, PLACE, choice, optional};
use crate::rejection::{Findings, Spanned, Spot};
use crate::resolved::Level;
use crate::tree::Entry;

pub(super) const KIND: FaultKind = FaultKind {
    name: "power-off",
    noun: "power-off",
    summary: "a host, rack, zone or region loses power; nodes end without a shutdown",
    meaning: "every host of the target loses power at once and gets it back when the fault is healed",
    examples: &[
        "- { power-off: { host: leader }, at: 0s, for: 20s }",
        "- { power-off: { host: random }, for: 5s, every: 10s }",
    ],
    story: Story { clause: Clause::Hosts("lost power"), nodes: Nodes::With },
    keys: &TARGET,
    key_meaning: "every host of the target loses power",
    comes_and_goes: false,
    is_external: false,
    in_pods: true,
    read: |entry, decoder| decode(entry, decoder),
};

static TARGET: Fields = choice(
    "a fault's target",
    &[
        optional("host", PLACE, "a host by name, or of a role: leader, a-follower, coordinator, random"),
        optional("rack", PLACE, "a rack by name, or of a role"),
        optional("zone", PLACE, "a zone by name, or of a role"),
        optional("region", PLACE, "a region by name, or of a role"),
    ],
    &["host", "rack", "zone", "region"],
);

/// Every host of the target loses power.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PowerOffFault {
    /// What loses it.
    pub target: FaultTarget,
}

impl Facts for PowerOffFault {
    fn elected_roles(&self) -> Vec<ElectedRole> {
        self.target.elected().into_iter().collect()
    }

    fn takes(&self) -> Takes<'_> {
        Takes::Power(&self.target)
    }

    fn form(&self) -> Option<Form<'_>> {
        Some(Form::new("", Aim::Target(&self.target)))
    }

    fn written(&self) -> String {
        format!("{}: {}", level_word(&self.target), end(&self.target))
    }
}

struct Document {
    level: Level,
    target: Spanned<String>,
}

fn decode(entry: &Entry, decoder: &mut Decoder) -> Option<Box<dyn Written>> {
    let target = decoder.record(&entry.value, &TARGET)?;
    let (level, place) = target.first_of(TARGET.exactly_one_of)?;
    let level = match level {
        "region" => Level::Region,
        "zone" => Level::Zone,
        "rack" => Level::Rack,
        _ => Level::Host,
    };
    let target = decoder.text(&place.value, "the fault's target")?;
    Some(Box::new(Document { level, target }))
}

impl Written for Document {
    fn resolve(&self, _: Spot, around: &Surroundings<'_>, findings: &mut Findings) -> Option<FaultAction> {
        let target = around.target(&self.target, self.level, Some(self.level), findings)?;
        Some(FaultAction::PowerOff(PowerOffFault { target }))
    }

    fn target_at(&self) -> Option<Spot> {
        Some(self.target.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolved::Place;

    #[test]
    fn a_place_whose_name_has_leader_in_it_is_not_the_leader() {
        let host = Place { path: ["dc1", "a", "leader-two"].map(str::to_owned).into(), level: Level::Host };
        assert_eq!(FaultTarget::Place(host).elected(), None);
        assert_eq!(FaultTarget::Leader(Level::Host).elected(), Some(ElectedRole::Leader));
    }
}

//! Whether a node has booted or come to another host since some moment, even if it is where it was again, or without power.
//!
//! Owns the comparison of two moments. What is counted, the VM counts.

use super::Vm;

/// What of a VM changes as it boots and moves, at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whereabouts {
    /// Whether it has power.
    pub is_on: bool,
    /// How often it has booted.
    pub boots: u64,
    /// How often it has come to another host than the one before.
    pub host_changes: u64,
}

/// How a node came to where nobody expected it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// It was elsewhere.
    FromAnotherHost,
    /// It had no power.
    ByPower,
}

impl Whereabouts {
    /// How it has come to another place since an `earlier` moment; `None` where it has been at its place, or without power, all
    /// the time. A node that reboots at its place has not come to another.
    #[must_use]
    pub fn arrival_since(self, earlier: Whereabouts) -> Option<Arrival> {
        if earlier.is_on {
            (self.host_changes != earlier.host_changes).then_some(Arrival::FromAnotherHost)
        } else {
            (self.boots != earlier.boots).then_some(Arrival::ByPower)
        }
    }
}

impl Vm {
    /// Where it is in its boots and moves.
    #[must_use]
    pub fn whereabouts(&self) -> Whereabouts {
        let state = self.state();
        Whereabouts { is_on: state.boot.is_some(), boots: state.boots, host_changes: state.host_changes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ON: Whereabouts = Whereabouts { is_on: true, boots: 1, host_changes: 0 };
    const OFF: Whereabouts = Whereabouts { is_on: false, ..ON };

    #[test]
    fn a_node_that_left_and_came_back_has_been_elsewhere() {
        let back = Whereabouts { host_changes: 2, ..ON };
        assert_eq!(back.arrival_since(ON), Some(Arrival::FromAnotherHost));
        assert_eq!(Whereabouts { is_on: false, ..back }.arrival_since(ON), Some(Arrival::FromAnotherHost));
    }

    #[test]
    fn a_node_that_got_power_and_lost_it_again_has_had_it() {
        assert_eq!(Whereabouts { boots: 2, ..OFF }.arrival_since(OFF), Some(Arrival::ByPower));
        assert_eq!(Whereabouts { boots: 2, ..ON }.arrival_since(OFF), Some(Arrival::ByPower));
    }

    #[test]
    fn a_node_that_stays_or_reboots_at_its_place_or_only_loses_power_has_not() {
        for later in [ON, OFF, Whereabouts { boots: 2, ..ON }] {
            assert_eq!(later.arrival_since(ON), None);
        }
        assert_eq!(OFF.arrival_since(OFF), None);
    }
}

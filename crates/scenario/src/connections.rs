//! How many sessions the loads hold at one node at once, and how many an engine with a limit must therefore take.
//!
//! Owns the number and refusing settings below it. Writing it into the database's configuration is the engine's.

use std::collections::BTreeMap;

use capabilities::SessionLimit;

use crate::rejection::{Findings, Spot};
use crate::resolved::{Load, Reads};
use crate::scenario::{Phase, Scenario};

/// Sessions of the lab's own: the platform asks roles and positions, the end is read, and a standby that joins asks its leader.
const OF_THE_LAB: u32 = 20;
/// The fewest that are asked for.
const FEWEST: u32 = 200;

/// The most sessions that all loads hold at one node at once. Clients of a sweep or a ramp keep their session when they
/// rest; a client whose reads go elsewhere may have two at one node after a failover.
fn sessions(loads: &[Load], schedule: &[Phase]) -> u32 {
    let of_load = |load: &Load| {
        let clients = load.steps(schedule).iter().map(|step| step.1).max().unwrap_or(load.clients);
        clients.saturating_mul(if load.reads == Reads::Leader { 1 } else { 2 })
    };
    loads.iter().map(of_load).fold(0, u32::saturating_add)
}

/// The fewest sessions the database can do with: the clients', what is reserved, and the lab's own.
fn least(sessions: u32, limit: Option<&SessionLimit>, settings: &BTreeMap<String, String>) -> u32 {
    let reserved = limit.map_or(0, |limit| {
        let written = settings.get(limit.reserved_setting);
        written.and_then(|written| written.trim().parse().ok()).unwrap_or(limit.reserved)
    });
    sessions.saturating_add(reserved).saturating_add(OF_THE_LAB)
}

impl Scenario {
    /// The most sessions that all loads hold at one node at once.
    #[must_use]
    pub fn sessions(&self) -> u32 {
        sessions(&self.loads, &self.schedule)
    }

    /// How many sessions a database whose settings do not say is to take. Twice the clients': one that gives a session up
    /// opens another before the server notices that the first has gone.
    #[must_use]
    pub fn max_connections(&self) -> u32 {
        let limit = self.database.engine.session_limit;
        least(self.sessions().saturating_mul(2), limit.as_ref(), &self.database.settings).max(FEWEST)
    }
}

/// Refuses settings under which not all clients get a session. `at` is where the setting stands, if it does.
pub(crate) fn check(scenario: &Scenario, at: Option<Spot>, findings: &mut Findings) {
    let settings = &scenario.database.settings;
    let Some(limit) = scenario.database.engine.session_limit else { return };
    let (Some(at), Some(written)) = (at, settings.get(limit.setting)) else { return };
    // What is no number is the database's to refuse.
    let Ok(most) = written.trim().parse::<u32>() else { return };
    let sessions = scenario.sessions();
    let least = least(sessions, Some(&limit), settings);
    if most >= least {
        return;
    }
    findings.add(
        "too-few-connections",
        at,
        format!(
            "the loads hold {sessions} sessions at once, and the lab needs {} more; the database takes {most}",
            least - sessions
        ),
        format!("less than {least}"),
        format!(
            "write `{setting}: {least}` or more, or leave it out: it is then {}",
            scenario.max_connections(),
            setting = limit.setting,
        ),
    );
}

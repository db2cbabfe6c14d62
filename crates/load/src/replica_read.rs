//! What every replica holds in the end, each read for itself. A standby of PostgreSQL is read once it has replayed what its
//! leader had when the reading began: it says how far it is. Where nobody leads, see `node_reads`.
//!
//! A replica that cannot be reached, does not follow or does not get that far in time leaves a read that failed, so that
//! nobody takes its silence for agreement.

use std::time::{Duration, Instant};

use client::postgres::PostgresClient;
use client::reactor;
use client::{Endpoint, Session, SqlSession};
use history::{Key, Operation};

use crate::clock::Clock;
use crate::node_reads::{self, register, told};
use crate::plan::{LoadError, LoadPlan, OnThread};
use crate::preparation::{Leader, gave_up, in_place};

/// Between two looks at how far a replica is.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Whether a load's replicas can be compared in the end: the workload reads registers, and there is more than one node.
#[must_use]
pub fn are_compared(plan: &LoadPlan) -> bool {
    let answer = plan.protocol.has_readable_standbys() || node_reads::are_possible(plan);
    plan.workload.compares_replicas() && answer && plan.endpoints.len() > 1
}

/// Reads every node, each tried again for as long as `within`. Blocks. Call it after the load, while nobody writes, and before
/// its final read: that may mend what differs.
///
/// # Errors
/// When the plan cannot be carried out, or there is a leader and none answered in the time.
pub fn replica_reads(
    plan: &LoadPlan,
    clock: &Clock,
    on_thread: OnThread,
    within: Duration,
) -> Result<Vec<Operation>, LoadError> {
    in_place(plan, on_thread, |plan| async move {
        if node_reads::are_possible(plan) {
            Ok(node_reads::node_reads(plan, clock, within).await)
        } else {
            behind_the_leader(plan, clock, within).await
        }
    })
}

/// Reads the leader and its standbys.
async fn behind_the_leader(
    plan: &LoadPlan,
    clock: &Clock,
    within: Duration,
) -> Result<Vec<Operation>, LoadError> {
    let begun = Instant::now();
    let (position, leader) = reactor::timeout(within, written_so_far(plan, within))
        .await
        .map_err(|_| gave_up(plan, "asking the leader how far it is", "no answer in time".to_owned()))?;
    let mut read = Vec::new();
    for endpoint in &plan.endpoints {
        let follows = endpoint.node != leader;
        let wanted = follows.then_some(position.as_str());
        let invoked = Instant::now();
        let left = within.saturating_sub(begun.elapsed());
        let held = reactor::timeout(left, held_by(plan, endpoint, wanted, within)).await;
        read.extend(told(plan, clock, invoked, [(endpoint.node.clone(), held.ok().flatten())]));
    }
    Ok(read)
}

/// How far the leader's log is, and which node that is.
async fn written_so_far(plan: &LoadPlan, within: Duration) -> (String, String) {
    let mut leader = Leader::new(plan, within);
    loop {
        if let Ok((mut session, node)) = leader.connect().await
            && let Ok(session) = session.sql()
            && let Ok(rows) = session.batch("SELECT pg_current_wal_insert_lsn()::text").await
            && let Some(position) = rows.text(0, 0)
        {
            return (position.to_owned(), node);
        }
        leader.pause().await;
    }
}

/// What a node holds; none when it neither leads nor follows, or cannot be read. Waits until it has replayed what is
/// `wanted`.
async fn held_by(
    plan: &LoadPlan,
    endpoint: &Endpoint,
    wanted: Option<&str>,
    within: Duration,
) -> Option<Vec<(Key, i64)>> {
    loop {
        let client = PostgresClient::connect(&endpoint.address, &plan.settings(within)).await;
        if let Ok(mut session) = client
            && let Ok(is_there) = is_as_far_as(&mut session, wanted).await
        {
            if !is_there? {
                reactor::sleep(LOOK_AGAIN).await;
                continue;
            }
            let mut session = Session::of_sql(session);
            if let Ok(actions) = plan.workload.final_read(&mut session).await {
                return Some(actions.into_iter().filter_map(register).collect());
            }
        }
        reactor::sleep(LOOK_AGAIN).await;
    }
}

/// Whether a standby has replayed that far; none when it is no standby and nobody's replica.
async fn is_as_far_as(
    session: &mut dyn SqlSession,
    wanted: Option<&str>,
) -> Result<Option<bool>, client::SessionError> {
    let Some(wanted) = wanted else { return Ok(Some(true)) };
    let query = format!(
        "SELECT pg_is_in_recovery()::text, coalesce(pg_last_wal_replay_lsn() >= '{wanted}'::pg_lsn, false)::text"
    );
    let rows = session.batch(&query).await?;
    Ok((rows.text(0, 0) == Some("true")).then(|| rows.text(0, 1) == Some("true")))
}

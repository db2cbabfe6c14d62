//! When a node's lease expired: it was not renewed for as long as it lasts, and the watch would have shown a renewal.
//!
//! That nothing was seen is no sign by itself. Either a later sighting shows the lease as it was, or the watch was not interrupted
//! and went on: it showed another node's lease, or a renewal that came too late by the node's own clock.

use super::{Phase, Step};
use crate::sightings::{Kind, Seen, Sighting};

/// A lease as it was renewed last.
struct RenewedLease {
    renewed_unix_s: f64,
    lasts_s: f64,
    /// When it expires, by this machine's clock. At the latest: it was renewed before this was seen.
    until_unix_s: f64,
    /// Whether the watch was interrupted since.
    is_interrupted: bool,
}

/// The first expiry of this node's lease after a fault, if it is certain. Sightings are in order.
pub(super) fn expired(ordered: &[&Sighting], node: &str, from_unix_s: f64) -> Option<Step> {
    let mut held: Option<RenewedLease> = None;
    // What another's lease showed, until this node's own says that it was renewed in time.
    let mut shown_by_another: Option<f64> = None;
    for sighting in ordered {
        match &sighting.what {
            Seen::Gap { kind: Kind::Leases, .. } => {
                if let Some(held) = held.as_mut() {
                    held.is_interrupted = true;
                }
            }
            Seen::Lease { node: of, renewed_unix_s: theirs_unix_s, .. } if of != node => {
                let over = held.as_ref().and_then(|held| held.is_over_by_another(sighting.unix_s));
                let over = over.filter(|until| *until >= from_unix_s);
                // Leases are shown in the order in which the cluster took them: this node's was not renewed until then, and a renewal
                // of before that was held up on its way there.
                if let Some(unix_s) = over.filter(|until| theirs_unix_s >= until) {
                    return Some(step(node, unix_s));
                }
                shown_by_another = shown_by_another.or(over);
            }
            Seen::Lease { renewed_unix_s, lasts_s, .. } => {
                if held.as_ref().is_some_and(|held| held.is_renewed_in_time(*renewed_unix_s)) {
                    shown_by_another = None;
                }
                let over = held.as_ref().and_then(|held| held.is_over(sighting.unix_s, *renewed_unix_s));
                let over = over.filter(|until| *until >= from_unix_s);
                if let Some(unix_s) = shown_by_another.or(over) {
                    return Some(step(node, unix_s));
                }
                let lasts_s = lasts_s.filter(|lasts_s| *lasts_s > 0.0);
                held = renewed(held, sighting.unix_s, *renewed_unix_s, lasts_s);
            }
            _ => {}
        }
    }
    shown_by_another.map(|unix_s| step(node, unix_s))
}

fn step(node: &str, unix_s: f64) -> Step {
    Step { phase: Phase::LeaseExpired, of: node.to_owned(), unix_s, after_gap: false }
}

impl RenewedLease {
    /// When it expired, where the same lease shows it that is seen now, renewed at a time.
    fn is_over(&self, seen_unix_s: f64, renewed_unix_s: f64) -> Option<f64> {
        let is_shown = if renewed_unix_s == self.renewed_unix_s {
            seen_unix_s >= self.until_unix_s
        } else {
            !self.is_interrupted && renewed_unix_s - self.renewed_unix_s > self.lasts_s
        };
        is_shown.then_some(self.until_unix_s)
    }

    /// The same where another's is seen now. What came late may have come late of this one as well, and stand behind it.
    fn is_over_by_another(&self, seen_unix_s: f64) -> Option<f64> {
        (!self.is_interrupted && seen_unix_s >= self.until_unix_s).then_some(self.until_unix_s)
    }

    /// By the node's own clock, whenever it was seen.
    fn is_renewed_in_time(&self, renewed_unix_s: f64) -> bool {
        renewed_unix_s != self.renewed_unix_s && renewed_unix_s - self.renewed_unix_s <= self.lasts_s
    }
}

/// The lease after this sighting of it. One that is seen again as it was has not begun anew.
fn renewed(
    held: Option<RenewedLease>,
    seen_unix_s: f64,
    renewed_unix_s: f64,
    lasts_s: Option<f64>,
) -> Option<RenewedLease> {
    match held {
        Some(held) if held.renewed_unix_s == renewed_unix_s => {
            Some(RenewedLease { is_interrupted: false, ..held })
        }
        _ => {
            let lasts_s = lasts_s?;
            let until_unix_s = seen_unix_s + lasts_s;
            Some(RenewedLease { renewed_unix_s, lasts_s, until_unix_s, is_interrupted: false })
        }
    }
}

//! When a node's lease expired: it was not renewed for as long as it lasts, and the watch would have shown a renewal.
//!
//! That nothing was seen is no sign by itself. Either a later sighting shows the lease as it was, or the watch was not interrupted
//! and went on: it showed another node's lease, or a renewal that came too late by the node's own clock.

use super::{Phase, Step};
use crate::sightings::{Kind, Seen, Sighting};

/// A lease as it was renewed last.
struct Held {
    renewed_unix_s: f64,
    lasts_s: f64,
    /// When it expires, by this machine's clock. At the latest: it was renewed before this was seen.
    until_unix_s: f64,
    /// Whether the watch was interrupted since.
    is_interrupted: bool,
}

/// The first expiry of this node's lease after a fault, if it is certain. Sightings are in order.
pub(super) fn expired(ordered: &[&Sighting], node: &str, from_unix_s: f64) -> Option<Step> {
    let mut held: Option<Held> = None;
    for sighting in ordered {
        let until_unix_s = match (&sighting.what, held.as_mut()) {
            (Seen::Gap { kind: Kind::Leases, .. }, Some(held)) => {
                held.is_interrupted = true;
                continue;
            }
            (Seen::Lease { node: of, renewed_unix_s, lasts_s }, now) => {
                let until_unix_s = now
                    .and_then(|held| held.is_over(sighting.unix_s, (of == node).then_some(*renewed_unix_s)));
                if of == node {
                    let lasts_s = lasts_s.filter(|lasts_s| *lasts_s > 0.0);
                    held = renewed(held, sighting.unix_s, *renewed_unix_s, lasts_s);
                }
                until_unix_s
            }
            _ => None,
        };
        if let Some(unix_s) = until_unix_s.filter(|until| *until >= from_unix_s) {
            let (phase, of) = (Phase::LeaseExpired, node.to_owned());
            return Some(Step { phase, of, unix_s, after_gap: false });
        }
    }
    None
}

impl Held {
    /// When it expired, where a lease that is seen now shows it: this node's, renewed at a time, or another's.
    fn is_over(&self, seen_unix_s: f64, renewed_unix_s: Option<f64>) -> Option<f64> {
        let is_late = seen_unix_s >= self.until_unix_s;
        let is_shown = match renewed_unix_s {
            Some(renewed) if renewed == self.renewed_unix_s => is_late,
            Some(renewed) => !self.is_interrupted && renewed - self.renewed_unix_s > self.lasts_s,
            None => !self.is_interrupted && is_late,
        };
        is_shown.then_some(self.until_unix_s)
    }
}

/// The lease after this sighting of it. One that is seen again as it was has not begun anew.
fn renewed(held: Option<Held>, seen_unix_s: f64, renewed_unix_s: f64, lasts_s: Option<f64>) -> Option<Held> {
    match held {
        Some(held) if held.renewed_unix_s == renewed_unix_s => Some(Held { is_interrupted: false, ..held }),
        _ => {
            let lasts_s = lasts_s?;
            let until_unix_s = seen_unix_s + lasts_s;
            Some(Held { renewed_unix_s, lasts_s, until_unix_s, is_interrupted: false })
        }
    }
}

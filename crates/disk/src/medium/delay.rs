//! Defects that hold operations up: a slow disk, and one that does not answer.

use std::time::Duration;

use super::{Defect, Delay};

/// How long a defect holds an operation up.
pub(super) fn of(defect: &Defect) -> Delay {
    match defect {
        Defect::Slow(time) => Delay::For(*time),
        Defect::Stall => Delay::UntilCleared,
        _ => Delay::For(Duration::ZERO),
    }
}

/// The longer of two.
pub(super) fn longer(one: Delay, other: Delay) -> Delay {
    match (one, other) {
        (Delay::For(one), Delay::For(other)) => Delay::For(one.max(other)),
        _ => Delay::UntilCleared,
    }
}

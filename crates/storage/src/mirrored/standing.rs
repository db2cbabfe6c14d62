//! How the components of a mirrored volume stand, as data and in words.

use std::time::Duration;

use disk::mirror::{Occurrence, Reason, Standing};

/// What went over the wire to a component, while others served and by now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// As changes.
    pub replicated_bytes: u64,
    /// To catch up.
    pub copied_bytes: u64,
}

/// How one component stands at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct ComponentState {
    /// Its host's path.
    pub host: String,
    /// How it stands: none serves while the node is off.
    pub role: Role,
    /// Bytes under way to it.
    pub lag_bytes: u64,
    /// Age of the oldest of them.
    pub lag: Duration,
    /// Bytes it has yet to be sent.
    pub bytes_left: u64,
    /// What went over the wire to it.
    pub moved: Moved,
}

/// What a component is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It serves.
    Serving,
    /// It is told by the one that serves.
    Peer(Standing),
    /// Nobody serves.
    Idle,
    /// It was given up.
    Retired,
}

/// What happened to a component, where it is worth telling.
pub(super) fn in_words(host: &str, occurrence: &Occurrence, bytes_left: u64) -> Option<String> {
    Some(match occurrence.standing {
        Standing::Away => match occurrence.why? {
            Reason::ServiceEnded => return None,
            why => format!(
                "the component on {host} is out: {why}; running without it, changes are logged for catch-up"
            ),
        },
        Standing::CatchingUp if bytes_left < 4_096 => return None,
        Standing::CatchingUp => {
            format!("the component on {host} catches up: {} left to copy", in_bytes(bytes_left))
        }
        Standing::Finishing(_) => return None,
        Standing::Live => format!("the component on {host} is up to date"),
    })
}

/// Bytes for a person to read.
pub(super) fn in_bytes(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_told_in_three_digits_or_so() {
        let told: Vec<String> = [0, 9_999, 10_000, 5_572_037, 939_500_000].map(in_bytes).into();
        assert_eq!(told, ["0 bytes", "9999 bytes", "10.0 kB", "5572.0 kB", "939.5 MB"]);
    }

    #[test]
    fn what_goes_without_saying_is_not_said() {
        let occurrence = |standing, why| Occurrence { at: Duration::ZERO, peer: 0, standing, why };
        assert_eq!(in_words("h", &occurrence(Standing::Away, Some(Reason::ServiceEnded)), 0), None);
        assert_eq!(in_words("h", &occurrence(Standing::CatchingUp, None), 100), None);
        let out = in_words("h", &occurrence(Standing::Away, Some(Reason::Silent)), 0).expect("told");
        assert!(out.starts_with("the component on h is out: it stopped answering"), "{out}");
    }
}

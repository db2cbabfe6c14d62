//! What an error of Cassandra says: its class, and whether the write certainly did not happen.
//!
//! Owns the table. Pure. Everything here leans to "may have happened". Sources: Apache Cassandra, "CQL binary protocol
//! v4", section 9 "Error codes"; its `StorageProxy` (5.0), which says when each is thrown: `mutate`,
//! `mutateAtomically`, `cas`, `commitPaxos`, `sendToHintedReplicas`.
//!
//! | code | plain write | batch | conditional write |
//! |---|---|---|---|
//! | 0x1000 Unavailable | definite: replicas are counted before any is asked | definite: so are all of a logged batch's; indefinite for an unlogged one and for counters, which are sent partition by partition | indefinite: they are counted again for the commit of what was already accepted |
//! | 0x1001 Overloaded | definite: thrown before anything is sent | indefinite: another partition may have been sent | indefinite: so is the commit |
//! | 0x1002 `IsBootstrapping` | definite: the node has not joined | definite | definite |
//! | 0x1100 Write timeout, of whatever kind | indefinite: replicas that were late have it, or get it by a hint | indefinite; `BATCH_LOG` too, since one of its replicas may have the log and replay it | indefinite: it may have been accepted, and whoever comes next finishes it |
//! | 0x1500 Write failure, 0x1700 CAS write unknown | indefinite | indefinite | indefinite |
//! | 0x1200, 0x1300 Read timeout, read failure | cannot be | cannot be | indefinite |
//! | 0x2000 to 0x2500 Syntax, Unauthorized, Invalid, Config, Already exists, Unprepared | definite: turned down before it runs | definite | definite |
//! | 0x000A Protocol, 0x0100 Bad credentials | definite: never understood, never let in | definite | definite |
//! | 0x0000 Server error, 0x1003 Truncate, 0x1400 Function failure, 0x1600 CDC, anything unknown | indefinite | indefinite | indefinite |
//!
//! What only reads changes nothing, so that its errors are all definite.

use history::ErrorClass;
use scylla_cql_core::frame::response::error::{DbError, Error as Refusal};

use super::statement::Effect;

/// `CAS_WRITE_UNKNOWN` of version 5, which servers of version 4 call a write timeout.
const CAS_WRITE_UNKNOWN: i32 = 0x1700;

/// Unavailable, as it stands in the code of an error.
pub(super) const UNAVAILABLE: &str = "0x1000";

/// What an error means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) class: ErrorClass,
    pub(super) definite: bool,
    /// What the session is worth afterwards.
    pub(super) session: Worth,
}

/// What a session is worth after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Worth {
    /// It goes on.
    Good,
    /// It goes on, unless its node says the same again and again.
    Doubtful,
    /// Another is needed.
    Nothing,
}

/// What this error means for a statement of this effect.
pub(super) fn of(refusal: &Refusal, effect: Effect) -> Verdict {
    use ErrorClass::{Connection, Other, Timeout};
    use Worth::{Doubtful, Good, Nothing};
    let of_plain_write = effect == Effect::Write;
    let (class, proves, session) = match &refusal.error {
        DbError::Unavailable { .. } => {
            (Other, !matches!(effect, Effect::ConditionalWrite | Effect::UnloggedBatch), Doubtful)
        }
        DbError::Overloaded => (Other, of_plain_write, Doubtful),
        DbError::IsBootstrapping => (Connection, true, Nothing),
        DbError::WriteTimeout { .. } | DbError::ReadTimeout { .. } => (Timeout, false, Doubtful),
        DbError::Other(CAS_WRITE_UNKNOWN) => (Timeout, false, Doubtful),
        DbError::SyntaxError
        | DbError::Unauthorized
        | DbError::Invalid
        | DbError::ConfigError
        | DbError::AlreadyExists { .. } => (Other, true, Good),
        // The node has been told to forget it, or the table was made anew.
        DbError::Unprepared { .. } => (Other, true, Nothing),
        DbError::ProtocolError => (Other, true, Nothing),
        DbError::AuthenticationError => (Connection, true, Nothing),
        _ => (Other, false, Good),
    };
    Verdict { class, definite: proves || effect == Effect::Read, session }
}

/// The error's code.
pub(super) fn code_of(refusal: &Refusal) -> i32 {
    match &refusal.error {
        // The only one whose code is a matter of negotiation, and nothing is negotiated here.
        DbError::RateLimitReached { .. } => -1,
        error => error.code(&scylla_cql_core::frame::protocol_features::ProtocolFeatures::default()),
    }
}

#[cfg(test)]
mod tests {
    use scylla_cql_core::frame::protocol_features::ProtocolFeatures;

    use super::*;

    /// An error as it travels.
    fn refusal(code: i32, rest: &[u8]) -> Refusal {
        let bytes = [&code.to_be_bytes()[..], &[0, 1, b'x'], rest].concat();
        Refusal::deserialize(&ProtocolFeatures::default(), &mut &bytes[..]).expect("an error")
    }

    #[test]
    fn only_what_is_turned_down_before_it_runs_certainly_did_not_happen() {
        let check = |code: i32, rest: &[u8], class, expected: [bool; 4]| {
            let refusal = refusal(code, rest);
            assert_eq!(code_of(&refusal), code);
            let effects = [Effect::Write, Effect::Batch, Effect::ConditionalWrite, Effect::Other];
            assert_eq!(effects.map(|effect| of(&refusal, effect).definite), expected, "{code:#x}");
            assert_eq!(of(&refusal, Effect::Write).class, class, "{code:#x}");
            assert!(of(&refusal, Effect::Read).definite, "{code:#x}");
        };
        let counts = |numbers: &[i32], rest: &[u8]| {
            let numbers: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
            [&[0, 4][..], &numbers, rest].concat()
        };
        let (never, always) = ([false; 4], [true; 4]);
        check(0x0000, &[], ErrorClass::Other, never);
        check(0x000A, &[], ErrorClass::Other, always);
        check(0x0100, &[], ErrorClass::Connection, always);
        check(0x1000, &counts(&[2, 1], &[]), ErrorClass::Other, [true, true, false, true]);
        let unavailable = refusal(0x1000, &counts(&[2, 1], &[]));
        assert!(!of(&unavailable, Effect::UnloggedBatch).definite, "one partition may have been sent");
        check(0x1001, &[], ErrorClass::Other, [true, false, false, false]);
        check(0x1002, &[], ErrorClass::Connection, always);
        check(0x1003, &[], ErrorClass::Other, never);
        for kind in ["SIMPLE", "BATCH", "UNLOGGED_BATCH", "COUNTER", "BATCH_LOG", "CAS", "VIEW", "CDC", "NEW"]
        {
            let length = u8::try_from(kind.len()).expect("short");
            let kind = [&[0, length][..], kind.as_bytes()].concat();
            check(0x1100, &counts(&[1, 2], &kind), ErrorClass::Timeout, never);
            check(0x1500, &counts(&[1, 2, 1], &kind), ErrorClass::Other, never);
        }
        check(0x1200, &counts(&[1, 2], &[0]), ErrorClass::Timeout, never);
        check(0x1300, &counts(&[1, 2, 1], &[0]), ErrorClass::Other, never);
        check(0x1700, &[], ErrorClass::Timeout, never);
        check(0x2000, &[], ErrorClass::Other, always);
        check(0x2100, &[], ErrorClass::Other, always);
        check(0x2200, &[], ErrorClass::Other, always);
        check(0x2300, &[], ErrorClass::Other, always);
        check(0x2400, &[0, 0, 0, 0], ErrorClass::Other, always);
        check(0x2500, &[0, 1, 7], ErrorClass::Other, always);
        check(0x7777, &[], ErrorClass::Other, never);
    }
}

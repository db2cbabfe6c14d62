//! What a node answers to whether it leads, and what that is for who asked.

use crate::connection::SessionError;

/// How databases say that they have as many sessions as they take: PostgreSQL's SQLSTATE, MySQL's number.
pub(super) const TOO_MANY_CONNECTIONS: [&str; 2] = ["53300", "1040"];

/// What a node answered.
pub(super) enum Answer<S> {
    Leads(S),
    Follows(S),
    Failed(SessionError),
}

/// How a client's step towards the leader ended.
pub(super) enum Step<S> {
    /// With a session, at the node of this place.
    Found(S, usize),
    /// Nobody leads, as far as it is known.
    Failed,
    /// The leader has as many sessions as it takes.
    Full,
    /// Others have learnt more meanwhile: begin anew.
    Anew,
}

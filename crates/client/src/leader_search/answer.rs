//! What a node answers to whether it leads, and what that is for who asked.

use crate::connection::SessionError;

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

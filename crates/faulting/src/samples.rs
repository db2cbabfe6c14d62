//! What many datagrams say together: how long they took and how many were lost, as statistics. Pure.

pub(crate) mod delays;
pub(crate) mod shares;

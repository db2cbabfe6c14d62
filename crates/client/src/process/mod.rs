//! Clients whose driver is a program of its own: any driver in any language serves, by a protocol of lines.
//!
//! Owns that protocol's side towards a load. One program serves all sessions of a load. What it says of an outcome is heard
//! only where the statement could commit: an error within a transaction block has changed nothing. The programs that ship
//! stand in `clients/`.

mod discover;
mod program;
mod session;
mod statement;
mod words;

pub use discover::{ProcessConnector, Sessions, TakesWrites, Target};
pub use program::{Accountant, GREETING_WITHIN, ProgramError, Settings, Starter};
pub use session::ProcessClient;

//! Clients whose driver is a program of its own: any driver in any language serves, by a protocol of lines.
//!
//! Owns that protocol's side towards a load. One program serves all sessions of a load. It speaks either SQL or keys and
//! values. What it says of an outcome is heard only where something could be committed: an error within a transaction block
//! has changed nothing, nor has one of a transaction over keys that only reads. The programs that ship stand in `clients/`.

mod conversation;
mod discover;
mod key_words;
mod keys;
mod program;
mod session;
mod statement;
mod words;

pub use discover::{ProcessConnector, Sessions, TakesWrites, Target};
pub use keys::ProcessKeys;
pub use program::{Accountant, GREETING_WITHIN, ProgramError, Settings, Starter};
pub use session::ProcessClient;
pub use words::Speaks;

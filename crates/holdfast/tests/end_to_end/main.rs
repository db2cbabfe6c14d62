//! The whole program against the whole machine: real namespaces, a real network, a real PostgreSQL, real SIGKILL.
//!
//! What cannot be had on this machine is said loudly, on a line `skipped: TEST: why`. Needs no root; as root, what an
//! ordinary user would see is tested as well.

mod bad_input;
mod contract;
mod holdfast;
mod host_failure;
mod interrupts;
mod kills;
mod limits;
mod traces;
mod verdicts;

//! Faults of machines that exist: the command files that ship and those that are refused, and what strikes, stands, is undone
//! and is healed, on this machine, in network namespaces of it, over ssh, and against stand-ins for other tools.

mod command_files;
mod on_this_machine;
mod over_ssh;
mod partition;
mod pods;
#[path = "../../../scenario/tests/scenario/refusals.rs"]
mod refusals;
mod robustness;
mod stand_ins;
mod striking;
mod unsound_machines;

//! Loads without a lab: a load alone on a real PostgreSQL with the files it leaves, and the client programs that ship, with
//! real drivers where they are to be had and with planted ones. Beside them, what crates must know alike.

mod client_programs;
mod mongo_program;
mod names_agree;
mod program;
#[path = "../../../load/tests/load/real_loads.rs"]
mod real_loads;
mod sessions_apart;
mod standalone;
#[path = "../../../client/tests/client/transactions.rs"]
mod transactions;

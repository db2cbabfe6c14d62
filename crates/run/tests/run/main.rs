//! Loads without a lab: a load alone on a real PostgreSQL with the files it leaves, and the client programs that ship, with
//! real drivers where they are to be had and with planted ones. Beside them, what crates must know alike.

mod client_programs;
#[path = "../../../load/tests/load/ground.rs"]
mod ground;
mod mongo_program;
mod names_agree;
mod program;
mod sessions_apart;
mod standalone;
#[path = "../../../client/tests/client/transactions.rs"]
mod transactions;

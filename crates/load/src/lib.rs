//! The load generator: loops over clients, recording into `measure` and `history`.
//!
//! Owns the threads, the clients' lives over broken sessions, and when what was recorded is handed on. What is asked
//! is `workload`'s, how it is spoken `client`'s.

mod client_loop;
mod client_numbers;
mod clock;
mod defects;
mod dispatch;
mod due_queue;
mod elsewhere;
mod failback;
mod first_errors;
mod first_success;
mod generator;
mod leadership;
mod missing_clients;
mod muster;
mod node_reads;
mod pace;
mod part;
mod plan;
mod preparation;
mod ready;
mod recorded_final_read;
mod replica_read;
mod shared;
mod thread_cpu;

pub use capabilities::Protocol;
pub use client::postgres::{Encryption, Reads, Trust};
pub use client::redis::Wait;
pub use client::{Address, Endpoint, Password};
pub use client_numbers::first_clients;
pub use clock::Clock;
pub use defects::Defects;
pub use elsewhere::{Elsewhere, start_elsewhere};
pub use first_success::FirstSuccess;
pub use generator::{Batch, LoadEnd, LoadHandle, OpenLoop, start};
pub use leadership::{Leadership, Refusals, leadership};
pub use missing_clients::{MissingClients, await_clients, missing_clients};
pub use muster::Muster;
pub use pace::{Arrival, Demand, DemandRate, Part, Step, ThinkTime};
pub use plan::{ClientProgram, Consistency, LoadError, LoadPlan, OnThread, here};
pub use preparation::{final_read, leader, prepare, server_version};
pub use recorded_final_read::{FINAL_READ_PATIENCE, FinalRead, PATIENCE_AFTER_A_MISS, recorded_final_read};
pub use replica_read::{are_compared, replica_reads};
pub use thread_cpu::LoadCpu;

//! The whole program against the whole machine: real namespaces, a real network, a real PostgreSQL, real SIGKILL.
//!
//! What cannot be had on this machine is said loudly, on a line `skipped: TEST: why`. Needs no root; as root, what an
//! ordinary user would see is tested as well.

mod bad_input;
mod canaries;
mod cassandra;
mod client_programs;
mod clocks;
mod cockroachdb;
mod confinement;
mod contract;
mod disks;
mod engines;
mod etcd;
mod flaws;
mod galera;
mod holdfast;
mod host_failure;
mod images;
mod interrupts;
mod ipv6;
mod isolation;
mod kept_labs;
mod kernel_path;
mod keystore;
mod kills;
mod kubernetes;
mod limits;
mod loads;
mod many_clients;
mod matrix;
mod migrations;
mod mirrors;
mod network;
mod notes;
mod on_paper;
mod patroni;
mod placement;
mod power_loss;
mod processes;
mod receipts;
mod redis;
mod repmgr;
mod shell;
mod shipped;
mod survival;
mod time_line;
mod traces;
mod turns;
mod upgrades;
mod verdicts;
mod verify;
mod vigil;
mod workloads;

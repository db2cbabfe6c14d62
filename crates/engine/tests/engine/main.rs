//! Engines carried out over machines on this one's loopback addresses, with real servers where they are installed and with
//! stand-ins that are as strict where no registry has them.
//!
//! Engines differ in the ports they use beside the clients', so that their tests may run at the same time.

mod cassandra;
mod cluster;
mod cockroachdb;
mod etcd;
mod galera;
mod install;
mod loopback;
mod mongodb;
mod redis;
mod repmgr;
mod shipped;
mod stand_in;

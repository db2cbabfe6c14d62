//! The clients of this crate against real servers, where they are installed, and against make-believe ones: what is
//! acknowledged, what is refused, what cannot be known, and where a client goes when its node is lost.

mod answers;
mod cassandra_server;
mod control;
mod cql;
mod encryption;
mod endless;
mod etcd;
mod etcd_server;
mod many_clients;
mod mariadb_server;
mod mysql;
mod postgres;
mod process;
mod process_keys;
mod read_engines;
mod redis;
mod redis_server;
mod server;
mod slow_server;
mod transactions;

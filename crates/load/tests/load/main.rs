//! The load generator against real databases, where they are installed: what it records must be what happened, for every
//! workload and every protocol.

#[path = "../../../client/tests/client/cassandra_server.rs"]
mod cassandra_server;
mod cql;
mod etcd;
#[path = "../../../client/tests/client/etcd_server.rs"]
mod etcd_server;
mod keys_program;
mod load;
#[path = "../../../client/tests/client/mariadb_server.rs"]
mod mariadb_server;
mod muster;
mod mysql;
mod real_loads;
mod redis;
#[path = "../../../client/tests/client/redis_server.rs"]
mod redis_server;
mod standard_workloads;
mod tpcc;

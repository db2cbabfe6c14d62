//! The whole program where it needs no lab: its help and its man pages, loads on databases that exist, clusters that exist
//! with faults of their machines or pods, roles for those, and loads spread over agents.
//!
//! What needs a lab is tested by `end_to_end`.

mod agents;
#[path = "../../../client/tests/client/cassandra_server.rs"]
mod cassandra_server;
mod external;
mod folder;
mod heal;
mod kubernetes;
mod load;
mod manifests;
mod manual;
#[path = "../../../client/tests/client/mariadb_server.rs"]
mod mariadb_server;
mod reference;
#[path = "../../../client/tests/client/server.rs"]
mod server;
mod stand_in_cluster;

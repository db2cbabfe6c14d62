//! Loads on a real etcd: every workload that speaks of keys and values.

use std::collections::BTreeMap;

use load::{LoadPlan, Protocol};

use crate::etcd_server::Server;
use crate::real_loads;

#[test]
fn every_workload_of_keys_and_values_runs_on_etcd_and_its_final_read_tells_what_is_there() {
    let test = "every_workload_of_keys_and_values_runs_on_etcd_and_its_final_read_tells_what_is_there";
    let Some(server) = Server::here(test) else { return };
    real_loads::every_workload_of_keys_runs(500, |workload| {
        let plan = real_loads::plan_at(workload, &BTreeMap::new(), 4, vec![server.endpoint("n1")]);
        LoadPlan { protocol: Protocol::Etcd, user: String::new(), ..plan }
    });
}

//! How the pods of a node are joined to the lab's network: a bridge, and addresses of the node's own range.
//!
//! Owns the plugins' file. What leaves the node goes by the lab's interface, to which every address of the lab and of the cluster
//! is one hop away: the network itself leads each range to its node, so that no route names another node, and what a network
//! fault does to two nodes it does to their pods.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::Command;
use serde::Serialize;

use crate::pieces::{ADDRESSES, BRIDGE};
use crate::ranges::Range;

/// Name of the bridge on each node.
pub const BRIDGE_NAME: &str = "cni0";
/// Where given addresses are remembered: in the node's memory, for no pod outlives its node's boot.
const REMEMBERED: &str = "/run/cni-addresses";
/// A script that succeeds where every address that pods were given, a file each in the folders of `$1`, turns down a connection to
/// port `$2`; `$3` has the patience with each, in seconds. A pod whose processes stand still takes connections all the same.
const NOBODY_LISTENS: &str = r#"
for pod in "$1"/*/[0-9]*; do
    [ -e "$pod" ] || continue
    timeout "$3" bash -c ': < "/dev/tcp/$0/$1"' "${pod##*/}" "$2" 2>&1 | grep -q 'Connection refused' || exit 1
done"#;
/// Bytes of the largest packet, as on the lab's wires.
const MTU_BYTES: u32 = 1500;

/// The file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    cni_version: &'static str,
    name: &'static str,
    plugins: Vec<Bridge>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Bridge {
    r#type: &'static str,
    bridge: &'static str,
    is_gateway: bool,
    hairpin_mode: bool,
    ip_masq: bool,
    mtu: u32,
    ipam: Addresses,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Addresses {
    r#type: &'static str,
    data_dir: &'static str,
    /// One set of one range.
    ranges: [[Subnet; 1]; 1],
    routes: [Route; 1],
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Subnet {
    subnet: Range,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Route {
    dst: &'static str,
}

/// The file of a node whose pods have these addresses.
#[must_use]
pub fn settings(pods: Range) -> Settings {
    let addresses = Addresses {
        r#type: ADDRESSES.name,
        data_dir: REMEMBERED,
        ranges: [[Subnet { subnet: pods }]],
        routes: [Route { dst: "0.0.0.0/0" }],
    };
    let bridge = Bridge {
        r#type: BRIDGE.name,
        bridge: BRIDGE_NAME,
        is_gateway: true,
        hairpin_mode: true,
        // A pod's own address arrives: the network knows whose it is.
        ip_masq: false,
        mtu: MTU_BYTES,
        ipam: addresses,
    };
    Settings { cni_version: "0.4.0", name: "lab", plugins: vec![bridge] }
}

/// Succeeds on a node whose pods all turn down connections to a port.
pub fn nobody_listens(port: u16, patience: Duration) -> Command {
    looked_for(REMEMBERED, port, patience)
}

fn looked_for(remembered: &str, port: u16, patience: Duration) -> Command {
    let (port, patience) = (port.to_string(), patience.as_secs_f64().to_string());
    let arguments = ["-c", NOBODY_LISTENS, "sh", remembered, &port, &patience].map(str::to_owned).to_vec();
    let environment = BTreeMap::from([("LC_ALL".to_owned(), "C".to_owned())]);
    Command { program: "/bin/sh".into(), arguments, environment }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::plan::tests::three_workers;

    #[test]
    fn pods_get_addresses_of_their_node_and_keep_them_on_the_way() {
        let plan = three_workers();
        let settings = serde_json::to_value(settings(plan.workers()[1].pods)).expect("JSON");
        let expected = serde_json::json!({
            "cniVersion": "0.4.0",
            "name": "lab",
            "plugins": [{
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": true,
                "hairpinMode": true,
                "ipMasq": false,
                "mtu": 1500,
                "ipam": {
                    "type": "host-local",
                    "dataDir": "/run/cni-addresses",
                    "ranges": [[{ "subnet": "10.244.2.0/24" }]],
                    "routes": [{ "dst": "0.0.0.0/0" }],
                },
            }],
        });
        assert_eq!(settings, expected);
    }

    #[test]
    fn a_pod_that_takes_a_connection_listens_though_nobody_answers_it() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("lab")).expect("a folder");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let port = listener.local_addr().expect("an address").port();
        let succeeds = |port: u16| {
            let remembered = folder.path().display().to_string();
            let command = looked_for(&remembered, port, Duration::from_secs(5));
            let mut process = std::process::Command::new(&command.program);
            process.args(&command.arguments).envs(&command.environment);
            process.status().expect("a shell").success()
        };
        assert!(succeeds(port), "no pod was given an address");
        let remember = |name: &str| std::fs::write(folder.path().join("lab").join(name), "").expect("a file");
        remember("lock");
        remember("127.0.0.1");
        assert!(!succeeds(port), "it stands still, and its kernel takes connections");
        drop(listener);
        assert!(succeeds(port), "nothing listens any more");
        remember("name-of-no-machine.invalid");
        assert!(succeeds(port), "no address");
        remember("256.0.0.1");
        assert!(!succeeds(port), "what cannot be asked has not turned anybody down");
    }
}

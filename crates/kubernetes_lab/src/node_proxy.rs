//! The settings of kube-proxy, which leads addresses of services to pods.
//!
//! Owns its file.

use std::path::Path;

use serde::Serialize;

use crate::file_names::on_worker;
use crate::plan::{Member, PODS};
use crate::ranges::Range;

/// By which rules of the kernel packets are led.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// nftables, Linux 5.13.
    #[default]
    Nftables,
    /// iptables, which the node must have.
    Iptables,
}

/// Its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    api_version: &'static str,
    kind: &'static str,
    mode: Mode,
    client_connection: Connection,
    hostname_override: String,
    bind_address: String,
    #[serde(rename = "clusterCIDR")]
    pods: Range,
    conntrack: Conntrack,
    oom_score_adj: i32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Connection {
    kubeconfig: String,
}

/// Limits of the kernel's table of connections. They are the machine's: left alone, which zero stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Conntrack {
    max_per_core: u32,
    min: u32,
    tcp_established_timeout: &'static str,
    tcp_close_wait_timeout: &'static str,
}

/// The file of a node, whose login is in `volume`.
#[must_use]
pub fn settings(member: &Member, volume: &Path, mode: Mode) -> Settings {
    Settings {
        api_version: "kubeproxy.config.k8s.io/v1alpha1",
        kind: "KubeProxyConfiguration",
        mode,
        client_connection: Connection {
            kubeconfig: volume.join(on_worker::PROXY_LOGIN).display().to_string(),
        },
        hostname_override: member.name.clone(),
        bind_address: member.address.to_string(),
        pods: PODS,
        conntrack: Conntrack {
            max_per_core: 0,
            min: 0,
            tcp_established_timeout: "0s",
            tcp_close_wait_timeout: "0s",
        },
        oom_score_adj: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::member;

    #[test]
    fn the_machines_table_of_connections_is_left_alone() {
        let settings = settings(&member("n1", 1), Path::new("/v"), Mode::default());
        let expected = serde_json::json!({
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "nftables",
            "clientConnection": { "kubeconfig": "/v/proxy.kubeconfig" },
            "hostnameOverride": "n1",
            "bindAddress": "10.2.0.1",
            "clusterCIDR": "10.244.0.0/16",
            "conntrack": {
                "maxPerCore": 0,
                "min": 0,
                "tcpEstablishedTimeout": "0s",
                "tcpCloseWaitTimeout": "0s",
            },
            "oomScoreAdj": 0,
        });
        assert_eq!(serde_json::to_value(&settings).expect("JSON"), expected);
    }
}

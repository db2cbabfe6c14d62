//! The settings of the kubelet, which runs the pods of a node.
//!
//! Owns its file and its flags. Values that are not given are Kubernetes's own.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::control_plane::Flags;
use crate::file_names::on_worker;
use crate::plan::{Plan, Worker};
use crate::runtime::SOCKET;

/// Settings of the whole machine that a kubelet wants to change, and the values that it wants. The node must have private files for
/// them (`lab::protocol::WholeMachine`): to the kernel, the node's root is the user who made the lab.
pub const OWN_SETTINGS: &[(&str, &str)] = &[
    ("kernel/keys/root_maxbytes", "25000000"),
    ("kernel/keys/root_maxkeys", "1000000"),
    ("kernel/panic", "10"),
    ("kernel/panic_on_oops", "1"),
    ("vm/overcommit_memory", "1"),
    ("vm/panic_on_oom", "0"),
];

/// Its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    api_version: &'static str,
    kind: &'static str,
    authentication: Authentication,
    authorization: Authorization,
    feature_gates: FeatureGates,
    cgroup_driver: &'static str,
    #[serde(rename = "failCgroupV1")]
    fail_cgroup_v1: bool,
    fail_swap_on: bool,
    container_runtime_endpoint: String,
    image_service_endpoint: String,
    cluster_domain: &'static str,
    resolv_conf: String,
    eviction_hard: Eviction,
    #[serde(rename = "imageGCHighThresholdPercent")]
    image_gc_high_threshold_percent: u8,
    #[serde(rename = "imageGCLowThresholdPercent")]
    image_gc_low_threshold_percent: u8,
    oom_score_adj: i32,
    node_status_update_frequency: String,
    node_status_report_frequency: String,
    node_lease_duration_seconds: u64,
    register_node: bool,
    max_pods: u32,
    volume_plugin_dir: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Authentication {
    anonymous: Enabled,
    webhook: Enabled,
    x509: ByCertificate,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Enabled {
    enabled: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct ByCertificate {
    #[serde(rename = "clientCAFile")]
    client_ca_file: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Authorization {
    mode: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct FeatureGates {
    /// What only the root of the whole machine may do is not insisted on.
    #[serde(rename = "KubeletInUserNamespace")]
    in_user_namespace: bool,
}

/// When pods are thrown out because the node is full. The machine's fill is not the lab's business, so that this is last of all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Eviction {
    #[serde(rename = "memory.available")]
    memory: &'static str,
    #[serde(rename = "nodefs.available")]
    disk: &'static str,
    #[serde(rename = "nodefs.inodesFree")]
    files: &'static str,
    #[serde(rename = "imagefs.available")]
    images: &'static str,
}

/// The file of any node, whose other files are in `volume`.
#[must_use]
pub fn settings(plan: &Plan, volume: &Path) -> Settings {
    let file = |name: &str| volume.join(name).display().to_string();
    let timing = plan.timing();
    let runtime = format!("unix://{SOCKET}");
    Settings {
        api_version: "kubelet.config.k8s.io/v1beta1",
        kind: "KubeletConfiguration",
        authentication: Authentication {
            anonymous: Enabled { enabled: false },
            webhook: Enabled { enabled: false },
            x509: ByCertificate { client_ca_file: file(on_worker::AUTHORITY) },
        },
        authorization: Authorization { mode: "AlwaysAllow" },
        feature_gates: FeatureGates { in_user_namespace: true },
        cgroup_driver: "cgroupfs",
        fail_cgroup_v1: false,
        fail_swap_on: false,
        container_runtime_endpoint: runtime.clone(),
        image_service_endpoint: runtime,
        cluster_domain: "cluster.local",
        resolv_conf: file(on_worker::NAME_SERVERS),
        eviction_hard: Eviction { memory: "50Mi", disk: "1%", files: "1%", images: "1%" },
        image_gc_high_threshold_percent: 100,
        image_gc_low_threshold_percent: 99,
        oom_score_adj: 0,
        node_status_update_frequency: in_seconds(timing.status_every),
        node_status_report_frequency: in_seconds(timing.status_every * 5),
        node_lease_duration_seconds: timing.lease.as_secs(),
        register_node: true,
        max_pods: 30,
        // The usual one lies among the machine's programs, where a node cannot write.
        volume_plugin_dir: "/var/lib/kubelet/volume-plugins",
    }
}

/// What a node is beside its file.
#[must_use]
pub fn flags(worker: &Worker, volume: &Path) -> Flags {
    let file = |name: &str| volume.join(name).display().to_string();
    let member = &worker.member;
    Flags::of([
        ("config", file(on_worker::AGENT_SETTINGS)),
        ("kubeconfig", file(on_worker::AGENT_LOGIN)),
        ("hostname-override", member.name.clone()),
        ("node-ip", member.address.to_string()),
        ("node-labels", format!("topology.kubernetes.io/zone={}", member.zone)),
        ("v", "2".to_owned()),
    ])
}

fn in_seconds(time: Duration) -> String {
    format!("{}s", time.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::three_workers;

    const EXPECTED: &str = r#"{
  "apiVersion": "kubelet.config.k8s.io/v1beta1",
  "kind": "KubeletConfiguration",
  "authentication": {
    "anonymous": {
      "enabled": false
    },
    "webhook": {
      "enabled": false
    },
    "x509": {
      "clientCAFile": "/v/authority.crt"
    }
  },
  "authorization": {
    "mode": "AlwaysAllow"
  },
  "featureGates": {
    "KubeletInUserNamespace": true
  },
  "cgroupDriver": "cgroupfs",
  "failCgroupV1": false,
  "failSwapOn": false,
  "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
  "imageServiceEndpoint": "unix:///run/containerd/containerd.sock",
  "clusterDomain": "cluster.local",
  "resolvConf": "/v/resolv.conf",
  "evictionHard": {
    "memory.available": "50Mi",
    "nodefs.available": "1%",
    "nodefs.inodesFree": "1%",
    "imagefs.available": "1%"
  },
  "imageGCHighThresholdPercent": 100,
  "imageGCLowThresholdPercent": 99,
  "oomScoreAdj": 0,
  "nodeStatusUpdateFrequency": "2s",
  "nodeStatusReportFrequency": "10s",
  "nodeLeaseDurationSeconds": 4,
  "registerNode": true,
  "maxPods": 30,
  "volumePluginDir": "/var/lib/kubelet/volume-plugins"
}"#;

    #[test]
    fn the_file_says_what_a_node_of_a_lab_needs() {
        let settings = settings(&three_workers(), Path::new("/v"));
        assert_eq!(serde_json::to_string_pretty(&settings).expect("JSON"), EXPECTED);
    }

    #[test]
    fn a_node_is_known_by_the_lab_s_name_and_address() {
        let plan = three_workers();
        let flags = flags(&plan.workers()[1], Path::new("/v"));
        assert_eq!(flags.get("hostname-override"), Some("n2"));
        assert_eq!(flags.get("node-ip"), Some("10.2.0.2"));
        assert_eq!(flags.get("node-labels"), Some("topology.kubernetes.io/zone=z2"));
    }

    #[test]
    fn no_setting_of_the_machine_is_one_of_its_network() {
        assert!(OWN_SETTINGS.iter().all(|(name, _)| !name.starts_with("net/") && !name.starts_with('/')));
    }
}

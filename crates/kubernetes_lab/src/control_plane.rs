//! The control plane's settings: the store, the API server, the controllers, the scheduler, each by its flags.
//!
//! Owns which flags they get. What they wait for each other comes from the plan, paths from where the node's files are.

use std::collections::BTreeMap;
use std::path::Path;

use crate::file_names::on_control;
use crate::plan::{API_PORT, Plan, SERVICES};

/// The port at which the store answers, on the loopback alone: it asks nobody who he is.
pub const STORE_PORT: u16 = 2379;
/// The port at which copies of the store would speak to each other. It has none.
const STORE_PEER_PORT: u16 = 2380;
/// The port at which the scheduler says that it is well.
pub const SCHEDULER_PORT: u16 = 10_259;
/// The port at which the controllers say that they are well.
pub const CONTROLLERS_PORT: u16 = 10_257;
/// Who signs the tokens of pods.
const ISSUER: &str = "https://kubernetes.default.svc";

/// Flags by name, without the two hyphens.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flags(BTreeMap<&'static str, String>);

impl Flags {
    /// These.
    #[must_use]
    pub fn of<const COUNT: usize>(flags: [(&'static str, String); COUNT]) -> Flags {
        Flags(BTreeMap::from(flags))
    }

    /// The value of one.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// As arguments, in the order of their names.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        self.0.iter().map(|(name, value)| format!("--{name}={value}")).collect()
    }
}

/// The store's, with its data below `volume`.
#[must_use]
pub fn store(volume: &Path) -> Flags {
    let at = |port: u16| format!("http://127.0.0.1:{port}");
    Flags::of([
        ("name", "store".to_owned()),
        ("data-dir", volume.join("store").display().to_string()),
        ("listen-client-urls", at(STORE_PORT)),
        ("advertise-client-urls", at(STORE_PORT)),
        ("listen-peer-urls", at(STORE_PEER_PORT)),
        ("initial-advertise-peer-urls", at(STORE_PEER_PORT)),
        ("initial-cluster", format!("store={}", at(STORE_PEER_PORT))),
        ("log-level", "warn".to_owned()),
    ])
}

/// The API server's, with its files in `volume`.
#[must_use]
pub fn api_server(plan: &Plan, volume: &Path) -> Flags {
    let file = |name: &str| volume.join(name).display().to_string();
    Flags::of([
        ("etcd-servers", format!("http://127.0.0.1:{STORE_PORT}")),
        ("advertise-address", plan.control().address.to_string()),
        ("bind-address", "0.0.0.0".to_owned()),
        ("secure-port", API_PORT.to_string()),
        ("tls-cert-file", file(on_control::API_CERTIFICATE)),
        ("tls-private-key-file", file(on_control::API_KEY)),
        ("client-ca-file", file(on_control::AUTHORITY)),
        ("kubelet-client-certificate", file(on_control::TO_NODES_CERTIFICATE)),
        ("kubelet-client-key", file(on_control::TO_NODES_KEY)),
        ("kubelet-preferred-address-types", "InternalIP".to_owned()),
        ("anonymous-auth", "false".to_owned()),
        ("authorization-mode", "Node,RBAC".to_owned()),
        ("enable-admission-plugins", "NodeRestriction".to_owned()),
        ("default-not-ready-toleration-seconds", seconds(plan.timing().evicted_after)),
        ("default-unreachable-toleration-seconds", seconds(plan.timing().evicted_after)),
        ("service-account-issuer", ISSUER.to_owned()),
        ("service-account-key-file", file(on_control::TOKENS_PUBLIC)),
        ("service-account-signing-key-file", file(on_control::TOKENS_PRIVATE)),
        ("service-cluster-ip-range", SERVICES.to_string()),
        ("allow-privileged", "true".to_owned()),
        ("event-ttl", "1h".to_owned()),
        ("v", "1".to_owned()),
    ])
}

/// Flags of the program that has all controllers.
#[must_use]
pub fn controllers(plan: &Plan, volume: &Path) -> Flags {
    let file = |name: &str| volume.join(name).display().to_string();
    let timing = plan.timing();
    let login = file(on_control::CONTROLLERS_LOGIN);
    Flags::of([
        ("kubeconfig", login.clone()),
        ("authentication-kubeconfig", login.clone()),
        ("authorization-kubeconfig", login),
        ("bind-address", plan.control().address.to_string()),
        ("secure-port", CONTROLLERS_PORT.to_string()),
        ("service-account-private-key-file", file(on_control::TOKENS_PRIVATE)),
        ("root-ca-file", file(on_control::AUTHORITY)),
        ("use-service-account-credentials", "true".to_owned()),
        ("leader-elect", "false".to_owned()),
        ("allocate-node-cidrs", "false".to_owned()),
        // The usual one lies among the machine's programs, where a node cannot write.
        ("flex-volume-plugin-dir", file(on_control::VOLUME_PLUGINS)),
        ("service-cluster-ip-range", SERVICES.to_string()),
        ("node-monitor-period", format!("{}s", seconds(timing.look_every))),
        ("node-monitor-grace-period", format!("{}s", seconds(timing.lost_after))),
        ("node-startup-grace-period", format!("{}s", seconds(timing.lost_after * 2))),
        ("v", "1".to_owned()),
    ])
}

/// The scheduler's.
#[must_use]
pub fn scheduler(plan: &Plan, volume: &Path) -> Flags {
    let login = volume.join(on_control::SCHEDULER_LOGIN).display().to_string();
    Flags::of([
        ("kubeconfig", login.clone()),
        ("authentication-kubeconfig", login.clone()),
        ("authorization-kubeconfig", login),
        ("bind-address", plan.control().address.to_string()),
        ("secure-port", SCHEDULER_PORT.to_string()),
        ("leader-elect", "false".to_owned()),
        ("v", "1".to_owned()),
    ])
}

fn seconds(time: std::time::Duration) -> String {
    time.as_secs().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::three_workers;

    const VOLUME: &str = "/v";

    #[test]
    fn the_controllers_take_a_node_for_lost_when_the_plan_says() {
        let flags = controllers(&three_workers(), Path::new(VOLUME));
        assert_eq!(flags.get("node-monitor-grace-period"), Some("8s"));
        assert_eq!(flags.get("node-monitor-period"), Some("1s"));
        let flags = api_server(&three_workers(), Path::new(VOLUME));
        assert_eq!(flags.get("default-unreachable-toleration-seconds"), Some("5"));
    }

    #[test]
    fn the_api_server_speaks_to_the_store_that_is_there() {
        let (store, api) = (store(Path::new(VOLUME)), api_server(&three_workers(), Path::new(VOLUME)));
        assert_eq!(store.get("listen-client-urls"), api.get("etcd-servers"));
        assert_eq!(store.get("data-dir"), Some("/v/store"));
        assert_eq!(api.get("advertise-address"), Some("10.2.0.9"));
    }

    #[test]
    fn both_that_sign_and_both_that_check_agree_on_the_key_and_the_range() {
        let (api, controllers) = (
            api_server(&three_workers(), Path::new(VOLUME)),
            controllers(&three_workers(), Path::new(VOLUME)),
        );
        assert_eq!(
            api.get("service-account-signing-key-file"),
            controllers.get("service-account-private-key-file")
        );
        assert_eq!(api.get("service-cluster-ip-range"), controllers.get("service-cluster-ip-range"));
        assert_eq!(api.get("client-ca-file"), controllers.get("root-ca-file"));
    }

    #[test]
    fn flags_are_arguments_in_the_order_of_their_names() {
        let expected = [
            "--authentication-kubeconfig=/v/scheduler.kubeconfig",
            "--authorization-kubeconfig=/v/scheduler.kubeconfig",
            "--bind-address=10.2.0.9",
            "--kubeconfig=/v/scheduler.kubeconfig",
            "--leader-elect=false",
            "--secure-port=10259",
            "--v=1",
        ];
        assert_eq!(scheduler(&three_workers(), Path::new(VOLUME)).arguments(), expected);
    }
}

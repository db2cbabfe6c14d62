//! Which files each node of a cluster gets on its volume, as text.
//!
//! Owns that everybody's certificates are of one authority, made once for the whole cluster.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use serde_json::json;

use crate::file_names::{on_control, on_worker};
use crate::login::kubeconfig;
use crate::pieces::Programs;
use crate::pki::{Authority, TokenKey, Who};
use crate::plan::{Plan, Worker};
use crate::runtime::Snapshots;
use crate::{node_agent, node_proxy, pod_network, runtime};

/// Why the files could not be made.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// No key could be made, or nothing be signed.
    #[error("certificates of the cluster: {0}")]
    Certificates(#[from] rcgen::Error),
    /// Settings could not be written as JSON.
    #[error("settings of the cluster: {0}")]
    Settings(#[from] serde_json::Error),
}

/// Files by name, below the node's volume.
pub type Files = BTreeMap<&'static str, String>;

/// The files of the control plane's node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlFiles(pub Files);

/// The files of a node that runs pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerFiles(pub Files);

/// How nodes that run pods are made, beyond what the plan says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerOptions {
    /// The programs as nodes see them.
    pub programs: Programs,
    /// How containers get their files.
    pub snapshots: Snapshots,
    /// How packets find services.
    pub mode: node_proxy::Mode,
}

/// The files of the control plane's node.
///
/// # Errors
/// When no key can be made.
pub fn for_control(plan: &Plan, authority: &Authority) -> Result<ControlFiles, FilesError> {
    let api = authority.for_api(plan.control())?;
    let to_nodes = authority.for_client(&Who::ApiServer)?;
    let tokens = TokenKey::make()?;
    let login = |who: Who<'_>| login(plan, authority, &who);
    Ok(ControlFiles(BTreeMap::from([
        (on_control::AUTHORITY, authority.certificate()),
        (on_control::API_CERTIFICATE, api.certificate),
        (on_control::API_KEY, api.key),
        (on_control::TO_NODES_CERTIFICATE, to_nodes.certificate),
        (on_control::TO_NODES_KEY, to_nodes.key),
        (on_control::TOKENS_PRIVATE, tokens.private),
        (on_control::TOKENS_PUBLIC, tokens.public),
        (on_control::ADMINISTRATOR_LOGIN, login(Who::Administrator)?),
        (on_control::CONTROLLERS_LOGIN, login(Who::Controllers)?),
        (on_control::SCHEDULER_LOGIN, login(Who::Scheduler)?),
        (on_control::RIGHTS, text(&rights())?),
    ])))
}

/// The files of a node that runs pods, which finds its volume at `volume`.
///
/// # Errors
/// When no key can be made.
pub fn for_worker(
    plan: &Plan,
    worker: &Worker,
    authority: &Authority,
    (volume, options): (&Path, &WorkerOptions),
) -> Result<WorkerFiles, FilesError> {
    let agent = login(plan, authority, &Who::Node(&worker.member.name))?;
    let proxy = login(plan, authority, &Who::NodeProxy)?;
    let proxy_settings = node_proxy::settings(&worker.member, volume, options.mode);
    Ok(WorkerFiles(BTreeMap::from([
        (on_worker::AUTHORITY, authority.certificate()),
        (on_worker::AGENT_LOGIN, agent),
        (on_worker::AGENT_SETTINGS, text(&node_agent::settings(plan, volume))?),
        (on_worker::PROXY_LOGIN, proxy),
        (on_worker::PROXY_SETTINGS, text(&proxy_settings)?),
        (on_worker::RUNTIME_SETTINGS, runtime::settings(&options.programs, volume, options.snapshots)),
        (on_worker::NETWORK_SETTINGS, text(&pod_network::settings(worker.pods))?),
        // A file without a server makes programs ask the loopback, where nobody answers: names fail at once.
        (on_worker::NAME_SERVERS, String::new()),
    ])))
}

/// The login of whoever may do everything, for a kubectl anywhere in the lab.
///
/// # Errors
/// When no key can be made.
pub fn for_administrator(plan: &Plan, authority: &Authority) -> Result<String, FilesError> {
    login(plan, authority, &Who::Administrator)
}

fn login(plan: &Plan, authority: &Authority, who: &Who<'_>) -> Result<String, FilesError> {
    let identity = authority.for_client(who)?;
    text(&kubeconfig(&plan.api(), &authority.certificate(), &identity))
}

fn text(value: &impl Serialize) -> Result<String, FilesError> {
    Ok(format!("{}\n", serde_json::to_string_pretty(value)?))
}

/// What leads to services on a node may see services and where their pods are. Of all parts, this one alone has its rights not by
/// itself.
fn rights() -> serde_json::Value {
    let (user, _) = Who::NodeProxy.names();
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": { "name": "lab:node-proxy" },
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "system:node-proxier",
        },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control_plane;
    use crate::plan::tests::three_workers;

    const VOLUME: &str = "/v";

    fn options() -> WorkerOptions {
        let (snapshots, mode) = (Snapshots::default(), node_proxy::Mode::default());
        WorkerOptions { programs: Programs::at("/p"), snapshots, mode }
    }

    /// Every path in a text that leads into the volume.
    fn named(text: &str) -> Vec<String> {
        let paths = text.split(['"', '=', ' ', '\n']).filter_map(|word| word.strip_prefix("/v/"));
        paths.map(str::to_owned).collect()
    }

    #[test]
    fn every_file_that_the_control_plane_names_is_there() {
        let plan = three_workers();
        let authority = Authority::make().expect("an authority");
        let ControlFiles(files) = for_control(&plan, &authority).expect("files");
        let volume = Path::new(VOLUME);
        let flags = [
            control_plane::api_server(&plan, volume),
            control_plane::controllers(&plan, volume),
            control_plane::scheduler(&plan, volume),
        ];
        for argument in flags.iter().flat_map(control_plane::Flags::arguments) {
            for name in named(&argument) {
                assert!(
                    files.contains_key(name.as_str()) || name == on_control::VOLUME_PLUGINS,
                    "{argument}"
                );
            }
        }
    }

    #[test]
    fn every_file_that_a_node_names_is_there() {
        let plan = three_workers();
        let authority = Authority::make().expect("an authority");
        let worker = &plan.workers()[0];
        let volume = Path::new(VOLUME);
        let made = for_worker(&plan, worker, &authority, (volume, &options()));
        let WorkerFiles(files) = made.expect("files");
        let arguments = node_agent::flags(worker, volume).arguments();
        // A line of a certificate may be anything.
        let texts = files.values().filter(|text| !text.starts_with("-----BEGIN"));
        for text in texts.chain(&arguments) {
            for name in named(text) {
                assert!(files.contains_key(name.as_str()) || name == on_worker::NETWORK, "{name}");
            }
        }
    }

    #[test]
    fn nodes_have_keys_of_their_own_and_one_authority() {
        let plan = three_workers();
        let authority = Authority::make().expect("an authority");
        let made = |number: usize| {
            let worker = &plan.workers()[number];
            for_worker(&plan, worker, &authority, (Path::new(VOLUME), &options())).expect("files").0
        };
        let (one, two) = (made(0), made(1));
        assert_ne!(one[on_worker::AGENT_LOGIN], two[on_worker::AGENT_LOGIN]);
        assert_eq!(one[on_worker::AUTHORITY], two[on_worker::AUTHORITY]);
        assert_ne!(one[on_worker::NETWORK_SETTINGS], two[on_worker::NETWORK_SETTINGS]);
    }
}

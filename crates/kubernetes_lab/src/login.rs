//! How a part of the cluster finds the API and says who it is: the file that Kubernetes calls a kubeconfig.
//!
//! Owns its form. It is written as JSON, which is YAML as well.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::pki::Identity;

/// The one name in the file.
const NAME: &str = "lab";

/// The file of somebody who reaches the API at `api`.
#[must_use]
pub fn kubeconfig(api: &str, authority: &str, identity: &Identity) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": NAME,
            "cluster": { "server": api, "certificate-authority-data": STANDARD.encode(authority) },
        }],
        "users": [{
            "name": NAME,
            "user": {
                "client-certificate-data": STANDARD.encode(&identity.certificate),
                "client-key-data": STANDARD.encode(&identity.key),
            },
        }],
        "contexts": [{ "name": NAME, "context": { "cluster": NAME, "user": NAME } }],
        "current-context": NAME,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_context_leads_to_the_cluster_and_the_user() {
        let identity = Identity { certificate: "C".to_owned(), key: "K".to_owned() };
        let file = kubeconfig("https://10.2.0.9:6443", "A", &identity);
        let context = &file["contexts"][0];
        assert_eq!(context["name"], file["current-context"]);
        assert_eq!(context["context"]["cluster"], file["clusters"][0]["name"]);
        assert_eq!(context["context"]["user"], file["users"][0]["name"]);
        assert_eq!(file["clusters"][0]["cluster"]["server"], "https://10.2.0.9:6443");
        assert_eq!(file["clusters"][0]["cluster"]["certificate-authority-data"], "QQ==");
        assert_eq!(file["users"][0]["user"]["client-key-data"], "Sw==");
    }
}

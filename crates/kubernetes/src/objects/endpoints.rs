//! The pods that a service leads to, as one of its endpoint slices says.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fields::{Fields, ObjectError, text};

/// The label that names a slice's service.
const SERVICE: &str = "kubernetes.io/service-name";

/// What is known of an endpoint slice. A service may have several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoints {
    /// The slice's name.
    pub slice: String,
    /// Its service; the slice's own name where it says none.
    pub service: String,
    /// The pods that take connections.
    pub ready: BTreeSet<String>,
    /// Their UIDs, as far as the slice says them.
    pub ready_uids: BTreeSet<String>,
}

impl Endpoints {
    /// Reads one.
    ///
    /// # Errors
    /// When a field is missing that every slice has.
    pub fn read(object: &Value) -> Result<Endpoints, ObjectError> {
        let fields = Fields::of("EndpointSlice", object)?;
        let slice = fields.needed("/metadata/name")?;
        let service = fields.named_texts("/metadata/labels").remove(SERVICE);
        let ready = fields.list("/endpoints").iter().filter(|endpoint| is_ready(endpoint));
        let pods: Vec<&Value> =
            ready.filter(|endpoint| text(endpoint, "/targetRef/kind") == Some("Pod")).collect();
        let texts = |path: &str| -> BTreeSet<String> {
            pods.iter().filter_map(|endpoint| text(endpoint, path)).map(str::to_owned).collect()
        };
        Ok(Endpoints {
            service: service.unwrap_or_else(|| slice.clone()),
            ready: texts("/targetRef/name"),
            ready_uids: texts("/targetRef/uid"),
            slice,
        })
    }
}

/// The API: what does not say is to be taken for ready.
fn is_ready(endpoint: &Value) -> bool {
    endpoint.pointer("/conditions/ready").and_then(Value::as_bool).unwrap_or(true)
}

//! What is kept of the API's objects: facts with types, read from JSON, and nothing else of them. Pure.

mod endpoints;
mod fields;
mod node;
mod pod;
mod volume;

pub use endpoints::Endpoints;
pub(crate) use fields::Fields;
pub use fields::ObjectError;
pub use node::Node;
pub use pod::{Container, ContainerEnd, Pod, PodPhase};
pub use volume::Volume;

use serde_json::Value;

/// The objects of an answer: those of a list, or the one that it is.
pub(crate) fn items(answer: Value) -> Vec<Value> {
    let is_list = answer.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
    match answer {
        Value::Object(mut list) if is_list => match list.remove("items") {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        },
        other => vec![other],
    }
}

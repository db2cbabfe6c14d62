//! What is said to etcd and what it answers, as its JSON gateway has them: a part of `etcdserverpb`, keys and values in
//! base64, 64-bit numbers as text, whatever is zero left out.
//!
//! Owns the words. Source: etcd documentation, "etcd API reference" and "gRPC
//! gateway".

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize};

/// A transaction: comparisons, and what is done when all hold and when one does not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Txn {
    pub(super) compare: Vec<Compare>,
    pub(super) success: Vec<Request>,
    pub(super) failure: Vec<Request>,
}

/// A comparison; each asks for equality.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "target", rename_all = "UPPERCASE")]
pub(super) enum Compare {
    /// The number of changes of the key; 0 where nothing stands.
    Version { key: String, version: String },
    /// The store's revision at the key's last change; 0 where nothing stands.
    Mod { key: String, mod_revision: String },
    /// What stands under the key.
    Value { key: String, value: String },
}

/// A step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    RequestRange(Range),
    RequestPut(Put),
}

/// One key, or those from `key` on and before `range_end`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Range {
    pub(super) key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) range_end: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<String>,
}

/// A value put under a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Put {
    pub(super) key: String,
    pub(super) value: String,
}

/// The answer to a transaction.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Done {
    #[serde(default)]
    pub(super) succeeded: bool,
    #[serde(default)]
    pub(super) responses: Vec<Response>,
}

/// The answer to a step.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(super) struct Response {
    pub(super) response_range: Option<Ranged>,
    pub(super) response_put: Option<serde::de::IgnoredAny>,
}

/// What a range held.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Ranged {
    #[serde(default)]
    pub(super) kvs: Vec<KeyValue>,
}

/// A key and what stands there.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct KeyValue {
    #[serde(deserialize_with = "decoded")]
    pub(super) key: Vec<u8>,
    #[serde(default, deserialize_with = "decoded")]
    pub(super) value: Vec<u8>,
    #[serde(deserialize_with = "number")]
    pub(super) mod_revision: i64,
}

/// How a node sees itself; only who leads, by number.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Status {
    pub(super) header: Header,
    /// 0, and so left out, where it knows of none.
    #[serde(default)]
    pub(super) leader: String,
}

/// What stands before every answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Header {
    /// The node that answers.
    pub(super) member_id: String,
}

/// What stands in an answer that is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Refusal {
    /// The code of gRPC.
    pub(super) code: i32,
    pub(super) message: String,
    pub(super) error: String,
}

/// Bytes as they travel.
pub(super) fn encoded(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

fn decoded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
    STANDARD.decode(text.as_ref()).map_err(serde::de::Error::custom)
}

fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
    text.parse().map_err(serde::de::Error::custom)
}

/// The first key behind all that begin with `prefix`; nothing where there is none.
pub(super) fn behind(prefix: &str) -> Option<Vec<u8>> {
    let mut bytes = prefix.as_bytes().to_vec();
    while let Some(last) = bytes.pop() {
        if let Some(next) = last.checked_add(1) {
            bytes.push(next);
            return Some(bytes);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix_is_behind_all_its_keys_and_before_all_others() {
        assert_eq!(behind("ledger/"), Some(b"ledger0".to_vec()));
        assert_eq!(behind("a\u{7f}"), Some(vec![b'a', 0x80]));
        assert_eq!(behind(""), None);
    }

    #[test]
    fn what_the_gateway_answers_is_understood() {
        let text = r#"{"header":{"revision":"2"},"succeeded":true,"responses":[{"response_put":{"header":{"revision":"2"}}},
            {"response_range":{"header":{},"kvs":[{"key":"Zm9v","create_revision":"2","mod_revision":"2","version":"1",
            "value":"NDI="}],"count":"1"}},{"response_range":{"header":{"revision":"2"}}}]}"#;
        let done: Done = serde_json::from_str(text).expect("an answer");
        assert!(done.succeeded && done.responses[0].response_put.is_some());
        let range = done.responses[1].response_range.clone().expect("a range");
        assert_eq!((range.kvs[0].key.as_slice(), range.kvs[0].mod_revision), (&b"foo"[..], 2));
        assert_eq!(range.kvs[0].value, b"42");
        assert_eq!(done.responses[2].response_range, Some(Ranged::default()));
        assert!(
            serde_json::from_str::<Done>(r#"{"responses":[{"response_range":{"kvs":[{"key":"?"}]}}]}"#)
                .is_err()
        );
    }
}

//! Fields of an object of the API by their paths, and the error that names one that is missing.
//!
//! The API leaves out what is empty: absence is no error, but of fields that every such object has.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

/// An object that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} `{name}` has no `{missing}` that can be read")]
pub struct ObjectError {
    /// What it should have been.
    pub kind: &'static str,
    /// Its name, if it has one.
    pub name: String,
    /// The field, as a path with dots.
    pub missing: String,
}

/// An object whose fields are read. Paths are JSON pointers.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    kind: &'static str,
    object: &'a Value,
}

impl<'a> Fields<'a> {
    /// The fields of an object that must not say that it is of another kind.
    pub(crate) fn of(kind: &'static str, object: &'a Value) -> Result<Fields<'a>, ObjectError> {
        let fields = Fields { kind, object };
        let is_of_kind = object.is_object() && fields.text("/kind").is_none_or(|said| said == kind);
        if is_of_kind { Ok(fields) } else { Err(fields.missing("/kind")) }
    }

    pub(crate) fn at(&self, path: &str) -> Option<&'a Value> {
        self.object.pointer(path).filter(|value| !value.is_null())
    }

    /// A text that is not empty.
    pub(crate) fn text(&self, path: &str) -> Option<&'a str> {
        self.at(path).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    pub(crate) fn owned(&self, path: &str) -> Option<String> {
        self.text(path).map(str::to_owned)
    }

    pub(crate) fn needed(&self, path: &str) -> Result<String, ObjectError> {
        self.owned(path).ok_or_else(|| self.missing(path))
    }

    pub(crate) fn is_set(&self, path: &str) -> bool {
        self.at(path).and_then(Value::as_bool).unwrap_or(false)
    }

    /// A time in seconds since 1970. One that is there and cannot be read is an error: it is not known to be absent.
    pub(crate) fn time(&self, path: &str) -> Result<Option<f64>, ObjectError> {
        self.time_of(self.at(path), path)
    }

    /// The same of a value that lies at a path.
    pub(crate) fn time_of(&self, value: Option<&Value>, path: &str) -> Result<Option<f64>, ObjectError> {
        match value {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value.as_str().and_then(unix_s).map(Some).ok_or_else(|| self.missing(path)),
        }
    }

    pub(crate) fn list(&self, path: &str) -> &'a [Value] {
        self.at(path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// The texts of a list.
    pub(crate) fn texts(&self, path: &str) -> Vec<String> {
        self.list(path).iter().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// The texts of a map by their names, such as labels.
    pub(crate) fn named_texts(&self, path: &str) -> BTreeMap<String, String> {
        let map = self.at(path).and_then(Value::as_object);
        let texts = map.into_iter().flatten();
        texts.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
    }

    pub(crate) fn missing(&self, path: &str) -> ObjectError {
        ObjectError {
            kind: self.kind,
            name: self.owned("/metadata/name").unwrap_or_default(),
            missing: path.trim_start_matches('/').replace('/', "."),
        }
    }
}

/// The text of a part of an object, if it is not empty.
pub(super) fn text<'a>(part: &'a Value, path: &str) -> Option<&'a str> {
    part.pointer(path).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// A time of RFC 3339, with or without a fraction, in seconds since 1970.
fn unix_s(text: &str) -> Option<f64> {
    let time: Timestamp = text.parse().ok()?;
    // Of times of our days, exact to less than a microsecond.
    Some(time.as_second() as f64 + f64::from(time.subsec_nanosecond()) / 1e9)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_time_is_read_with_and_without_a_fraction() {
        assert_eq!(unix_s("1970-01-01T00:01:00Z"), Some(60.0));
        assert_eq!(unix_s("1970-01-01T00:01:00.500000Z"), Some(60.5));
        assert_eq!(unix_s("1970-01-01T01:01:00+01:00"), Some(60.0));
        assert_eq!(unix_s("1970-01-01T00:01:00"), None);
        assert_eq!(unix_s("yesterday"), None);
    }

    #[test]
    fn a_time_that_is_there_and_cannot_be_read_is_not_taken_for_none() {
        let object = json!({ "metadata": { "name": "pg-0", "deletionTimestamp": "soon" }, "a": null });
        let fields = Fields::of("Pod", &object).expect("an object");
        assert_eq!(fields.time("/a").expect("absent"), None);
        assert_eq!(fields.time("/b").expect("absent"), None);
        let error = fields.time("/metadata/deletionTimestamp").expect_err("no time");
        assert_eq!(error.to_string(), "Pod `pg-0` has no `metadata.deletionTimestamp` that can be read");
    }

    #[test]
    fn an_object_of_another_kind_and_what_is_no_object_are_refused() {
        assert!(Fields::of("Pod", &json!({ "kind": "Status" })).is_err());
        assert!(Fields::of("Pod", &json!([])).is_err());
        assert!(Fields::of("Pod", &json!({})).is_ok());
    }
}

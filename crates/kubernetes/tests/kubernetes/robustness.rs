//! No JSON makes a reader panic, and what a watch says does not depend on where its lines are cut.

use kubernetes::sightings::{Stream, read_line};
use kubernetes::{Endpoints, Kind, Node, Pod, Sighting, Volume, told};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::stub::object;

const FILES: &str = "attachment claim class endpoint_slice lease node pod volume";

/// Names that readers look for.
const NAMES: &str = "conditions containerStatuses containers creationTimestamp deletionTimestamp endpoints \
                     items kind labels metadata name parameters renewTime spec status taints targetRef uid \
                     volumes";

/// Words that they compare with.
const WORDS: &[&str] = &["Pod", "Node", "EndpointSlice", "Ready", "True", "List"];

/// What may have happened to an object, as a watch says it.
const CHANGES: &[&str] = &["ADDED", "MODIFIED", "DELETED", "ERROR", "BOOKMARK"];

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        "[0-9]{1,5}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,12})?Z".prop_map(Value::from),
        prop::sample::select(WORDS).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 6, |inner| {
        let known = prop::sample::select(NAMES.split(' ').collect::<Vec<_>>());
        let name = prop_oneof![known.prop_map(str::to_owned), "[a-z/.]{0,8}"];
        let members = prop::collection::vec((name, inner.clone()), 0..6);
        prop_oneof![
            prop::collection::vec(inner, 0..6).prop_map(Value::Array),
            members.prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Every reader is shown it, with and without the line of a watch around it.
fn show(value: &Value) {
    let _ = (Pod::read(value), Node::read(value), Endpoints::read(value));
    for claim in [Volume::read(value), Volume::read(&object("claim.json"))].into_iter().flatten() {
        let _ = (claim.clone().with_volume(value), claim.with_class(value));
    }
    let mut sightings = Vec::new();
    for change in CHANGES.iter().chain(&["else"]) {
        let line = json!({ "type": change, "object": value }).to_string();
        for kind in Kind::ALL {
            let _ = read_line(*kind, value.to_string().as_bytes());
            let seen = read_line(*kind, line.as_bytes()).ok().flatten();
            let unix_s = sightings.len() as f64;
            sightings.extend(seen.map(|what| Sighting { unix_s, what }));
        }
    }
    let _ = told(&sightings, "pg-0", 3.0, f64::MAX);
}

/// How many values an object has, itself among them.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(parts) => parts.iter().map(count).sum::<usize>(),
        Value::Object(parts) => parts.values().map(count).sum::<usize>(),
        _ => 0,
    }
}

/// Puts another value in the place of the one of this number.
fn replace(value: &mut Value, number: &mut usize, other: &Value) {
    if *number == 0 {
        *value = other.clone();
    }
    *number = number.wrapping_sub(1);
    match value {
        Value::Array(parts) => parts.iter_mut().for_each(|part| replace(part, number, other)),
        Value::Object(parts) => parts.values_mut().for_each(|part| replace(part, number, other)),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_json_is_read_or_refused(value in any_json()) {
        show(&value);
    }

    #[test]
    fn a_documented_object_with_a_part_changed_is_read_or_refused(
        file in prop::sample::select(FILES.split(' ').collect::<Vec<_>>()),
        at in any::<prop::sample::Index>(),
        other in any_json(),
    ) {
        let mut value = object(&format!("{file}.json"));
        let mut number = at.index(count(&value));
        replace(&mut value, &mut number, &other);
        show(&value);
    }

    #[test]
    fn any_bytes_are_read_or_a_gap(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut stream = Stream::of(Kind::Pods);
        stream.push(&bytes);
        stream.end();
    }

    #[test]
    fn lines_that_are_cut_anywhere_are_the_same_sightings(
        events in prop::collection::vec(
            (prop::sample::select(CHANGES), any::<bool>()),
            0..4,
        ),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        is_ended in any::<bool>(),
    ) {
        let lines = events.iter().map(|(change, is_pod)| {
            let object = object(if *is_pod { "pod.json" } else { "node.json" });
            json!({ "type": change, "object": object }).to_string()
        });
        let text = lines.collect::<Vec<_>>().join("\n") + if is_ended { "\n" } else { "" };
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        at.extend([0, text.len()]);
        at.sort_unstable();
        let (mut whole, mut pieces) = (Stream::of(Kind::Pods), Stream::of(Kind::Pods));
        let mut expected = whole.push(text.as_bytes());
        expected.extend(whole.end());
        let mut found = Vec::new();
        for ends in at.windows(2) {
            found.extend(pieces.push(&text.as_bytes()[ends[0]..ends[1]]));
        }
        found.extend(pieces.end());
        prop_assert_eq!(found, expected);
    }
}

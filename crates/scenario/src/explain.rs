//! Every key of the scenario language in words, for `holdfast explain`: what it means, what it holds, where it stands.
//!
//! Reads the language's own tables, so that it cannot say what the decoder does not read.

use crate::catalogue::{FAULTS, ROLES};
use crate::language::{Fields, SCENARIO, Shape};
use crate::quantity::{Measured, QUANTITIES, QuantityEntry};
use crate::workload_options::OPTIONS;

/// What there is to say of a word of the language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Where it stands: `site.links[].delay`.
    pub path: String,
    /// What it means, one sentence.
    pub meaning: String,
    /// What it holds: `a duration (50ms, 2s)`.
    pub holds: String,
    /// The keys it has, with what each holds and means; empty where it is a single value.
    pub keys: Vec<Key>,
    /// Examples as written in a scenario.
    pub examples: Vec<String>,
}

/// A key of a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// As written.
    pub name: &'static str,
    /// Whether the map is refused without it.
    pub required: bool,
    /// What it holds.
    pub holds: String,
    /// What it means.
    pub meaning: &'static str,
}

/// What there is to say of a word: a key of the language, wherever it stands, or a role. Several where it stands in
/// several places and does not mean the same there; none where it is no word of the language.
#[must_use]
pub fn explain(word: &str) -> Vec<Explanation> {
    let mut found = Vec::new();
    if word == "scenario" {
        found.push(Explanation {
            path: "the whole file".to_owned(),
            meaning: "one file that says everything a run needs".to_owned(),
            holds: "a map".to_owned(),
            keys: keys(&SCENARIO),
            examples: Vec::new(),
        });
    }
    search(&SCENARIO, "", word, &mut found);
    found.extend(OPTIONS.iter().filter(|table| table.workload == word).map(|table| Explanation {
        path: format!("loads[].options of {word}"),
        meaning: format!("what may be set of the workload {word}"),
        holds: "a map".to_owned(),
        keys: keys(table.fields),
        examples: vec![table.example.to_owned()],
    }));
    found.extend(ROLES.iter().filter(|role| role.name == word).map(|role| Explanation {
        path: "a fault's target".to_owned(),
        meaning: role.meaning.to_owned(),
        holds: "a role: stands where a place may stand".to_owned(),
        keys: Vec::new(),
        examples: vec![format!("- {{ power-off: {{ host: {} }}, for: 20s }}", role.name)],
    }));
    found.extend(QUANTITIES.iter().filter(|entry| entry.name == word).map(|entry| Explanation {
        path: format!("expect.{}", entry.name),
        meaning: entry.meaning.to_owned(),
        holds: bound(entry),
        keys: Vec::new(),
        examples: quantity_examples(entry),
    }));
    found
}

/// What an expectation of a quantity holds, and which scope its name may have.
fn bound(entry: &QuantityEntry) -> String {
    format!("a comparison with {}; {}", entry.unit.written(), entry.measured.syntax())
}

/// The quantity without a scope and with one.
fn quantity_examples(entry: &QuantityEntry) -> Vec<String> {
    let (name, example) = (entry.name, entry.example);
    let scoped = match entry.measured {
        Measured::OfRun => &[][..],
        Measured::OfLoad => &["tpcc"][..],
        Measured::InPhase => &["tpcb.fault", "fault", "tpcb.all"][..],
        Measured::AfterFault => &["tpcb.power-off", "fault-2"][..],
    };
    let names = [name.to_owned()].into_iter().chain(scoped.iter().map(|scope| format!("{scope}.{name}")));
    names.map(|name| format!("expect: {{ {name}: \"{example}\" }}")).collect()
}

/// Every word that [`explain`] knows, sorted.
#[must_use]
pub fn words() -> Vec<&'static str> {
    let mut words = vec!["scenario"];
    collect(&SCENARIO, &mut words);
    words.extend(ROLES.iter().map(|role| role.name));
    words.extend(QUANTITIES.iter().map(|entry| entry.name));
    words.sort_unstable();
    words.dedup();
    words
}

fn collect(fields: &'static Fields, words: &mut Vec<&'static str>) {
    for field in fields.fields {
        words.push(field.name);
        maps(&field.shape, &mut |inner, _| collect(inner, words));
    }
}

fn search(fields: &'static Fields, path: &str, word: &str, found: &mut Vec<Explanation>) {
    for field in fields.fields {
        let here = if path.is_empty() { field.name.to_owned() } else { format!("{path}.{}", field.name) };
        if field.name == word {
            let mut inner = Vec::new();
            maps(&field.shape, &mut |map, _| inner.extend(keys(map)));
            if matches!(field.shape, Shape::Expectations) {
                inner.extend(QUANTITIES.iter().map(quantity_key));
            }
            let said = Explanation {
                path: here.clone(),
                meaning: field.meaning.to_owned(),
                holds: holds(&field.shape),
                keys: inner,
                examples: examples(word),
            };
            // The same table stands in several places, such as a pair of ends in links and faults.
            let is_same =
                |other: &Explanation| (&other.meaning, &other.holds) == (&said.meaning, &said.holds);
            if !found.iter().any(is_same) {
                found.push(said);
            }
        }
        maps(&field.shape, &mut |map, suffix| search(map, &format!("{here}{suffix}"), word, found));
    }
}

fn examples(word: &str) -> Vec<String> {
    if word == "matrix" || word == "axes" {
        let one = "matrix: { axes: { loads.0.clients: [1, 8] }, repeat: 3 }";
        let other = "matrix: { axes: { disks: { kept: { database.volumes: virtual }, torn: { database.volumes: torn } } } }";
        return vec![one.to_owned(), other.to_owned()];
    }
    if word == "expect" {
        return [
            "expect: { lost_writes: 0, recovery: < 30s }",
            "expect: { tpcb.fault.latency_p99: < 50ms, tpcb.baseline.throughput_per_s: \"> 100/s\" }",
            "expect: { power-off.gap: < 10s, fault-2.below_50_percent: < 5s, errors_timeout: 0 }",
        ]
        .map(str::to_owned)
        .to_vec();
    }
    let fault = FAULTS.iter().find(|fault| fault.name == word);
    fault.map_or_else(Vec::new, |fault| fault.examples.iter().map(|text| (*text).to_owned()).collect())
}

fn keys(fields: &'static Fields) -> Vec<Key> {
    let key = |field: &'static crate::language::Field| Key {
        name: field.name,
        required: field.required,
        holds: holds(&field.shape),
        meaning: field.meaning,
    };
    fields.fields.iter().map(key).collect()
}

fn quantity_key(entry: &'static QuantityEntry) -> Key {
    Key { name: entry.name, required: false, holds: bound(entry), meaning: entry.meaning }
}

/// Every map within a shape, with what stands between the key and the map's own keys in a path.
fn maps(shape: &'static Shape, visit: &mut dyn FnMut(&'static Fields, &str)) {
    match shape {
        Shape::Map(map) => visit(map, ""),
        Shape::Named(of) => maps(of, &mut |map, suffix| visit(map, &format!(".NAME{suffix}"))),
        Shape::List { of, .. } => maps(of, &mut |map, suffix| visit(map, &format!("[]{suffix}"))),
        Shape::Either(shapes) => shapes.iter().for_each(|shape| maps(shape, visit)),
        Shape::Options => {
            OPTIONS.iter().for_each(|table| visit(table.fields, &format!(" of {}", table.workload)))
        }
        _ => {}
    }
}

fn holds(shape: &Shape) -> String {
    match shape {
        Shape::Text => "text".to_owned(),
        Shape::PathWithin => "a path within the scenario's folder (scripts/move.sql)".to_owned(),
        Shape::Version(versions) => {
            format!("one of {}", versions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        }
        Shape::Name => "a name: small letters, digits and hyphens".to_owned(),
        Shape::Place => "a place (dc1, dc1/a/r1/h2)".to_owned(),
        Shape::Word(words) => format!("one of {}", words.join(", ")),
        Shape::Count { least, most } if *most == u64::MAX => format!("a whole number, {least} or more"),
        Shape::Count { least, most } => format!("a whole number, {least} to {most}"),
        Shape::Positive => "a number above zero".to_owned(),
        Shape::Duration => "a duration (50ms, 2s, 5m)".to_owned(),
        Shape::BitRate => "a bit rate (10Mbit/s)".to_owned(),
        Shape::Size => "a size (64KiB, 1500B)".to_owned(),
        Shape::Flag => "true or false".to_owned(),
        Shape::Packets => "a number of packets (100 packets)".to_owned(),
        Shape::Percent => "a percentage (0.5%)".to_owned(),
        Shape::Synchronous => "off, all, or any N".to_owned(),
        Shape::Setting => "text, a number or a boolean, handed on as it stands".to_owned(),
        Shape::Expectations => "quantities, each with a comparison; a quantity's name may have a scope before it, \
                                LOAD.PHASE.QUANTITY or LOAD.FAULT.QUANTITY. A part that is left out, or `*`, stands for each: the \
                                expectation must hold in the worst load, phase (warm-up left out) and fault; errors are added up. \
                                PHASE `all` is all phases but warm-up taken together. FAULT is the phase it strikes in, its kind, \
                                or fault-1, fault-2 ... in the order of the schedule"
            .to_owned(),
        Shape::Map(_) => "a map".to_owned(),
        Shape::Named(_) => "a map by names of your choice".to_owned(),
        Shape::Rate => "a rate (2000/s)".to_owned(),
        Shape::Options => "a map of the workload's own options".to_owned(),
        Shape::Figures => crate::figures::in_words(),
        Shape::Settings(_) => "a map of the database's own settings".to_owned(),
        Shape::List { of, .. } => format!("a list; each element {}", holds(of)),
        Shape::Axes => {
            "a map: the path of a setting with a list of values, or a name with sets of settings, each by path".to_owned()
        }
        Shape::Either(shapes) => shapes.iter().map(holds).collect::<Vec<_>>().join("; or "),
    }
}

pub use crate::wording::nearest;

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(word: &str) -> Vec<String> {
        explain(word).into_iter().map(|explanation| explanation.path).collect()
    }

    #[test]
    fn a_word_is_explained_where_it_stands() {
        assert_eq!(paths("edges"), ["site.edges"]);
        assert_eq!(paths("around"), ["site.edges[].around"]);
        assert_eq!(paths("zones"), ["site.regions.NAME.zones"]);
        assert_eq!(paths("leader"), ["database.leader", "a fault's target"]);
        assert_eq!(paths("lost_writes"), ["expect.lost_writes"]);
        assert_eq!(paths("no-such-word"), [""; 0]);
    }

    #[test]
    fn a_fault_has_its_keys_and_its_examples() {
        let partition = &explain("partition")[0];
        assert_eq!(partition.path, "schedule[].faults[].partition");
        assert!(partition.keys.iter().any(|key| key.name == "bridge"));
        assert!(partition.examples.iter().any(|example| example.contains("isolate: leader")));
    }

    #[test]
    fn a_workload_has_its_options_and_an_example_that_is_accepted() {
        assert_eq!(paths("span_limit"), ["loads[].options of kv.span_limit"]);
        for table in OPTIONS {
            let explained = explain(table.workload);
            let options = explained.iter().find(|one| one.path.contains("options of")).expect("its options");
            assert_eq!(options.keys.len(), table.fields.fields.len());
            let text = include_str!("../../../scenarios/kv.yaml");
            let load = text.lines().find(|line| line.contains("workload: kv")).expect("a load");
            let text = text.replace(load.trim_start(), table.example);
            let source = crate::Source { name: table.workload.to_owned(), text };
            let able = |engine: &&capabilities::Capabilities| engine.understands.workload(table.workload);
            let engine = capabilities::ENGINES.iter().find(able).expect("an engine for it").name;
            let set = [("expect", "{ errors: < 1000 }"), ("database.engine", engine)];
            let read = crate::parse(&source, &set.map(|(path, value)| (path.to_owned(), value.to_owned())));
            assert!(read.is_ok(), "{}: {:?}", table.example, read.err().map(|error| format!("{error:?}")));
        }
    }

    #[test]
    fn every_word_of_the_language_has_an_explanation() {
        for word in words() {
            assert!(!explain(word).is_empty(), "{word}");
        }
    }
}

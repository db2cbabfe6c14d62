//! Every key of the scenario language in words, for `holdfast explain`: what it means, what it holds, where it stands.
//!
//! Reads the language's own tables, so that it cannot say what the decoder does not read.

use capabilities::workloads::OPTIONS;

use crate::catalogue::ROLES;
use crate::faults::fault_kind;
use crate::file::SCENARIO;
use crate::quantity::{self, Measured, QUANTITIES, QuantityEntry};

pub use yaml::explain::{Explanation, Key};
use yaml::explain::{ends_with, keys};

/// The word under which there is more to say than the language does: what stands in an engine's file.
pub const ENGINE: &str = "engine";

/// The key under which a load's workload has its own keys.
const OPTIONS_KEY: &str = "options";

/// What there is to say of a word: a key of the language, wherever it stands, or a role. Several where it stands in
/// several places and does not mean the same there; none where it is no word of the language. Of a dotted path
/// (`loads.0.clients`) the last key is explained, where it stands below the others if it does anywhere.
#[must_use]
pub fn explain(word: &str) -> Vec<Explanation> {
    let keys: Vec<&str> = word.split('.').filter(|key| key.parse::<u32>().is_err()).collect();
    let [.., last] = keys[..] else { return Vec::new() };
    let mut found = of_word(last);
    if keys.len() > 1 {
        let is_there = |one: &Explanation| ends_with(&one.path, &keys);
        if found.iter().any(is_there) {
            found.retain(is_there);
        }
    }
    found
}

fn of_word(word: &str) -> Vec<Explanation> {
    let mut found = Vec::new();
    if word == "scenario" {
        found.push(Explanation {
            path: "the whole file".to_owned(),
            meaning: "the file that describes a run".to_owned(),
            holds: "a map".to_owned(),
            keys: keys(&SCENARIO),
            examples: Vec::new(),
        });
    }
    yaml::explain::search(&SCENARIO, "", word, &mut found);
    found.iter_mut().for_each(|explanation| explanation.examples = examples(word, &explanation.path));
    // Each workload has its own, and some names mean something else in another.
    found.iter_mut().filter(|_| word == OPTIONS_KEY).for_each(|explanation| explanation.keys.clear());
    let told = OPTIONS.iter().filter(|table| word == OPTIONS_KEY || table.workload == word);
    found.extend(told.map(|table| Explanation {
        path: format!("loads[].options of {}", table.workload),
        meaning: format!("what may be set of the workload {}", table.workload),
        holds: "a map".to_owned(),
        keys: keys(table.fields),
        examples: vec![table.example.to_owned()],
    }));
    found.extend(ROLES.iter().filter(|role| role.name == word).map(|role| Explanation {
        path: "a fault's target".to_owned(),
        meaning: role.meaning.to_owned(),
        holds: "a role, usable wherever a fault takes a place".to_owned(),
        keys: Vec::new(),
        examples: vec![format!("- {{ power-off: {{ host: {} }}, for: 20s }}", role.name)],
    }));
    found.extend(QUANTITIES.iter().filter(|entry| entry.name == word).map(|entry| Explanation {
        path: format!("expect.{}", entry.name),
        meaning: entry.meaning.to_owned(),
        holds: quantity::bound(entry),
        keys: Vec::new(),
        examples: quantity_examples(entry),
    }));
    found
}

/// The quantity without a scope and with one.
fn quantity_examples(entry: &QuantityEntry) -> Vec<String> {
    let (name, example) = (entry.name, entry.example);
    let workloads = entry.needs.workloads();
    let a_load = &workloads[..workloads.len().min(1)];
    let with_a_fault: Vec<&str> = a_load.iter().copied().chain(["power-off"]).collect();
    let scoped = match entry.measured {
        Measured::OfRun => &[][..],
        Measured::OfRunOrLoad | Measured::OfLoad => a_load,
        Measured::OfRunLoadOrFault => with_a_fault.as_slice(),
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
    yaml::explain::words(&SCENARIO, &mut words);
    words.extend(ROLES.iter().map(|role| role.name));
    words.extend(QUANTITIES.iter().map(|entry| entry.name));
    words.sort_unstable();
    words.dedup();
    words
}

/// Examples of a word where it stands at `path`: the name of a fault may be a key of something else as well.
fn examples(word: &str, path: &str) -> Vec<String> {
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
    if path == "site.network" {
        return vec!["site: { network: { path: kernel } }".to_owned()];
    }
    let fault = fault_kind(word).filter(|_| !path.starts_with("site."));
    fault.map_or_else(Vec::new, |fault| fault.examples.iter().map(|text| (*text).to_owned()).collect())
}

pub use yaml::wording::nearest;

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
        let leader = ["database.leader", "cluster.kubernetes.role.leader", "a fault's target"];
        assert_eq!(paths("leader"), leader);
        assert_eq!(paths("stateful-set"), ["cluster.kubernetes.stateful-set"]);
        assert_eq!(paths("lost_writes"), ["expect.lost_writes"]);
        assert_eq!(paths("no-such-word"), [""; 0]);
        assert_eq!(paths("site.regions.dc1.zones"), ["site.regions.NAME.zones"]);
        assert_eq!(paths("loads.0.clients"), ["loads[].clients"]);
        assert_eq!(paths("tpcb.fault.latency_p99"), paths("latency_p99"));
        assert_eq!(paths("site.no-such-word"), [""; 0]);
        assert_eq!(paths("0"), [""; 0]);
    }

    #[test]
    fn a_fault_has_its_keys_and_its_examples() {
        let partition = &explain("partition")[0];
        assert_eq!(partition.path, "schedule[].faults[].partition");
        assert!(partition.keys.iter().any(|key| key.name == "bridge"));
        assert!(partition.examples.iter().any(|example| example.contains("isolate: leader")));
    }

    #[test]
    fn a_key_with_the_name_of_a_fault_has_examples_of_its_own() {
        let told = explain("network");
        let examples = |path: &str| &told.iter().find(|one| one.path == path).expect("told").examples;
        assert_eq!(examples("site.network"), &["site: { network: { path: kernel } }"]);
        assert!(examples("schedule[].faults[].network").iter().all(|example| example.contains("network: {")));
        assert!(examples("schedule[].faults[].network").len() > 1);
    }

    #[test]
    fn expect_is_explained_with_every_quantity() {
        let explained = &explain("expect")[0];
        let told: Vec<&str> = explained.keys.iter().map(|key| key.name).collect();
        assert_eq!(told, QUANTITIES.iter().map(|entry| entry.name).collect::<Vec<_>>());
    }

    #[test]
    fn options_are_told_workload_by_workload() {
        let found = explain("options");
        assert!(found[0].path == "loads[].options" && found[0].keys.is_empty(), "{:?}", found[0]);
        let workloads: Vec<&str> =
            found[1..].iter().filter_map(|one| one.path.strip_prefix("loads[].options of ")).collect();
        assert_eq!(workloads, OPTIONS.iter().map(|table| table.workload).collect::<Vec<_>>());
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
            let able = |engine: &&&capabilities::Capabilities| engine.understands.workload(table.workload);
            let engine = capabilities::engines().iter().find(able).expect("an engine for it").name;
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

//! The JSON Schema and the decoder agree: both know the same keys, and what the schema refuses, parsing refuses.

use std::collections::BTreeSet;

use capabilities::VOLUME_WORKLOAD;
use capabilities::workloads::{OPTIONS, OptionTable};
use saphyr_parser::{Event, Parser, ScalarStyle};
use scenario::quantity::Needs;
use scenario::{FAULT_KINDS, Source, json_schema, parse, to_yaml};
use serde_json::{Map, Value, json};

/// YAML to JSON by YAML's own types, as an editor sees it.
fn json_of(text: &str) -> Value {
    let mut events = Parser::new_from_str(text).map(|event| event.unwrap().0);
    loop {
        match events.next().unwrap() {
            Event::StreamStart | Event::DocumentStart(_) => {}
            event => return node(event, &mut events),
        }
    }
}

fn node<'t>(event: Event<'t>, events: &mut impl Iterator<Item = Event<'t>>) -> Value {
    match event {
        Event::Scalar(text, ScalarStyle::Plain, ..) => {
            serde_json::from_str(&text).unwrap_or_else(|_| json!(text))
        }
        Event::Scalar(text, ..) => json!(text),
        Event::SequenceStart(..) => {
            let mut items = Vec::new();
            loop {
                match events.next().unwrap() {
                    Event::SequenceEnd => return Value::Array(items),
                    event => items.push(node(event, events)),
                }
            }
        }
        Event::MappingStart(..) => {
            let mut map = Map::new();
            loop {
                match events.next().unwrap() {
                    Event::MappingEnd => return Value::Object(map),
                    Event::Scalar(key, ..) => {
                        let value = events.next().unwrap();
                        map.insert(key.into_owned(), node(value, events));
                    }
                    other => panic!("{other:?} as a key"),
                }
            }
        }
        other => panic!("{other:?} as a value"),
    }
}

/// A small scenario with axes of both forms: every combination is read.
fn over_a_matrix() -> Value {
    json!({
        "name": "matrix",
        "site": { "regions": { "dc1": { "zones": { "a": { "hosts": 1 } } } } },
        "database": { "engine": "postgres", "nodes": 1 },
        "loads": [{ "workload": "ledger", "clients": 1 }],
        "schedule": [{ "phase": "baseline", "for": "5s" }],
        "matrix": { "axes": {
            "loads.0.clients": [1, 8],
            "disks": { "kept": { "database.volumes": "virtual" }, "torn": { "database.volumes": "torn" } }
        }, "repeat": 2 }
    })
}

/// An engine that is a file and whose clients choose by how many nodes they are answered.
fn with_consistency() -> Value {
    let text = "engine: mine\nsummary: Mine\nfind: { programs: [mine], version: { command: [mine, --version] }, at-least: \"1\" }\n\
        ports: { client: 9042 }\nprocesses: [{ name: mine, command: [mine], ready: { tcp: client } }]\n\
        roles: none\nclient: { protocol: cql }\n\
        claims: { isolation: read-committed }\ntested: { here: false, from: nowhere }\n\
        paper: { commit: each-request, quorum: per-request }\n";
    json!({
        "name": "consistency",
        "site": { "regions": { "dc1": { "zones": { "a": { "hosts": 1 } } } } },
        "database": { "engine": { "file": "mine.yaml", "text": text }, "nodes": 1,
            "replication": { "copies": 1 } },
        "loads": [{ "workload": "kv", "clients": 1, "consistency": "local-quorum" },
            { "workload": "register", "clients": 1, "consistency": { "reads": "one", "writes": "all", "timestamps": "coordinator" },
                "options": { "compare_and_set": "off" } }],
        "schedule": [{ "phase": "baseline", "for": "5s" }]
    })
}

/// An engine whose nodes run several programs, one of which a fault means.
fn one_program_of_several() -> Value {
    json!({
        "name": "programs",
        "site": { "regions": { "dc1": { "zones": { "a": { "hosts": 3 } } } } },
        "database": { "engine": "patroni", "version": "3.0", "nodes": 3 },
        "loads": [{ "workload": "ledger", "clients": 1 }],
        "schedule": [{ "phase": "baseline", "for": "5s" },
            { "phase": "fault", "for": "5s", "faults": [{ "process": { "of": "n1", "how": "restart", "only": "etcd" } }] }],
        "expect": { "leader_changes": 0, "split_brains": "< 2" }
    })
}

/// Every example of every kind of fault. A run has one upgrade: the others of its examples stand in scenarios of their own.
fn every_example() -> Vec<Value> {
    let (upgrades, faults): (Vec<Value>, Vec<Value>) = examples(|kind| kind != EXTERNAL)
        .into_iter()
        .partition(|fault| fault.get("rolling-upgrade").is_some());
    let alone = upgrades.into_iter().map(|upgrade| with_faults(vec![upgrade]));
    std::iter::once(with_faults(faults)).chain(alone).collect()
}

fn with_faults(faults: Vec<Value>) -> Value {
    json!({
        "name": "examples",
        "site": {
            "regions": {
                "dc1": { "zones": { "a": { "racks": { "r1": { "hosts": 2 }, "r2": { "hosts": 1 } } } } },
                "dc2": { "zones": { "a": { "hosts": 1 } } }
            },
            "disks": { "cache": true }
        },
        "database": { "engine": "postgres", "nodes": 3 },
        "loads": [{ "workload": "ledger", "clients": 1, "from": "dc1" }],
        "schedule": [{ "phase": "baseline", "for": "5s" },
            { "phase": "fault", "for": "40s", "faults": faults }]
    })
}

/// The kind of fault that strikes machines that exist.
const EXTERNAL: &str = "external";

/// The examples of kinds of faults.
fn examples(of: fn(&str) -> bool) -> Vec<Value> {
    let kinds = FAULT_KINDS.iter().filter(|kind| of(kind.name));
    kinds.flat_map(|kind| kind.examples).map(|example| json_of(example)[0].clone()).collect()
}

/// A cluster that exists, with every example of a fault of it.
fn on_a_cluster() -> Value {
    let mut faults = examples(|kind| kind == EXTERNAL);
    faults.push(
        json!({ "external": { "command": { "file": "mine.yaml", "text": "fault: mine" }, "of": "db1" } }),
    );
    json!({
        "name": "cluster", "target": EXTERNAL,
        "cluster": {
            "engine": "postgres", "database": "app", "user": "loader", "ssh-config": "/etc/lab/ssh_config",
            "may-break": ["db1", "db2", "db3"],
            "agent-lost": "go-on",
            "agents": { "a1": { "reach": { "ssh": "loader@load1" }, "program": "/opt/holdfast" }, "a2": { "reach": { "local": [] } } },
            "members": {
                "db1": { "endpoint": "10.0.0.1:5432", "reach": { "ssh": "root@db1" }, "facts": { "unit": "postgresql", "shards": 3 } },
                "db2": { "endpoint": "db2.example.org:5432", "reach": { "local": ["nsenter", "--net=/run/netns/db2"] } },
                "db3": { "endpoint": "[fd00::3]:5432", "reach": { "local": [] } }
            }
        },
        "loads": [{ "workload": "ledger", "clients": 2, "agents": ["a1", "a2"] }],
        "schedule": [{ "phase": "baseline", "for": "5s" }, { "phase": "fault", "for": "40s", "faults": faults }]
    })
}

/// A cluster of pods, with every key of theirs.
fn in_pods() -> Value {
    json!({
        "name": "pods", "target": "kubernetes",
        "cluster": {
            "engine": "postgres", "may-break": ["pg-0", "pg-1"],
            "kubernetes": {
                "namespace": "databases", "context": "kind-lab", "kubeconfig": "/etc/lab/kubeconfig",
                "stateful-set": "pg", "replicas": 2, "container": "postgres", "port": 5432,
                "role": { "label": "cnpg.io/instanceRole", "leader": ["primary", "master"] },
                "agents": { "image": "images.example.org/holdfast:1", "count": 2, "program": "/opt/holdfast" }
            }
        },
        "loads": [{ "workload": "ledger", "clients": 2 }],
        "schedule": [{ "phase": "baseline", "for": "5s" }, { "phase": "fault", "for": "9s", "faults": [
            { "external": { "command": "kubernetes-pod-delete", "of": "leader" } }] }]
    })
}

/// The same, with the pods by name.
fn in_pods_by_name() -> Value {
    let mut named = in_pods();
    named["cluster"]["kubernetes"] = json!({ "pods": ["pg-0", "pg-1"] });
    named
}

/// A load of each workload that has a default for all of its options, with these written out.
fn by_their_defaults() -> impl Iterator<Item = Value> {
    let has_all = |table: &&&OptionTable| table.defaults.len() == table.fields.fields.len();
    OPTIONS.iter().filter(has_all).filter(|table| table.workload != VOLUME_WORKLOAD).map(|table| {
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_else(|_| json!(text));
        let defaults = table.defaults.iter().map(|(name, absent)| ((*name).to_owned(), value(absent)));
        let options: Map<String, Value> = defaults.collect();
        json!({ "workload": table.workload, "clients": 2, "options": options })
    })
}

/// Loads with every key of theirs, and every option of every workload.
fn loads() -> Value {
    let mut loads = json!([
        { "workload": "tpcb", "scale": 1, "clients": 4, "from": "dc1", "timeout": "2s", "name": "accounts" },
        { "workload": "ledger", "clients": 2, "think_time": { "exponential": "50ms" }, "sweep": { "clients": [1, 2] } },
        { "workload": "tpcb", "name": "rising", "clients": 9, "ramp": { "from": 1, "to": 9, "over": "5s" } },
        { "workload": "tpcb", "name": "falling", "clients": 9, "ramp": { "from": "90/s", "to": "9/s", "over": "5s" } },
        { "workload": "script", "name": "own", "clients": 1, "options": { "scripts": [{ "file": "own.sql" }] } },
        { "workload": "tpcb", "name": "due", "clients": 9, "rate": "2000/s", "arrival": "poisson" },
        { "workload": "bank", "clients": 9, "sweep": { "rate": ["0.5/s", "20/s"] }, "options": { "isolation": "serializable" } },
        { "workload": "tpcc", "clients": 2, "options": { "pauses": "on", "mix": "weights", "deliveries": "at-once",
            "isolation": "read-committed" } },
        { "workload": "append", "clients": 9, "think_time": "1.5s", "options": { "isolation": "repeatable-read" } },
        { "workload": "kv", "clients": 2, "reads": "any", "options": { "read": "50%", "span": "10%", "span_limit": 7, "batch": 2, "block_min": 3,
            "block_max": 9, "keys": 1000, "order": "zipfian", "exponent": 1.2, "preload": 5 } },
        { "workload": "ycsb", "clients": 2, "options": { "workload": "b", "read": "20%", "update": "20%", "insert": "20%",
            "scan": "20%", "read_modify_write": "20%", "distribution": "hotspot", "records": 50, "fields": 2, "field_length": 20,
            "read_all_fields": "off", "write_all_fields": "on", "scan_length": 9, "hotspot_keys": "1%",
            "hotspot_operations": "99%", "insert_order": "ordered" } },
        { "workload": "script", "clients": 2, "options": { "scripts": [{ "builtin": "select-only", "weight": 2 },
            { "text": "SELECT 1;\nSELECT 2;", "name": "mine" }], "setup": "CREATE TABLE t (a int)",
            "conditions": { "none-negative": "SELECT a FROM t WHERE a < 0" } } }
    ]);
    loads.as_array_mut().unwrap().extend(by_their_defaults());
    loads
}

/// A site with every key of sites, links and disks.
fn site() -> Value {
    json!({
        "ip": 6,
        "regions": {
            "dc1": { "zones": { "a": { "racks": { "r1": { "hosts": 2 }, "r2": { "hosts": ["alpha", "beta"] } } } } },
            "dc2": { "zones": { "a": { "hosts": 1 }, "b": { "hosts": ["gamma"] } } }
        },
        "links": [{ "between": ["dc1", "dc2"], "delay": "5ms" }, { "from": "dc1/a", "to": "dc2/b", "delay": "50ms", "rate": "4Mbit/s" },
            { "between": ["dc1/a", "dc2/a"], "rate": "1.5Gbit/s", "queue": "512KiB" },
            { "from": "r1", "to": "r2", "delay": "5ms", "jitter": "1ms", "loss": "0.1%", "duplicate": "1%", "reorder": "2%", "corrupt": "0.01%" },
            { "from": "r2", "to": "r1", "delay": "5ms", "jitter": { "uniform": "5ms" } },
            { "from": "r2", "to": "dc2", "delay": "5ms", "jitter": { "pareto": "2ms" }, "mtu": "1400B" }],
        "edges": [{ "name": "north", "around": "dc2", "rate": "1Gbit/s", "queue": "100 packets" }],
        "busy-poll": "50us",
        "network": { "path": "kernel" },
        "storage_classes": { "fast": { "metadata": "own-device", "flush": "never", "buffer": "4MiB" } },
        "disks": { "capacity": 3, "groups": 2, "cache": true, "sync": { "latency": "400us", "at-once": 8, "per-second": "200MiB" } }
    })
}

/// What is read and not written back does nothing: a run reads what was written.
#[test]
fn every_key_of_the_language_is_written_back() {
    let read = |text: &str| {
        let source = Source { name: "full.yaml".to_owned(), text: text.to_owned() };
        parse(&source, &[]).unwrap_or_else(|rejection| panic!("{text}: {:?}", rejection.problems()))
    };
    for document in full().into_iter().filter(|document| document.get("matrix").is_none()) {
        let mut scenario = read(&document.to_string());
        let written = to_yaml(&scenario, 42);
        scenario.seed = Some(42);
        assert_eq!(read(&written), scenario, "{document}");
    }
}

/// Between them these hold every key of the language.
fn full() -> Vec<Value> {
    let expect: Map<String, Value> = scenario::quantity::QUANTITIES
        .iter()
        .filter(|entry| !matches!(entry.needs, Needs::Leader | Needs::Election))
        .map(|entry| (entry.name.to_owned(), json!(entry.example)))
        .collect();
    let first = json!({
        "name": "full", "description": "everything", "seed": 7, "target": "lab",
        "reproduces": { "report": "FR-3", "figures": { "latency_ms_mean": 53.0, "tps": 18 },
            "baseline": { "latency_ms_mean": 5.0 },
            "steps": [{ "step": "150 threads", "figures": { "tps": 18 } }] },
        "site": site(),
        "database": {
            "engine": "postgres", "path": "/usr/lib/postgresql/15/bin", "nodes": 3, "leader": "r1/h1",
            "replication": { "synchronous": "any 1" }, "failover": { "ha-restart": { "after": "5s" } },
            "settings": { "shared_buffers": "64MB", "fsync": true, "max_connections": 5000 }, "cpus": 1.5,
            "volumes": "torn",
            "interference": "expected",
            "platform": { "host_memory": "64GiB", "node_memory": "16GiB", "host_nodes": 3, "priority": ["n2", "n1"],
                "rules": [{ "apart": "racks", "nodes": ["n1", "n2"], "strength": "should" }, { "within": ["dc1", "dc2"] }],
                "admission": "one-host-failure", "drs": "eager", "isolation": "power-off",
                "time_service": { "how": "slew", "poll": "4s", "notice": "1s" } },
            "storage": { "replicas": 2, "acknowledge": "semi", "apart": "racks", "rebuild_after": "60s", "timeout": "2s",
                "unreachable_after": "20s",
                "promote": "forced", "class": "fast" }
        },
        "loads": loads(),
        "schedule": [
            { "phase": "baseline", "for": "15s" },
            { "phase": "fault", "for": "25s", "faults": [
                { "power-off": { "host": "leader" }, "at": "1s", "for": "2s", "every": "12s" },
                { "power-off": { "rack": "r2" } },
                { "network": { "from": "dc1", "to": "leader", "delay": "50ms", "jitter": { "normal": "3ms" }, "loss": "10%" }, "for": "20s" },
                { "network": { "between": ["dc1", "a-follower"], "delay": "0ms", "jitter": { "exponential": "3ms" }, "reorder": "1%" } },
                { "partition": { "isolate": "random" }, "flap": { "down": "1s", "up": "500ms" } },
                { "partition": { "from": "r1", "to": "r2", "answer": "silence" } },
                { "disk": { "disk": "r1/h2/d3", "how": "lose-flush" } },
                { "disk": { "of": "leader", "how": { "corrupt": { "reads": "1%", "checksums": true } } } },
                { "disk": { "cache-of": "random", "how": { "slow": "20ms" } } }
            ] }
        ],
        "expect": expect
    });
    let second = chosen_otherwise(&first);
    let third = without_a_database(&second);
    let in_the_lab = in_a_cluster_of_the_lab(&first);
    let (programs, cluster) = (one_program_of_several(), on_a_cluster());
    let (pods, named) = (in_pods(), in_pods_by_name());
    let mut all = vec![
        first,
        second,
        third,
        in_the_lab,
        over_a_matrix(),
        with_consistency(),
        programs,
        cluster,
        pods,
        named,
    ];
    all.extend(every_example());
    all
}

/// The same with the other of keys that exclude each other.
fn chosen_otherwise(first: &Value) -> Value {
    let mut second = first.clone();
    second["database"]["nodes"] = json!(["r1/h1", "r2", "dc2"]);
    second["database"].as_object_mut().unwrap().remove("leader");
    second["expect"] = json!({ "lost_writes": 0, "accounts.fault.latency_p99": "< 50ms", "fault-1.gap": "< 5s",
        "accounts.*.errors_timeout": 0, "tpcc.tpmC": "> 10" });
    second["database"]["platform"].as_object_mut().unwrap().remove("admission");
    second["database"]["failover"] = json!({ "promote": { "after": "3s" } });
    second["schedule"][1]["faults"] = json!([{ "power-off": { "zone": "dc2/b" } }, { "power-off": { "region": "dc1" }, "at": "3s" },
            { "partition": { "between": ["dc1", "dc2"], "answer": "reset" } }, { "partition": { "halves": "nodes" } },
            { "partition": { "bridge": "a-follower" } }, { "partition": { "ring": "nodes" } },
            { "disk": { "of": "a-follower", "how": { "fail-after": 100 } } }]);
    second
}

fn without_a_database(other: &Value) -> Value {
    let mut third = other.clone();
    third["database"]["engine"] = json!("none");
    third["database"]["settings"] = json!({});
    third["loads"] = json!([{ "workload": "rawio", "clients": 1, "options": { "block": 1024, "count": 20, "random": 20,
        "direct": "on", "durable": "each" } }]);
    third["expect"] = json!({ "errors": "0" });
    third
}

/// The same with the database in pods, to which `cpus` does not apply.
fn in_a_cluster_of_the_lab(first: &Value) -> Value {
    let mut other = first.clone();
    other["database"]["on"] = json!({ "kubernetes": { "times": "short" } });
    other["database"].as_object_mut().unwrap().remove("cpus");
    other["site"].as_object_mut().unwrap().remove("ip");
    other
}

/// JSON is YAML: the same document goes to both.
fn parses(document: &Value) -> Result<(), String> {
    let source = Source { name: "document".to_owned(), text: document.to_string() };
    parse(&source, &[]).map(|_| ()).map_err(|rejection| format!("{rejection}: {:?}", rejection.problems()))
}

/// Every pointer to a value of the document.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(map) => {
            map.iter().for_each(|(key, value)| pointers(value, &format!("{at}/{key}"), found))
        }
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, value)| pointers(value, &format!("{at}/{index}"), found));
        }
        _ => {}
    }
}

#[test]
fn the_schema_is_a_schema_and_holds_for_every_shipped_scenario() {
    let schema = json_schema();
    jsonschema::meta::validate(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let document = json_of(&std::fs::read_to_string(&path).unwrap());
            validator.validate(&document).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }
    for document in full() {
        validator
            .validate(&document)
            .unwrap_or_else(|error| panic!("full: {error} at {}", error.instance_path()));
        parses(&document).unwrap();
    }
}

#[test]
fn every_key_of_the_schema_stands_in_the_full_documents() {
    fn keys(schema: &Value, found: &mut Vec<String>) {
        match schema {
            Value::Object(map) => {
                if let Some(Value::Object(properties)) = map.get("properties") {
                    found.extend(properties.keys().cloned());
                }
                map.values().for_each(|value| keys(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| keys(value, found)),
            _ => {}
        }
    }
    let mut known = Vec::new();
    keys(&json_schema(), &mut known);
    let mut present = Vec::new();
    full().iter().for_each(|document| pointers(document, "", &mut present));
    for key in known {
        assert!(
            present.iter().any(|pointer| pointer.ends_with(&format!("/{key}"))),
            "{key} is in no document"
        );
    }
}

#[test]
fn every_value_of_the_full_documents_is_read_by_the_decoder() {
    for document in full() {
        let mut all = Vec::new();
        pointers(&document, "", &mut all);
        for pointer in all {
            let mut broken = document.clone();
            *broken.pointer_mut(&pointer).unwrap() = json!([[[]]]);
            assert!(parses(&broken).is_err(), "nobody looks at {pointer}");
        }
    }
}

/// Every change of one place of each of these documents: how many were tried, and how many the schema refuses. Takes every
/// second place, from `first` on.
fn changed(validator: &jsonschema::Validator, places: &[(&Value, String)], first: usize) -> (usize, usize) {
    let (mut tried, mut refused) = (0, 0);
    let mut compare = |document: &Value, how: &str| {
        tried += 1;
        if !validator.is_valid(document) {
            refused += 1;
            assert!(parses(document).is_err(), "the schema refuses and parsing accepts: {how}");
        }
    };
    let values = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(7),
        json!("7"),
        json!("x"),
        json!("X y"),
        json!(""),
        json!("5s"),
        json!("50%"),
        json!([]),
        json!({}),
        json!(["a"]),
        json!({ "a": 1 }),
        json!("none"),
    ];
    for (document, pointer) in places.iter().skip(first).step_by(2) {
        let document: &Value = document;
        for value in &values {
            let mut changed = document.clone();
            *changed.pointer_mut(pointer).unwrap() = value.clone();
            compare(&changed, &format!("{pointer} = {value}"));
        }
        let Some(map) = document.pointer(pointer).unwrap().as_object() else { continue };
        for key in map.keys() {
            let mut changed = document.clone();
            changed.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(key);
            compare(&changed, &format!("{pointer} without {key}"));
        }
        let mut changed = document.clone();
        changed.pointer_mut(pointer).unwrap()["no-such-key"] = json!(1);
        compare(&changed, &format!("{pointer} with an unknown key"));
    }
    (tried, refused)
}

#[test]
fn what_the_schema_refuses_the_decoder_refuses() {
    let validator = jsonschema::validator_for(&json_schema()).unwrap();
    let documents = full();
    let (mut seen, mut places) = (BTreeSet::new(), Vec::new());
    for document in &documents {
        let mut all = Vec::new();
        pointers(document, "", &mut all);
        // What an earlier document has in the same place has been tried there.
        all.retain(|pointer| seen.insert((pointer.clone(), document.pointer(pointer).unwrap().to_string())));
        places.extend(all.into_iter().map(|pointer| (document, pointer)));
    }
    // By far the longest test of the crate: half of it on a second processor.
    let (one, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| changed(&validator, &places, 1));
        let one = changed(&validator, &places, 0);
        (one, other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let (tried, refused) = (one.0 + other.0, one.1 + other.1);
    assert!(tried > 2000 && refused > 1000 && refused < tried, "{refused} of {tried} refused");
}

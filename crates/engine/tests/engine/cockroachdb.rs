//! The engine file of CockroachDB, carried out with a stand-in for its program that is as strict about its command line
//! (`stubs/cockroach.py`), over machines on this one's loopback addresses.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use capabilities::Capabilities;
use engine::{Configuration, Engine, NodePlace, Synchronous};

use crate::loopback::Machines;

const PATIENCE: Duration = Duration::from_secs(60);
const STUB: &str = include_str!("../stubs/cockroach.py");
const FILE: &str = include_str!("../../../../engines/cockroachdb.yaml");

/// Machines and the engine of a file over them; nothing, and said so, where there is no Python.
fn engine(
    test: &str,
    file: &'static Capabilities,
    settings: &[(&str, &str)],
) -> Option<(Machines, Box<dyn Engine>, tempfile::TempDir)> {
    if !Path::new("/usr/bin/python3").is_file() {
        eprintln!("skipped: {test}: no /usr/bin/python3");
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("cockroach");
    fs::write(&program, STUB).expect("written");
    for path in [folder.path(), &program] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("permissions");
    }
    let cockroach = engine::registry::of(file).expect("an engine by file");
    let installation = cockroach.find(Some(folder.path())).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(installation.version, "20.1.17");
    let machines = Machines::new(3);
    let place = |number: usize| NodePlace {
        region: "eu".to_owned(),
        zone: format!("z{number}"),
        rack: format!("z{number}"),
        host: format!("h{number}"),
    };
    let configuration = Configuration {
        synchronous: Synchronous::Off,
        settings: settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        port: machines.port,
        max_connections: 200,
        copies: 3,
        places: (1..=3).map(place).collect(),
    };
    let opened = cockroach.open(installation, configuration).unwrap_or_else(|error| panic!("{error}"));
    Some((machines, opened, folder))
}

fn shipped() -> &'static Capabilities {
    capabilities::named("cockroachdb").expect("an engine that ships")
}

#[test]
fn a_cluster_is_formed_every_node_takes_writes_and_one_that_was_lost_returns() {
    let test = "a_cluster_is_formed_every_node_takes_writes";
    let Some((machines, engine, _folder)) = engine(test, shipped(), &[("max-offset", "250ms")]) else {
        return;
    };
    let all = machines.some(&[1, 2, 3]);
    let cluster = engine.bootstrap(&all).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((cluster.leader, cluster.followers.len()), (None, 3));
    assert_eq!(engine.leader(&all).equals, ["n1", "n2", "n3"]);

    machines.nodes[2].power_off();
    assert!(engine.leader(&all).silent.contains_key("n3"));
    engine.start(all[2].as_ref()).unwrap_or_else(|error| panic!("{error}"));
    engine.wait_ready(all[2].as_ref(), PATIENCE).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(engine.leader(&all).equals.len(), 3);
    let settings: BTreeMap<String, String> = engine.settings();
    assert!(settings["engine file"].contains("not run here; from its documentation"), "{settings:?}");
}

/// How the file has the cluster formed.
const FORM: &str = "init, \"--insecure\", \"--host={node.address}:{ports.client}\"]\n        within: 60s";

/// What booting comes to with one text of the file replaced.
fn refused(test: &str, right: &str, wrong: &str) -> Option<String> {
    assert!(FILE.contains(right), "{right}");
    let file = capabilities::file::read("wrong.yaml", &FILE.replace(right, wrong));
    let file = file.unwrap_or_else(|rejection| panic!("{:?}", rejection.problems()));
    let (machines, engine, _folder) = engine(test, file, &[])?;
    let error = engine.bootstrap(&machines.some(&[1, 2, 3])).expect_err(wrong);
    Some(error.to_string())
}

#[test]
fn a_wrong_flag_in_the_file_is_refused() {
    let test = "a_wrong_flag_in_the_file_is_refused";
    for (right, wrong, told) in [
        ("--advertise-addr=", "--advertise-address=", "unknown flag: --advertise-address"),
        ("--cache=64MiB", "--cache=64 MiB", "invalid argument \"64 MiB\""),
        ("--locality=region=", "--locality=", "for \"--locality\" flag"),
        // What came with a later version.
        ("--http-addr=", "--sql-addr=", "unknown flag: --sql-addr"),
        (
            FORM,
            "init, \"--insecure\", \"--hosts={node.address}\"]\n        within: 1s",
            "unknown flag: --hosts",
        ),
    ] {
        let Some(error) = refused(test, right, wrong) else { return };
        assert!(error.contains(told), "{wrong}: {error}");
    }
}

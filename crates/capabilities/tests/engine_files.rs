//! `engines/`: each file that ships is sound, and each of `engines/rejected/` is refused with exactly the message beside it.
//! `UPDATE_SNAPSHOTS=1` rewrites the messages.

#[path = "../../scenario/tests/scenario/refusals.rs"]
mod refusals;

use std::path::{Path, PathBuf};

use capabilities::NoPods;
use capabilities::file::{self, ImageName, ImageSource, Speaks, SqlDialect, Way};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../engines")
}

#[test]
fn every_engine_file_of_the_folder_ships_under_its_own_name() {
    for name in refusals::names(&folder()) {
        let engine = capabilities::named(&name).unwrap_or_else(|| panic!("{name} does not ship"));
        let file = engine.file.unwrap_or_else(|| panic!("{name} is no file"));
        let text = std::fs::read_to_string(folder().join(format!("{name}.yaml"))).expect("the file");
        assert_eq!(file.text, text, "{name}");
    }
}

#[test]
fn every_rejected_engine_file_gives_the_message_beside_it() {
    refusals::each_is_the_one_beside_it(&folder().join("rejected"), |name, text| {
        file::read(&format!("engines/rejected/{name}.yaml"), &text).err()
    });
}

#[test]
fn a_client_program_speaks_what_the_file_says_or_what_the_one_that_ships_does() {
    let base = include_str!("../../../engines/rejected/client-without-dialect.yaml");
    let without = "{ protocol: process, program: dbapi, driver: pg8000.dbapi }";
    assert!(base.contains(without));
    let read = |client: &str| {
        let text = base.replace(without, client);
        let engine =
            file::read("client", &text).unwrap_or_else(|rejection| panic!("{:?}", rejection.problems()));
        let program = engine.file.and_then(|file| file.client_program.as_ref()).expect("a client program");
        (program.speaks, engine.understands.workload("bank"), engine.understands.workload("tpcc"))
    };
    let keys = (Speaks::Keys, true, false);
    assert_eq!(read("{ protocol: process, program: mongo }"), keys);
    assert_eq!(read("{ protocol: process, program: [my-shell, --keys], speaks: keys }"), keys);
    let sql = (Speaks::Sql(SqlDialect::Mysql), true, false);
    assert_eq!(read("{ protocol: process, program: [my-shell], dialect: mysql }"), sql);
    let said = "{ protocol: process, program: dbapi, speaks: sql, dialect: mysql, driver: pymysql }";
    assert_eq!(read(said), sql);
}

#[test]
fn the_schema_of_engine_files_holds_for_those_that_ship_and_knows_their_keys() {
    let schema = file::json_schema();
    assert_eq!(schema["additionalProperties"], false);
    for key in ["find", "processes", "roles", "client", "claims", "paper", "tested"] {
        assert!(schema["properties"][key].is_object(), "{key}");
        assert!(!file::words(key).is_empty(), "{key}");
    }
    let whole = &file::explain()[0];
    assert_eq!(whole.keys.len(), schema["properties"].as_object().map_or(0, serde_json::Map::len));
}

#[test]
fn an_image_is_a_name_with_a_tag_or_a_digest_or_a_file_beside_the_engine_file() {
    let path = folder().join("rejected/image-without-tag.yaml");
    let text = std::fs::read_to_string(path).expect("the file");
    let ways = |image: &str| {
        let text = text.replace("image: my-server", &format!("image: {image}, megabytes: 7"));
        let engine =
            file::read("sound.yaml", &text).unwrap_or_else(|error| panic!("{}", refusals::drawn(&error)));
        engine.file.expect("an engine by file").install.clone()
    };
    let file = ImageSource::File("./images/my-server.tar".to_owned());
    assert_eq!(ways("./images/my-server.tar"), [Way::Image { source: file, megabytes: Some(7) }]);
    let name = ImageName {
        registry: "localhost:5000".to_owned(),
        repository: "team/my-server".to_owned(),
        tag: Some("2.1".to_owned()),
        sha256: None,
    };
    let name = ImageSource::Registry(name);
    assert_eq!(ways("localhost:5000/team/my-server:2.1"), [Way::Image { source: name, megabytes: Some(7) }]);
}

#[test]
fn a_pod_can_run_the_one_process_of_a_node_that_neither_asks_nor_is_asked_anything_at_its_start() {
    let of = |name: &str| capabilities::named(name).expect("it ships").pod_program;
    assert_eq!((of("etcd"), of("galera"), of("postgres")), (Ok("etcd"), Ok("mariadbd"), Ok("postgres")));
    assert_eq!((of("redis"), of("control")), (Err(NoPods::SeveralProcesses), Err(NoPods::Unknown)));
    let etcd = std::fs::read_to_string(folder().join("etcd.yaml")).expect("the file");
    let changed = |from: &str, to: &str| {
        assert!(etcd.contains(from));
        let read = file::read("changed", &etcd.replacen(from, to, 1));
        read.unwrap_or_else(|rejection| panic!("{:?}", rejection.problems())).pod_program
    };
    let told = "      - \"{leading: '--follow={address}'}\"\n      - \"--logger=zap\"";
    assert_eq!(changed("      - \"--logger=zap\"", told), Err(NoPods::AsksWhoLeads));
    assert_eq!(changed("peer: 2380", "peer: 10250"), Err(NoPods::PortTaken(10_250)));
    let asked = "once-ready:\n  - http: { get: /health, port: client }\nbootstrap:";
    assert_eq!(changed("bootstrap:", asked), Err(NoPods::AskedOnceReady));
}

//! Installing for real, from the registries. Not run unless asked for: it needs a network and some 30 MB of it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use engine::{Origin, registry};

/// Two installations into one cache at the same time.
fn check(cache: &Path, name: &str, program: &str) {
    let engine = registry::named(name).expect("an engine that ships");
    let install = || {
        let mut said = Vec::new();
        let made = engine.install_into(cache, &mut |what| said.push(what.to_owned()));
        (made.unwrap_or_else(|error| panic!("{error}")), said)
    };
    let (one, two) = std::thread::scope(|scope| {
        let other = scope.spawn(install);
        (install(), other.join().expect("the other"))
    });
    assert_eq!((&one.0.bin, &one.0.version), (&two.0.bin, &two.0.version));
    assert!(one.1.is_empty() != two.1.is_empty(), "one of them did the work: {one:?} {two:?}");
    assert_eq!(install().0.origin, Origin::Cache, "the third finds it there");
    let found = engine.find(Some(&one.0.bin)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(found.version, one.0.version);
    let mode = std::fs::metadata(one.0.bin.join(program)).expect("there").permissions().mode();
    assert_eq!(mode & 0o555, 0o555, "the database's user can run it");
    let unfinished = std::fs::read_dir(cache).expect("the cache").flatten();
    let unfinished = unfinished.filter(|entry| entry.file_name().to_string_lossy().starts_with(".staging"));
    assert_eq!(unfinished.count(), 0);
    assert!(one.0.bin.starts_with(&one.0.root) && one.0.root.starts_with(cache));
}

#[test]
#[ignore = "downloads a server; run with --ignored"]
fn a_server_is_installed_once_by_two_at_the_same_time() {
    let cache = tempfile::tempdir().expect("a folder");
    check(cache.path(), "postgres", "postgres");
    check(cache.path(), "etcd", "etcd");
}

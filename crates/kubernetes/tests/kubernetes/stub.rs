//! A stand-in for kubectl, the objects that it shows, and whether what it started is still there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use kubernetes::Kubectl;
use serde_json::Value;
use tempfile::TempDir;

/// A script in the place of kubectl, and its folder.
pub struct Stub {
    pub folder: TempDir,
    pub kubectl: Kubectl,
}

/// The script finds its folder in `$folder`, the namespace in `$namespace`, and the words without it in `$*`.
pub fn stub(script: &str) -> Stub {
    let folder = tempfile::tempdir().expect("a folder");
    let (text, program) = (folder.path().join("text"), folder.path().join("kubectl"));
    let head = format!("#!/bin/sh\nfolder={}\nnamespace=$2\nshift 2\n", folder.path().display());
    fs::write(&text, head + script).expect("the stand-in");
    // Written by another process: what a thread beside us forks cannot hold it open for writing.
    let installed = Command::new("install").args(["-m", "700"]).args([&text, &program]).status();
    assert!(installed.is_ok_and(|status| status.success()), "{}", program.display());
    let namespace = "databases".to_owned();
    Stub { folder, kubectl: Kubectl { program, kubeconfig: None, context: None, namespace } }
}

impl Stub {
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.file(name), text).expect("written");
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    /// The number that a script has written to a file as a whole line.
    pub fn number(&self, name: &str) -> i32 {
        wait_until(name, || self.read(name).ends_with('\n'));
        self.read(name).trim().parse().expect("a number")
    }
}

/// An object as the API documents it.
pub fn object(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubernetes/data").join(name);
    serde_json::from_str(&fs::read_to_string(path).expect("the file")).expect("JSON")
}

/// An object with another value at a path.
pub fn with(mut object: Value, path: &str, value: impl Into<Value>) -> Value {
    *object.pointer_mut(path).expect("the path is there") = value.into();
    object
}

/// A zombie does nothing any longer.
pub fn is_alive(number: i32) -> bool {
    let state = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
    state.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never: {what}");
}

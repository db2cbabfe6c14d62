//! Lists the files of `engines/` for `src/shipped.rs`, so that each of them ships without a line elsewhere.
//!
//! Owns the list alone. What an engine file may say is `src/file`'s, and a test reads each of them.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs, io};

/// Where the engine files lie, seen from this crate.
const FOLDER: &str = "../../engines";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={FOLDER}");
    let folder = directory("CARGO_MANIFEST_DIR")?.join(FOLDER);
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".yaml") {
            names.push(name);
        }
    }
    names.sort();
    let mut list = String::from("&[\n");
    for name in names {
        let path = folder.join(&name);
        // Writing into a string cannot fail.
        let _ = writeln!(list, "    (\"engines/{name}\", include_str!({path:?})),");
    }
    list.push_str("]\n");
    fs::write(directory("OUT_DIR")?.join("engine_files.rs"), list)
}

/// A directory that Cargo names to build scripts.
fn directory(variable: &str) -> io::Result<PathBuf> {
    let path = env::var_os(variable).ok_or_else(|| io::Error::other(format!("{variable} is not set")))?;
    Ok(PathBuf::from(path))
}

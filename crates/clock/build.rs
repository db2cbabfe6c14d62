//! Builds the library of `waits/waits.c`, which programs of a node load, for `src/waits.rs` to hold.
//!
//! Owns how it is built. It needs nothing of a C library but headers: what it calls, it finds in the program that loads it.

use std::path::PathBuf;
use std::{env, io};

const SOURCE: &str = "waits/waits.c";
/// By what it knows a stand-in.
const MARKER: &str = "waits/marker";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-changed={MARKER}");
    if variable("CARGO_CFG_TARGET_ARCH")? != "x86_64" {
        return Ok(());
    }
    let library = PathBuf::from(variable("OUT_DIR")?).join("waits.so");
    // It is the same for every C library: the machine's own compiler builds it, where that builds for such machines.
    let mut build = cc::Build::new();
    let host = variable("HOST")?;
    if host.starts_with("x86_64") {
        build.target(&host).host(&host);
    }
    let compiler = build.opt_level(2).cargo_metadata(false).get_compiler();
    let mut command = compiler.to_command();
    command.args([
        "-shared",
        "-fPIC",
        "-nostdlib",
        "-fno-stack-protector",
        "-fvisibility=default",
        "-Wall",
        "-Wextra",
        "-Werror",
    ]);
    command.arg(format!("-DMARKER=\"{}\"", std::fs::read_to_string(MARKER)?));
    command.args(["-Wl,--hash-style=both", "-Wl,--build-id=none", "-s"]).arg("-o").arg(&library).arg(SOURCE);
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("{command:?} ended with {status}"))) }
}

fn variable(name: &str) -> io::Result<String> {
    env::var(name).map_err(|_| io::Error::other(format!("{name} is not set")))
}

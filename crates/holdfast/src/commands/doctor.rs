//! `holdfast doctor`: what this machine allows, and the exact remedy for what is missing.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;

use scenario::units::approximate_size;

use crate::exit::{Exit, LAB_FAILED};
use crate::printed;

/// Tries everything a lab needs. Ends with 0 when a lab can run here, 255 when it cannot.
pub fn doctor() -> Result<Exit, Exit> {
    let mut able = true;
    for finding in lab::machine::findings() {
        match &finding.found {
            Ok(found) => printed!("ok       {}: {found}", finding.what),
            Err(why) => {
                let mark = if finding.needed { "MISSING " } else { "absent  " };
                printed!("{mark} {}: {why}", finding.what);
                printed!("         {}", finding.remedy);
                able &= !finding.needed;
            }
        }
    }
    let is_database = |name: &str| capabilities::named(name).is_none_or(|known| known.is_database());
    for engine in engine::registry::engines().iter().filter(|engine| is_database(engine.name)) {
        let found = engine.describe();
        for place in &found {
            match &place.usable {
                Ok(found) => printed!(
                    "ok       {} {}: {} ({})",
                    engine.name,
                    found.version,
                    place.path.display(),
                    place.origin
                ),
                Err(why) => printed!("absent   {}: {}: {why}", engine.name, place.path.display()),
            }
        }
        if !found.iter().any(|place| place.usable.is_ok()) {
            let file = capabilities::named(engine.name).and_then(|known| known.file);
            let remedy = match file.is_some_and(|file| file.install.is_empty()) {
                true => {
                    "no registry has it; name the folder of its programs with `holdfast run --engine-dir`"
                }
                false => "`holdfast run` installs it into the cache directory",
            };
            printed!("absent   {}: not found; {remedy}", engine.name);
        }
    }
    what_runs_pods();
    what_fits();
    what_a_scenario_may_do();
    printed!("{}", if able { "a lab can run here" } else { "a lab cannot run here: see MISSING above" });
    Ok(if able { Exit::Done } else { Exit::Reported(LAB_FAILED) })
}

/// Whether nodes can be those of a Kubernetes cluster, and whether its programs are there.
fn what_runs_pods() {
    const WHAT: &str = "nodes in a Kubernetes cluster (`database: { on: kubernetes }`)";
    if !nix::unistd::geteuid().is_root() {
        return printed!(
            "absent   {WHAT}: nodes that start containers need control groups of their own; run as root"
        );
    }
    if let Err(why) = lab::NodeGroups::make(&format!("doctor-{}", std::process::id())) {
        return printed!("absent   {WHAT}: no control groups for nodes: {why}");
    }
    let cache = engine::installation::cache_directory(|name| std::env::var_os(name)).ok();
    let version = kubernetes_lab::pieces::KUBERNETES;
    match cache.and_then(|cache| kubernetes_lab::installed(&cache)) {
        Some(programs) => printed!("ok       {WHAT}: Kubernetes {version} in {}", programs.root().display()),
        None => {
            let (major, minor) = kubernetes_lab::pieces::GO;
            printed!("absent   {WHAT}: its programs are not built yet");
            printed!(
                "         a run builds Kubernetes {version} once: Go {major}.{minor} or newer, about 6 minutes"
            );
        }
    }
}

/// About how large a lab of each engine may be, by the rule that `check` reckons a scenario's needs by.
fn what_fits() {
    let room = platform::room::room(Path::new("runs"));
    let (Some(disk_bytes), Some(memory_bytes)) = (room.disk_bytes, room.memory_bytes) else {
        printed!("unknown  size of a lab: free disk space or free memory cannot be read");
        return;
    };
    let processors =
        std::thread::available_parallelism().map_or_else(|_| "?".to_owned(), |number| number.to_string());
    printed!(
        "ok       size of a lab: {} of disk and {} of memory are free; before tables are loaded, enough for about",
        approximate_size(disk_bytes as f64),
        approximate_size(memory_bytes as f64),
    );
    let free = paper::Needs { disk_bytes, memory_bytes };
    let mut by_size: BTreeMap<Reverse<paper::Fits>, Vec<&str>> = BTreeMap::new();
    for engine in capabilities::engines().iter().filter(|engine| engine.is_database()) {
        by_size.entry(Reverse(paper::fits(engine, free))).or_default().push(engine.name);
    }
    for (Reverse(fits), engines) in by_size {
        printed!(
            "         {}, or 3 nodes with {}: {}",
            report::counted(fits.nodes, "node", "nodes"),
            report::counted(fits.clients, "client", "clients"),
            engines.join(", ")
        );
    }
    printed!("         their speed depends on the {processors} processors");
    printed!("         `holdfast check SCENARIO` says what a scenario needs");
}

/// For whoever is about to run a stranger's scenario.
fn what_a_scenario_may_do() {
    let seen = lab::MACHINE_FOLDERS.iter().filter(|folder| Path::new(folder).exists());
    let seen = seen.copied().collect::<Vec<_>>().join(" ");
    let (user, reader) = if nix::unistd::geteuid().is_root() {
        let user = lab::supervisor::NODE_USER_OUTSIDE;
        (format!("as user {user}, who owns nothing on this machine but the volume"), "everybody")
    } else {
        ("as you, without access to your files".to_owned(), "you")
    };
    printed!("what a scenario can do on this machine:");
    printed!("  may      run any program and any SQL inside its nodes, {user}");
    printed!(
        "  may      with `on: kubernetes`, run programs as root of the lab, which is this machine's root without"
    );
    printed!("           its rights outside of the lab: use only what you would run as root");
    printed!("  may      read what {reader} may read in {seen}, and the database's programs");
    printed!(
        "  may      use all processors (but for `cpus`), all memory, and all room where the run directory is"
    );
    printed!(
        "  may      have holdfast run, as you, the database that `database.path`, an upgrade or an engine file names,"
    );
    printed!("           once, for its version; and pip or apt, where the database is missing");
    printed!(
        "  may not  write anything but its volumes, see homes, the run directory or sockets, open a device but"
    );
    printed!("           {}, use this machine's network,", lab::DEVICES.join(", "));
    printed!("           signal or trace a process outside its nodes, become another user, mount anything");
}

//! `holdfast doctor`: what this machine allows, and the exact remedy for what is missing.

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
                Ok(version) => printed!(
                    "ok       {} {version}: {} ({})",
                    engine.name,
                    place.path.display(),
                    place.origin
                ),
                Err(why) => printed!("absent   {}: {}: {why}", engine.name, place.path.display()),
            }
        }
        if !found.iter().any(|place| place.usable.is_ok()) {
            printed!(
                "absent   {}: not found; `holdfast run` installs it into the cache directory",
                engine.name
            );
        }
    }
    what_a_scenario_may_do();
    printed!("{}", if able { "a lab can run here" } else { "a lab cannot run here: see MISSING above" });
    Ok(if able { Exit::Done } else { Exit::Reported(LAB_FAILED) })
}

/// For whoever is about to run a stranger's scenario.
fn what_a_scenario_may_do() {
    let seen = lab::MACHINE_FOLDERS.iter().filter(|folder| std::path::Path::new(folder).exists());
    let seen = seen.copied().collect::<Vec<_>>().join(" ");
    let (user, reader) = if nix::unistd::geteuid().is_root() {
        let user = lab::supervisor::NODE_USER_OUTSIDE;
        (format!("as user {user}, who owns nothing on this machine but the volume"), "everybody")
    } else {
        ("as you, without a way to what is yours".to_owned(), "you")
    };
    printed!("what a scenario may do on this machine:");
    printed!("  may      run any program and any SQL inside its nodes, {user}");
    printed!("  may      read what {reader} may read in {seen}, and the database's programs");
    printed!(
        "  may      use all processors (but for `cpus`), all memory, and all room where the run directory is"
    );
    printed!(
        "  may      have holdfast run, as you, the database that `database.path` or an engine file names, once,"
    );
    printed!("           for its version; and pip or apt, where the database is missing");
    printed!(
        "  may not  write anything but its volumes, see homes, the run directory or sockets, open a device but"
    );
    printed!("           {}, use this machine's network,", lab::DEVICES.join(", "));
    printed!("           signal or trace a process outside its nodes, become another user, mount anything");
}

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
    for engine in engine::registry::ENGINES {
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
    printed!("{}", if able { "a lab can run here" } else { "a lab cannot run here: see MISSING above" });
    Ok(if able { Exit::Done } else { Exit::Told(LAB_FAILED) })
}

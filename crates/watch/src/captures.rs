//! Packets written down for Wireshark's tools: of a node, of a place, or of what goes from one place to another.
//!
//! Owns what may be asked for and where it is written; the fabric writes.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use fabric::{CaptureGuard, Fabric, FabricError, Tap};
use history::EventSink;
use scenario::Scenario;

/// The folder of captures in the run directory.
const FOLDER: &str = "captures";
/// Between the two ends of a link.
const ARROW: &str = "->";

/// What can go wrong with a capture.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The name means nothing in this scenario.
    #[error("packets cannot be captured at `{name}`: no such place; known places: {known}")]
    Unknown {
        /// As asked for.
        name: String,
        /// What there is.
        known: String,
    },
    #[error("{path}: {source}")]
    File {
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
    /// The network.
    #[error(transparent)]
    Fabric(#[from] FabricError),
}

/// Captures under way.
#[derive(Default)]
pub struct Captures(Mutex<Vec<CaptureGuard>>);

impl Captures {
    /// Of captures that have begun.
    #[must_use]
    pub fn new(captures: Vec<CaptureGuard>) -> Captures {
        Captures(Mutex::new(captures))
    }

    /// Ends them and tells how many packets they hold.
    pub fn finish(&self, events: &dyn EventSink) {
        for capture in std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)) {
            match capture.finish() {
                Ok(packets) => events.progress(format!("a capture ends with {packets} packets")),
                Err(error) => events.warn(error.to_string(), "look at the space left on the disk"),
            }
        }
    }
}

/// What a name on the command line means: `n1`, `dc1/a/h2`, or `dc1 -> dc2`.
///
/// # Errors
/// When it names nothing of the scenario.
pub fn tap(name: &str, scenario: &Scenario) -> Result<Tap, CaptureError> {
    if let Some((from, to)) = name.split_once(ARROW) {
        return Ok(Tap::Link { from: place(from.trim(), scenario)?, to: place(to.trim(), scenario)? });
    }
    let is_node = scenario.database.nodes.named(name).is_some();
    if is_node { Ok(Tap::Node(name.to_owned())) } else { Ok(Tap::Place(place(name, scenario)?)) }
}

fn place(name: &str, scenario: &Scenario) -> Result<Vec<String>, CaptureError> {
    let path: Vec<String> = name.split('/').map(str::to_owned).collect();
    if scenario.site.hosts.iter().any(|host| host.path().starts_with(&path)) {
        return Ok(path);
    }
    let nodes = scenario.database.nodes.ids().map(|node| node.to_string());
    let hosts = scenario.site.hosts.iter().map(|host| host.path().join("/"));
    let known: Vec<String> = nodes.chain(hosts).take(12).collect();
    let known = format!("{}, the places around them, and links as in `dc1 -> dc2`", known.join(", "));
    Err(CaptureError::Unknown { name: name.to_owned(), known })
}

/// Begins every capture asked for, each in a file of its own under `captures/`.
///
/// # Errors
/// When a file cannot be written.
pub fn begin(
    names: &[String],
    scenario: &Scenario,
    fabric: &Fabric,
    directory: &Path,
) -> Result<Vec<CaptureGuard>, CaptureError> {
    let folder = directory.join(FOLDER);
    if !names.is_empty() {
        std::fs::create_dir_all(&folder)
            .map_err(|source| CaptureError::File { path: folder.clone(), source })?;
    }
    let begin_one = |name: &String| {
        let tap = tap(name, scenario)?;
        let path = folder.join(file_name(name));
        let file = File::create(&path).map_err(|source| CaptureError::File { path, source })?;
        Ok(fabric.capture(tap, file)?)
    };
    names.iter().map(begin_one).collect()
}

/// `dc1/a -> dc2` is written to `dc1-a-to-dc2.pcap`.
fn file_name(name: &str) -> String {
    let parts: Vec<&str> = name.split(ARROW).map(str::trim).collect();
    format!("{}.pcap", parts.join("-to-").replace('/', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario() -> Scenario {
        let text = "\
name: small
site: { regions: { dc1: { zones: { a: { hosts: 2 } } }, dc2: { zones: { a: { hosts: 1 } } } } }
database: { engine: postgres, nodes: 3 }
loads: [{ workload: tpcb, clients: 1 }]
schedule: [{ phase: baseline, for: 1s }]
";
        let source = scenario::Source { name: "small".to_owned(), text: text.to_owned() };
        scenario::parse(&source, &[]).expect("sound")
    }

    fn check(name: &str, expected: Option<Tap>) {
        assert_eq!(tap(name, &scenario()).ok(), expected, "{name}");
    }

    #[test]
    fn nodes_places_and_links_are_told_apart() {
        let path = |text: &str| text.split('/').map(str::to_owned).collect::<Vec<_>>();
        check("n2", Some(Tap::Node("n2".to_owned())));
        check("dc1/a/h2", Some(Tap::Place(path("dc1/a/h2"))));
        check("dc1 -> dc2/a", Some(Tap::Link { from: path("dc1"), to: path("dc2/a") }));
    }

    #[test]
    fn what_is_not_there_cannot_be_captured() {
        for name in ["n4", "dc3", "dc1 -> dc3", "", "->", "dc1/../../etc"] {
            check(name, None);
        }
    }

    #[test]
    fn a_file_is_named_after_what_it_holds() {
        assert_eq!(file_name("n1"), "n1.pcap");
        assert_eq!(file_name("dc1/a -> dc2"), "dc1-a-to-dc2.pcap");
    }
}

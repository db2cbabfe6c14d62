//! Whether the site's links do what was asked of them, seen before the load begins.
//!
//! What was seen to be otherwise leaves the whole run in doubt. What cannot be seen does not: links are no faults, and most of
//! what may be said of one shows in the figures.

use std::sync::Arc;
use std::time::{Duration, Instant};

use history::Receipt;
use paper::RequestedNetwork;
use paper::network::{LinkRates, policy};
use platform::Datacentre;

use crate::datagrams::judge::Wanted;
use crate::datagrams::probing::{Occasion, Probing, Stood};
use crate::datagrams::{Shows, Way, first_stations, foreseen, properties};
use crate::stations::stations;

/// Links looked at, at most.
const LINKS_MAX: usize = 40;
const OFTEN: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(6);

/// Looks at the links. `None` where the site has none that a probe could show.
#[must_use]
pub fn look(datacentre: &Arc<Datacentre>, site: &scenario::Site) -> Option<Receipt> {
    let asked = Arc::new(RequestedNetwork::new(policy(site, LinkRates::AsWritten), []));
    let stations = stations(datacentre);
    let mut ways: Vec<Way> = Vec::new();
    for link in &site.links {
        let properties = properties(&link.conditions);
        let ends = first_stations(&stations, &link.from.path, &link.to.path);
        let Some((from, to)) = ends.filter(|_| !properties.is_empty()) else { continue };
        if ways.iter().any(|way| (way.from, way.to) == (from, to)) {
            continue;
        }
        let expected = foreseen(&asked, &stations[from], &stations[to]);
        ways.push(Way {
            from,
            to,
            shows: Shows::Conditions(Wanted { properties, expected, otherwise: None }),
        });
    }
    ways.truncate(LINKS_MAX);
    if ways.is_empty() {
        return None;
    }
    let probing = Probing::start(datacentre.clone(), Arc::default(), (stations, ways), None, &asked);
    let begun = Instant::now();
    let stood = Stood::Since(begun);
    while begun.elapsed() < PATIENCE && !probing.has_enough(Occasion::Stands(&stood), Instant::now(), false) {
        std::thread::sleep(OFTEN);
    }
    Some(probing.judge(Occasion::Stands(&stood), Instant::now(), None, false))
}

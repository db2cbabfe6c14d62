//! Finding a place of the site by the name a user wrote: a full path, or any tail of one that means only one place.
//!
//! Owns lookup and its messages; the site itself is in `site`.

use std::collections::{BTreeMap, BTreeSet};

/// The codes of findings about places that a site does not have, or has twice.
pub(crate) const CODES: [&str; 2] = ["unknown-place", "ambiguous-place"];

use crate::rejection::{Findings, Spanned};
use crate::resolved::{Host, Level, Place};
use crate::wording::{listed, nearest, shortened};

/// What the place of a load's clients is called, within the place that they are at.
pub(crate) const CLIENTS: &str = "clients";

/// Every place of a site, by the last name of its path.
pub(crate) struct Places {
    by_path: BTreeMap<Vec<String>, Level>,
    by_name: BTreeMap<String, Vec<Place>>,
}

impl Places {
    /// The places that these hosts stand in, and the hosts themselves.
    pub(crate) fn new(hosts: &[Host]) -> Self {
        let mut all: BTreeSet<Place> = BTreeSet::new();
        for host in hosts {
            let path = host.path();
            for length in 1..=path.len() {
                let level = match (length, length == path.len()) {
                    (_, true) => Level::Host,
                    (1, _) => Level::Region,
                    (2, _) => Level::Zone,
                    _ => Level::Rack,
                };
                all.insert(Place { level, path: path[..length].to_vec() });
            }
        }
        let mut places = Places { by_path: BTreeMap::new(), by_name: BTreeMap::new() };
        for place in all {
            places.by_path.insert(place.path.clone(), place.level);
            if let Some(name) = place.path.last() {
                places.by_name.entry(name.clone()).or_default().push(place);
            }
        }
        places
    }

    /// The one place the text means; of that level, where one is asked for. Notes what is wrong otherwise.
    pub(crate) fn find(
        &self,
        written: &Spanned<String>,
        level: Option<Level>,
        findings: &mut Findings,
    ) -> Option<Place> {
        // With enough to show already, another message costs time on a large site and helps nobody.
        if findings.is_full() {
            return None;
        }
        let parts: Vec<String> = written.value.split('/').map(str::to_owned).collect();
        // A path from the region down always means itself, though a deeper place may end in the same names.
        if let Some(exact) =
            self.by_path.get(&parts).filter(|exact| level.is_none_or(|level| level == **exact))
        {
            return Some(Place { level: *exact, path: parts });
        }
        let named =
            parts.last().and_then(|name| self.by_name.get(name)).map(Vec::as_slice).unwrap_or_default();
        let matching: Vec<&Place> = named.iter().filter(|place| place.path.ends_with(&parts)).collect();
        let fitting: Vec<&Place> =
            matching.iter().copied().filter(|place| level.is_none_or(|level| place.level == level)).collect();
        match fitting.as_slice() {
            [only] => return Some((*only).clone()),
            [] => self.unknown(written, level, &matching, findings),
            several => {
                let names: Vec<String> = several.iter().map(ToString::to_string).collect();
                findings.add(
                    "ambiguous-place",
                    written.at,
                    format!("`{}` could be any of {} places", written.value, several.len()),
                    "which one?",
                    format!("write more of the path: {}", listed(&names)),
                );
            }
        }
        None
    }

    /// Whether some place's path ends in that name.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Whether the site has a place that is called as that of clients at this place is.
    pub(crate) fn has_clients_place(&self, from: &Place) -> bool {
        let path: Vec<String> = from.path.iter().cloned().chain([CLIENTS.to_owned()]).collect();
        self.by_path.contains_key(&path)
    }

    fn unknown(
        &self,
        written: &Spanned<String>,
        level: Option<Level>,
        otherwise: &[&Place],
        findings: &mut Findings,
    ) {
        let text = shortened(&written.value);
        if let (Some(level), [other, ..]) = (level, otherwise) {
            findings.add(
                "wrong-level",
                written.at,
                format!("`{text}` is a {}, not a {}", word(other.level), word(level)),
                format!("not a {}", word(level)),
                format!(
                    "write `{}: {text}`, or name a {}: {}",
                    word(other.level),
                    word(level),
                    self.choices(Some(level))
                ),
            );
            return;
        }
        let last = written.value.rsplit('/').next().unwrap_or_default();
        let fits = |place: &&Place| level.is_none_or(|level| place.level == level);
        // What ends in a known name is misspelt further up: offer the places of that name.
        let near: Vec<String> = match self.by_name.get(last) {
            Some(places) if written.value.contains('/') => {
                places.iter().filter(fits).map(ToString::to_string).collect()
            }
            _ => {
                let known = self.by_name.iter().filter(|(_, places)| places.iter().any(|place| fits(&place)));
                let near = nearest(last, known.map(|(name, _)| name.as_str()));
                let places =
                    near.and_then(|name| self.by_name.get(name)).map(Vec::as_slice).unwrap_or_default();
                places.iter().filter(fits).map(ToString::to_string).collect()
            }
        };
        let choices = self.choices(level);
        let what = level.map_or("place", word);
        let help = match near.as_slice() {
            [] if choices.is_empty() => {
                let level = level.map_or("place", word);
                format!("the site has no {level}; name a place of another level, or give it {level}s")
            }
            [] => format!("the site has {choices}"),
            near => format!("did you mean {}? The site has {choices}", listed(near)),
        };
        findings.add(
            "unknown-place",
            written.at,
            format!("there is no {what} `{text}` in the site"),
            "unknown",
            help,
        );
    }

    fn choices(&self, level: Option<Level>) -> String {
        let mut all: Vec<&Place> =
            self.by_name.values().flatten().filter(|place| level.is_none_or(|l| l == place.level)).collect();
        all.sort_by_key(|place| (place.level, &place.path));
        listed(&all.iter().map(ToString::to_string).collect::<Vec<_>>())
    }
}

/// The word for a level, as in a fault's target.
pub(crate) fn word(level: Level) -> &'static str {
    match level {
        Level::Region => "region",
        Level::Zone => "zone",
        Level::Rack => "rack",
        Level::Host => "host",
    }
}

//! `database.storage` and `site.storage_classes`: how nodes' volumes are mirrored and on what.
//!
//! Owns reading them and which hosts hold the components of a volume. What mirroring does is the business of the crate
//! `disk`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use history::{HostId, PerHost, PerNode};

use crate::components::{place, rack};
use crate::decode::{Decoder, Record};
use crate::language::MOST_NODES;
use crate::language::storage::{
    ACKNOWLEDGES, APARTS, FLUSHES, METADATA, MOST_REPLICAS, PROMOTIONS, STORAGE, STORAGE_CLASS,
};
use crate::places::Places;
use crate::rejection::{Findings, Spanned};
use crate::resolved::storage::TUNED;
use crate::resolved::{Acknowledge, Apart, Host, Place, Promotion, Storage, StorageClass, Volumes};
use crate::tree::Node;
use crate::units::{format_duration, format_size};
use crate::wording::{listed, nearest};

const BASIC: &str = "basic";
/// Time that a lost component is waited for, where nothing is said.
const REBUILD_AFTER: Duration = Duration::from_secs(60);
/// Time that an answer is waited for, where nothing is said.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Time that a host that serves a volume is waited for, where nothing is said: less than virtualisation platforms wait
/// (two minutes and more), because a run takes hardly longer, and more than a network takes to find another way.
const UNREACHABLE_AFTER: Duration = Duration::from_secs(30);
/// Buffers are between one write of a database and what a machine has to spare.
const BUFFER_LEAST: u64 = 64 << 10;
const BUFFER_MOST: u64 = 256 << 20;

/// `database.storage` as written.
pub(crate) struct StorageDocument {
    replicas: Spanned<u64>,
    acknowledge: Acknowledge,
    apart: Option<Spanned<&'static str>>,
    rebuild_after: Duration,
    timeout: Duration,
    unreachable_after: Duration,
    promote: Promotion,
    hosts: Vec<Spanned<String>>,
    class: Option<Spanned<String>>,
}

/// Reads `database.storage`.
pub(crate) fn decode(node: &Node, decoder: &mut Decoder) -> Option<StorageDocument> {
    let record = decoder.record(node, &STORAGE)?;
    let replicas = record
        .get("replicas")
        .and_then(|node| decoder.count(node, "the number of components", 1, MOST_REPLICAS));
    let acknowledge =
        record.get("acknowledge").and_then(|node| decoder.word(node, "acknowledgement", ACKNOWLEDGES));
    let apart = record.get("apart").and_then(|node| decoder.word(node, "distance of components", APARTS));
    let rebuild_after = time(&record, decoder, "rebuild_after", REBUILD_AFTER);
    let timeout = time(&record, decoder, "timeout", TIMEOUT);
    let unreachable_after = time(&record, decoder, "unreachable_after", UNREACHABLE_AFTER.max(timeout));
    if unreachable_after < timeout
        && let Some(written) = record.get("unreachable_after")
    {
        decoder.findings.add(
            "too-small",
            written.at,
            format!("`unreachable_after` of {} is too short", format_duration(unreachable_after)),
            "before anybody notices",
            format!("it must be at least `timeout`, {}", format_duration(timeout)),
        );
    }
    let promote = record.get("promote").and_then(|node| decoder.word(node, "promotion", PROMOTIONS));
    let hosts = record.get("hosts").map(|node| decode_hosts(node, decoder));
    let class = record.get("class").and_then(|node| decoder.name(node, "a storage class's name"));
    Some(StorageDocument {
        hosts: hosts.unwrap_or(Some(Vec::new()))?,
        replicas: replicas?,
        acknowledge: match acknowledge.map(|word| word.value) {
            Some("semi") => Acknowledge::Semi,
            Some("async") => Acknowledge::Async,
            _ => Acknowledge::Sync,
        },
        apart,
        rebuild_after,
        timeout,
        unreachable_after,
        promote: match promote.map(|word| word.value) {
            Some("forced") => Promotion::Forced,
            _ => Promotion::UpToDate,
        },
        class,
    })
}

fn time(record: &Record<'_>, decoder: &mut Decoder, key: &'static str, otherwise: Duration) -> Duration {
    let written = record.get(key).and_then(|node| decoder.duration(node, &format!("`{key}`"), "s"));
    if let Some(zero) = written.as_ref().filter(|time| time.value.is_zero()) {
        decoder.findings.add(
            "too-small",
            zero.at,
            format!("`{key}` cannot be 0s"),
            "no time at all",
            format!("write how long, such as {}", format_duration(otherwise)),
        );
    }
    written.map_or(otherwise, |time| time.value)
}

fn decode_hosts(node: &Node, decoder: &mut Decoder) -> Option<Vec<Spanned<String>>> {
    let items = decoder.list(node, "`hosts`", 1)?;
    if let Some(beyond) = items.get(MOST_NODES as usize) {
        decoder.findings.add(
            "too-large",
            beyond.at,
            format!("more than {MOST_NODES} places"),
            "one too many",
            "name a rack, zone or region instead of each of its hosts",
        );
        return None;
    }
    items.iter().map(|item| decoder.text(item, "a place of components")).collect()
}

/// Reads `site.storage_classes`.
pub(crate) fn decode_classes(node: &Node, decoder: &mut Decoder) -> BTreeMap<String, StorageClass> {
    let mut classes = BTreeMap::new();
    for (name, node) in decoder.named(node, "storage classes").unwrap_or_default() {
        if [BASIC, TUNED].contains(&name.value.as_str()) {
            decoder.findings.add(
                "bad-name",
                name.at,
                format!("`{}` is a storage class already", name.value),
                "taken",
                "choose another name; `basic` and `tuned` are always there",
            );
            continue;
        }
        if let Some(class) = decode_class(&name.value, node, decoder) {
            classes.insert(name.value, class);
        }
    }
    classes
}

fn decode_class(name: &str, node: &Node, decoder: &mut Decoder) -> Option<StorageClass> {
    let record = decoder.record(node, &STORAGE_CLASS)?;
    let mut class = StorageClass::basic(name);
    let metadata = record.get("metadata").and_then(|node| decoder.word(node, "place of metadata", METADATA));
    class.metadata_on_own_device = metadata.is_some_and(|word| word.value == "own-device");
    let flush = record.get("flush").and_then(|node| decoder.word(node, "flushing", FLUSHES));
    class.flush = flush.is_none_or(|word| word.value == "each-sync");
    if let Some(size) = record.get("buffer").and_then(|node| decoder.size(node, "`buffer`", "MiB")) {
        if !(BUFFER_LEAST..=BUFFER_MOST).contains(&size.value) {
            decoder.findings.add(
                "out-of-range",
                size.at,
                format!("a buffer cannot hold {}", format_size(size.value)),
                "not possible",
                format!("write {} to {}", format_size(BUFFER_LEAST), format_size(BUFFER_MOST)),
            );
        }
        class.buffer_bytes = size.value;
    }
    Some(class)
}

/// What a storage is held against.
pub(crate) struct StorageContext<'a> {
    /// The site's hosts.
    pub(crate) hosts: &'a PerHost<Host>,
    /// The site's own classes.
    pub(crate) classes: &'a BTreeMap<String, StorageClass>,
    /// The host of each node.
    pub(crate) nodes: &'a PerNode<HostId>,
    /// What volumes are.
    pub(crate) volumes: Volumes,
    /// The site's places.
    pub(crate) places: &'a Places,
}

impl StorageDocument {
    /// The storage, its class found and its components placed.
    pub(crate) fn resolve(self, context: &StorageContext<'_>, findings: &mut Findings) -> Option<Storage> {
        let class = self.class(context, findings);
        let apart = match self.apart.as_ref().map(|word| word.value) {
            Some("racks") => Apart::Racks,
            _ => Apart::Hosts,
        };
        self.stands_on_disks(context, findings).then_some(())?;
        let allowed = self.allowed(context, findings)?;
        self.has_room((&allowed, apart), context, findings).then_some(())?;
        // At most three.
        let replicas = self.replicas.value as u32;
        let components = place(context.nodes, (context.hosts, &allowed), replicas as usize, apart);
        let hosts = if self.hosts.is_empty() { Vec::new() } else { allowed };
        let for_storage = hosts.iter().copied().filter(|host| !context.nodes.contains(host)).collect();
        Some(Storage {
            replicas,
            acknowledge: self.acknowledge,
            apart,
            rebuild_after: self.rebuild_after,
            timeout: self.timeout,
            unreachable_after: self.unreachable_after,
            promote: self.promote,
            class: class?,
            components,
            hosts,
            for_storage,
        })
    }

    /// Whether volumes are such that have components, where components are asked for.
    fn stands_on_disks(&self, context: &StorageContext<'_>, findings: &mut Findings) -> bool {
        if context.volumes != Volumes::Directory {
            return true;
        }
        if self.replicas.value > 1 {
            findings.add(
                "not-mirrored",
                self.replicas.at,
                "a plain directory cannot be mirrored",
                "more than one component",
                "remove `volumes: directory`, or ask for `replicas: 1`",
            );
            return false;
        }
        if let Some(first) = self.hosts.first() {
            findings.add(
                "not-mirrored",
                first.at,
                "a plain directory is not on any host's disk",
                "no component to place",
                "remove `volumes: directory`, or `hosts`",
            );
        }
        self.hosts.is_empty()
    }

    /// Hosts that may hold components, in the site's order.
    fn allowed(&self, context: &StorageContext<'_>, findings: &mut Findings) -> Option<Vec<HostId>> {
        let named: Option<Vec<Place>> =
            self.hosts.iter().map(|written| context.places.find(written, None, findings)).collect();
        let named = named?;
        let may_hold = |host: &HostId| {
            let path = context.hosts[*host].path();
            named.is_empty() || named.iter().any(|place| path.starts_with(&place.path))
        };
        Some(context.hosts.ids().filter(may_hold).collect())
    }

    /// Whether there are places enough, as far apart as asked.
    fn has_room(
        &self,
        (allowed, apart): (&[HostId], Apart),
        context: &StorageContext<'_>,
        findings: &mut Findings,
    ) -> bool {
        let racks: BTreeSet<_> = allowed.iter().map(|host| rack(&context.hosts[*host])).collect();
        let (there_are, what) = match apart {
            Apart::Hosts => (allowed.len() as u64, "hosts"),
            Apart::Racks => (racks.len() as u64, "racks"),
        };
        let wanted = self.replicas.value;
        if wanted <= there_are {
            return true;
        }
        let (has, help) = match (self.hosts.is_empty(), apart) {
            (false, _) => {
                ("`hosts` names", format!("name more {what} in `hosts`, or ask for fewer components"))
            }
            (true, Apart::Hosts) => {
                ("the site has", "add hosts under `site`, or ask for fewer components".to_owned())
            }
            (true, Apart::Racks) => (
                "the site has",
                "add racks under `site`, write `apart: hosts`, or ask for fewer components".to_owned(),
            ),
        };
        findings.add(
            "too-few-hosts",
            self.replicas.at,
            format!("{wanted} components apart by {what} need {wanted} {what}; {has} {there_are}"),
            "more than there are",
            help,
        );
        false
    }

    fn class(&self, context: &StorageContext<'_>, findings: &mut Findings) -> Option<StorageClass> {
        let Some(named) = &self.class else { return Some(StorageClass::basic(BASIC)) };
        match named.value.as_str() {
            BASIC => return Some(StorageClass::basic(BASIC)),
            TUNED => return Some(StorageClass::tuned()),
            other => {
                if let Some(class) = context.classes.get(other) {
                    return Some(class.clone());
                }
            }
        }
        let known: Vec<&str> =
            [BASIC, TUNED].into_iter().chain(context.classes.keys().map(String::as_str)).collect();
        findings.add(
            "unknown-word",
            named.at,
            format!("there is no storage class `{}`", named.value),
            "unknown",
            match nearest(&named.value, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known are {}; more are made under `site.storage_classes`", listed(&known)),
            },
        );
        None
    }
}

/// The storage as lines of a resolved scenario's `database`.
pub(crate) fn written(storage: &Storage, hosts: &PerHost<Host>) -> String {
    let apart = if storage.apart == Apart::Racks { "racks" } else { "hosts" };
    let named = storage.hosts.iter().filter_map(|host| hosts.get(*host));
    let named: Vec<String> = named.map(|host| format!("\"{}\"", host.path().join("/"))).collect();
    let named = if named.is_empty() { String::new() } else { format!(", hosts: [{}]", named.join(", ")) };
    let promote = if storage.promote == Promotion::Forced { "forced" } else { "up-to-date" };
    format!(
        "storage: {{ replicas: {}, acknowledge: {}, apart: {apart}, rebuild_after: {}, timeout: {}, unreachable_after: {}, promote: {promote}{named}, class: \"{}\" }}",
        storage.replicas,
        storage.acknowledge.name(),
        format_duration(storage.rebuild_after),
        format_duration(storage.timeout),
        format_duration(storage.unreachable_after),
        storage.class.name,
    )
}

/// A class of the scenario's own as a line of a resolved scenario's `storage_classes`; none for those always there.
pub(crate) fn class_written(class: &StorageClass) -> Option<String> {
    let own = ![BASIC, TUNED].contains(&class.name.as_str());
    own.then(|| {
        format!(
            "\"{}\": {{ metadata: {}, flush: {}, buffer: {} }}",
            class.name,
            if class.metadata_on_own_device { "own-device" } else { "with-data" },
            if class.flush { "each-sync" } else { "never" },
            format_size(class.buffer_bytes),
        )
    })
}

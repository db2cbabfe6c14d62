//! The `edges` of a site: what everything that leaves or enters a place shares.
//!
//! Owns reading them and resolving the places they stand around.

use std::collections::BTreeMap;

use crate::decode::Decoder;
use crate::language::EDGE;
use crate::language::MOST_NAME_BYTES;
use crate::network::{decode_queue, decode_rate};
use crate::places::Places;
use crate::rejection::{Finding, Findings, Spanned, Spot};
use crate::resolved::{Edge, Host, Place, Queue};
use crate::tree::Node;

/// An edge as written.
pub(crate) struct EdgeDocument {
    name: Option<Spanned<String>>,
    around: Spanned<String>,
    rate_bits_per_s: u64,
    queue: Option<Queue>,
}

/// Reads an edge.
pub(crate) fn decode(node: &Node, decoder: &mut Decoder) -> Option<EdgeDocument> {
    let record = decoder.record(node, &EDGE)?;
    let name = record.get("name").and_then(|node| decoder.name(node, "the edge's name"));
    let around = record.get("around").and_then(|node| decoder.text(node, "a place"));
    let rate_bits_per_s = record.get("rate").and_then(|node| decode_rate(node, decoder));
    let queue = record.get("queue").and_then(|node| decode_queue(node, decoder));
    Some(EdgeDocument { name, around: around?, rate_bits_per_s: rate_bits_per_s?, queue })
}

/// Every edge, its place found and its name its own.
pub(crate) fn resolve(
    documents: &[EdgeDocument],
    (places, hosts): (&Places, &[Host]),
    findings: &mut Findings,
) -> Vec<Edge> {
    let mut first: BTreeMap<String, Spot> = BTreeMap::new();
    let mut edges = Vec::new();
    for document in documents {
        let Some(around) = places.find(&document.around, None, findings) else { continue };
        if hosts.iter().all(|host| host.is_in(&around)) {
            findings.add(
                "nothing-outside",
                document.around.at,
                format!(
                    "`{around}` contains every host of the site, so no traffic crosses an edge around it"
                ),
                "the whole site",
                "name a smaller place",
            );
            continue;
        }
        let (name, at) = match &document.name {
            Some(name) => (name.value.clone(), name.at),
            None => (default_name(&around), document.around.at),
        };
        if let Some(earlier) = first.insert(name.clone(), at) {
            findings.push(Finding {
                code: "duplicate-name",
                message: format!("two edges are named `{name}`"),
                at,
                label: "the same name again".to_owned(),
                help: "give each edge a different `name`".to_owned(),
                also: Some((earlier, "first here".to_owned())),
            });
        }
        let (rate_bits_per_s, queue) = (document.rate_bits_per_s, document.queue);
        edges.push(Edge { name, around, rate_bits_per_s, queue });
    }
    edges
}

/// The place's whole path where that makes no longer name than a name may be.
fn default_name(around: &Place) -> String {
    let whole = format!("edge-of-{}", around.path.join("-"));
    if whole.len() <= MOST_NAME_BYTES {
        return whole;
    }
    let last = around.path.last().map_or("", String::as_str);
    format!("edge-of-{last}").chars().take(MOST_NAME_BYTES).collect()
}

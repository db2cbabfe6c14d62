//! The `links` of a site: what lies between its places.
//!
//! Owns reading them and resolving them to one entry per direction; conditions are read in `network`.

use crate::decode::Decoder;
use crate::language::LINK;
use crate::network::{EndsDocument, Of, decode_conditions, decode_ends};
use crate::places::Places;
use crate::rejection::Findings;
use crate::resolved::{Conditions, Link};
use crate::tree::Node;

/// A link as written.
pub(crate) struct LinkDocument {
    ends: EndsDocument,
    conditions: Conditions,
}

/// Reads a link.
pub(crate) fn decode(node: &Node, decoder: &mut Decoder) -> Option<LinkDocument> {
    let record = decoder.record(node, &LINK)?;
    let conditions = decode_conditions(&record, Of::Link, decoder);
    Some(LinkDocument { ends: decode_ends(&record, decoder)?, conditions })
}

/// Every link, one entry per direction.
pub(crate) fn resolve(documents: &[LinkDocument], places: &Places, findings: &mut Findings) -> Vec<Link> {
    let mut links = Vec::new();
    for document in documents {
        let [one, other] = &document.ends.ends;
        // Both are looked up before either is given up, so that both may be reported.
        let (from, to) = (places.find(one, None, findings), places.find(other, None, findings));
        let (Some(from), Some(to)) = (from, to) else { continue };
        if from.overlaps(&to) {
            let message = if from == to {
                format!("a link from `{from}` to itself")
            } else {
                format!("a link between `{from}` and `{to}`, one of which contains the other")
            };
            let help = "name two places that share no host; a rate for all that one place sends and \
                        receives, such as a host's network card, is an entry of `edges`";
            findings.add("bad-link", other.at, message, "the same place, or a part of it", help);
            continue;
        }
        let there = Link { from, to, conditions: document.conditions.clone() };
        let back = document.ends.both_ways.then(|| reversed(&there));
        links.push(there);
        links.extend(back);
    }
    links
}

fn reversed(link: &Link) -> Link {
    Link { from: link.to.clone(), to: link.from.clone(), conditions: link.conditions.clone() }
}

//! The links between places: arrows with delays between neighbours in the drawing, and all links in words below it.
//!
//! Where places stand is `site`'s business.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use history::{LinkFacts, SiteFacts};

use crate::format;
use crate::markup::escape;
use crate::site::{Block, LINK_GAP, LINK_ROW};
use scenario::units::approximate_bit_rate;

/// Delays between places that stand side by side or one below the other, in the gap between them.
pub(crate) fn draw(links: &[LinkFacts], block: &Block, svg: &mut String, class: &str) {
    let delay = |from: &str, to: &str| {
        links.iter().rev().find(|link| link.from == from && link.to == to).map(|link| link.delay_us)
    };
    for pair in block.children.windows(2) {
        let [before, after] = pair else { continue };
        let Some(gap) = gap(before, after) else { continue };
        let (there, back) = (delay(&before.path, &after.path), delay(&after.path, &before.path));
        if there.is_some() && there == back {
            line(svg, gap.shifted(0.0), there, "both ways", class);
        } else {
            line(svg, gap.shifted(-18.0), there, "one way", class);
            line(svg, gap.shifted(18.0).reversed(), back, "one way", class);
        }
    }
    for child in &block.children {
        draw(links, child, svg, class);
    }
}

/// Pairs of places between which [`draw`] draws.
pub(crate) fn drawn(block: &Block) -> BTreeSet<(String, String)> {
    let mut pairs: BTreeSet<(String, String)> = block.children.iter().flat_map(drawn).collect();
    for pair in block.children.windows(2) {
        let [before, after] = pair else { continue };
        if gap(before, after).is_some() {
            pairs.insert((before.path.clone(), after.path.clone()));
            pairs.insert((after.path.clone(), before.path.clone()));
        }
    }
    pairs
}

/// Room for an arrow between two places.
#[derive(Clone, Copy)]
struct Gap {
    from: (f64, f64),
    to: (f64, f64),
    is_upright: bool,
}

impl Gap {
    /// Moved across the arrow's own direction. Upright arrows have their labels beside them, which takes more room.
    fn shifted(self, by: f64) -> Gap {
        let (x, y) = if self.is_upright { (by * 2.5, 0.0) } else { (0.0, by) };
        Gap { from: (self.from.0 + x, self.from.1 + y), to: (self.to.0 + x, self.to.1 + y), ..self }
    }

    fn reversed(self) -> Gap {
        Gap { from: self.to, to: self.from, ..self }
    }
}

/// The gap between two neighbours; none where it is too narrow for an arrow.
fn gap(before: &Block, after: &Block) -> Option<Gap> {
    let is_beside = after.x >= before.x + before.width + LINK_GAP - 1.0 && (after.y - before.y).abs() < 0.5;
    let is_below = after.y >= before.y + before.height + LINK_ROW - 1.0;
    if is_beside {
        let y = before.y + before.height.min(after.height) / 2.0;
        let (from, to) = ((before.x + before.width + 8.0, y), (after.x - 8.0, y));
        Some(Gap { from, to, is_upright: false })
    } else if is_below {
        let x = after.x.max(before.x) + before.width.min(after.width).min(240.0) / 2.0;
        let (from, to) = ((x, before.y + before.height + 5.0), (x, after.y - 5.0));
        Some(Gap { from, to, is_upright: true })
    } else {
        None
    }
}

fn line(svg: &mut String, gap: Gap, delay_us: Option<u64>, ways: &str, class: &str) {
    let Some(delay_us) = delay_us else { return };
    let start =
        if ways == "both ways" { format!(" marker-start=\"url(#link-{class})\"") } else { String::new() };
    let middle = ((gap.from.0 + gap.to.0) / 2.0, (gap.from.1 + gap.to.1) / 2.0);
    let (x, y, anchor) = if gap.is_upright {
        (middle.0 + 8.0, middle.1 + 4.0, "start")
    } else {
        (middle.0, middle.1 - 7.0, "middle")
    };
    let _ = write!(
        svg,
        "<g class=\"link\"><title>{delay} {ways}</title><line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"{start} \
         marker-end=\"url(#link-{class})\"/><text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{delay}</text></g>",
        gap.from.0,
        gap.to.0,
        gap.from.1,
        gap.to.1,
        delay = format::latency_or_zero(delay_us as f64)
    );
}

/// Every link in words, both directions of a pair together, and every edge.
pub(crate) fn in_words(site: &SiteFacts) -> String {
    const TOLD: usize = 40;
    let mut html = String::new();
    if site.links.is_empty() {
        html.push_str("<p class=\"note\">The site itself adds no delay between its places. Delays of faults and of edges are listed with these.</p>");
    } else {
        let mut told = BTreeSet::new();
        let mut written = Vec::new();
        let conditions: BTreeMap<(&str, &str), Vec<String>> = by_ends(&site.links);
        for link in &site.links {
            let (from, to) = (link.from.as_str(), link.to.as_str());
            if told.contains(&(from, to)) {
                continue;
            }
            let there = conditions.get(&(from, to)).map(|all| all.join(", ")).unwrap_or_default();
            let back = conditions.get(&(to, from)).map(|all| all.join(", "));
            told.insert((from, to));
            written.push(if back.as_ref() == Some(&there) {
                told.insert((to, from));
                format!("{from} ↔ {to}: {there} each way")
            } else {
                format!("{from} → {to}: {there}")
            });
            if written.len() > TOLD {
                break;
            }
        }
        let more = if written.len() > TOLD { " … and more" } else { "" };
        written.truncate(TOLD);
        let _ = write!(
            html,
            "<p class=\"note\">Links: {}{more}. All other pairs have no added delay.</p>",
            escape(&written.join("; "))
        );
    }
    let edges = site.edges.iter().take(TOLD).map(|edge| {
        format!(
            "{} around {}, {} each way",
            edge.name,
            edge.around,
            approximate_bit_rate(edge.rate_bits_per_s)
        )
    });
    let edges: Vec<String> = edges.collect();
    if !edges.is_empty() {
        let _ = write!(html, "<p class=\"note\">Edges: {}.</p>", escape(&edges.join("; ")));
    }
    html
}

fn by_ends(links: &[LinkFacts]) -> BTreeMap<(&str, &str), Vec<String>> {
    let mut conditions: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for link in links {
        let words = if link.conditions.is_empty() {
            // A run of an earlier version tells of delays only.
            format!("delay {}", format::latency_or_zero(link.delay_us as f64))
        } else {
            link.conditions.clone()
        };
        conditions.entry((&link.from, &link.to)).or_default().push(words);
    }
    conditions
}

//! Ways between places in the drawing of the site: links whose ends are no neighbours there, and faults on links. Each is
//! a line in a lane of its own, below the site or, where the ends stand below each other, at its right.
//!
//! Links between neighbours are drawn by `site_links`, in the gap between them.

use std::collections::BTreeSet;
use std::fmt::Write;

use results::{FaultResult, RunDirectory};

use crate::format;
use crate::markup::{cut, escape};
use crate::site::Block;
use crate::site_links;

/// Room for a line and its label.
const LANE: f64 = 20.0;
/// Between the site and the first lane.
const FIRST: f64 = 16.0;
/// Between ends of several lines at one place.
const STEP: f64 = 9.0;
/// More lines of a kind than these say less than the words below the drawing.
const MOST: usize = 6;
/// Characters of a label.
const MOST_CHARACTERS: usize = 44;

/// A way from one place to another, or both ways.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Way {
    from: String,
    to: String,
    both: bool,
    label: String,
    is_struck: bool,
}

/// The ways to be drawn beside those that stand in gaps.
pub(crate) fn of(run: &RunDirectory, root: &Block) -> Vec<Way> {
    let links = links(run, root);
    let faults: Vec<Way> = run.result.faults.iter().flat_map(of_fault).collect();
    let kinds = [links, faults].into_iter().filter(|ways| ways.len() <= MOST);
    kinds.flatten().filter(|way| found(root, &way.from).is_some() && found(root, &way.to).is_some()).collect()
}

fn links(run: &RunDirectory, root: &Block) -> Vec<Way> {
    let links = &run.result.facts.site.links;
    let mut drawn = site_links::drawn(root);
    let mut ways = Vec::new();
    for link in links {
        // Of several that speak of the same pair the last counts.
        let delay = |from: &str, to: &str| {
            links.iter().rev().find(|link| link.from == from && link.to == to).map(|link| link.delay_us)
        };
        let there = delay(&link.from, &link.to);
        let both = there == delay(&link.to, &link.from);
        if drawn.contains(&(link.from.clone(), link.to.clone())) {
            continue;
        }
        drawn.insert((link.from.clone(), link.to.clone()));
        if both {
            drawn.insert((link.to.clone(), link.from.clone()));
        }
        let label = format::latency_or_zero(there.unwrap_or_default() as f64);
        ways.push(Way { from: link.from.clone(), to: link.to.clone(), both, label, is_struck: false });
    }
    ways
}

/// The ways that a fault of the network hit, both directions of a pair as one.
fn of_fault(fault: &FaultResult) -> Vec<Way> {
    let from_s = fault.took_effect_s.unwrap_or(fault.asked_s);
    let until = fault.healed_s.map_or_else(|| "end".to_owned(), format::seconds);
    let label = match fault.took_effect_s {
        Some(_) => {
            format!("{} {} – {until}", fault.kind, format::seconds(from_s).trim_end_matches("\u{a0}s"))
        }
        None => format!("{}: not proven", fault.kind),
    };
    let hit: BTreeSet<(&str, &str)> = fault.ways().collect();
    let mut ways = Vec::new();
    for (from, to) in &hit {
        let both = hit.contains(&(*to, *from));
        if !both || from < to {
            let (from, to) = ((*from).to_owned(), (*to).to_owned());
            ways.push(Way { from, to, both, label: label.clone(), is_struck: true });
        }
    }
    ways
}

fn found<'b>(block: &'b Block, path: &str) -> Option<&'b Block> {
    if block.path == path {
        return Some(block);
    }
    block.children.iter().find_map(|child| found(child, path))
}

/// Draws them. Returns the room that their lanes take at the right of the site and below it.
pub(crate) fn draw(ways: &[Way], root: &Block, svg: &mut String, class: &str) -> (f64, f64) {
    let (mut right, mut below) = (0.0, 0.0);
    for (number, way) in ways.iter().enumerate() {
        let (Some(from), Some(to)) = (found(root, &way.from), found(root, &way.to)) else { continue };
        let aside = (number % 4) as f64 * STEP;
        let stand_below_each_other = from.x < to.x + to.width && to.x < from.x + from.width;
        if stand_below_each_other {
            right += if right > 0.0 { LANE } else { FIRST };
            let x = root.width + right;
            let end = |block: &Block| (block.x + block.width, block.y + block.height / 2.0 + aside);
            let ((x1, y1), (x2, y2)) = (end(from), end(to));
            let label = format!("translate({:.1} {:.1}) rotate(90)", x + 5.0, (y1 + y2) / 2.0);
            let behind = behind(way, root, &[(x1, y1), (x, y1), (x, y2), (x2, y2)]);
            let mask = mask(&behind, (number, class), svg);
            let path = format!("M{x1:.1} {y1:.1}H{x:.1}V{y2:.1}H{x2:.1}");
            line(way, (&path, &mask), &label, svg, class);
        } else {
            below += if below > 0.0 { LANE } else { FIRST };
            let y = root.height + below;
            let end = |block: &Block| (block.x + block.width / 2.0 + aside, block.y + block.height);
            let ((x1, y1), (x2, y2)) = (end(from), end(to));
            let label = format!("translate({:.1} {:.1})", (x1 + x2) / 2.0, y - 4.0);
            let behind = behind(way, root, &[(x1, y1), (x1, y), (x2, y), (x2, y2)]);
            let mask = mask(&behind, (number, class), svg);
            let path = format!("M{x1:.1} {y1:.1}V{y:.1}H{x2:.1}V{y2:.1}");
            line(way, (&path, &mask), &label, svg, class);
        }
    }
    // Labels at the right stand beside their lanes.
    (if right > 0.0 { right + LANE } else { 0.0 }, if below > 0.0 { below + 6.0 } else { 0.0 })
}

/// The outermost places that a way passes and does not lead to. It goes on behind them.
fn behind<'b>(way: &Way, block: &'b Block, corners: &[(f64, f64)]) -> Vec<&'b Block> {
    let mut passed = Vec::new();
    for child in &block.children {
        let leads_here = [&way.from, &way.to].into_iter().any(|end| found(child, end).is_some());
        if leads_here {
            passed.extend(behind(way, child, corners));
        } else if corners.windows(2).any(|ends| crosses(child, ends[0], ends[1])) {
            passed.push(child);
        }
    }
    passed
}

/// Whether a level or upright line goes through a place.
fn crosses(block: &Block, one: (f64, f64), other: (f64, f64)) -> bool {
    let overlap = |from: f64, length: f64, one: f64, other: f64| {
        one.min(other) < from + length && from < one.max(other).max(one.min(other) + 0.1)
    };
    overlap(block.x, block.width, one.0, other.0) && overlap(block.y, block.height, one.1, other.1)
}

/// Hides a line where it goes behind places. Returns the attribute that says so; nothing where it passes none.
fn mask(behind: &[&Block], (number, class): (usize, &str), svg: &mut String) -> String {
    if behind.is_empty() {
        return String::new();
    }
    let id = format!("behind-{class}-{number}");
    let _ = write!(
        svg,
        "<mask id=\"{id}\" maskUnits=\"userSpaceOnUse\" x=\"-99\" y=\"-99\" width=\"9999\" height=\"99999\">\
         <rect x=\"-99\" y=\"-99\" width=\"9999\" height=\"99999\" fill=\"#fff\"/>"
    );
    for block in behind {
        let _ = write!(
            svg,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"#000\"/>",
            block.x, block.y, block.width, block.height
        );
    }
    svg.push_str("</mask>");
    format!(" mask=\"url(#{id})\"")
}

fn line(way: &Way, (path, mask): (&str, &str), place: &str, svg: &mut String, class: &str) {
    let marker = if way.is_struck { "struck" } else { "link" };
    let start = if way.both { format!(" marker-start=\"url(#{marker}-{class})\"") } else { String::new() };
    let arrow = if way.both { '↔' } else { '→' };
    let _ = write!(
        svg,
        "<g class=\"way{struck}\"><title>{} {arrow} {}: {label}</title><path d=\"{path}\"{mask}{start} \
         marker-end=\"url(#{marker}-{class})\"/><text transform=\"{place}\" text-anchor=\"middle\">{cut}</text></g>",
        escape(&way.from),
        escape(&way.to),
        struck = if way.is_struck { " struck" } else { "" },
        label = escape(&way.label),
        cut = escape(&cut(&way.label, MOST_CHARACTERS)),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::Kind;

    fn block(path: &str, x: f64, y: f64) -> Block {
        let (title, note) = (path.to_owned(), String::new());
        let path = path.to_owned();
        Block {
            kind: Kind::Region,
            path,
            title,
            note,
            children: Vec::new(),
            x,
            y,
            width: 100.0,
            height: 50.0,
        }
    }

    fn root(children: Vec<Block>) -> Block {
        Block { children, width: 400.0, height: 60.0, ..block("", 0.0, 0.0) }
    }

    fn way(from: &str, to: &str) -> Way {
        let (from, to) = (from.to_owned(), to.to_owned());
        Way { from, to, both: true, label: "80 ms".to_owned(), is_struck: false }
    }

    #[test]
    fn places_side_by_side_are_joined_below_and_places_below_each_other_at_the_right() {
        let side_by_side = root(vec![block("a", 0.0, 0.0), block("b", 150.0, 0.0), block("c", 300.0, 0.0)]);
        let mut svg = String::new();
        let room = draw(&[way("a", "c"), way("a", "b")], &side_by_side, &mut svg, "wide");
        assert_eq!(room, (0.0, FIRST + LANE + 6.0));
        assert!(svg.contains("M50.0 50.0V76.0H350.0V50.0"), "{svg}");
        let stacked = root(vec![block("a", 0.0, 0.0), block("b", 0.0, 100.0)]);
        assert_eq!(draw(&[way("a", "b")], &stacked, &mut svg, "narrow"), (FIRST + LANE, 0.0));
    }

    #[test]
    fn a_way_goes_behind_places_that_it_does_not_lead_to() {
        let in_the_way = block("c", 0.0, 100.0);
        let site = root(vec![block("a", 0.0, 0.0), block("b", 150.0, 0.0), in_the_way]);
        let mut svg = String::new();
        draw(&[way("a", "b")], &Block { height: 160.0, ..site }, &mut svg, "wide");
        assert!(
            svg.contains("<rect x=\"0.0\" y=\"100.0\"") && svg.contains("mask=\"url(#behind-wide-0)\""),
            "{svg}"
        );
        assert_eq!(svg.matches("#000").count(), 1, "not behind its ends: {svg}");
    }

    #[test]
    fn a_way_to_a_place_that_is_not_drawn_is_left_out() {
        let mut svg = String::new();
        let room = draw(&[way("a", "elsewhere")], &root(vec![block("a", 0.0, 0.0)]), &mut svg, "wide");
        assert_eq!((room, svg.as_str()), ((0.0, 0.0), ""));
    }
}

//! The site as boxes within boxes, laid out for a given width: regions > zones > racks > hosts, nodes on them.
//!
//! Decides what stands where; `site_drawing` draws it.

use std::collections::{BTreeMap, BTreeSet};

use history::{EventKind, HostFacts, MigrationFacts};

use crate::format;
use results::RunDirectory;

/// A host's width; all hosts have the same.
const HOST_WIDTH: f64 = 196.0;
/// Height of a host's name, and of each further line or node in it.
pub(crate) const HOST_HEAD: f64 = 26.0;
pub(crate) const HOST_LINE: f64 = 17.0;
pub(crate) const CHIP_HEIGHT: f64 = 22.0;
pub(crate) const CHIP_STEP: f64 = 27.0;
/// Room for the name of a region, zone or rack.
pub(crate) const TITLE: f64 = 24.0;
const PADDING: f64 = 12.0;
const GAP: f64 = 16.0;
/// The gap between neighbours with a delay between them, wide enough for its arrow and its label.
pub(crate) const LINK_GAP: f64 = 108.0;
/// The same between neighbours that stand one below the other.
pub(crate) const LINK_ROW: f64 = 44.0;
/// Hosts or racks in which nothing happened and no node runs are drawn up to so many of a kind; the rest is a number.
const MOST_IDLE: usize = 4;
const MOST_BUSY: usize = 40;

/// What kind of box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Region,
    Zone,
    Rack,
    /// Index into the site's hosts.
    Host(usize),
    /// What was left out, in words.
    Rest,
}

/// A box, placed relative to the drawing once laid out.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub(crate) kind: Kind,
    pub(crate) path: String,
    pub(crate) title: String,
    pub(crate) note: String,
    pub(crate) children: Vec<Block>,
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// A node on a host, at the start of the run or after a move.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chip {
    pub(crate) node: String,
    pub(crate) text: String,
    pub(crate) is_leader: bool,
    /// It was started again here, having begun elsewhere.
    pub(crate) has_moved_here: bool,
    /// It was here and ended the run elsewhere.
    pub(crate) is_gone: bool,
}

/// A copy of a node's mirrored volume, as it stood at the end.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct VolumeCopy {
    pub(crate) node: String,
    /// As in `result.json`: `serving`, `live`, `catching up`, `away`, `given up`, `idle`.
    pub(crate) role: String,
}

/// Everything the drawing tells about hosts.
#[derive(Debug, Default)]
pub(crate) struct Story {
    /// By host path, in the order of arrival.
    pub(crate) chips: BTreeMap<String, Vec<Chip>>,
    /// By host path: the copies of mirrored volumes on it.
    pub(crate) copies: BTreeMap<String, Vec<VolumeCopy>>,
    /// By host path: what struck it, in words, and whether that is proven.
    pub(crate) strikes: BTreeMap<String, Vec<(String, bool)>>,
    /// Node, from host, to host, in order.
    pub(crate) moves: Vec<(String, String, String)>,
}

/// Whether one node leads; nobody does where every node takes writes.
pub(crate) fn has_leader(run: &RunDirectory) -> bool {
    run.result.facts.site.nodes.iter().any(|node| node.role == "leader")
}

/// What happened to hosts and nodes.
pub(crate) fn story(run: &RunDirectory) -> Story {
    let mut story = Story::default();
    let site = &run.result.facts.site;
    let mut leader = site.nodes.iter().find(|node| node.role == "leader").map(|node| node.name.as_str());
    let mut took_over: BTreeMap<&str, f64> = BTreeMap::new();
    let mut place: BTreeMap<&str, &str> = BTreeMap::new();
    let mut arrivals: Vec<(&str, &str, f64)> = Vec::new();
    for node in &site.nodes {
        place.insert(&node.name, &node.host);
    }
    for event in &run.events {
        match &event.kind {
            EventKind::NodeUp { node, host } => {
                let before = place.insert(node, host);
                if let Some(before) = before.filter(|before| before != host) {
                    story.moves.push((node.clone(), before.to_owned(), host.clone()));
                    arrivals.push((node, host, event.t_s));
                }
            }
            EventKind::Migration { facts } if facts.is_made() => {
                let MigrationFacts { node, from, to, .. } = facts.as_ref();
                place.insert(node, to);
                story.moves.push((node.clone(), from.clone(), to.clone()));
                arrivals.push((node, to, event.t_s));
            }
            EventKind::Leader { node } if leader != Some(node.as_str()) => {
                leader = Some(node);
                took_over.insert(node, event.t_s);
            }
            _ => {}
        }
    }
    for node in &site.nodes {
        let is_gone = place.get(node.name.as_str()) != Some(&node.host.as_str());
        let since_s = took_over.get(node.name.as_str()).copied();
        let is_leader = leader == Some(node.name.as_str());
        let text = match (is_gone, since_s) {
            (true, _) if node.role == "leader" => "was here, leader".to_owned(),
            (true, _) => "was here".to_owned(),
            (false, Some(since_s)) if is_leader => format!("leader since {}", format::seconds(since_s)),
            (false, Some(since_s)) => format!("led since {}", format::seconds(since_s)),
            (false, None) if node.role == "leader" && !is_leader => "first leader".to_owned(),
            (false, None) => node.role.clone(),
        };
        let is_leader = is_leader && !is_gone;
        let chip = Chip { node: node.name.clone(), text, is_leader, has_moved_here: false, is_gone };
        story.chips.entry(node.host.clone()).or_default().push(chip);
    }
    for (node, host, since_s) in arrivals {
        let chips = story.chips.entry(host.to_owned()).or_default();
        if !chips.iter().any(|chip| chip.node == node) {
            let is_gone = place.get(node) != Some(&host);
            let is_leader = leader == Some(node) && !is_gone;
            let role = if is_leader { "leader" } else { "here" };
            let text = format!("{role} since {}", format::seconds(since_s));
            chips.push(Chip { node: node.to_owned(), text, is_leader, has_moved_here: true, is_gone });
        }
    }
    story.strikes = strikes(run);
    for volume in &run.result.volumes {
        for component in &volume.components {
            let copy = VolumeCopy { node: volume.node.clone(), role: component.role.clone() };
            story.copies.entry(component.host.clone()).or_default().push(copy);
        }
    }
    story
}

/// By host path: what struck it, in words, and whether that is proven.
fn strikes(run: &RunDirectory) -> BTreeMap<String, Vec<(String, bool)>> {
    let mut strikes: BTreeMap<String, Vec<(String, bool)>> = BTreeMap::new();
    for fault in &run.result.faults {
        let (from_s, proven) = (fault.took_effect_s.unwrap_or(fault.asked_s), fault.took_effect_s.is_some());
        let until = fault.healed_s.map_or_else(|| "end".to_owned(), format::seconds);
        let text = if proven {
            format!("{} {} – {until}", fault.kind, format::seconds(from_s).trim_end_matches("\u{a0}s"))
        } else {
            format!("{}: not proven", fault.kind)
        };
        for host in &fault.hits {
            strikes.entry(host.clone()).or_default().push((text.clone(), proven));
        }
    }
    strikes
}

/// The boxes of a site, laid out from (0, 0) for a width. The result's size is in the block's own width and height.
pub(crate) fn lay_out(run: &RunDirectory, story: &Story, width: f64) -> Block {
    let mut root = tree(run, story);
    let linked: BTreeSet<(String, String)> = run
        .result
        .facts
        .site
        .links
        .iter()
        .flat_map(|link| [(link.from.clone(), link.to.clone()), (link.to.clone(), link.from.clone())])
        .collect();
    measure(&mut root, width, story, &linked);
    shift(&mut root, 0.0, 0.0);
    root
}

fn block(kind: Kind, path: String, title: String, note: String) -> Block {
    Block { kind, path, title, note, children: Vec::new(), x: 0.0, y: 0.0, width: 0.0, height: 0.0 }
}

fn tree(run: &RunDirectory, story: &Story) -> Block {
    let clients = |path: &str| -> String {
        let here: Vec<String> = run
            .result
            .facts
            .loads
            .iter()
            .filter(|load| load.from == path)
            .map(|load| format!("{} × {}", load.clients, load.name))
            .collect();
        if here.is_empty() { String::new() } else { format!("clients: {}", here.join(", ")) }
    };
    let mut root = block(Kind::Region, String::new(), String::new(), String::new());
    for (index, host) in run.result.facts.site.hosts.iter().enumerate() {
        let region = child(&mut root, Kind::Region, host.region.clone(), &host.region, &clients);
        let zone_path = format!("{}/{}", host.region, host.zone);
        let zone = child(region, Kind::Zone, zone_path.clone(), &host.zone, &clients);
        let rack = match &host.rack {
            Some(rack) => child(zone, Kind::Rack, format!("{zone_path}/{rack}"), rack, &clients),
            None => zone,
        };
        rack.children.push(host_block(index, host, &clients));
    }
    thin(&mut root, story);
    root
}

fn host_block(index: usize, host: &HostFacts, clients: &impl Fn(&str) -> String) -> Block {
    block(Kind::Host(index), host.path.clone(), host.name.clone(), clients(&host.path))
}

fn child<'a>(
    parent: &'a mut Block,
    kind: Kind,
    path: String,
    title: &str,
    clients: &impl Fn(&str) -> String,
) -> &'a mut Block {
    // Hosts come in the scenario's order, so a place's hosts are almost always neighbours: the last child first.
    let found = parent.children.iter().rposition(|block| block.kind == kind && block.path == path);
    let index = found.unwrap_or_else(|| {
        let note = clients(&path);
        parent.children.push(block(kind, path, title.to_owned(), note));
        parent.children.len() - 1
    });
    &mut parent.children[index]
}

/// Leaves out what nothing happened in, where there is much of it. Returns whether anything happened in the block.
fn thin(block: &mut Block, story: &Story) -> bool {
    if matches!(block.kind, Kind::Host(_)) {
        return story.chips.contains_key(&block.path)
            || story.copies.contains_key(&block.path)
            || story.strikes.contains_key(&block.path)
            || !block.note.is_empty();
    }
    let mut kept = Vec::new();
    let (mut busy, mut idle, mut left_out) = (0, 0, 0);
    for mut child in std::mem::take(&mut block.children) {
        let is_busy = thin(&mut child, story);
        let (seen, most) = if is_busy { (&mut busy, MOST_BUSY) } else { (&mut idle, MOST_IDLE) };
        *seen += 1;
        if *seen <= most { kept.push(child) } else { left_out += 1 }
    }
    if left_out > 0 {
        let what = match kept.first().map(|child| child.kind) {
            Some(Kind::Host(_)) => "hosts",
            Some(Kind::Rack) => "racks",
            Some(Kind::Zone) => "zones",
            _ => "regions",
        };
        let title = format!("+ {} more {what}", format::count(left_out));
        kept.push(self::block(Kind::Rest, String::new(), title, String::new()));
    }
    block.children = kept;
    busy > 0 || !block.note.is_empty()
}

/// Sizes a block and places its children relative to it.
fn measure(block: &mut Block, width: f64, story: &Story, linked: &BTreeSet<(String, String)>) {
    match block.kind {
        Kind::Host(_) => {
            let chips = story.chips.get(&block.path).map_or(0, Vec::len)
                + story.copies.get(&block.path).map_or(0, Vec::len);
            let chips = chips as f64;
            let strikes = story.strikes.get(&block.path).map_or(0, Vec::len) as f64;
            let lines = strikes + if block.note.is_empty() { 0.0 } else { 1.0 };
            block.width = HOST_WIDTH;
            block.height = HOST_HEAD + lines * HOST_LINE + chips * CHIP_STEP + 6.0;
            return;
        }
        Kind::Rest => {
            block.width = HOST_WIDTH;
            block.height = HOST_HEAD;
            return;
        }
        Kind::Region | Kind::Zone | Kind::Rack => {}
    }
    let is_root = block.path.is_empty();
    let (padding, head) = if is_root { (0.0, 0.0) } else { (PADDING, TITLE) };
    let inner = (width - 2.0 * padding).max(HOST_WIDTH);
    for child in &mut block.children {
        measure(child, inner, story, linked);
    }
    let stacks = block.kind == Kind::Rack;
    let (mut x, mut y, mut row_height, mut widest) = (0.0_f64, 0.0_f64, 0.0_f64, 0.0_f64);
    for index in 0..block.children.len() {
        let is_linked = index.checked_sub(1).is_some_and(|before| {
            linked.contains(&(block.children[before].path.clone(), block.children[index].path.clone()))
        });
        let gap = match index {
            0 => 0.0,
            _ if is_linked => LINK_GAP,
            _ => GAP,
        };
        let child = &mut block.children[index];
        if index > 0 && (stacks || x + gap + child.width > inner) {
            y += row_height
                + match (is_linked, stacks) {
                    (true, _) => LINK_ROW,
                    (false, true) => 9.0,
                    (false, false) => GAP,
                };
            (x, row_height) = (0.0, 0.0);
        } else {
            x += gap;
        }
        (child.x, child.y) = (padding + x, head + y);
        x += child.width;
        row_height = row_height.max(child.height);
        widest = widest.max(x);
    }
    let title_width =
        (block.title.chars().count() + block.note.chars().count() + "region ".len()) as f64 * 7.2 + 38.0;
    block.width = widest.max(title_width.min(inner)) + 2.0 * padding;
    block.height = head + y + row_height + padding;
}

/// Turns places relative to the parent into places in the drawing.
fn shift(block: &mut Block, x: f64, y: f64) {
    block.x += x;
    block.y += y;
    for child in &mut block.children {
        shift(child, block.x, block.y);
    }
}

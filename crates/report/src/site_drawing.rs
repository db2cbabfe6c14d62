//! Draws the laid-out site as SVG: boxes, nodes, copies of volumes, what was struck, where nodes went. The links between
//! places are drawn by `site_links`.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::chart::CHARACTER_WIDTH;
use crate::format;
use crate::markup::{cut, escape};
use crate::site::{self, Block, CHIP_HEIGHT, CHIP_STEP, Chip, HOST_HEAD, HOST_LINE, Kind, Story, VolumeCopy};
use crate::{site_links, site_ways};
use results::RunDirectory;

const FONT: f64 = 12.0;
const MARGIN: f64 = 8.0;

/// The drawing of the site, with its key and its delays.
pub(crate) fn figure(run: &RunDirectory) -> String {
    let site = &run.result.facts.site;
    if site.hosts.is_empty() {
        return "<p>This run has no site.</p>".to_owned();
    }
    let story = site::story(run);
    let mut html = "<figure class=\"site\">".to_owned();
    for (width, class) in [(1060.0, "wide"), (420.0, "narrow")] {
        let root = site::lay_out(run, &story, width - 2.0 * MARGIN);
        let _ = write!(html, "<div class=\"{class}\">{}</div>", svg(run, &root, &story, class));
    }
    html.push_str("<figcaption class=\"key\">");
    html.push_str(match site::has_leader(run) {
        true => "<span><i class=\"node leader\"></i>leader at the end</span> <span><i class=\"node\"></i>follower</span>",
        false if run.result.facts.site.has_database() => {
            "<span><i class=\"node\"></i>node: every node takes writes</span>"
        }
        false => "<span><i class=\"node\"></i>node: a volume, without a database</span>",
    });
    if !story.moves.is_empty() {
        html.push_str(
            " <span><i class=\"node gone\"></i>was here; the arrow points to where it was restarted</span>",
        );
    }
    if !story.copies.is_empty() {
        html.push_str(
            " <span><i class=\"copy\"></i>copy of a node’s volume, with its state at the end</span>",
        );
    }
    if !story.strikes.is_empty() {
        html.push_str(" <span><i class=\"struck\"></i>affected by a fault</span>");
    }
    html.push_str("</figcaption></figure>");
    match run.result.facts.is_external {
        true => {
            html.push_str("<p class=\"note\">How long packets take between the members was not measured.</p>")
        }
        false => html.push_str(&site_links::in_words(site)),
    }
    html
}

fn svg(run: &RunDirectory, root: &Block, story: &Story, class: &str) -> String {
    let site = &run.result.facts.site;
    let mut chips = BTreeMap::new();
    let mut body = String::new();
    for child in &root.children {
        draw(run, child, story, &mut chips, &mut body);
    }
    site_links::draw(&site.links, root, &mut body, class);
    let (right, below) = site_ways::draw(&site_ways::of(run, root), root, &mut body, class);
    let (width, height) = (root.width + right + 2.0 * MARGIN, root.height + below + 2.0 * MARGIN);
    for (node, from, to) in &story.moves {
        if let (Some(from), Some(to)) =
            (chips.get(&(node.clone(), from.clone())), chips.get(&(node.clone(), to.clone())))
        {
            body.push_str(&arrow(*from, *to, class));
        }
    }
    format!(
        "<svg viewBox=\"{0} {0} {width:.0} {height:.0}\" style=\"max-width:{width:.0}px\" role=\"img\" \
         aria-label=\"The site: {1}\"><defs><marker id=\"arrow-{class}\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" \
         markerWidth=\"7\" markerHeight=\"7\" orient=\"auto-start-reverse\"><path class=\"arrow-head\" d=\"M0 0L8 4L0 8Z\"/>\
         </marker><marker id=\"link-{class}\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
         orient=\"auto-start-reverse\"><path class=\"link-head\" d=\"M0 0L8 4L0 8Z\"/></marker>\
         <marker id=\"struck-{class}\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
         orient=\"auto-start-reverse\"><path class=\"struck-head\" d=\"M0 0L8 4L0 8Z\"/></marker></defs>{body}</svg>",
        -MARGIN,
        escape(&described(run)),
    )
}

fn described(run: &RunDirectory) -> String {
    let site = &run.result.facts.site;
    let nodes: Vec<String> =
        site.nodes.iter().map(|node| format!("{} ({}) on {}", node.name, node.role, node.host)).collect();
    format!("{}; {}", format::counted(site.hosts.len() as u64, "host", "hosts"), format::listed(&nodes))
}

fn fitting(width: f64) -> usize {
    (width / (FONT * CHARACTER_WIDTH)) as usize
}

type Chips = BTreeMap<(String, String), (f64, f64, f64)>;

fn draw(run: &RunDirectory, block: &Block, story: &Story, chips: &mut Chips, svg: &mut String) {
    let (x, y, width, height) = (block.x, block.y, block.width, block.height);
    let class = match block.kind {
        Kind::Host(index) => return draw_host(run, index, block, story, chips, svg),
        Kind::Rest => {
            let _ = write!(
                svg,
                "<text class=\"rest\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                x + 4.0,
                y + 17.0,
                escape(&block.title)
            );
            return;
        }
        Kind::Region => "region",
        Kind::Zone => "zone",
        Kind::Rack => "rack",
    };
    let room = fitting(width - 24.0);
    let title = cut(&format!("{class} {}", block.title), room);
    let note = cut(&block.note, room.saturating_sub(title.chars().count() + 2));
    let note = if note.chars().count() < 4 { String::new() } else { note };
    let _ = write!(
        svg,
        "<g class=\"{class}\"><title>{class} {}{}{}</title><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
         height=\"{height:.1}\" rx=\"5\"/><text x=\"{:.1}\" y=\"{:.1}\">{}</text><text class=\"clients\" x=\"{:.1}\" y=\"{:.1}\" \
         text-anchor=\"end\">{}</text></g>",
        escape(&block.path),
        if block.note.is_empty() { "" } else { ": " },
        escape(&block.note),
        x + 12.0,
        y + 17.0,
        escape(&title),
        x + width - 12.0,
        y + 17.0,
        escape(&note)
    );
    for child in &block.children {
        draw(run, child, story, chips, svg);
    }
}

fn draw_host(
    run: &RunDirectory,
    index: usize,
    block: &Block,
    story: &Story,
    chips: &mut Chips,
    svg: &mut String,
) {
    let (x, y, width, height) = (block.x, block.y, block.width, block.height);
    let strikes = story.strikes.get(&block.path).map_or(&[][..], Vec::as_slice);
    let class = match strikes {
        [] => "host",
        some if some.iter().any(|(_, proven)| *proven) => "host struck",
        _ => "host doubtful",
    };
    let address = run.result.facts.site.hosts.get(index).map_or("", |host| host.address.as_str());
    let name = cut(&block.title, fitting(width - 20.0));
    let room = fitting(width - 24.0).saturating_sub(name.chars().count() + 1);
    let shown_address = if address.chars().count() <= room { address } else { "" };
    let _ = write!(
        svg,
        "<g class=\"{class}\"><title>host {} {}</title><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
         height=\"{height:.1}\" rx=\"3\"/>",
        escape(&block.path),
        escape(address)
    );
    if class == "host struck" {
        let (right, bottom) = (x + width, y + height);
        let _ = write!(
            svg,
            "<path class=\"cross\" d=\"M{x:.1} {y:.1}L{right:.1} {bottom:.1}M{right:.1} {y:.1}L{x:.1} {bottom:.1}\"/>"
        );
    }
    let _ = write!(
        svg,
        "<text class=\"name\" x=\"{:.1}\" y=\"{:.1}\">{}</text><text class=\"address\" x=\"{:.1}\" y=\"{:.1}\" \
         text-anchor=\"end\">{}</text></g>",
        x + 9.0,
        y + 17.0,
        escape(&name),
        x + width - 9.0,
        y + 17.0,
        escape(shown_address)
    );
    let mut line = y + HOST_HEAD;
    let notes = strikes
        .iter()
        .map(|(text, _)| (text, "strike"))
        .chain((!block.note.is_empty()).then_some((&block.note, "clients")));
    for (text, class) in notes {
        let shown = cut(text, fitting(width - 16.0));
        let _ = write!(
            svg,
            "<text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x + 9.0,
            line + 10.0,
            escape(&shown)
        );
        line += HOST_LINE;
    }
    for chip in story.chips.get(&block.path).map_or(&[][..], Vec::as_slice) {
        chips.insert((chip.node.clone(), block.path.clone()), (x + 9.0, line, width - 18.0));
        svg.push_str(&draw_chip(chip, x + 9.0, line, width - 18.0));
        line += CHIP_STEP;
    }
    for copy in story.copies.get(&block.path).map_or(&[][..], Vec::as_slice) {
        svg.push_str(&draw_copy(copy, x + 9.0, line, width - 18.0));
        line += CHIP_STEP;
    }
}

fn draw_copy(copy: &VolumeCopy, x: f64, y: f64, width: f64) -> String {
    let class = match copy.role.as_str() {
        "serving" | "live" | "idle" => "copy",
        _ => "copy behind",
    };
    let whole = format!("volume of {}: {}", copy.node, copy.role);
    format!(
        "<g class=\"{class}\"><title>{}</title><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{CHIP_HEIGHT}\"/>\
         <text x=\"{:.1}\" y=\"{:.1}\">{}</text></g>",
        escape(&whole),
        x + 8.0,
        y + 15.0,
        escape(&cut(&whole, fitting(width - 12.0)))
    )
}

fn draw_chip(chip: &Chip, x: f64, y: f64, width: f64) -> String {
    let mut class = "node".to_owned();
    if chip.is_leader {
        class.push_str(" leader");
    }
    if chip.is_gone {
        class.push_str(" gone");
    } else if chip.has_moved_here {
        class.push_str(" moved");
    }
    let whole = format!("{} {}", chip.node, chip.text);
    format!(
        "<g class=\"{class}\"><title>{}</title><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{CHIP_HEIGHT}\" \
         rx=\"4\"/><text x=\"{:.1}\" y=\"{:.1}\">{}</text></g>",
        escape(&whole),
        x + 8.0,
        y + 15.0,
        escape(&cut(&whole, fitting(width - 12.0)))
    )
}

/// The way a node took, from chip to chip.
fn arrow(from: (f64, f64, f64), to: (f64, f64, f64), class: &str) -> String {
    let middle = CHIP_HEIGHT / 2.0;
    let (from_y, to_y) = (from.1 + middle, to.1 + middle);
    let same_column = (from.0 - to.0).abs() < 5.0;
    let (from_x, to_x, bend_from, bend_to) = if same_column {
        // Down on the right, up on the left, so that a way there and back stays two ways.
        let (edge, out) = if to_y > from_y { (from.0 + from.2, 30.0) } else { (from.0, -30.0) };
        (edge, edge, edge + out, edge + out)
    } else if to.0 > from.0 {
        let (start, end) = (from.0 + from.2, to.0);
        (start, end, start + 40.0, end - 40.0)
    } else {
        let (start, end) = (from.0, to.0 + to.2);
        (start, end, start - 40.0, end + 40.0)
    };
    format!(
        "<path class=\"move\" marker-end=\"url(#arrow-{class})\" d=\"M{from_x:.1} {from_y:.1}C{bend_from:.1} {from_y:.1} \
         {bend_to:.1} {to_y:.1} {to_x:.1} {to_y:.1}\"/>"
    )
}

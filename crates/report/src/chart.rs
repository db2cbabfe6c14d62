//! The frame of a chart over time: axes, phases along the bottom, faults and moments along the top.
//!
//! Knows geometry only: what the curve means is `charts`' business.

use std::fmt::Write;

use crate::marks::{Band, Marks};
use crate::markup::{cut, escape};
use crate::scale::{Scale, time_ticks};

/// Mean width of a character, as a share of the font's size; on the safe side for common system fonts.
pub(crate) const CHARACTER_WIDTH: f64 = 0.6;
const FONT: f64 = 12.0;
const LANE: f64 = 18.0;
const RIGHT: f64 = 16.0;
const PHASE_ROW: f64 = 18.0;

/// What a chart is drawn from.
pub(crate) struct Panel<'a> {
    /// Unique in the page: patterns are referred to by it.
    pub(crate) id: &'a str,
    pub(crate) width: f64,
    pub(crate) plot_height: f64,
    pub(crate) scale: Scale,
    pub(crate) tick: fn(f64) -> String,
    pub(crate) marks: &'a Marks,
    /// What the chart shows, for those who cannot see it.
    pub(crate) description: String,
}

/// Where things lie in a chart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Geometry {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) plot_width: f64,
    pub(crate) plot_height: f64,
    end_s: f64,
    scale: Scale,
}

impl Geometry {
    /// The horizontal place of a moment.
    pub(crate) fn x(&self, t_s: f64) -> f64 {
        self.left + (t_s / self.end_s).clamp(0.0, 1.0) * self.plot_width
    }

    /// The vertical place of a value.
    pub(crate) fn y(&self, value: f64) -> f64 {
        self.top + (1.0 - self.scale.share(value)) * self.plot_height
    }

    /// The vertical place of the axis.
    pub(crate) fn bottom(&self) -> f64 {
        self.top + self.plot_height
    }

    fn right(&self) -> f64 {
        self.left + self.plot_width
    }
}

impl Panel<'_> {
    /// The whole chart as SVG, with what `curves` draws into its plot.
    pub(crate) fn svg(&self, curves: impl FnOnce(&Geometry) -> String) -> String {
        let ticks: Vec<(f64, String)> =
            self.scale.ticks().into_iter().map(|tick| (tick, (self.tick)(tick))).collect();
        let longest = ticks.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0) as f64;
        // The same for all charts wherever it fits, so that their time axes stand below each other.
        let left = (longest * FONT * CHARACTER_WIDTH + 14.0).max(62.0);
        let plot_width = (self.width - left - RIGHT).max(10.0);
        let mut geometry = Geometry {
            left,
            top: 6.0,
            plot_width,
            plot_height: self.plot_height,
            end_s: self.marks.end_s,
            scale: self.scale,
        };
        let labels = fault_labels(&geometry, &self.marks.bands);
        let lanes = labels.iter().map(|label| label.lane + 1).max().unwrap_or(0);
        let moments_top = 4.0 + lanes as f64 * LANE;
        geometry.top = moments_top + if self.marks.moments.is_empty() { 4.0 } else { LANE + 4.0 };
        let height =
            geometry.bottom() + 22.0 + if self.marks.phases.is_empty() { 4.0 } else { PHASE_ROW + 6.0 };
        let mut svg = format!(
            "<svg viewBox=\"0 0 {:.0} {height:.0}\" role=\"img\" aria-label=\"{}\">\
             <defs><pattern id=\"{id}-hatch\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" \
             patternTransform=\"rotate(45)\"><line class=\"hatch\" x1=\"0\" y1=\"0\" x2=\"0\" y2=\"7\"/></pattern></defs>",
            self.width,
            escape(&self.description),
            id = self.id,
        );
        svg.push_str(&self.shades(&geometry));
        svg.push_str(&self.bands(&geometry, &labels));
        svg.push_str(&self.axes(&geometry, &ticks));
        svg.push_str(&curves(&geometry));
        svg.push_str(&self.moments(&geometry, moments_top));
        svg.push_str(&self.phases(&geometry));
        svg.push_str("</svg>");
        svg
    }

    fn axes(&self, geometry: &Geometry, ticks: &[(f64, String)]) -> String {
        let (left, right, bottom) = (geometry.left, geometry.right(), geometry.bottom());
        let mut svg = String::new();
        for (value, label) in ticks {
            push_grid(&mut svg, (left, right), geometry.y(*value), label);
        }
        let _ = write!(
            svg,
            "<line class=\"axis\" x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{bottom:.1}\" y2=\"{bottom:.1}\"/>"
        );
        for (t_s, label) in time_ticks(self.marks.end_s, geometry.plot_width) {
            let x = geometry.x(t_s);
            // A label at the very end would stand half outside.
            let anchor = if x + 16.0 > self.width { "end" } else { "middle" };
            push_tick(&mut svg, x, bottom, anchor, &label);
        }
        svg
    }

    fn shades(&self, geometry: &Geometry) -> String {
        let mut svg = String::new();
        for shade in &self.marks.shades {
            let (from, to) = (geometry.x(shade.from_s), geometry.x(shade.to_s));
            let _ = write!(
                svg,
                "<rect class=\"{}\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{}: {} to {}</title></rect>",
                shade.kind.class(),
                geometry.top,
                (to - from).max(1.5),
                geometry.plot_height,
                escape(&shade.what),
                crate::format::seconds(shade.from_s),
                crate::format::seconds(shade.to_s)
            );
        }
        svg
    }

    fn bands(&self, geometry: &Geometry, labels: &[FaultLabel]) -> String {
        let mut svg = String::new();
        for label in labels {
            let Some(band) = self.marks.bands.get(label.band) else { continue };
            let from = geometry.x(band.from_s);
            let to = geometry.x(band.to_s.unwrap_or(self.marks.end_s)).max(from);
            let (top, height) = (geometry.top, geometry.plot_height);
            let baseline = 4.0 + label.lane as f64 * LANE + 12.0;
            let _ = write!(svg, "<g><title>{}</title>", escape(&label.title));
            if band.took_effect {
                let _ = write!(
                    svg,
                    "<rect class=\"fault\" x=\"{from:.1}\" y=\"{top:.1}\" width=\"{0:.1}\" height=\"{height:.1}\"/>\
                     <rect fill=\"url(#{id}-hatch)\" x=\"{from:.1}\" y=\"{top:.1}\" width=\"{0:.1}\" height=\"{height:.1}\"/>\
                     <line class=\"fault-edge\" x1=\"{from:.1}\" x2=\"{to:.1}\" y1=\"{top:.1}\" y2=\"{top:.1}\"/>",
                    (to - from).max(1.0),
                    id = self.id
                );
            }
            let class = if band.took_effect { "fault-edge" } else { "fault-edge doubtful" };
            let _ = write!(
                svg,
                "<line class=\"{class}\" x1=\"{from:.1}\" x2=\"{from:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/></g>",
                baseline - 9.0,
                geometry.bottom()
            );
        }
        // After all edges, so that none runs through a label.
        for label in labels {
            let baseline = 4.0 + label.lane as f64 * LANE + 12.0;
            let _ = write!(
                svg,
                "<text class=\"fault-label\" x=\"{:.1}\" y=\"{baseline:.1}\"><title>{}</title>{}</text>",
                label.x,
                escape(&label.title),
                escape(&label.text)
            );
        }
        svg
    }

    /// Numbered marks; those too close to stand apart share one.
    fn moments(&self, geometry: &Geometry, top: f64) -> String {
        let mut svg = String::new();
        for Mark { first, last, label, left, width } in self.shared_marks(geometry) {
            let title: Vec<String> = self.marks.moments[first..=last]
                .iter()
                .map(|moment| format!("{}: {}", crate::format::seconds(moment.t_s), moment.what))
                .collect();
            let _ = write!(svg, "<g class=\"moment\"><title>{}</title>", escape(&title.join("\n")));
            for moment in &self.marks.moments[first..=last] {
                let x = geometry.x(moment.t_s);
                let _ = write!(
                    svg,
                    "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>",
                    top + 15.0,
                    geometry.bottom()
                );
            }
            let _ = write!(
                svg,
                "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"16\" rx=\"8\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text></g>",
                left + width / 2.0,
                top + 12.0
            );
        }
        svg
    }

    /// The marks of all moments, in order; those that would touch are one.
    fn shared_marks(&self, geometry: &Geometry) -> Vec<Mark> {
        let mut marks: Vec<Mark> = Vec::new();
        for index in 0..self.marks.moments.len() {
            let mut mark = self.mark(geometry, index, index);
            while let Some(before) = marks.pop_if(|before| before.left + before.width + 2.0 > mark.left) {
                mark = self.mark(geometry, before.first, index);
            }
            marks.push(mark);
        }
        marks
    }

    /// One mark for the moments from `first` to `last`; it begins at the first of them.
    fn mark(&self, geometry: &Geometry, first: usize, last: usize) -> Mark {
        let label = match last - first {
            0 => format!("{}", last + 1),
            _ => format!("{}–{}", first + 1, last + 1),
        };
        let width = (label.chars().count() as f64 * 7.0 + 9.0).max(16.0);
        let left = (geometry.x(self.marks.moments[first].t_s) - 8.0).min(self.width - width);
        Mark { first, last, label, left, width }
    }

    fn phases(&self, geometry: &Geometry) -> String {
        let top = geometry.bottom() + 24.0;
        let mut svg = String::new();
        for phase in &self.marks.phases {
            let (from, to) = (geometry.x(phase.from_s), geometry.x(phase.to_s));
            let fitting = ((to - from - 6.0) / (FONT * CHARACTER_WIDTH)).max(0.0) as usize;
            let name = if fitting < 2 { String::new() } else { cut(&phase.name, fitting) };
            let _ = write!(
                svg,
                "<g class=\"phase\"><title>{}: {} to {}</title><rect x=\"{from:.1}\" y=\"{top:.1}\" width=\"{:.1}\" \
                 height=\"{PHASE_ROW}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text></g>",
                escape(&phase.name),
                crate::format::seconds(phase.from_s),
                crate::format::seconds(phase.to_s),
                (to - from - 1.5).max(0.5),
                (from + to) / 2.0,
                top + 13.0,
                escape(&name)
            );
        }
        svg
    }
}

/// The mark of one moment or of several, placed.
struct Mark {
    first: usize,
    last: usize,
    label: String,
    left: f64,
    width: f64,
}

/// A fault's label, placed.
struct FaultLabel {
    band: usize,
    x: f64,
    lane: usize,
    text: String,
    title: String,
}

/// The labels of faults, in full where all have room, else cut short.
fn fault_labels(geometry: &Geometry, bands: &[Band]) -> Vec<FaultLabel> {
    const SHORT: usize = 24;
    let fitting = (geometry.plot_width / (FONT * CHARACTER_WIDTH)) as usize;
    let labels = placed(geometry, bands, fitting);
    if labels.iter().any(|label| label.text.is_empty()) {
        return placed(geometry, bands, fitting.min(SHORT));
    }
    labels
}

/// Places the labels of faults so that none covers another: each in the first lane with room, to the right of its edge,
/// or to the left of it where the right is too narrow.
fn placed(geometry: &Geometry, bands: &[Band], longest: usize) -> Vec<FaultLabel> {
    const MOST_LANES: usize = 4;
    let mut taken: [Vec<(f64, f64)>; MOST_LANES] = Default::default();
    let mut order: Vec<usize> = (0..bands.len()).collect();
    order.sort_by(|one, other| bands[*one].from_s.total_cmp(&bands[*other].from_s));
    let mut labels = Vec::new();
    for index in order {
        let band = &bands[index];
        let text = cut(&format!("{}{}", band.label, doubt(band)), longest);
        let width = text.chars().count() as f64 * FONT * CHARACTER_WIDTH;
        let edge = geometry.x(band.from_s);
        let (right_of_it, left_of_it) = (edge + 5.0, edge - 5.0 - width);
        let x = if right_of_it + width <= geometry.right() {
            right_of_it
        } else if left_of_it >= 0.0 {
            left_of_it
        } else {
            (geometry.right() - width).max(0.0)
        };
        let is_free =
            |lane: &Vec<(f64, f64)>| lane.iter().all(|(from, to)| x > to + 10.0 || x + width + 10.0 < *from);
        // Without a free lane only the tooltip tells it; the list of faults below the charts has it in any case.
        let lane = taken.iter().position(is_free);
        if let Some(lane) = lane {
            taken[lane].push((x, x + width));
        }
        let text = if lane.is_some() { text } else { String::new() };
        labels.push(FaultLabel {
            band: index,
            x,
            lane: lane.unwrap_or(MOST_LANES - 1),
            text,
            title: told(band),
        });
    }
    labels
}

fn doubt(band: &Band) -> &'static str {
    if band.took_effect { "" } else { " (no evidence of effect)" }
}

/// A fault in words, for its tooltip.
fn told(band: &Band) -> String {
    let verb = if band.took_effect { "from" } else { "asked for at" };
    let healed = match band.to_s {
        Some(to_s) => format!("healed at {}", crate::format::seconds(to_s)),
        None => "not healed while the run was recorded".to_owned(),
    };
    format!("{} {verb} {}{}, {healed}", band.label, crate::format::seconds(band.from_s), doubt(band))
}
/// A line across a plot at a value, and the value's label before it.
pub(crate) fn push_grid(svg: &mut String, (left, right): (f64, f64), y: f64, label: &str) {
    let _ = write!(
        svg,
        "<line class=\"grid\" x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
         <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
        left - 7.0,
        y + 4.0,
        escape(label)
    );
}

/// A mark on the axis below a plot, and its label.
pub(crate) fn push_tick(svg: &mut String, x: f64, bottom: f64, anchor: &str, label: &str) {
    let _ = write!(
        svg,
        "<line class=\"axis\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{bottom:.1}\" y2=\"{:.1}\"/>\
         <text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{label}</text>",
        bottom + 4.0,
        bottom + 17.0
    );
}

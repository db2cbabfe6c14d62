//! A chart over time as a figure of the page: caption, key, and curves, areas or bars in the frame of `chart`.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::chart::{Geometry, Panel};
use crate::marks::Marks;
use crate::markup::escape;
use crate::scale::Scale;
use crate::series::Point;

const WIDE: f64 = 940.0;
const NARROW: f64 = 420.0;

/// One curve or one layer of bars.
pub(crate) struct Curve {
    pub(crate) name: String,
    /// A class of the style sheet, `c0` to `c5`: its colour.
    pub(crate) class: String,
    pub(crate) points: Vec<Point>,
}

/// How curves are drawn.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Manner {
    /// A stepped line with the area below it.
    Area,
    /// A stepped line.
    Line,
    /// Bars, one upon the other.
    Stack,
}

/// Everything a figure says.
pub(crate) struct Figure {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) caption: String,
    pub(crate) unit_note: &'static str,
    pub(crate) manner: Manner,
    pub(crate) scale: Scale,
    pub(crate) tick: fn(f64) -> String,
    pub(crate) value: fn(f64) -> String,
    pub(crate) plot_height: f64,
    pub(crate) curves: Vec<Curve>,
    /// A dashed line, for the baseline.
    pub(crate) reference: Option<f64>,
}

impl Figure {
    /// The figure with its caption, drawn twice: for wide and for narrow screens.
    pub(crate) fn html(&self, marks: &Marks) -> String {
        let mut html = format!(
            "<figure><figcaption><strong>{}</strong> <span>{}{}{}</span>",
            escape(&self.title),
            escape(&self.caption),
            if self.unit_note.is_empty() { "" } else { "; " },
            self.unit_note
        );
        if self.curves.len() > 1 || self.manner == Manner::Stack {
            html.push_str("<span class=\"key\">");
            for curve in &self.curves {
                let _ =
                    write!(html, "<span><i class=\"{}\"></i>{}</span> ", curve.class, escape(&curve.name));
            }
            html.push_str("</span>");
        }
        html.push_str("</figcaption>");
        for (width, class) in [(WIDE, "wide"), (NARROW, "narrow")] {
            let id = format!("{}-{class}", self.id);
            let panel = Panel {
                id: &id,
                width,
                plot_height: self.plot_height,
                scale: self.scale,
                tick: self.tick,
                marks,
                description: format!("{}: {}", self.title, self.caption),
            };
            let _ = write!(
                html,
                "<div class=\"{class}\">{}</div>",
                panel.svg(|geometry| {
                    // Narrow screens have no pointer to hover with.
                    let probes = if width == WIDE { self.tooltips(geometry) } else { String::new() };
                    self.curves(geometry) + &probes
                })
            );
        }
        html.push_str("</figure>");
        html
    }

    fn curves(&self, geometry: &Geometry) -> String {
        let mut svg = String::new();
        match self.manner {
            Manner::Stack => svg.push_str(&self.stack(geometry)),
            // The highest percentile first, so that the median lies on top of it.
            manner => self.curves.iter().rev().for_each(|curve| svg.push_str(&line(geometry, curve, manner))),
        }
        if let Some(value) = self.reference {
            let y = geometry.y(value);
            let _ = write!(
                svg,
                "<line class=\"reference\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>",
                geometry.left,
                geometry.left + geometry.plot_width
            );
        }
        svg
    }

    fn stack(&self, geometry: &Geometry) -> String {
        let mut below = BTreeMap::new();
        let mut svg = String::new();
        for curve in &self.curves {
            for point in curve.points.iter().filter(|point| point.value > 0.0) {
                let base = below.entry(point.from_s as u64).or_insert(0.0);
                let (from, to) = (geometry.x(point.from_s), geometry.x(point.to_s));
                let (bottom, top) = (geometry.y(*base), geometry.y(*base + point.value));
                *base += point.value;
                let _ = write!(
                    svg,
                    "<rect class=\"bar {}\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
                    curve.class,
                    from + 0.4,
                    (to - from - 0.8).max(0.6),
                    bottom - top
                );
            }
        }
        svg
    }

    /// Invisible columns, a point wide, that tell the values on hovering.
    fn tooltips(&self, geometry: &Geometry) -> String {
        let mut lines: BTreeMap<u64, (f64, Vec<String>)> = BTreeMap::new();
        for curve in &self.curves {
            for point in curve.points.iter().filter(|point| self.manner != Manner::Stack || point.value > 0.0)
            {
                let entry = lines.entry(point.from_s as u64).or_insert((point.to_s, Vec::new()));
                entry.1.push(format!("{}: {}", curve.name, (self.value)(point.value)));
            }
        }
        let mut svg = String::new();
        for (from, (to_s, lines)) in lines {
            let (left, right) = (geometry.x(from as f64), geometry.x(to_s));
            let _ = write!(
                svg,
                "<rect class=\"probe\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{} to {} s\n{}</title></rect>",
                geometry.top,
                right - left,
                geometry.plot_height,
                from,
                to_s,
                escape(&lines.join("\n"))
            );
        }
        svg
    }
}

/// A stepped line, broken where a second is missing.
fn line(geometry: &Geometry, curve: &Curve, manner: Manner) -> String {
    let mut svg = String::new();
    for stretch in curve.points.chunk_by(|one, other| other.from_s <= one.to_s) {
        let Some(first) = stretch.first() else { continue };
        let mut path = String::new();
        for (index, point) in stretch.iter().enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            let y = geometry.y(point.value);
            let _ =
                write!(path, "{command}{:.1} {y:.1}H{:.1}", geometry.x(point.from_s), geometry.x(point.to_s));
        }
        if manner == Manner::Area {
            let bottom = geometry.bottom();
            let from = geometry.x(first.from_s);
            let _ = write!(svg, "<path class=\"area {}\" d=\"{path}V{bottom:.1}H{from:.1}Z\"/>", curve.class);
            svg.push_str(&spread(geometry, curve, stretch));
        }
        let _ = write!(svg, "<path class=\"curve {}\" d=\"{path}\"/>", curve.class);
    }
    svg
}

/// The band between the lowest and the highest second of thinned points.
fn spread(geometry: &Geometry, curve: &Curve, stretch: &[Point]) -> String {
    let mut svg = String::new();
    for point in
        stretch.iter().filter(|point| point.highest > point.lowest && point.to_s - point.from_s > 1.0)
    {
        let (top, bottom) = (geometry.y(point.highest), geometry.y(point.lowest));
        let (from, to) = (geometry.x(point.from_s), geometry.x(point.to_s));
        let _ = write!(
            svg,
            "<rect class=\"spread {}\" x=\"{from:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            curve.class,
            to - from,
            bottom - top
        );
    }
    svg
}

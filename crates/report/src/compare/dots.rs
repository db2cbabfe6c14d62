//! One dot for each run along an axis, those of nearly the same value stacked: how a figure is spread over repetitions.
//!
//! Knows geometry only. The axis begins at zero.

use std::fmt::Write;

use crate::chart::CHARACTER_WIDTH;
use crate::markup::{cut, escape};
use crate::scale::Scale;

const WIDE: f64 = 940.0;
const NARROW: f64 = 420.0;
const RIGHT: f64 = 16.0;
const FONT: f64 = 12.0;
const RADIUS: f64 = 4.0;
/// Rows of dots that a strip is high at least.
const ROWS_MIN: usize = 3;
/// Longest name of a strip, in characters.
const NAME_MAX: usize = 16;

/// A run.
pub(super) struct Dot {
    pub(super) value: f64,
    /// Shown where the pointer rests.
    pub(super) title: String,
}

/// The runs of the same settings.
pub(super) struct Strip {
    pub(super) name: String,
    pub(super) median: Option<f64>,
    pub(super) dots: Vec<Dot>,
}

/// A figure of strips below each other on one axis.
pub(super) struct Dots<'a> {
    pub(super) title: String,
    pub(super) strips: Vec<Strip>,
    pub(super) tick: fn(f64) -> String,
    pub(super) unit: &'a str,
}

impl Dots<'_> {
    /// For wide and for narrow screens; nothing where every value is zero.
    pub(super) fn html(&self) -> String {
        let values = self.strips.iter().flat_map(|strip| strip.dots.iter().map(|dot| dot.value));
        let highest = values.fold(0.0, f64::max);
        if highest <= 0.0 {
            return String::new();
        }
        let mut html = format!(
            "<figure><figcaption><strong>{}</strong><span>a dot for each run, a line at the median; {}</span></figcaption>",
            escape(&self.title),
            escape(&self.unit.replace("per_s", "1/s"))
        );
        for (width, class) in [(WIDE, "wide"), (NARROW, "narrow")] {
            let _ = write!(html, "<div class=\"{class}\">{}</div>", self.svg(width, Scale::linear(highest)));
        }
        html.push_str("</figure>");
        html
    }

    fn svg(&self, width: f64, scale: Scale) -> String {
        let is_named = self.strips.len() > 1;
        let longest =
            self.strips.iter().map(|strip| strip.name.chars().count().min(NAME_MAX)).max().unwrap_or(0);
        let left = if is_named { longest as f64 * FONT * CHARACTER_WIDTH + 16.0 } else { 16.0 };
        let x = |value: f64| left + scale.share(value) * (width - left - RIGHT);
        let columns = ((width - left - RIGHT) / (2.0 * RADIUS + 1.0)).floor().max(1.0);
        let (mut below, mut drawn) = (6.0, String::new());
        for strip in &self.strips {
            let mut stacks = std::collections::BTreeMap::<u64, Vec<&Dot>>::new();
            for dot in &strip.dots {
                stacks.entry((scale.share(dot.value) * columns).round() as u64).or_default().push(dot);
            }
            let rows = stacks.values().map(Vec::len).max().unwrap_or(0).max(ROWS_MIN);
            let above = below;
            below += rows as f64 * (2.0 * RADIUS + 1.0) + 6.0;
            let _ = write!(
                drawn,
                "<line class=\"grid\" x1=\"{left:.1}\" x2=\"{:.1}\" y1=\"{below:.1}\" y2=\"{below:.1}\"/>",
                width - RIGHT
            );
            if let Some(median) = strip.median.map(x) {
                let _ = write!(
                    drawn,
                    "<line class=\"axis\" x1=\"{median:.1}\" x2=\"{median:.1}\" y1=\"{above:.1}\" y2=\"{below:.1}\"/>"
                );
            }
            for dots in stacks.values() {
                for (row, dot) in dots.iter().enumerate() {
                    let _ = write!(
                        drawn,
                        "<circle class=\"run\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"{RADIUS}\"><title>{}</title></circle>",
                        x(dot.value),
                        below - RADIUS - 1.0 - row as f64 * (2.0 * RADIUS + 1.0),
                        escape(&dot.title)
                    );
                }
            }
            if is_named {
                let _ = write!(
                    drawn,
                    "<text class=\"tick\" x=\"4\" y=\"{:.1}\">{}</text>",
                    below - 4.0,
                    escape(&cut(&strip.name, NAME_MAX))
                );
            }
            below += 4.0;
        }
        let mut svg = format!(
            "<svg viewBox=\"0 0 {width:.0} {:.0}\" role=\"img\" aria-label=\"{}\">{drawn}",
            below + 20.0,
            escape(&self.title)
        );
        for tick in scale.ticks() {
            let _ = write!(
                svg,
                "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                x(tick),
                below + 12.0,
                escape(&(self.tick)(tick))
            );
        }
        svg.push_str("</svg>");
        svg
    }
}

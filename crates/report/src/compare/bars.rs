//! Bars side by side: one group for each variant, a bar for each figure, the single runs as dots upon it.
//!
//! Knows geometry only. Bars begin at zero, always: a bar's length is read as its value.

use std::fmt::Write;

use super::text::titled;
use crate::chart::CHARACTER_WIDTH;
use crate::markup::{cut, escape};
use crate::scale::Scale;

const WIDE: f64 = 940.0;
const NARROW: f64 = 420.0;
const PLOT: f64 = 220.0;
const TOP: f64 = 12.0;
const RIGHT: f64 = 12.0;
const FONT: f64 = 12.0;

pub(super) struct Bar {
    pub(super) mean: f64,
    /// The runs it is the mean of.
    pub(super) values: Vec<f64>,
}

/// The bars of one variant, in the order of the legend; none where there is no value.
pub(super) struct Group {
    pub(super) name: String,
    pub(super) label: String,
    pub(super) bars: Vec<Option<Bar>>,
}

/// A figure of groups of bars.
pub(super) struct Bars<'a> {
    pub(super) title: String,
    /// What each bar of a group is.
    pub(super) legend: &'a [&'a str],
    pub(super) groups: Vec<Group>,
    /// A value in words.
    pub(super) value: fn(f64) -> String,
    /// A value on the axis.
    pub(super) tick: fn(f64) -> String,
}

impl Bars<'_> {
    /// The figure, for wide and for narrow screens; nothing when no group has a bar.
    pub(super) fn html(&self) -> String {
        let values = self.groups.iter().flat_map(|group| group.bars.iter().flatten());
        let highest = values.flat_map(|bar| bar.values.iter().copied().chain([bar.mean])).fold(0.0, f64::max);
        if highest <= 0.0 {
            return String::new();
        }
        let mut html = format!("<figure><figcaption><strong>{}</strong><span></span>", escape(&self.title));
        if self.legend.len() > 1 {
            html.push_str("<span class=\"key\">");
            for (index, name) in self.legend.iter().enumerate() {
                let _ = write!(html, "<span><i class=\"c{index}\"></i>{}</span> ", escape(name));
            }
            html.push_str("</span>");
        }
        html.push_str("</figcaption>");
        for (width, class) in [(WIDE, "wide"), (NARROW, "narrow")] {
            let _ = write!(html, "<div class=\"{class}\">{}</div>", self.svg(width, Scale::linear(highest)));
        }
        html.push_str("</figure>");
        html
    }

    fn svg(&self, width: f64, scale: Scale) -> String {
        let ticks: Vec<(f64, String)> =
            scale.ticks().into_iter().map(|tick| (tick, (self.tick)(tick))).collect();
        let longest = ticks.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0) as f64;
        let left = (longest * FONT * CHARACTER_WIDTH + 14.0).max(62.0);
        let bottom = TOP + PLOT;
        let y = |value: f64| TOP + (1.0 - scale.share(value)) * PLOT;
        let mut svg = format!(
            "<svg viewBox=\"0 0 {width:.0} {:.0}\" role=\"img\" aria-label=\"{}\">",
            bottom + 24.0,
            escape(&self.title)
        );
        for (value, label) in &ticks {
            let at = y(*value);
            let _ = write!(
                svg,
                "<line class=\"grid\" x1=\"{left:.1}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                 <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                width - RIGHT,
                left - 7.0,
                at + 4.0,
                escape(label)
            );
        }
        let step = (width - left - RIGHT) / self.groups.len().max(1) as f64;
        for (index, group) in self.groups.iter().enumerate() {
            let from = left + index as f64 * step;
            svg.push_str(&self.group(group, from, step, bottom, &y));
        }
        let _ = write!(
            svg,
            "<line class=\"axis\" x1=\"{left:.1}\" x2=\"{:.1}\" y1=\"{bottom:.1}\" y2=\"{bottom:.1}\"/></svg>",
            width - RIGHT
        );
        svg
    }

    fn group(&self, group: &Group, from: f64, step: f64, bottom: f64, y: &impl Fn(f64) -> f64) -> String {
        let slot = (step * 0.78 / group.bars.len().max(1) as f64).min(46.0);
        let start = from + (step - slot * group.bars.len() as f64) / 2.0;
        let mut svg = String::new();
        for (index, bar) in group.bars.iter().enumerate() {
            let Some(bar) = bar else { continue };
            let x = start + index as f64 * slot;
            let top = y(bar.mean);
            let name = self.legend.get(index).copied().unwrap_or_default();
            let runs: Vec<String> = bar.values.iter().map(|value| (self.value)(*value)).collect();
            let _ = write!(
                svg,
                "<g><title>{}</title><rect class=\"bar c{index}\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
                escape(&format!(
                    "{}: {name} {} (runs: {})",
                    titled(&group.name, &group.label),
                    (self.value)(bar.mean),
                    runs.join(", ")
                )),
                x + slot * 0.08,
                (slot * 0.84).max(1.0),
                (bottom - top).max(0.5)
            );
            for value in bar.values.iter().filter(|_| bar.values.len() > 1) {
                let _ = write!(
                    svg,
                    "<circle class=\"run\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.4\"/>",
                    x + slot / 2.0,
                    y(*value)
                );
            }
            svg.push_str("</g>");
        }
        let fitting = (step / (FONT * CHARACTER_WIDTH)) as usize;
        let label = titled(&group.name, &group.label);
        // Half a label says less than its letter, which the table explains.
        let label = if label.chars().count() <= fitting { label } else { cut(&group.name, fitting) };
        let _ = write!(
            svg,
            "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            from + step / 2.0,
            bottom + 16.0,
            escape(&label)
        );
        svg
    }
}

//! The round trips measured from inside, each beside what was asked of the network.

use std::collections::BTreeMap;
use std::fmt::Write;

use history::{EventKind, RoundTrip};

use crate::format;
use crate::markup::escape;
use results::RunDirectory;

/// Pairs shown; a large site has tens of thousands.
const MOST_PAIRS: usize = 60;
/// Occasions side by side in one table.
const MOST_OCCASIONS: usize = 3;

/// One measurement of many pairs.
struct Occasion<'r> {
    title: String,
    pairs: &'r [RoundTrip],
    by_pair: BTreeMap<(&'r str, &'r str), &'r RoundTrip>,
}

/// Every occasion, a few side by side in each table; empty when nothing was measured.
pub(crate) fn tables(run: &RunDirectory) -> String {
    let occasions: Vec<Occasion<'_>> = run
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::RoundTrips { occasion, pairs } => Some(Occasion {
                title: format!("{} ({})", escape(occasion), format::seconds(event.t_s)),
                pairs,
                by_pair: pairs.iter().map(|pair| ((pair.from.as_str(), pair.to.as_str()), pair)).collect(),
            }),
            _ => None,
        })
        .collect();
    occasions.chunks(MOST_OCCASIONS).map(table).collect()
}

fn table(occasions: &[Occasion<'_>]) -> String {
    let mut html = "<div class=\"scroll\"><table><thead><tr><th rowspan=\"2\">Between".to_owned();
    for occasion in occasions {
        let _ = write!(html, "<th class=\"n\" colspan=\"3\">{}", occasion.title);
    }
    html.push_str("</tr><tr>");
    for _ in occasions {
        html.push_str("<th class=\"n\">Configured<th class=\"n\">Measured<th class=\"n\">Difference");
    }
    html.push_str("</tr></thead><tbody>");
    // In the order they were measured in: by name n10 would stand before n2.
    let mut order: Vec<(&str, &str)> = Vec::new();
    for pair in occasions.iter().flat_map(|occasion| occasion.pairs) {
        let pair = (pair.from.as_str(), pair.to.as_str());
        if order.len() <= MOST_PAIRS && !order.contains(&pair) {
            order.push(pair);
        }
    }
    for pair in order.iter().take(MOST_PAIRS) {
        let _ = write!(html, "<tr><th scope=\"row\">{} and {}", escape(pair.0), escape(pair.1));
        for occasion in occasions {
            html.push_str(&cells(occasion.by_pair.get(pair).copied()));
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>");
    let all: std::collections::BTreeSet<_> =
        occasions.iter().flat_map(|occasion| occasion.by_pair.keys()).collect();
    if all.len() > MOST_PAIRS {
        let left = format::counted((all.len() - MOST_PAIRS) as u64, "pair", "pairs");
        let _ = write!(html, "<p class=\"note\">{left} more in events.jsonl.</p>");
    }
    html
}

fn cells(pair: Option<&RoundTrip>) -> String {
    let Some(pair) = pair else { return "<td class=\"n\" colspan=\"3\">not there".to_owned() };
    let asked = if pair.cut { "cut".to_owned() } else { format::latency_or_zero(pair.asked_us as f64) };
    let (measured, beyond) = match pair.measured_us {
        Some(us) if pair.cut => (format::latency(us as f64), "should be cut".to_owned()),
        Some(us) => {
            (format::latency(us as f64), format::latency_difference(us as f64 - pair.asked_us as f64))
        }
        None => ("no answer".to_owned(), String::new()),
    };
    format!("<td class=\"n\">{asked}<td class=\"n\">{measured}<td class=\"n\">{beyond}")
}

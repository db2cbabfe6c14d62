//! The round trips measured from inside, each beside what was asked of the network.

use std::fmt::Write;

use history::{EventKind, RoundTrip};

use crate::format;
use crate::markup::escape;
use crate::run_directory::RunDirectory;

/// Pairs shown of one occasion; a large site has tens of thousands.
const MOST_PAIRS: usize = 60;

/// A table for each occasion; empty when nothing was measured.
pub(crate) fn tables(run: &RunDirectory) -> String {
    let mut html = String::new();
    for event in &run.events {
        if let EventKind::RoundTrips { occasion, pairs } = &event.kind {
            let _ = write!(
                html,
                "<h3>{} <small>at {}</small></h3>",
                escape(occasion),
                format::seconds(event.t_s)
            );
            html.push_str(&table(pairs));
        }
    }
    html
}

fn table(pairs: &[RoundTrip]) -> String {
    let mut html =
        "<div class=\"scroll\"><table><thead><tr><th>Between<th class=\"n\">Asked<th class=\"n\">Measured\
                    <th class=\"n\">Beyond what was asked</tr></thead><tbody>"
            .to_owned();
    for pair in pairs.iter().take(MOST_PAIRS) {
        let (measured, beyond) = match pair.measured_us {
            Some(us) => {
                (format::latency(us as f64), format::latency_difference(us as f64 - pair.asked_us as f64))
            }
            None => ("no answer".to_owned(), String::new()),
        };
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{} and {}<td class=\"n\">{}<td class=\"n\">{measured}<td class=\"n\">{beyond}</tr>",
            escape(&pair.from),
            escape(&pair.to),
            format::latency_or_zero(pair.asked_us as f64),
        );
    }
    html.push_str("</tbody></table></div>");
    if pairs.len() > MOST_PAIRS {
        let left = format::counted((pairs.len() - MOST_PAIRS) as u64, "pair", "pairs");
        let _ = write!(html, "<p class=\"note\">{left} more in events.jsonl.</p>");
    }
    html
}

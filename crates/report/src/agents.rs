//! Agents, the load generator on other machines: whose clients each had, and how far its times can be trusted.

use std::fmt::Write;

use history::{AgentFacts, ClockOffset};
use results::RunResult;

use crate::format;
use crate::markup::escape;

/// The whole section; empty when there were none.
pub(crate) fn section(result: &RunResult) -> String {
    if result.agents.is_empty() {
        return String::new();
    }
    let mut html =
        "<div class=\"scroll\"><table><thead><tr><th>Agent<th>Machine<th>Load<th class=\"n\">Clients\
                    <th class=\"n\">Clock uncertainty, before<th class=\"n\">after<th class=\"n\">Moved\
                    <th class=\"n\">Times off by at most<th class=\"n\">CPU<th>Lost</tr></thead><tbody>"
            .to_owned();
    for facts in &result.agents {
        row(&mut html, facts);
    }
    html.push_str("</tbody></table></div>");
    html.push_str(
        "<p>Each agent's clock was asked over round trips before and after the run. An answer was written down after the \
         question had left and before the answer came back, so that half the fastest round trip bounds the error, however \
         uneven the way is. Times in the history are the agent's, shifted by the offset before the run; what the clocks \
         moved against each other until its end is part of the bound. Percentiles are those of all operations: histograms \
         were added count for count.</p>",
    );
    html
}

fn row(html: &mut String, facts: &AgentFacts) {
    let known = |offset: Option<ClockOffset>| {
        offset.map_or_else(
            || "not known".to_owned(),
            |offset| format!("± {}", format::latency_or_zero(offset.uncertainty_us)),
        )
    };
    let moved = match (facts.clock.before, facts.clock.after) {
        (Some(before), Some(after)) => format::latency_or_zero((after.ahead_us - before.ahead_us).abs()),
        _ => String::new(),
    };
    let off = facts.clock.off_by_at_most_us.map_or_else(|| "not known".to_owned(), format::latency_or_zero);
    let cpu = facts.cpu_s.map_or_else(String::new, format::seconds);
    let lost = facts
        .lost
        .as_ref()
        .map_or_else(String::new, |lost| format!("at {}: {}", format::seconds(lost.at_s), lost.why));
    let _ = write!(
        html,
        "<tr><th scope=\"row\">{}<td>{}<td>{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{moved}\
         <td class=\"n\">{off}<td class=\"n\">{cpu}<td>{}</tr>",
        escape(&facts.agent),
        escape(&facts.host),
        escape(&facts.load),
        format::count(u64::from(facts.clients)),
        known(facts.clock.before),
        known(facts.clock.after),
        escape(&lost),
    );
}

/// An agent's part as one sentence.
pub(crate) fn sentence(facts: &AgentFacts) -> String {
    let off = facts.clock.off_by_at_most_us.map_or_else(
        || "its clock is not known".to_owned(),
        |off_us| format!("its times are off by at most {}", format::latency_or_zero(off_us)),
    );
    let AgentFacts { agent, load, .. } = facts;
    format!(
        "Agent {agent} had {} of {load}; {off}.",
        format::counted(u64::from(facts.clients), "client", "clients")
    )
}

/// What is to be said of time where several clocks measured.
pub(crate) fn time(result: &RunResult) -> String {
    let off = result.agents.iter().filter_map(|facts| facts.clock.off_by_at_most_us).reduce(f64::max);
    let Some(off_us) = off else { return String::new() };
    format!(
        " Agents measured by the clocks of their machines; their times are on this clock and off by at most {}.",
        format::latency_or_zero(off_us)
    )
}

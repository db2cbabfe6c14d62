//! Nodes that moved live to another host: a table of what was copied, how long each stood still and what became of its
//! connections.

use std::fmt::Write;

use history::{MigratedConnections, MigrationFacts};
use results::RunResult;

use crate::format;
use crate::markup::escape;

/// The whole section; empty when none was to move.
pub(crate) fn section(result: &RunResult) -> String {
    if result.migrations.is_empty() {
        return String::new();
    }
    let mut html = "<div class=\"scroll\"><table><thead><tr><th>Node<th>From, to<th class=\"n\">Copying from\
                    <th class=\"n\">Runs there from<th class=\"n\">Rounds<th class=\"n\">Copied<th class=\"n\">a second\
                    <th class=\"n\">Dirtied a second<th class=\"n\">Stun<th class=\"n\">Connections</tr></thead><tbody>"
        .to_owned();
    for facts in &result.migrations {
        row(&mut html, facts);
    }
    html.push_str("</tbody></table></div>");
    let refused = result.migrations.iter().filter_map(|facts| Some((facts, facts.given_up.as_ref()?)));
    for (facts, why) in refused {
        let _ = write!(
            html,
            "<p>{} did not move to {}: {}.</p>",
            escape(&facts.node),
            escape(&facts.to),
            escape(why)
        );
    }
    html.push_str(
        "<p>Copied bytes cross the network between the hosts. The dirty rate is the data that the node's processes \
         write plus the growth of their memory. Connections: those open when the node was stopped, and how many of \
         them were still open one second after it ran again. Cut off: ended by a reset or a timeout.</p>",
    );
    html
}

fn row(html: &mut String, facts: &MigrationFacts) {
    let a_second = |bytes: Option<f64>| {
        bytes.map_or_else(String::new, |bytes| format!("{}/s", format::bytes(bytes as u64)))
    };
    let stun = facts.stun_s.map_or_else(String::new, |stun_s| format::latency(stun_s * 1e6));
    let there = if facts.is_made() { format::seconds(facts.ended_s) } else { "given up".to_owned() };
    let connections = facts.connections.map_or_else(String::new, |connections| {
        let MigratedConnections { before, survived, cut_off } = connections;
        let cut_off =
            if cut_off > 0 { format!(", {} cut off", format::count(cut_off)) } else { String::new() };
        format!("{} of {}{cut_off}", format::count(survived), format::count(before))
    });
    let _ = write!(
        html,
        "<tr><th scope=\"row\">{}<td>{}, {}<td class=\"n\">{}<td class=\"n\">{there}<td class=\"n\">{}<td class=\"n\">{}\
         <td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{stun}<td class=\"n\">{connections}</tr>",
        escape(&facts.node),
        escape(&facts.from),
        escape(&facts.to),
        format::seconds(facts.began_s),
        format::count(facts.rounds.len() as u64 + 1),
        format::bytes(facts.bytes()),
        a_second(facts.copied_bytes_per_s()),
        a_second(facts.dirty_bytes_per_s())
    );
}

/// One migration, in one sentence without its end.
#[must_use]
pub fn migration_in_words(facts: &MigrationFacts) -> String {
    let MigrationFacts { node, from, to, .. } = facts;
    if let Some(why) = &facts.given_up {
        return format!("{node} did not move from {from}: {why}");
    }
    let survived = facts.connections.map_or_else(String::new, |connections| {
        format!(", {} of {} connections survived", connections.survived, connections.before)
    });
    format!(
        "{node} moved from {from} to {to} while it ran: {} in {}, stunned for {}{survived}",
        format::bytes(facts.bytes()),
        format::counted(facts.rounds.len() as u64 + 1, "round", "rounds"),
        format::latency(facts.stun_s.unwrap_or(0.0) * 1e6)
    )
}

/// The same as a sentence.
pub(crate) fn sentence(facts: &MigrationFacts) -> String {
    format!("{}.", migration_in_words(facts))
}

//! Runs beside the atlas, for the page.

use std::fmt::Write;

use super::figures::Figure;
use super::text::heading;
use super::{Against, words};
use crate::compare::Comparison;
use crate::markup::escape;

/// The section's body; empty without an atlas.
pub(in crate::compare) fn html(comparison: &Comparison) -> String {
    let Some(beside) = &comparison.beside_atlas else { return String::new() };
    let mut html = format!("<p>Compared with {}.</p>", escape(&beside.name));
    for standing in &beside.standings {
        let heading = heading(comparison, standing.variant, standing.fault.as_ref());
        let _ = write!(html, "<h3>{}</h3>", escape(&heading));
        match &standing.beside {
            Err(why) => {
                let _ = write!(html, "<p>{}</p>", escape(&words::nothing(why, &beside.name)));
            }
            Ok(against) => html.push_str(&cell(against)),
        }
    }
    html
}

fn cell(against: &Against) -> String {
    let mut html = format!("<p class=\"note\">In the atlas: {}.</p>", escape(&words::cell(against)));
    for caveat in words::caveats(against) {
        let _ = write!(html, "<p>{}</p>", escape(&caveat));
    }
    if let Some(answer) = words::answer(against) {
        let _ = write!(html, "<p><strong>{}</strong></p>", escape(&answer));
    }
    if let Some(chance) = words::chance(against) {
        let _ = write!(html, "<p class=\"note\">{}</p>", escape(&chance));
    }
    html.push_str(
        "<div class=\"scroll\"><table><thead><tr><th>Figure<th class=\"n\">Yours<th class=\"n\">Atlas: median (range)\
         <th>Beside the atlas</tr></thead><tbody>",
    );
    html.extend(against.figures.iter().map(row));
    html.push_str(
        "</tbody></table></div><div class=\"scroll\"><table><thead><tr><th>Machine<th>Yours<th>Atlas</tr></thead><tbody>",
    );
    for fact in &against.machines {
        let (name, ours, theirs) = words::machine(fact);
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}<td>{}<td>{}</tr>",
            escape(name),
            escape(&ours),
            escape(&theirs)
        );
    }
    html.push_str("</tbody></table></div>");
    html
}

fn row(figure: &Figure) -> String {
    let stands = escape(&words::stands(figure));
    format!(
        "<tr><th scope=\"row\">{}<td class=\"n\">{}<td class=\"n\">{}<td>{}</tr>",
        escape(&words::name(figure)),
        escape(&words::ours(figure)),
        escape(&words::theirs(figure)),
        if words::is_worse(figure) { format!("<b>{stands}</b>") } else { stands }
    )
}

//! A run while it goes on, as a page that asks for itself again: the growing time line, faults, events and verdicts so
//! far, from the run directory's files as they stand. Once there is a result, the report itself.

use std::fmt::Write;
use std::path::Path;

use history::EventKind;

use crate::markup::escape;
use crate::page::{opening, section};
use crate::{charts, evidence, format, page};
use results::{ReadError, RunDirectory};

/// Seconds after which the browser asks again.
const AGAIN_S: u32 = 2;

/// The page for a run directory. It asks for itself again until there is a result, and after that where there is `more`
/// to come: another run.
#[must_use]
pub fn html(directory: &Path, more: bool) -> String {
    match results::read(directory) {
        Ok(run) if !run.is_derived && more => asking_again(page::html(&run)),
        Ok(run) if !run.is_derived => page::html(&run),
        Ok(run) => under_way(&run),
        Err(ReadError::File { path, source }) => notice(&format!("{}: {source}", path.display())),
        // Its first files are still to be written.
        Err(_) => notice("The lab is being built."),
    }
}

/// A page with one sentence, which asks for itself again.
#[must_use]
pub fn notice(text: &str) -> String {
    format!("{}<p class=\"lead\">{}</p></main></body></html>\n", head("Holdfast"), escape(text))
}

fn head(title: &str) -> String {
    asking_again(opening(title))
}

fn asking_again(page: String) -> String {
    let again = format!("<meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"{AGAIN_S}\">");
    page.replacen("<meta charset=\"utf-8\">", &again, 1)
}

fn under_way(run: &RunDirectory) -> String {
    let result = &run.result;
    let mut page = head(&format!("{}: under way", result.scenario));
    let _ = writeln!(
        page,
        "<header><p class=\"kicker\">Holdfast, under way · seed {} · {}</p><h1>{}</h1><p class=\"lead\">{}</p>{}</header>",
        result.seed,
        escape(&result.started_at),
        escape(&result.scenario),
        escape(&now(run)),
        verdicts(run)
    );
    section(&mut page, "Over time", &charts::over_time(run));
    if !result.faults.is_empty() {
        section(&mut page, "Faults and their evidence", &evidence::faults(run));
    }
    section(&mut page, "Events", &evidence::events(run));
    page.push_str("</main></body></html>\n");
    page
}

/// Where the run is.
fn now(run: &RunDirectory) -> String {
    let last = run.events.last().map_or(0.0, |event| event.t_s);
    let recorded_s = run.timeline.iter().map(|row| row.second + 1).max().unwrap_or(0) as f64;
    let t_s = last.max(recorded_s);
    let phase = run.events.iter().rev().find_map(|event| match &event.kind {
        EventKind::Phase { name, .. } => Some(name.clone()),
        _ => None,
    });
    let end_s = run.result.facts.phases.iter().map(|phase| phase.to_s).fold(0.0, f64::max);
    match phase {
        None => "The lab is being built.".to_owned(),
        Some(_) if t_s >= end_s => {
            "The schedule is over; the data is being read back and checked.".to_owned()
        }
        Some(phase) => format!("{} of {}, phase {phase}.", format::seconds(t_s), format::seconds(end_s)),
    }
}

/// What has been judged so far: receipts and checks.
fn verdicts(run: &RunDirectory) -> String {
    let mut html = String::new();
    for event in &run.events {
        let (name, verdict) = match &event.kind {
            EventKind::Check { name, verdict, .. } => (format!("check {name}"), *verdict),
            EventKind::FaultTookEffect { fault, receipt } => {
                (format!("fault {} took effect", fault.ordinal()), receipt.verdict)
            }
            EventKind::FaultHealed { fault, receipt } => {
                (format!("fault {} healed", fault.ordinal()), receipt.verdict)
            }
            EventKind::Canary { fault, receipt } => {
                (format!("fault {} took what was not synced", fault.ordinal()), receipt.verdict)
            }
            _ => continue,
        };
        let _ = write!(html, "<span>{} {}</span>", evidence::badge(verdict), escape(&name));
    }
    if html.is_empty() {
        "<p class=\"note\">Nothing has been judged yet.</p>".to_owned()
    } else {
        format!("<p class=\"counts\">{html}</p>")
    }
}

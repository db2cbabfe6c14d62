//! The page as a whole: what comes in which order. Every part is written by its own file.

use std::fmt::Write;

use crate::markup::escape;
use crate::{
    agents, charts, evidence, hosts, links, method, migrations, pods, prediction, round_trips, site_drawing,
    story, tables, verdict_title, volumes,
};
use results::RunDirectory;

const STYLE: &str = include_str!("style.css");

/// The report of a run as one self-contained HTML page: no script, nothing loaded from anywhere.
#[must_use]
pub fn html(run: &RunDirectory) -> String {
    let result = &run.result;
    let mut page = opening(&format!("{}: {} – Holdfast report", result.scenario, result.verdict));
    page.push_str(&head(run));
    let sections = sections(run);
    page.push_str(&contents(&sections));
    page.push_str(&sections);
    let _ = write!(
        page,
        "<footer>Made by Holdfast {} from the run directory. {}</footer>\n</main></body></html>\n",
        escape(&result.holdfast),
        match result.facts.is_external {
            true => "The cluster existed before the run; Holdfast made the load and the faults.",
            false => "The datacentre is simulated; the database, its packets and its data are real.",
        }
    );
    page
}

fn sections(run: &RunDirectory) -> String {
    let result = &run.result;
    let mut page = String::new();
    section(&mut page, "Expectations", &evidence::expectations(run));
    section(&mut page, "Over time", &charts::over_time(run));
    section(&mut page, "The site", &site_drawing::figure(run));
    let links = links::section(run);
    if !links.is_empty() {
        section(&mut page, "The links", &links);
    }
    let hosts = hosts::section(run);
    if !hosts.is_empty() {
        section(&mut page, "The hosts", &hosts);
    }
    let volumes = volumes::section(run);
    if !volumes.is_empty() {
        section(&mut page, "The mirrored volumes", &volumes);
    }
    let migrations = migrations::section(result);
    if !migrations.is_empty() {
        section(&mut page, "Live migrations", &migrations);
    }
    let agents = agents::section(result);
    if !agents.is_empty() {
        section(&mut page, "Agents and their clocks", &agents);
    }
    let pods = pods::pods(result);
    if !pods.is_empty() {
        section(&mut page, "The pods", &pods);
    }
    section(&mut page, "Loads by phase and statement", &tables::loads(result));
    section(&mut page, "Faults and their evidence", &evidence::faults(run));
    let recoveries = pods::recoveries(result);
    if !recoveries.is_empty() {
        section(&mut page, "Recovery in phases", &recoveries);
    }
    let round_trips = round_trips::tables(run);
    if !round_trips.is_empty() {
        section(&mut page, "Round-trip times", &round_trips);
    }
    section(&mut page, "Checks of the data", &evidence::checks(run));
    for (title, body) in prediction::sections(result) {
        section(&mut page, &title, &body);
    }
    section(&mut page, "Warnings", &evidence::warnings(run));
    section(&mut page, "How it was measured", &method::method(run));
    section(&mut page, "Versions, machine and cost", &method::provenance(run));
    section(&mut page, "Run it again", &method::again(run));
    section(&mut page, "Events", &evidence::events(run));
    page
}

/// A page up to its first heading.
pub(crate) fn opening(title: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><link rel=\"icon\" href=\"data:,\">\
         <title>{}</title>\n<style>\n{STYLE}</style></head>\n<body><main>\n",
        escape(title)
    )
}

/// A section of a page with its heading.
pub(crate) fn section(page: &mut String, title: &str, body: &str) {
    let _ = writeln!(page, "<section id=\"{}\"><h2>{title}</h2>{body}</section>", anchor(title));
}

/// What a section is linked by.
pub(crate) fn anchor(title: &str) -> String {
    title.to_lowercase().replace(|character: char| !character.is_ascii_alphanumeric(), "-")
}

/// Links to the sections written so far, for a place before them.
pub(crate) fn contents(sections: &str) -> String {
    let titles = sections.split("<section id=\"").skip(1).filter_map(|section| {
        let (id, rest) = section.split_once("\"><h2>")?;
        Some((id, rest.split_once("</h2>")?.0))
    });
    let links: String = titles.map(|(id, title)| format!("<li><a href=\"#{id}\">{title}</a></li>")).collect();
    format!("<nav aria-label=\"Contents\"><ul>{links}</ul></nav>\n")
}

/// What happened: a paragraph, or with several faults a list with a line for each.
fn lead(run: &RunDirectory) -> String {
    let sentences = story::sentences(run);
    if run.result.faults.len() < 2 {
        return format!("<p class=\"story lead\">{}</p>", escape(&sentences.join(" ")));
    }
    let lines: String = sentences.iter().map(|sentence| format!("<li>{}</li>", escape(sentence))).collect();
    format!("<ul class=\"lead\">{lines}</ul>")
}

fn head(run: &RunDirectory) -> String {
    let (result, facts) = (&run.result, &run.result.facts);
    let word = verdict_title::of(result);
    // Most databases name themselves in their version.
    let engine = if facts.engine_version.to_lowercase().contains(&facts.engine.to_lowercase()) {
        facts.engine_version.clone()
    } else {
        format!("{} {}", facts.engine, facts.engine_version)
    };
    let mut html = format!(
        "<header><p class=\"kicker\">Holdfast report · {} · seed {} · {}</p><h1>{}</h1>",
        escape(&engine),
        result.seed,
        escape(&result.started_at),
        escape(&result.scenario)
    );
    if !facts.description.is_empty() {
        let _ = write!(html, "<p class=\"description\">{}</p>", escape(&facts.description));
    }
    let _ = write!(
        html,
        "<div class=\"verdict {verdict}\"><p class=\"word\">{badge} <b>{word}</b></p><ul>",
        verdict = result.verdict,
        badge = evidence::badge(result.verdict)
    );
    for reason in &result.reasons {
        let _ = write!(html, "<li>{}</li>", escape(reason));
    }
    for sentence in prediction::contradicted(&result.prediction) {
        let _ = write!(html, "<li class=\"contradicted\">{}</li>", escape(&sentence));
    }
    html.push_str("</ul></div><div class=\"numbers\">");
    for number in story::numbers(result) {
        let _ = write!(
            html,
            "<div><p class=\"label\">{}</p><p class=\"value\">{}</p><p class=\"detail\">{}</p></div>",
            number.label,
            escape(&number.value),
            escape(&number.detail)
        );
    }
    html.push_str("</div>");
    html.push_str(&lead(run));
    if !result.lab.warnings.is_empty() || !run.notes.is_empty() {
        let warnings = result.lab.warnings.len() + run.notes.len();
        let _ = write!(
            html,
            "<p class=\"note\">{} about this measurement: see “Warnings” below.</p>",
            crate::format::counted(warnings as u64, "warning", "warnings")
        );
    }
    html.push_str("</header>\n");
    html
}

//! The comparison as one self-contained page: variants, what distinguishes them, bars, tables with intervals, the runs.

use std::fmt::Write;

use measure::Finding;

use super::bars::{Bar, Bars, Group};
use super::quantity::LATENCIES;
use super::text::{change, grounds, name, subjects, summary, valued};
use super::{Cell, Comparison, Quantity, Row, Subject, Variant, atlas, beside, distributions, replication};
use crate::evidence::badge;
use crate::format;
use crate::markup::escape;
use crate::page::{opening, section};
use results::losses::{self, LostWrites};

/// What bars of latencies show, as in most published comparisons.
const SHOWN: [Quantity; 3] = [Quantity::Mean, Quantity::P95, Quantity::P99];

/// The page.
#[must_use]
pub fn html(comparison: &Comparison) -> String {
    let mut page = opening(&format!("{} – Holdfast comparison", comparison.title));
    page.push_str(&head(comparison));
    section(&mut page, "What was compared", &(variants(comparison) + &differing(comparison)));
    let spread = distributions::html(comparison);
    if !spread.is_empty() {
        section(&mut page, "Over the repetitions", &spread);
    }
    let is_one = comparison.variants.len() == 1;
    if !is_one {
        section(&mut page, "Throughput", &throughput(comparison));
    }
    let published = beside::html(comparison);
    if !published.is_empty() {
        section(&mut page, "Beside the published report", &published);
    }
    let beside_atlas = atlas::html(comparison);
    if !beside_atlas.is_empty() {
        section(&mut page, "Beside the atlas", &beside_atlas);
    }
    let replicated = replication::html(comparison);
    if !replicated.is_empty() {
        section(&mut page, "What replication cost", &replicated);
    }
    let latencies = latencies(comparison);
    if !latencies.is_empty() && !is_one {
        section(&mut page, "Latency by operation", &latencies);
    }
    let is_recovery = |subject: &Subject| matches!(subject, Subject::Fault { .. });
    let tables = |wanted: &dyn Fn(&Subject) -> bool| -> String {
        subjects(comparison)
            .iter()
            .filter(|(subject, _)| wanted(subject))
            .map(|(subject, rows)| table(comparison, subject, rows))
            .collect()
    };
    section(&mut page, "Figures side by side", &tables(&|subject| !is_recovery(subject)));
    let recovery = tables(&is_recovery);
    if !recovery.is_empty() {
        section(&mut page, "Recovery", &recovery);
    }
    section(&mut page, "The runs", &runs(comparison));
    if !is_one {
        section(&mut page, "How the differences were judged", &method(comparison));
    }
    page.push_str("<footer>Made by Holdfast from the run directories.</footer>\n</main></body></html>\n");
    page
}

fn head(comparison: &Comparison) -> String {
    let (looked_for, found) = comparison.counts();
    let mut html = format!(
        "<header><p class=\"kicker\">Holdfast comparison</p><h1>{}</h1><p class=\"lead\">{}</p>",
        escape(&comparison.title),
        escape(&summary(comparison, looked_for, found))
    );
    if !comparison.notes.is_empty() {
        html.push_str("<ul class=\"note\">");
        for note in &comparison.notes {
            let _ = write!(html, "<li>{}</li>", escape(note));
        }
        html.push_str("</ul>");
    }
    html.push_str("</header>\n");
    html
}

fn variants(comparison: &Comparison) -> String {
    let is_named = comparison.variants.iter().all(|variant| variant.name == variant.label);
    let mut html = format!(
        "<div class=\"scroll\"><table><thead><tr><th>{}<th class=\"n\">Runs<th>Verdict\
         <th class=\"n\">Lost writes<th class=\"n\">Errors</tr></thead><tbody>",
        if is_named { "Settings" } else { "<th>Settings" }
    );
    for variant in &comparison.variants {
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}{}<td class=\"n\">{}<td>{}<td class=\"n\">{}<td class=\"n\">{}</tr>",
            escape(&variant.name),
            if is_named { String::new() } else { format!("<td>{}", escape(&variant.label)) },
            variant.runs.len(),
            badge(variant.verdict()),
            lost(variant),
            format::count(errors(variant))
        );
    }
    html.push_str("</tbody></table></div>");
    for variant in &comparison.variants {
        if let Some(reason) = variant.reason() {
            let (name, verdict) = (escape(&variant.name), variant.verdict());
            let _ = write!(html, "<p class=\"note\">{name}, {verdict}: {}</p>", escape(reason));
        }
    }
    html
}

/// Acknowledged writes lost over all runs; nothing where no run could tell.
fn lost(variant: &Variant) -> String {
    let told: Vec<Option<LostWrites>> =
        variant.runs.iter().map(|run| losses::lost_writes(&run.result.checks)).collect();
    let known: u64 = told.iter().flatten().map(|lost| lost.known()).sum();
    match (known, told.iter().all(|lost| matches!(lost, Some(LostWrites::Exactly(_))))) {
        (known, true) => format::count(known),
        (0, false) => format::NOTHING.to_owned(),
        (known, false) => format::lost(LostWrites::AtLeast(known)),
    }
}

fn errors(variant: &Variant) -> u64 {
    variant.runs.iter().map(|run| distributions::errors(&run.result)).sum()
}

fn differing(comparison: &Comparison) -> String {
    // What was published says nothing of how the runs differ.
    let is_telling = |path: &str| path != "description" && !path.starts_with("reproduces.");
    let telling = comparison.differing.iter().filter(|setting| is_telling(&setting.path));
    let rows: String = telling
        .map(|setting| {
            let mut row = format!("<tr><th scope=\"row\">{}", escape(&setting.path));
            for value in &setting.values {
                let _ = write!(row, "<td>{}", escape(value.as_deref().unwrap_or(format::NOTHING)));
            }
            row + "</tr>"
        })
        .collect();
    if rows.is_empty() {
        return "<p>The settings are the same; only the seeds may differ.</p>".to_owned();
    }
    let letters: String =
        comparison.variants.iter().map(|variant| format!("<th>{}", escape(&variant.name))).collect();
    format!(
        "<h3>Differences in the settings</h3><div class=\"scroll\"><table><thead><tr><th>Setting{letters}</tr></thead><tbody>{rows}\
         </tbody></table></div>"
    )
}

/// The bars of some figures of one subject.
fn groups(comparison: &Comparison, rows: &[&Row], quantities: &[Quantity]) -> Vec<Group> {
    let bar = |index: usize, quantity: &Quantity| {
        let cell = &rows.iter().find(|row| row.quantity == *quantity)?.cells[index];
        Some(Bar { mean: cell.mean()?, values: cell.values.clone() })
    };
    let group = |(index, variant): (usize, &Variant)| Group {
        name: variant.name.clone(),
        label: variant.label.clone(),
        bars: quantities.iter().map(|quantity| bar(index, quantity)).collect(),
    };
    comparison.variants.iter().enumerate().map(group).collect()
}

fn throughput(comparison: &Comparison) -> String {
    let of_loads = subjects(comparison).into_iter();
    of_loads
        .filter(|(subject, _)| matches!(subject, Subject::Load { phase: None, .. }))
        .map(|(subject, rows)| {
            let bars = Bars {
                title: format!("{}: transactions a second", name(subject)),
                legend: &["throughput"],
                groups: groups(comparison, &rows, &[Quantity::Throughput]),
                value: format::rate,
                tick: format::rate,
            };
            bars.html()
        })
        .collect()
}

fn latencies(comparison: &Comparison) -> String {
    let of_operations = subjects(comparison).into_iter();
    of_operations
        .filter(|(subject, _)| {
            matches!(subject, Subject::Load { phase: None, .. } | Subject::Operation { .. })
        })
        .map(|(subject, rows)| {
            let bars = Bars {
                title: match subject {
                    Subject::Load { load, .. } => format!("{load}: transactions"),
                    other => name(other).replacen(", ", ": ", 1),
                },
                legend: &["average", "p95", "p99"],
                groups: groups(comparison, &rows, &SHOWN),
                value: format::latency,
                tick: format::latency_or_zero,
            };
            bars.html()
        })
        .collect()
}

fn table(comparison: &Comparison, subject: &Subject, rows: &[&Row]) -> String {
    let mut html = format!("<h3>{}</h3><div class=\"scroll\"><table><thead><tr><th>", escape(&name(subject)));
    let order = [Quantity::Throughput].into_iter().chain(LATENCIES);
    let order = order.chain([Quantity::Figure, Quantity::FirstSuccess, Quantity::BackTo95Percent]);
    let rows: Vec<&Row> =
        order.filter_map(|wanted| rows.iter().find(|row| row.quantity == wanted).copied()).collect();
    for row in &rows {
        let _ = write!(html, "<th class=\"n\">{}", row.quantity.name());
    }
    html.push_str("</tr></thead><tbody>");
    for (index, variant) in comparison.variants.iter().enumerate() {
        let _ = write!(
            html,
            "<tr><th scope=\"row\" title=\"{}\">{}{}",
            escape(&variant.label),
            escape(&variant.name),
            against(comparison, index)
        );
        for row in &rows {
            let cell = &row.cells[index];
            let value =
                cell.mean().map_or_else(|| format::NOTHING.to_owned(), |mean| valued(row.quantity, mean));
            let _ = write!(html, "<td class=\"n compared\">{value}{}", judged(cell));
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>");
    html
}

/// What a variant is held against, where that is not the same for all.
fn against(comparison: &Comparison, index: usize) -> String {
    let reference = comparison.variants[index].reference;
    if reference == index || comparison.has_one_reference() {
        return String::new();
    }
    format!("<br><small>against {}</small>", escape(&comparison.variants[reference].name))
}

/// The difference below a value: in bold with its interval where it is more than noise.
fn judged(cell: &Cell) -> String {
    let (Some((percent, finding)), Some(difference)) = (change(cell), cell.difference) else {
        return String::new();
    };
    let measured = difference.measured;
    let end = |ratio: f64| format::change_percent(ratio, 1.0).unwrap_or_else(|| format::NOTHING.to_owned());
    let title = format!("judged by {}", grounds(difference.basis));
    match finding {
        Finding::Larger | Finding::Smaller => format!(
            "<small class=\"beyond\" title=\"{title}\"><b>{percent}</b> [{}, {}]</small>",
            end(measured.low),
            end(measured.high)
        ),
        Finding::Noise => {
            format!("<small title=\"{title}\">noise [{}, {}]</small>", end(measured.low), end(measured.high))
        }
        Finding::Unknown => format!("<small title=\"{title}\">not judged</small>"),
    }
}

fn runs(comparison: &Comparison) -> String {
    let mut html = "<div class=\"scroll\"><table><thead><tr><th><th>Run directory<th>Began<th class=\"n\">Seed<th>Verdict\
                    <th>Why</tr></thead><tbody>"
        .to_owned();
    for variant in &comparison.variants {
        for run in &variant.runs {
            let why = run.left_out.as_ref().or(run.result.reasons.first());
            let _ = write!(
                html,
                "<tr><th scope=\"row\">{}<td>{}<td>{}<td class=\"n\">{}<td>{}<td>{}</tr>",
                escape(&variant.name),
                escape(&run.path.display().to_string()),
                escape(&run.result.started_at),
                run.result.seed,
                badge(run.result.verdict),
                escape(why.map_or("", String::as_str))
            );
        }
    }
    html.push_str("</tbody></table></div>");
    html
}

fn method(comparison: &Comparison) -> String {
    let (reference, compared) = match comparison.has_one_reference() {
        true => {
            let first = escape(&comparison.variants[0].name);
            (format!("Every variant is compared with {first}."), first)
        }
        false => (
            "A cell is compared with the earliest of the cells that differ from it on the fewest axes, named below it."
                .to_owned(),
            "the reference".into(),
        ),
    };
    format!(
        "<dl class=\"method\"><dt>Reference</dt><dd>{reference} A figure is the mean over the runs of \
         a variant; dots are the single runs.</dd>\
         <dt>Several runs</dt><dd>Runs are independent of each other. From five on each side, runs are drawn again with \
         replacement, some thousand times, and the spread of the ratios so made is the interval (bootstrap). From two on, \
         Student’s distribution in Welch’s form, which takes figures of equal runs to be spread normally.</dd>\
         <dt>One run each</dt><dd>The seconds of a run resemble their neighbours and know nothing of other runs: stretches of \
         them are drawn again, and a difference below {:.0} % is not called one.</dd>\
         <dt>Interval</dt><dd>99 %, of the ratio to {compared}, as a change in percent. A difference whose interval leaves out no \
         change is beyond noise. Of a hundred figures of equal things, chance still tells about one.</dd></dl>",
        measure::compare::BETWEEN_RUNS * 100.0
    )
}

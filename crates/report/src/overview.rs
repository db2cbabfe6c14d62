//! The page of all runs of a folder: one row each, with a filter, and a choice of runs to compare.
//!
//! Owns the page. Which runs there are is `results::folder`'s; where a row leads is said by who serves the page.

use std::fmt::Write;

use history::Verdict;
use results::folder::{Found, State};

use crate::evidence::badge;
use crate::format;
use crate::markup::escape;
use crate::page::opening;
use crate::story;

/// A row of the page.
pub struct Row<'r> {
    /// The run.
    pub found: &'r Found,
    /// Where its own page is.
    pub link: String,
}

/// Which runs are shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// In the directory's name, the scenario's, or the engine's, in letters of either case; everything where empty.
    pub text: String,
    /// With this verdict.
    pub verdict: Option<Verdict>,
}

impl Filter {
    /// Whether a run is shown.
    #[must_use]
    pub fn takes(&self, found: &Found) -> bool {
        let result = found.result.as_ref();
        let verdict = self.verdict.is_none_or(|wanted| verdict_of(found) == Some(wanted));
        let wanted = self.text.to_lowercase();
        let of_result = result.map(|result| [result.scenario.as_str(), result.facts.engine.as_str()]);
        let mut texts = of_result.into_iter().flatten().chain([found.name.as_str()]);
        verdict && texts.any(|text| text.to_lowercase().contains(&wanted))
    }
}

/// The verdict; a run under way has none yet.
fn verdict_of(found: &Found) -> Option<Verdict> {
    match found.state {
        State::UnderWay => None,
        State::Ended | State::Abandoned => {
            Some(found.result.as_ref().map_or(Verdict::Unknown, |run| run.verdict))
        }
    }
}

/// The page. `rows` are what the filter takes, of so many runs in all; `is_cut` says that some were not looked for.
#[must_use]
pub fn html(folder: &str, rows: &[Row<'_>], (all, is_cut): (usize, bool), filter: &Filter) -> String {
    let mut page = opening(&format!("Holdfast: {folder}"));
    let _ = writeln!(
        page,
        "<header><p class=\"kicker\">Holdfast</p><h1>Runs in {}</h1><p class=\"lead\">{}</p></header>",
        escape(folder),
        counted(rows, all, is_cut)
    );
    page.push_str(&form_of_filter(filter));
    if rows.is_empty() {
        let why = match all {
            0 => {
                "There is no run directory here yet. <code>holdfast run SCENARIO.yaml</code> makes one below <code>runs/</code>."
            }
            _ => "No run fits the filter.",
        };
        let _ = writeln!(page, "<p>{why}</p>");
    } else {
        page.push_str(&table(rows));
    }
    page.push_str("</main></body></html>\n");
    page
}

fn counted(rows: &[Row<'_>], all: usize, is_cut: bool) -> String {
    let of = |wanted: Verdict| rows.iter().filter(|row| verdict_of(row.found) == Some(wanted)).count();
    let under_way = rows.iter().filter(|row| row.found.state == State::UnderWay).count();
    let mut text = format!(
        "{} of {}: {} pass, {} fail, {} unknown, {} under way.",
        format::count(rows.len() as u64),
        if all == 1 { "1 run".to_owned() } else { format!("{} runs", format::count(all as u64)) },
        of(Verdict::Pass),
        of(Verdict::Fail),
        of(Verdict::Unknown),
        under_way
    );
    if is_cut {
        text.push_str(" Too many folders: some were not searched. Serve a folder below this one.");
    }
    text
}

fn form_of_filter(filter: &Filter) -> String {
    let choice = |word: &str, verdict: Option<Verdict>| {
        let selected = if verdict == filter.verdict { " selected" } else { "" };
        format!(
            "<option value=\"{word}\"{selected}>{}</option>",
            if word.is_empty() { "any verdict" } else { word }
        )
    };
    let verdicts = [Verdict::Pass, Verdict::Fail, Verdict::Unknown];
    let choices: String =
        verdicts.iter().map(|verdict| choice(&verdict.to_string(), Some(*verdict))).collect();
    format!(
        "<form class=\"filter\" method=\"get\" action=\"/\"><label>Scenario, engine or folder <input type=\"search\" name=\"text\" \
         value=\"{}\"></label> <label>Verdict <select name=\"verdict\">{}{choices}</select></label> \
         <button>Show</button></form>\n",
        escape(&filter.text),
        choice("", None),
    )
}

fn table(rows: &[Row<'_>]) -> String {
    let mut html = "<form method=\"get\" action=\"/compare\"><div class=\"scroll\"><table class=\"runs\"><thead><tr><th><th>Verdict\
                    <th>Scenario<th>Began<th>Engine<th class=\"n\">Lost writes<th class=\"n\">Longest interruption\
                    <th class=\"n\">Under fault</tr></thead><tbody>\n"
        .to_owned();
    for row in rows {
        html.push_str(&line(row));
    }
    html.push_str(
        "</tbody></table></div><p><button>Compare the chosen runs</button> <span class=\"note\">The first chosen run \
         is the reference.</span></p></form>\n",
    );
    html
}

fn line(row: &Row<'_>) -> String {
    let found = row.found;
    let name = escape(&found.name);
    let state = match (found.state, verdict_of(found)) {
        (State::UnderWay, _) => "<span class=\"badge\">under way</span>".to_owned(),
        (State::Abandoned, _) => format!("{} <small>no result</small>", badge(Verdict::Unknown)),
        (State::Ended, verdict) => badge(verdict.unwrap_or(Verdict::Unknown)),
    };
    let (scenario, began, engine, numbers) = match &found.result {
        Some(result) => (
            result.scenario.as_str(),
            result.started_at.as_str(),
            result.facts.engine.as_str(),
            story::numbers(result).map(|number| number.value),
        ),
        None => (found.name.as_str(), format::NOTHING, format::NOTHING, [const { String::new() }; 3]),
    };
    let choose = match found.state {
        State::Ended => {
            format!("<input type=\"checkbox\" name=\"dir\" value=\"{name}\" aria-label=\"compare {name}\">")
        }
        State::UnderWay | State::Abandoned => String::new(),
    };
    let numbers: String =
        numbers.iter().map(|number| format!("<td class=\"n\">{}", escape(number))).collect();
    format!(
        "<tr><td>{choose}<td>{state}<th scope=\"row\"><a href=\"{}\" title=\"{name}\">{}</a><td>{}<td>{}{numbers}</tr>\n",
        escape(&row.link),
        escape(scenario),
        escape(&began.replace('T', " ").replace('Z', "")),
        escape(engine),
    )
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn found(name: &str, state: State) -> Found {
        Found { path: PathBuf::from(name), name: name.to_owned(), state, result: None }
    }

    #[test]
    fn a_filter_takes_runs_by_name_and_verdict_and_those_under_way_have_none() {
        let abandoned = found("redis/one", State::Abandoned);
        let check = |text: &str, verdict: Option<Verdict>, expected: bool| {
            let filter = Filter { text: text.to_owned(), verdict };
            assert_eq!(filter.takes(&abandoned), expected, "{filter:?}");
        };
        check("", None, true);
        check("REDIS", None, true);
        check("etcd", None, false);
        check("", Some(Verdict::Unknown), true);
        check("", Some(Verdict::Pass), false);
        let unknown = Filter { verdict: Some(Verdict::Unknown), ..Filter::default() };
        assert!(!unknown.takes(&found("redis/two", State::UnderWay)));
    }

    #[test]
    fn names_of_folders_and_filters_stay_text() {
        let run = found("<b>x</b>", State::Ended);
        let rows = [Row { found: &run, link: "/run?dir=x&more".to_owned() }];
        let filter = Filter { text: "\"><script>".to_owned(), verdict: None };
        let page = html("<i>runs</i>", &rows, (1, true), &filter);
        for bad in ["<b>x", "<i>runs", "\"><script>", "x&more"] {
            assert!(!page.contains(bad), "{bad}");
        }
        assert!(page.contains("&lt;b&gt;x&lt;/b&gt;") && page.contains("some were not searched"));
    }

    #[test]
    fn a_folder_without_runs_says_how_to_make_one() {
        let page = html("runs", &[], (0, false), &Filter::default());
        assert!(page.contains("holdfast run SCENARIO.yaml"), "{page}");
        assert!(html("runs", &[], (3, false), &Filter::default()).contains("No run fits the filter."));
    }
}

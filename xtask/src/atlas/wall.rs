//! The atlas as one picture for a wall: a field for each engine and fault, in it a dot for each run.
//!
//! Owns what is drawn where. Which runs there are is the data's business, the tables are the page's.

use std::fmt::Write as _;

use ::atlas::{Cell, Run};
use history::Verdict;

use super::data::{Cells, Gaps};
use super::engines::{ENGINES, EngineSetting};
use super::faults::FAULTS;

/// Left of the fields: the faults' names.
const NAMES_WIDTH: f64 = 270.0;
const FIELD_WIDTH: f64 = 118.0;
const FIELD_HEIGHT: f64 = 50.0;
/// Above the fields: title and engines.
const HEAD_HEIGHT: f64 = 104.0;
/// Below them: the key.
const FOOT_HEIGHT: f64 = 70.0;
/// What the ends of a field's axis stand for, seconds; dots beyond them stand at the end.
const AXIS_S: (f64, f64) = (0.1, 60.0);
/// Moments that the axis marks, seconds.
const MARKS_S: [f64; 3] = [0.1, 1.0, 10.0];

/// The best and the worst that any run of a field showed, as colours.
const UNTRIED: &str = "#f4f4f2";
const WITHOUT_LOSS: &str = "#e3f0e4";
const IN_DOUBT: &str = "#fbeccb";
const LOST: &str = "#f8d9d5";

/// The picture, as SVG.
pub(super) fn picture(cells: &Cells) -> String {
    let width = NAMES_WIDTH + FIELD_WIDTH * ENGINES.len() as f64 + 16.0;
    let height = HEAD_HEIGHT + FIELD_HEIGHT * FAULTS.len() as f64 + FOOT_HEIGHT;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"Helvetica, Arial, \
         sans-serif\" font-size=\"11\" fill=\"#222\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    text(&mut svg, (16.0, 34.0), "font-size=\"22\" font-weight=\"bold\"", "Does your database hold fast?");
    text(
        &mut svg,
        (16.0, 54.0),
        "",
        "Longest time without a success under the same faults, same site, same load; each dot is a run of Holdfast",
    );
    for (column, engine) in ENGINES.iter().enumerate() {
        head(&mut svg, left_of(column), engine, cells);
    }
    for (row, fault) in FAULTS.iter().enumerate() {
        let top = HEAD_HEIGHT + FIELD_HEIGHT * row as f64;
        for (line, words) in in_two_lines(fault.title).into_iter().enumerate() {
            text(&mut svg, (16.0, top + 21.0 + 14.0 * line as f64), "", &words);
        }
        for (column, engine) in ENGINES.iter().enumerate() {
            field(&mut svg, (left_of(column), top), cells.get(&(engine.name, fault.name)));
        }
    }
    key(&mut svg, height - FOOT_HEIGHT + 26.0);
    svg.push_str("</svg>\n");
    svg
}

fn left_of(column: usize) -> f64 {
    NAMES_WIDTH + FIELD_WIDTH * column as f64
}

/// An engine's name and version above its column.
fn head(svg: &mut String, left: f64, engine: &EngineSetting, cells: &Cells) {
    let of_engine = cells.iter().filter(|((name, _), _)| *name == engine.name);
    let versions: Vec<&str> = of_engine.flat_map(|(_, cell)| cell.versions()).collect();
    // A distribution's own words behind the number are for the engine's page.
    let version = versions.first().and_then(|version| version.split([' ', '-']).next()).unwrap_or_default();
    text(svg, (left + 4.0, HEAD_HEIGHT - 24.0), "font-size=\"14\" font-weight=\"bold\"", engine.name);
    text(svg, (left + 4.0, HEAD_HEIGHT - 9.0), "fill=\"#666\"", version);
}

/// What the runs of one cell showed.
fn field(svg: &mut String, (left, top): (f64, f64), cell: Option<&Cell>) {
    let runs: &[Run] = cell.map_or(&[], |cell| &cell.runs);
    let _ = writeln!(
        svg,
        "<rect x=\"{left}\" y=\"{top}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>",
        FIELD_WIDTH - 2.0,
        FIELD_HEIGHT - 2.0,
        colour(runs)
    );
    if runs.is_empty() {
        return text(svg, (left + 6.0, top + 18.0), "fill=\"#999\"", "not run");
    }
    text(svg, (left + 6.0, top + 15.0), "", &in_words(runs));
    let axis_y = top + 34.0;
    for mark_s in MARKS_S {
        let x = left + place_of(mark_s);
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {:.1}V{:.1}\" stroke=\"#bbb\" stroke-width=\"0.7\"/>",
            axis_y - 9.0,
            axis_y + 9.0
        );
    }
    let mut dots: Vec<(usize, &Run)> = runs.iter().enumerate().collect();
    // No other dot hides one of a loss.
    dots.sort_by_key(|(_, run)| has_failed(run));
    for (number, run) in dots {
        let Some(gap_s) = run.gap_s else { continue };
        // Dots at the same place stand beside each other.
        let y = axis_y + (number % 5) as f64 * 3.0 - 6.0;
        let _ = writeln!(
            svg,
            "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"2.6\" fill=\"{}\" fill-opacity=\"0.75\"/>",
            left + place_of(gap_s),
            dot(run)
        );
    }
}

/// The median, and from how many runs.
fn in_words(runs: &[Run]) -> String {
    let gaps = Gaps::of(&runs.iter().collect::<Vec<_>>());
    let median = gaps.map_or_else(|| "unknown".to_owned(), |gaps| format!("{} s", gaps.median()));
    match runs.len() {
        1 => format!("{median}, 1 run"),
        several => format!("{median}, {several} runs"),
    }
}

/// Where a time stands within a field: each tenfold as far as the one before.
fn place_of(time_s: f64) -> f64 {
    let (from, to) = (AXIS_S.0.log10(), AXIS_S.1.log10());
    let share = (time_s.clamp(AXIS_S.0, AXIS_S.1).log10() - from) / (to - from);
    6.0 + share * (FIELD_WIDTH - 16.0)
}

fn has_failed(run: &Run) -> bool {
    run.lost_writes.is_some_and(|lost| lost > 0) || run.verdict == Verdict::Fail
}

fn colour(runs: &[Run]) -> &'static str {
    match runs {
        [] => UNTRIED,
        _ if runs.iter().any(has_failed) => LOST,
        _ if runs.iter().any(|run| run.verdict == Verdict::Unknown) => IN_DOUBT,
        _ => WITHOUT_LOSS,
    }
}

fn dot(run: &Run) -> &'static str {
    match run.verdict {
        _ if has_failed(run) => "#c0392b",
        Verdict::Unknown => "#c98a00",
        _ => "#2c6e49",
    }
}

fn key(svg: &mut String, top: f64) {
    let entries = [
        (WITHOUT_LOSS, "every run passed, nothing acknowledged was lost"),
        (IN_DOUBT, "the verdict of a run is unknown"),
        (LOST, "a run lost acknowledged writes, or a check failed"),
        (UNTRIED, "not run"),
    ];
    let mut left = 16.0;
    for (colour, words) in entries {
        let _ = writeln!(
            svg,
            "<rect x=\"{left}\" y=\"{}\" width=\"14\" height=\"14\" fill=\"{colour}\" stroke=\"#bbb\" stroke-width=\"0.5\"/>",
            top - 11.0
        );
        text(svg, (left + 20.0, top), "", words);
        left += 40.0 + 6.1 * words.len() as f64;
    }
    text(
        svg,
        (16.0, top + 22.0),
        "fill=\"#666\"",
        "In each field from left to right: 0.1, 1 and 10 s at the marks, 60 s at its end. Figures: docs/atlas.",
    );
}

/// Words that are too long for a line, at the space nearest to their middle.
fn in_two_lines(words: &str) -> Vec<String> {
    const LINE: usize = 42;
    if words.len() <= LINE {
        return vec![words.to_owned()];
    }
    let middle = words.len() / 2;
    let spaces = words.match_indices(' ').map(|(at, _)| at);
    match spaces.min_by_key(|at| at.abs_diff(middle)) {
        Some(at) => vec![words[..at].to_owned(), words[at + 1..].to_owned()],
        None => vec![words.to_owned()],
    }
}

fn text(svg: &mut String, (x, y): (f64, f64), attributes: &str, words: &str) {
    let escaped = words.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\" {attributes}>{escaped}</text>");
}

#[cfg(test)]
mod tests {
    use super::super::data::tests::run;
    use super::*;

    #[test]
    fn a_field_has_a_dot_for_each_run_and_the_colour_of_the_worst() {
        let drawn = |runs: Vec<Run>| {
            let cell = Cell { runs, ..Cell::new("etcd", "leader-off") };
            picture(&Cells::from([(("etcd", "leader-off"), cell)]))
        };
        let sound = drawn(vec![run(Some(true), 2.0, Some(0)), run(Some(true), 3.0, Some(0))]);
        assert_eq!(sound.matches("<circle").count(), 2);
        assert!(sound.contains("2.5 s, 2 runs") && sound.contains("3.4.23"), "{sound}");
        let fields = |svg: &str, colour: &str| svg.matches(&format!("fill=\"{colour}\"/>")).count();
        assert_eq!((fields(&sound, WITHOUT_LOSS), fields(&sound, LOST)), (1, 0));
        let losing = drawn(vec![run(Some(true), 2.0, Some(0)), run(Some(true), 3.0, Some(7))]);
        assert_eq!((fields(&losing, WITHOUT_LOSS), fields(&losing, LOST)), (0, 1));
        let doubtful = Run { verdict: Verdict::Unknown, ..run(Some(true), 2.0, Some(0)) };
        assert_eq!(fields(&drawn(vec![doubtful]), IN_DOUBT), 1);
        assert_eq!(fields(&sound, UNTRIED), ENGINES.len() * FAULTS.len() - 1);
    }

    #[test]
    fn a_longer_time_stands_further_right_and_none_outside_of_its_field() {
        let places: Vec<f64> = [0.0, 0.1, 0.5, 2.0, 59.0, 1e6].into_iter().map(place_of).collect();
        assert!(places.is_sorted() && places[0] >= 6.0 && places[5] <= FIELD_WIDTH - 10.0, "{places:?}");
    }
}

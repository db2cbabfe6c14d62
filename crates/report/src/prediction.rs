//! The report's section on what was said on paper: sentences, each prediction beside its measurement, and then the published
//! report's figures.
//!
//! Decides nothing: whether two agree stands in the result.

use std::fmt::Write;

use crate::markup::escape;
use crate::reproduction;
use results::{PredictionResult, Relation, RunResult};

/// The sections, each with its title; none where there is nothing of the kind.
pub(crate) fn sections(result: &RunResult) -> Vec<(String, String)> {
    let mut sections = Vec::new();
    if !result.explanations.is_empty() {
        let lines: String =
            result.explanations.iter().map(|sentence| format!("<li>{}</li>", escape(sentence))).collect();
        sections.push(("Conclusions".to_owned(), format!("<ul>{lines}</ul>")));
    }
    if !result.prediction.is_empty() {
        let rows: Vec<[String; 4]> = result.prediction.iter().map(row).collect();
        let mut body = figures(["Prediction", "Predicted", "Measured", "Agree?"], &rows);
        body.push_str(
            "<p class=\"note\">Brackets show the 99 % interval of the measurement, from the seconds of this run. Predicted and \
             measured agree when the interval contains the prediction. The last column marks a miss of less than 3 %, or of \
             1 % of the phase's largest delay: schedulers and timers cause differences of that size. A throughput is predicted from \
             the baseline's, so half of the baseline's own interval counts as well.</p>",
        );
        sections.push(("Predicted and measured".to_owned(), body));
    }
    let first = result.loads.first().filter(|_| result.loads.len() > 1);
    sections.extend(reproduction::section(&result.reproduces, first.map(|load| load.name.as_str())));
    sections
}

/// The predictions that the run contradicts, one sentence each: either the scenario, the model or the lab is not what its
/// reader takes it for.
pub(crate) fn contradicted(predictions: &[PredictionResult]) -> Vec<String> {
    let against = predictions.iter().filter(|row| row.agrees == Some(false));
    let sentence = |prediction: &PredictionResult| {
        let [name, predicted, seen, _] = row(prediction);
        format!("Prediction missed: {name}: predicted {predicted}, measured {seen}")
    };
    against.map(sentence).collect()
}

fn row(row: &PredictionResult) -> [String; 4] {
    let with_unit = |figure: String| match row.unit.as_str() {
        "" => figure,
        unit => format!("{figure} {unit}"),
    };
    let least = match row.relation {
        Relation::Equal => "",
        Relation::AtLeast => "at least ",
    };
    let predicted = row
        .predicted_in_words
        .clone()
        .unwrap_or_else(|| format!("{least}{}", with_unit(figure(row.predicted))));
    let interval = match (row.low, row.high) {
        (Some(low), Some(high)) => format!(" ({} to {})", figure(low), figure(high)),
        _ => String::new(),
    };
    let seen = match (&row.measured_in_words, row.measured) {
        (Some(words), _) => words.clone(),
        (None, Some(value)) => format!("{}{interval}", with_unit(figure(value))),
        (None, None) => "not measured".to_owned(),
    };
    let agrees = match (row.agrees, row.agrees_within) {
        (Some(true), Some(within)) => {
            format!("within the tolerance of {}, outside the interval", with_unit(figure(within)))
        }
        (Some(true), None) => "yes".to_owned(),
        (Some(false), _) => "NO".to_owned(),
        (None, _) => "unknown".to_owned(),
    };
    [row.name.clone(), predicted, seen, agrees]
}

fn figure(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// A table of names, two figures each and a last word.
fn figures(heads: [&str; 4], rows: &[[String; 4]]) -> String {
    let [name, one, other, last] = heads.map(escape);
    let mut html = format!(
        "<div class=\"scroll\"><table><thead><tr><th>{name}<th class=\"n\">{one}<th class=\"n\">{other}\
         <th>{last}</tr></thead><tbody>"
    );
    for row in rows {
        let [name, one, other, last] = row.each_ref().map(|cell| escape(cell));
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{name}<td class=\"n\">{one}<td class=\"n\">{other}<td>{last}</tr>"
        );
    }
    html.push_str("</tbody></table></div>");
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(prediction: &PredictionResult, expected: [&str; 3]) {
        let [_, predicted, seen, agrees] = row(prediction);
        assert_eq!([predicted.as_str(), seen.as_str(), agrees.as_str()], expected);
    }

    #[test]
    fn a_prediction_reads_as_a_figure_with_its_interval_or_in_its_words() {
        let figure = PredictionResult {
            predicted: 50.0,
            measured: Some(50.25),
            unit: "ms".to_owned(),
            low: Some(49.5),
            high: Some(51.0),
            agrees: Some(true),
            ..PredictionResult::default()
        };
        check(&figure, ["50 ms", "50.25 ms (49.50 to 51)", "yes"]);
        let near = PredictionResult { agrees_within: Some(1.5), ..figure.clone() };
        let told = "within the tolerance of 1.50 ms, outside the interval";
        check(&near, ["50 ms", "50.25 ms (49.50 to 51)", told]);
        let none = PredictionResult { measured: None, agrees: None, ..figure.clone() };
        check(&none, ["50 ms", "not measured", "unknown"]);
        let least = PredictionResult { relation: Relation::AtLeast, agrees: Some(false), ..figure };
        check(&least, ["at least 50 ms", "50.25 ms (49.50 to 51)", "NO"]);
        let words = PredictionResult {
            predicted_in_words: Some("unavailable".to_owned()),
            measured_in_words: Some("0 writes in 9 s".to_owned()),
            ..none
        };
        check(&words, ["unavailable", "0 writes in 9 s", "unknown"]);
    }

    #[test]
    fn only_what_the_run_contradicts_is_said_at_the_top() {
        let row = |agrees| PredictionResult {
            name: "writes served".to_owned(),
            predicted: 1.0,
            measured: Some(0.0),
            agrees,
            ..PredictionResult::default()
        };
        let expected = ["Prediction missed: writes served: predicted 1, measured 0"];
        assert_eq!(contradicted(&[Some(true), None, Some(false)].map(row)), expected);
    }
}

//! What `result.json` says of a prediction.

use serde::{Deserialize, Serialize};

/// A prediction beside its measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PredictionResult {
    /// What.
    pub name: String,
    /// On paper.
    pub predicted: f64,
    /// In the run.
    pub measured: Option<f64>,
    /// Unit of both.
    pub unit: String,
    /// What the prediction says of the measurement.
    #[serde(default)]
    pub relation: Relation,
    /// Lower end of the measurement's 99 % interval, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Its upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Whether they agree within noise; absent if undecided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agrees: Option<bool>,
    /// How much they may differ and still agree; present where the interval excludes the prediction, so that they agree by
    /// this alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agrees_within: Option<f64>,
    /// The prediction in words, where its number says little.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_in_words: Option<String>,
    /// The measurement in words; why there is none, where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_in_words: Option<String>,
}

/// What a prediction says of the measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// It is this.
    #[default]
    Equal,
    /// It is no less.
    AtLeast,
}

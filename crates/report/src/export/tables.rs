//! Tables: every operation of the history, every second of the time line, or the figures of every phase.

use std::io::Write;

use history::{Operation, Outcome};
use serde_json::Value;

use super::ExportError;
use measure::TimelineRow;
use results::{OperationResult, RunResult};

/// What a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// One operation of one load in one second: the columns of `timeline.csv`.
    Timeline,
    /// One recorded operation: who asked what, when, and how it came out.
    Operations,
    /// One operation of one load in one phase, and in all but warm-up.
    Figures,
}

/// The time line. Rows that were torn or damaged in the file are not here.
pub(super) fn timeline(
    rows: &[TimelineRow],
    load: Option<&str>,
    sink: &mut impl Write,
) -> Result<(), ExportError> {
    let mut writer = csv::Writer::from_writer(sink);
    writer.write_record("t_s,load,operation,count,errors,p50_us,p95_us,p99_us,max_us".split(','))?;
    for row in rows.iter().filter(|row| load.is_none_or(|load| row.load == load)) {
        let figures = [row.count, row.errors, row.p50_us, row.p95_us, row.p99_us, row.max_us];
        let figures = figures.map(|figure| figure.to_string());
        let names = [row.second.to_string(), row.load.clone(), row.operation.clone()];
        writer.write_record(names.iter().chain(&figures))?;
    }
    Ok(writer.flush()?)
}

/// The history. What was asked and found is JSON, as it stands in the history file.
pub(super) fn operations(operations: &[Operation], sink: &mut impl Write) -> Result<(), ExportError> {
    let mut writer = csv::Writer::from_writer(sink);
    writer.write_record("load,client,operation,invoked_s,completed_s,outcome,error,node,value".split(','))?;
    for operation in operations {
        let mut value = serde_json::to_value(&operation.action).map_err(std::io::Error::other)?;
        let name = value.as_object_mut().and_then(|action| action.shift_remove("f"));
        let name = name.as_ref().and_then(Value::as_str).unwrap_or_default();
        let outcome = match operation.outcome {
            Outcome::Ok => "ok",
            Outcome::Fail => "fail",
            Outcome::Unknown => "unknown",
        };
        writer.write_record([
            operation.load.as_str(),
            &operation.client.to_string(),
            name,
            &format!("{:.6}", operation.invoked_s),
            &format!("{:.6}", operation.completed_s),
            outcome,
            operation.error.map_or("", history::ErrorClass::name),
            operation.node.as_deref().unwrap_or_default(),
            &value.to_string(),
        ])?;
    }
    Ok(writer.flush()?)
}

/// The figures of every phase, and of all but warm-up, whose phase is empty.
pub(super) fn figures(
    result: &RunResult,
    load: Option<&str>,
    sink: &mut impl Write,
) -> Result<(), ExportError> {
    let mut writer = csv::Writer::from_writer(sink);
    let columns = "load,phase,operation,count,mean_us,p50_us,p90_us,p95_us,p99_us,p99_9_us,max_us";
    writer.write_record(columns.split(','))?;
    for load in result.loads.iter().filter(|known| load.is_none_or(|load| known.name == load)) {
        let phases = load.phases.iter().map(|phase| (phase.name.as_str(), &phase.measured.operations));
        for (phase, operations) in std::iter::once(("", &load.measured.operations)).chain(phases) {
            for (operation, OperationResult { count, latency_us, .. }) in operations {
                let figures = [
                    latency_us.p50,
                    latency_us.p90,
                    latency_us.p95,
                    latency_us.p99,
                    latency_us.p99_9,
                    latency_us.max,
                ];
                let names = [load.name.clone(), phase.to_owned(), operation.clone(), count.to_string()];
                let mean = [format!("{:.3}", latency_us.mean)];
                let figures = figures.map(|figure| figure.to_string());
                writer.write_record(names.iter().chain(&mean).chain(&figures))?;
            }
        }
    }
    Ok(writer.flush()?)
}

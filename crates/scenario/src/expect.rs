//! The `expect` section: `tpcb.fault.latency_p99: < 50ms` to a quantity, its scope, a comparison and a bound in the
//! quantity's base unit.
//!
//! Owns reading it, and refusing what could never be measured or never fail. Which quantities there are is
//! [`crate::quantity`]'s business.
//!
//! A name is `QUANTITY`, `SCOPE.QUANTITY` or `LOAD.WITHIN.QUANTITY`. WITHIN is a phase; for what is measured after faults
//! it is the phase they strike in, their kind, or `fault-N` counted from 1. `all` stands for all phases taken together.
//! A part that is left out, or `*`, leaves it open: the expectation must hold in each of them, warm-up left out.

use crate::decode::Decoder;
use crate::quantity::{self, Measured, Needs, QUANTITIES, QuantityEntry, Unit};
use crate::rejection::{Findings, Spot};
use crate::resolved::{Comparison, Database, Expectation, Failover, Load, Within};
use crate::scenario::Phase;
use crate::tree::{Entry, Node};
use crate::units::{self, UnitError};
use crate::wording::{either, listed, nearest, shortened};

/// An expectation as written and the places of its parts.
pub(crate) struct ExpectationDocument {
    name: String,
    wanted: String,
    comparison: Comparison,
    bound: f64,
    entry: &'static QuantityEntry,
    name_at: Spot,
    scope: Vec<Part>,
}

/// A part of a scope.
struct Part {
    text: String,
    at: Spot,
}

/// Operators, longest first.
const OPERATORS: &[(&str, Comparison)] = &[
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
    ("=", Comparison::Equal),
];

/// Leaves a part of a scope open.
const OPEN: &str = "*";
/// All phases taken together.
const WHOLE_RUN: &str = "all";
/// How a fault is named by its number.
const FAULT_NUMBER: &str = "fault-";

/// Reads the section.
pub(crate) fn decode(node: &Node, decoder: &mut Decoder) -> Option<Vec<ExpectationDocument>> {
    let entries = decoder.entries(node, "`expect`")?;
    let mut documents = Vec::new();
    for written in entries {
        let mut scope = parts(written);
        let Some(quantity) = scope.pop() else { continue };
        let Some(entry) = quantity::named(&quantity.text) else {
            let names: Vec<&str> = QUANTITIES.iter().map(|entry| entry.name).collect();
            let near = nearest(&quantity.text, names.iter().copied());
            let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
            let help = format!("{near}Valid quantities: {}", names.join(", "));
            let message = format!("there is no quantity `{}` to expect", shortened(&quantity.text));
            decoder.findings.add("unknown-key", quantity.at, message, "unknown quantity", help);
            continue;
        };
        if let Some((wanted, comparison, bound)) = decode_bound(&written.value, entry, decoder) {
            let (name, name_at) = (written.key.clone(), written.key_at);
            documents.push(ExpectationDocument { name, wanted, comparison, bound, entry, name_at, scope });
        }
    }
    Some(documents)
}

/// The parts of a name between its dots, each with its place where the key stands as it is, in quotes or not.
fn parts(written: &Entry) -> Vec<Part> {
    let length = written.key_at.end - written.key_at.start;
    let offset =
        length.checked_sub(written.key.len()).filter(|more| [0, 2].contains(more)).map(|more| more / 2);
    let mut start = 0;
    let part = |text: &str| {
        let at = match offset {
            Some(offset) => {
                let start = written.key_at.start + offset + start;
                Spot { start, end: start + text.len(), ..written.key_at }
            }
            None => written.key_at,
        };
        start += text.len() + 1;
        Part { text: text.to_owned(), at }
    };
    written.key.split('.').map(part).collect()
}

/// What is wanted as written, its comparison and its bound.
fn decode_bound(
    node: &Node,
    entry: &'static QuantityEntry,
    decoder: &mut Decoder,
) -> Option<(String, Comparison, f64)> {
    let text = decoder.text(node, &format!("`{}`", entry.name))?;
    let written = text.value.trim();
    let (comparison, quantity) = OPERATORS
        .iter()
        .find_map(|(operator, comparison)| {
            written.strip_prefix(operator).map(|rest| (*comparison, rest.trim_start()))
        })
        .unwrap_or((Comparison::Equal, written));
    let bound = match read_bound(quantity, entry.unit) {
        Ok(bound) => bound,
        Err(error) => {
            let operator = written.strip_suffix(quantity).unwrap_or_default();
            let (code, help) = match &error {
                UnitError::NoUnit { write, .. } => ("no-unit", format!("write `{operator}{write}`")),
                _ => {
                    ("bad-unit", format!("{}; for example `{}: {}`", error.help(), entry.name, entry.example))
                }
            };
            let message = format!("`{}` is {}: {error}", entry.name, entry.unit.written());
            decoder.findings.add(code, text.at, message, "this bound", help);
            return None;
        }
    };
    if comparison == Comparison::Equal && entry.unit != Unit::Count {
        decoder.findings.add(
            "exact-quantity",
            text.at,
            format!("`{}` would have to equal {quantity} exactly, and a measurement never does", entry.name),
            "no comparison",
            format!("write `<`, `<=`, `>` or `>=` in front, such as `{}: \"{}\"`", entry.name, entry.example),
        );
        return None;
    }
    let one_way = match entry.unit {
        unit if always_holds(comparison, bound, unit) => {
            Some(("always-holds", "always", "cannot fail", "can fail"))
        }
        unit if never_holds(comparison, bound, unit) => {
            Some(("never-holds", "never", "cannot pass", "can be kept"))
        }
        _ => None,
    };
    if let Some((code, how, label, wanted)) = one_way {
        decoder.findings.add(
            code,
            text.at,
            format!("`{}: {written}` {how} holds", entry.name),
            label,
            format!("write a bound that {wanted}, such as `{}: \"{}\"`", entry.name, entry.example),
        );
        return None;
    }
    Some((written.to_owned(), comparison, bound))
}

/// Whether no run could keep it, for the same reasons.
fn never_holds(comparison: Comparison, bound: f64, unit: Unit) -> bool {
    match comparison {
        Comparison::Less => bound <= 0.0,
        Comparison::Greater => unit == Unit::Share && bound >= 1.0,
        Comparison::AtLeast | Comparison::Equal => unit == Unit::Share && bound > 1.0,
        Comparison::AtMost => false,
    }
}

/// Whether no run could miss it: nothing measured here is negative, and shares end at 1.
fn always_holds(comparison: Comparison, bound: f64, unit: Unit) -> bool {
    match comparison {
        Comparison::AtLeast => bound <= 0.0,
        Comparison::AtMost => unit == Unit::Share && bound >= 1.0,
        Comparison::Less => unit == Unit::Share && bound > 1.0,
        Comparison::Equal | Comparison::Greater => false,
    }
}

fn read_bound(text: &str, unit: Unit) -> Result<f64, UnitError> {
    match unit {
        Unit::Count => read_count(text),
        Unit::Number => read_number(text),
        Unit::Seconds => units::duration(text, "s").map(|duration| duration.as_secs_f64()),
        Unit::Microseconds => units::duration(text, "ms").map(|duration| duration.as_secs_f64() * 1e6),
        Unit::PerSecond => units::rate_per_s(text),
        Unit::Ratio | Unit::Share => units::ratio(text),
    }
}

fn read_count(text: &str) -> Result<f64, UnitError> {
    match text.parse::<u32>() {
        Ok(count) if text.chars().all(|c| c.is_ascii_digit()) => Ok(f64::from(count)),
        _ => Err(UnitError::NotANumber { text: text.to_owned() }),
    }
}

fn read_number(text: &str) -> Result<f64, UnitError> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && text.chars().all(|c| c.is_ascii_digit() || c == '.') => {
            Ok(number)
        }
        _ => Err(UnitError::NotANumber { text: text.to_owned() }),
    }
}

/// Compares the section with the loads and the schedule: what nothing in the scenario can measure is refused. `database` is one of
/// the lab: of a cluster that exists nobody watches who leads.
pub(crate) fn resolve(
    documents: Vec<ExpectationDocument>,
    (loads, schedule): (&[Load], &[Phase]),
    database: Option<&Database>,
    findings: &mut Findings,
) -> Vec<Expectation> {
    let surroundings = Surroundings::new((loads, schedule), database);
    let resolve = |document: ExpectationDocument| {
        // Nothing is to be said of a scope where the quantity is nowhere.
        surroundings.check_needs(&document, findings)?;
        let (load, within) = surroundings.scope(&document, findings)?;
        let ExpectationDocument { name, wanted, comparison, bound, entry, .. } = document;
        Some(Expectation { name, quantity: entry.quantity, load, within, wanted, comparison, bound })
    };
    documents.into_iter().filter_map(resolve).collect()
}

/// The workload that needs no database, and beside which no other can stand.
const WITHOUT_DATABASE: &str = "rawio";

/// What a scope may name.
struct Surroundings<'s> {
    loads: &'s [Load],
    schedule: &'s [Phase],
    /// Phase and kind of each fault, in the order of the schedule.
    faults: Vec<(&'s str, &'static str)>,
    /// Of the lab.
    database: Option<&'s Database>,
}

impl<'s> Surroundings<'s> {
    fn new((loads, schedule): (&'s [Load], &'s [Phase]), database: Option<&'s Database>) -> Self {
        let of_phase = |phase: &'s Phase| {
            phase.faults.iter().map(|fault| (phase.name.as_str(), fault.action.kind_name()))
        };
        Surroundings { loads, schedule, faults: schedule.iter().flat_map(of_phase).collect(), database }
    }

    fn check_needs(&self, document: &ExpectationDocument, findings: &mut Findings) -> Option<()> {
        let name = document.entry.name;
        let workloads = document.entry.needs.workloads();
        let has_load =
            |workloads: &[&str]| self.loads.iter().any(|load| workloads.contains(&load.workload.as_str()));
        let elects = |database: &Database| database.engine.elects() && database.nodes.len() > 1;
        let elects = self.database.is_some_and(elects);
        let is_promoted = |database: &Database| matches!(database.failover, Failover::Promote { .. });
        match document.entry.needs {
            Needs::Leader if !elects && !self.database.is_some_and(is_promoted) => findings.add(
                "needs-leader",
                document.name_at,
                format!("`{name}` is expected, but in this scenario nothing makes another node lead"),
                "cannot be measured in this scenario",
                "choose an engine whose nodes elect their leader and give it several nodes, or write \
                 `failover: { promote: { after: 3s } }` in `database`; in a cluster that exists nobody watches who leads",
            ),
            Needs::Election if !elects => findings.add(
                "needs-election",
                document.name_at,
                format!("`{name}` is expected, but the lab has no database of several nodes that elect their leader"),
                "cannot be measured in this scenario",
                "choose an engine whose nodes elect their leader, or remove the expectation; the check of a load finds what \
                 two primaries lose: `lost_writes: 0`",
            ),
            Needs::Fault if self.faults.is_empty() => findings.add(
                "needs-fault",
                document.name_at,
                format!("`{name}` is expected, but the schedule has no fault"),
                "cannot be measured in this scenario",
                "add `faults:` to a phase after `baseline`, or remove the expectation",
            ),
            Needs::CheckedBy(_) | Needs::Figure(_) if !has_load(&workloads) => findings.add(
                "needs-load",
                document.name_at,
                format!("`{name}` is expected, but no load has the workload {}", either(&workloads)),
                "cannot be measured in this scenario",
                if has_load(&[WITHOUT_DATABASE]) {
                    "remove the expectation: without a database the check `register` reads back what was written"
                        .to_owned()
                } else {
                    format!(
                        "add `- {{ workload: {}, clients: 2 }}` to `loads`",
                        workloads.first().copied().unwrap_or_default()
                    )
                },
            ),
            _ => return Some(()),
        }
        None
    }

    /// The load and the phases or faults that a name is about; `None` where that is refused.
    fn scope(
        &self,
        document: &ExpectationDocument,
        findings: &mut Findings,
    ) -> Option<(Option<String>, Within)> {
        let (measured, name) = (document.entry.measured, document.entry.name);
        let most = match measured {
            Measured::OfRun => 0,
            Measured::OfRunLoadOrFault | Measured::OfRunOrLoad | Measured::OfLoad => 1,
            Measured::InPhase | Measured::AfterFault => 2,
        };
        if document.scope.len() > most {
            let (message, help) = match measured {
                Measured::OfRun => (
                    format!("`{name}` is measured for the whole run"),
                    format!("write `{name}` without a scope"),
                ),
                _ => (
                    format!("`{}` has more parts than `{name}` has scopes", shortened(&document.name)),
                    format!(
                        "`{name}` has the {}; write `*` for a part that may be anything",
                        measured.syntax()
                    ),
                ),
            };
            findings.add("bad-scope", document.name_at, message, "too many parts", help);
            return None;
        }
        let open = |part: &&Part| part.text != OPEN;
        match document.scope.as_slice() {
            [] => Some((None, Within::Each)),
            [load, within] => {
                let load = Some(load).filter(open).map(|load| self.load(load, document, findings));
                let within = Some(within).filter(open).map(|within| self.within(within, document, findings));
                Some((load.map_or(Some(None), |load| load.map(Some))?, within.unwrap_or(Some(Within::Each))?))
            }
            [part, ..] if part.text == OPEN => Some((None, Within::Each)),
            [part, ..] => self.either(part, document, findings),
        }
    }

    /// A single part: a load, or else what it is measured within.
    fn either(
        &self,
        part: &Part,
        document: &ExpectationDocument,
        findings: &mut Findings,
    ) -> Option<(Option<String>, Within)> {
        let is_load = self.loads.iter().any(|load| load.name == part.text);
        let within = self.find(&part.text, document.entry.measured);
        let name = document.entry.name;
        match (is_load, within) {
            (true, Some(_)) => {
                findings.add(
                    "bad-scope",
                    part.at,
                    format!("`{}` is both a load and a phase or fault", part.text),
                    "which of them?",
                    format!(
                        "write `{0}.*.{name}` for the load, or `\"*.{0}.{name}\"` for the other",
                        part.text
                    ),
                );
                None
            }
            (true, None) => {
                self.check_workload(part, document, findings)?;
                Some((Some(part.text.clone()), Within::Each))
            }
            (false, Some(within)) => self.in_one_reading(part, within, findings).map(|within| (None, within)),
            (false, None) => {
                let loads = self.loads.iter().map(|load| load.name.clone());
                let known: Vec<String> = loads.chain(self.names(document.entry.measured)).collect();
                let kinds = match document.entry.measured {
                    Measured::OfRun | Measured::OfRunOrLoad | Measured::OfLoad => "load",
                    Measured::OfRunLoadOrFault => "load or fault",
                    Measured::InPhase | Measured::AfterFault => "load, phase or fault",
                };
                refuse_name(part, kinds, &known, findings);
                None
            }
        }
    }

    fn load(&self, part: &Part, document: &ExpectationDocument, findings: &mut Findings) -> Option<String> {
        if !self.loads.iter().any(|load| load.name == part.text) {
            let known: Vec<String> = self.loads.iter().map(|load| load.name.clone()).collect();
            refuse_name(part, "load", &known, findings);
            return None;
        }
        self.check_workload(part, document, findings)?;
        Some(part.text.clone())
    }

    /// A load that is named must be one that has the quantity.
    fn check_workload(
        &self,
        part: &Part,
        document: &ExpectationDocument,
        findings: &mut Findings,
    ) -> Option<()> {
        let workloads = document.entry.needs.workloads();
        if workloads.is_empty() {
            return Some(());
        }
        let load = self.loads.iter().find(|load| load.name == part.text)?;
        if workloads.contains(&load.workload.as_str()) {
            return Some(());
        }
        findings.add(
            "needs-load",
            part.at,
            format!("`{}` has no `{}`: its workload is {}", part.text, document.entry.name, load.workload),
            "cannot be measured in this scenario",
            format!("name a load with the workload {}", either(&workloads)),
        );
        None
    }

    fn within(&self, part: &Part, document: &ExpectationDocument, findings: &mut Findings) -> Option<Within> {
        let found = self.find(&part.text, document.entry.measured);
        if found.is_none() {
            let what = if document.entry.measured == Measured::AfterFault { "fault" } else { "phase" };
            refuse_name(part, what, &self.names(document.entry.measured), findings);
        }
        self.in_one_reading(part, found?, findings)
    }

    /// The same, unless the text names different faults in different readings.
    fn in_one_reading(&self, part: &Part, found: Within, findings: &mut Findings) -> Option<Within> {
        let readings = self.faults_by_name(&part.text);
        let are_same = readings.windows(2).all(|two| two[0] == two[1]);
        if are_same || !matches!(found, Within::Faults(_)) {
            return Some(found);
        }
        let told = |faults: &Vec<usize>| listed(&faults.iter().copied().map(fault_name).collect::<Vec<_>>());
        let choices: Vec<String> = readings.iter().map(told).collect();
        findings.add(
            "bad-scope",
            part.at,
            format!("`{}` names different faults", part.text),
            "which of them?",
            format!(
                "it could be {}: give the phase of this name another one, or name each fault by its number",
                choices.join(" or ")
            ),
        );
        None
    }

    /// The faults that a text may name: those of the phase of that name, of the kind, the one of the number; each reading
    /// that names any.
    fn faults_by_name(&self, text: &str) -> Vec<Vec<usize>> {
        let those = |named: &dyn Fn(usize, &(&str, &str)) -> bool| -> Vec<usize> {
            let numbered = self.faults.iter().enumerate();
            numbered.filter(|(number, fault)| named(*number, fault)).map(|(number, _)| number).collect()
        };
        let readings = [
            those(&|_, fault| fault.0 == text),
            those(&|_, fault| fault.1 == text),
            those(&|number, _| fault_name(number) == text),
        ];
        readings.into_iter().filter(|faults| !faults.is_empty()).collect()
    }

    /// The phase of that name, or the faults of that phase, kind or number.
    fn find(&self, text: &str, measured: Measured) -> Option<Within> {
        let is_phase = self.schedule.iter().any(|phase| phase.name == text);
        match measured {
            Measured::OfRun | Measured::OfRunOrLoad | Measured::OfLoad => None,
            Measured::InPhase if is_phase => Some(Within::Phase(text.to_owned())),
            Measured::InPhase => (text == WHOLE_RUN).then_some(Within::WholeRun),
            Measured::AfterFault | Measured::OfRunLoadOrFault => {
                self.faults_by_name(text).into_iter().next().map(Within::Faults)
            }
        }
    }

    /// What [`find`](Self::find) would find, for suggestions.
    fn names(&self, measured: Measured) -> Vec<String> {
        let mut names: Vec<String> = match measured {
            Measured::OfRun | Measured::OfRunOrLoad | Measured::OfLoad => Vec::new(),
            Measured::InPhase => {
                let phases = self.schedule.iter().map(|phase| phase.name.clone());
                phases.chain([WHOLE_RUN.to_owned()]).collect()
            }
            Measured::AfterFault | Measured::OfRunLoadOrFault => {
                let named =
                    self.faults.iter().flat_map(|(phase, kind)| [(*phase).to_owned(), (*kind).to_owned()]);
                named.chain((0..self.faults.len()).map(fault_name)).collect()
            }
        };
        let mut seen = std::collections::BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        names
    }
}

/// How a fault is named by its number, which is told from 1.
fn fault_name(number: usize) -> String {
    format!("{FAULT_NUMBER}{}", number + 1)
}

fn refuse_name(part: &Part, what: &str, known: &[String], findings: &mut Findings) {
    let help = match nearest(&part.text, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "the scenario has none".to_owned(),
        None => format!("choose one of {}, or `*` for all", listed(known)),
    };
    let message = format!("the scenario has no {what} `{}`", shortened(&part.text));
    findings.add("bad-scope", part.at, message, format!("no such {what}"), help);
}

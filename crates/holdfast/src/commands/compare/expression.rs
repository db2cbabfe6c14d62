//! The expressions of `compare --fail-if`: `LOAD.PHASE.QUANTITY > +20%`, read with a caret under what is wrong.
//!
//! Owns their words and units. What a gate means is `report::compare`'s.

use std::fmt;
use std::ops::Range;

use report::compare::{Bound, Gate, GateError};
use scenario::quantity::Unit;
use scenario::units;

const EXAMPLE: &str = "for example `tpcb.latency_p99 > +20%` or `throughput_per_s < -10%`";

/// What is wrong with an expression, and where.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub struct WrongExpression {
    expression: String,
    at: Range<usize>,
    message: String,
    help: String,
}

impl fmt::Display for WrongExpression {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = |text: Option<&str>| text.unwrap_or_default().chars().count();
        let before = columns(self.expression.get(..self.at.start));
        let marked = columns(self.expression.get(self.at.clone())).max(1);
        writeln!(out, "--fail-if: {}", self.message)?;
        writeln!(out, "  {}", self.expression.replace(char::is_control, " "))?;
        writeln!(out, "  {:before$}{:^<marked$}", "", "")?;
        write!(out, "  help: {}", self.help)
    }
}

/// An expression as read.
#[derive(Debug, Clone)]
pub struct Expression {
    text: String,
    scope: Range<usize>,
    quantity: Range<usize>,
    /// What it asks.
    pub gate: Gate,
}

impl Expression {
    /// As the user wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Reads one.
    ///
    /// # Errors
    /// When it has another form.
    pub fn read(text: &str) -> Result<Expression, WrongExpression> {
        let wrong = |at: Range<usize>, message: String, help: String| WrongExpression {
            expression: text.to_owned(),
            at,
            message,
            help,
        };
        let Some(operator) = text.find(['<', '>']) else {
            return Err(wrong(0..text.len(), "no comparison".to_owned(), EXAMPLE.to_owned()));
        };
        let subject = trimmed(text, 0..operator);
        if subject.is_empty() {
            return Err(wrong(operator..operator + 1, "nothing to compare".to_owned(), EXAMPLE.to_owned()));
        }
        // Names of phases and operations may hold dots, those of quantities do not.
        let dot = text[subject.clone()].rfind('.').map(|dot| subject.start + dot);
        let scope = subject.start..dot.unwrap_or(subject.start);
        let quantity = dot.map_or(subject.start, |dot| dot + 1)..subject.end;
        let bound_at = trimmed(text, operator + 1..text.len());
        let written = &text[bound_at.clone()];
        let is_above = text[operator..].starts_with('>');
        let (sign, side) = if is_above { ('+', "above") } else { ('-', "below") };
        let Some(amount) = written.strip_prefix(sign) else {
            return Err(wrong(
                bound_at,
                format!("a bound {side} the first settings' figure begins with `{sign}`"),
                format!("the bound is a difference: {EXAMPLE}"),
            ));
        };
        let name = &text[quantity.clone()];
        let amount = amount_of(name, amount.trim_start())
            .map_err(|(message, help)| wrong(bound_at.clone(), message, help))?;
        let bound = match amount {
            Bound::Share(0.0) | Bound::Absolute(0.0) => {
                let help = "any noise would exceed it; write a number above 0".to_owned();
                return Err(wrong(bound_at, "the bound is zero".to_owned(), help));
            }
            Bound::Share(share) => Bound::Share(if is_above { share } else { -share }),
            Bound::Absolute(by) => Bound::Absolute(if is_above { by } else { -by }),
        };
        if matches!(bound, Bound::Share(share) if share <= -1.0) {
            let help = "a figure cannot fall by 100 % or more; write a smaller percentage".to_owned();
            return Err(wrong(bound_at, "the bound is never exceeded".to_owned(), help));
        }
        let scoped = (!scope.is_empty()).then(|| text[scope.clone()].to_owned());
        let gate = Gate { scope: scoped, quantity: name.to_owned(), bound };
        Ok(Expression { text: text.to_owned(), scope, quantity, gate })
    }

    /// An expression that fits these runs nowhere.
    pub fn misfit(&self, error: &GateError) -> WrongExpression {
        let (at, help) = match error {
            GateError::OneVariant => (
                0..self.text.len(),
                "name the two sides: `holdfast compare before=RUN_A after=RUN_B`".to_owned(),
            ),
            GateError::NoScope { scope, known }
                if is_of_the_atlas(scope) && !known.iter().any(|of| is_of_the_atlas(of)) =>
            {
                (self.scope.clone(), "to compare with the published figures, add `--with atlas`".to_owned())
            }
            GateError::NoScope { scope, known } => (self.scope.clone(), those_there_are(scope, known)),
            GateError::NoQuantity { quantity, known } => {
                (self.quantity.clone(), those_there_are(quantity, known))
            }
        };
        WrongExpression { expression: self.text.clone(), at, message: error.to_string(), help }
    }
}

/// The names there are, first the one that was probably meant.
fn those_there_are(written: &str, known: &[String]) -> String {
    let near = scenario::explain::nearest(written, known.iter().map(String::as_str));
    let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
    format!("{near}There are: {}", known.join(", "))
}

/// Whether a scope is about the atlas, where one is given.
fn is_of_the_atlas(scope: &str) -> bool {
    scope.split('.').next() == Some("atlas")
}

/// The range without blanks at its ends.
fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let part = &text[range.clone()];
    let start = range.start + (part.len() - part.trim_start().len());
    start..start + part.trim().len()
}

/// A bound without its sign, in the unit of results; or what is wrong with it and what to write.
fn amount_of(quantity: &str, text: &str) -> Result<Bound, (String, String)> {
    let told = |error: units::UnitError| (error.to_string(), error.help());
    if let Some(number) = text.strip_suffix('%') {
        let percent =
            number.trim_end().parse::<f64>().ok().filter(|percent| percent.is_finite() && *percent >= 0.0);
        let percent = percent.ok_or_else(|| (format!("`{text}` is not a percentage"), EXAMPLE.to_owned()))?;
        return Ok(Bound::Share(percent / 100.0));
    }
    let seconds = |unit| units::duration(text, unit).map(|duration| duration.as_secs_f64()).map_err(told);
    match scenario::quantity::named(quantity).map(|entry| entry.unit) {
        Some(Unit::PerSecond) => return units::rate_per_s(text).map(Bound::Absolute).map_err(told),
        Some(Unit::Microseconds) => return Ok(Bound::Absolute(seconds("ms")? * 1e6)),
        Some(Unit::Seconds) => return Ok(Bound::Absolute(seconds("s")?)),
        _ => {}
    }
    // A workload's own figure, in the unit of its name.
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.map(Bound::Absolute).ok_or_else(|| (format!("`{text}` is not a number"), EXAMPLE.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_a_scope_a_quantity_and_a_signed_bound() {
        let check = |text: &str, scope: Option<&str>, quantity: &str, bound: Bound| {
            let gate = Expression::read(text).expect(text).gate;
            assert_eq!(gate, Gate { scope: scope.map(str::to_owned), quantity: quantity.to_owned(), bound });
        };
        check("tpcb.latency_p99 > +20%", Some("tpcb"), "latency_p99", Bound::Share(0.2));
        check(
            "tpcb.two clients.latency_p50>+5ms",
            Some("tpcb.two clients"),
            "latency_p50",
            Bound::Absolute(5_000.0),
        );
        check("throughput_per_s < -100/s", None, "throughput_per_s", Bound::Absolute(-100.0));
        check("fault-1.gap > +2s", Some("fault-1"), "gap", Bound::Absolute(2.0));
        check("tpcc.tpmC < - 10", Some("tpcc"), "tpmC", Bound::Absolute(-10.0));
    }

    #[test]
    fn a_wrong_expression_is_shown_with_a_caret_under_the_wrong_part() {
        let check = |text: &str, marked: &str| {
            let told = Expression::read(text).expect_err(text).to_string();
            let carets = told.lines().nth(2).expect("carets");
            let from = carets.find('^').expect("a caret");
            let under: String =
                told.lines().nth(1).unwrap().chars().skip(from).take(carets.matches('^').count()).collect();
            assert_eq!(under, marked, "{told}");
            assert!(told.contains("help: "), "{told}");
        };
        check("tpcb.latency_p99", "tpcb.latency_p99");
        check("> +20%", ">");
        check("tpcb.latency_p99 > 20%", "20%");
        check("tpcb.latency_p99 > -20%", "-20%");
        check("tpcb.latency_p99 > +20", "+20");
        check("tpcb.throughput_per_s < -100%", "-100%");
        check("tpcb.gap > +0s", "+0s");
        check("tpcb.tpmC < -many", "-many");
    }

    #[test]
    fn a_name_that_no_run_has_is_told_with_the_nearest_and_all_that_there_are() {
        let expression = Expression::read("ledgr.gap > +1s").expect("an expression");
        let known = vec!["tpcb".to_owned(), "ledger".to_owned()];
        let told = expression.misfit(&GateError::NoScope { scope: "ledgr".to_owned(), known }).to_string();
        assert!(told.contains("did you mean `ledger`? There are: tpcb, ledger"), "{told}");
    }

    #[test]
    fn foreign_text_is_read_without_a_panic() {
        for text in [
            "",
            "<",
            "é.ü > +1",
            ".gap > +1s",
            "a..b<-1%",
            "\u{1b}[2J > +\n",
            "a > +nan%",
            "a > +inf",
            "日 < ",
        ] {
            if let Err(wrong) = Expression::read(text) {
                assert!(!wrong.to_string().contains('\u{1b}'), "{wrong}");
            }
        }
    }
}

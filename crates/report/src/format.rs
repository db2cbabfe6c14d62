//! Numbers written for people: `1,234`, `12.3 ms`, `7.3 s`, `61 %`. Knows nothing of runs.
//!
//! A no-break space stands between a number and its unit, so that no line ever ends between them.

use measure::thousands::group;
pub use measure::thousands::with_thousands as count;
use results::losses::LostWrites;

/// What stands where nothing was measured.
pub(crate) const NOTHING: &str = "–";

/// Lost writes, of which there may be more: `at least 1,234`.
pub(crate) fn lost(lost: LostWrites) -> String {
    match lost {
        LostWrites::Exactly(known) => count(known),
        LostWrites::AtLeast(known) => format!("at least {}", count(known)),
    }
}

/// A number with so many decimals and its thousands separated.
fn decimal(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return NOTHING.to_owned();
    }
    let written = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = written.split_once('.').unwrap_or((&written, ""));
    // A value that rounds to nothing carries no sign: `-0.0` would read as if it meant something.
    let is_zero = written.chars().all(|character| matches!(character, '0' | '.'));
    let sign = if value < 0.0 && !is_zero { "−" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{}{point}{fraction}", group(whole))
}

/// Three digits that count, never fewer than the whole part has.
fn three_digits(value: f64) -> String {
    // The bounds lie where rounding would add a digit: 9.996 is `10.0`, not `10.00`.
    let size = value.abs();
    let decimals = if size < 9.995 {
        2
    } else if size < 99.95 {
        1
    } else {
        0
    };
    decimal(value, decimals)
}

/// A latency in microseconds: `412 µs`, `12.3 ms`, `1.20 s`. Zero is what result files hold where nothing was measured.
pub(crate) fn latency(us: f64) -> String {
    if us == 0.0 || !us.is_finite() { NOTHING.to_owned() } else { latency_or_zero(us) }
}

/// A latency in microseconds, where zero is a value like any other: axes, differences, added delays.
pub(crate) fn latency_or_zero(us: f64) -> String {
    let size = us.abs();
    if us == 0.0 {
        "0".to_owned()
    } else if size < 999.5 {
        format!("{}\u{a0}µs", if size < 10.0 { decimal(us, 1) } else { decimal(us, 0) })
    } else if size < 999_500.0 {
        format!("{}\u{a0}ms", three_digits(us / 1e3))
    } else {
        format!("{}\u{a0}s", three_digits(us / 1e6))
    }
}

/// A span or a moment in seconds: `7.3 s`.
pub(crate) fn seconds(value: f64) -> String {
    let decimals = if value != 0.0 && value.abs() < 0.095 { 2 } else { 1 };
    format!("{}\u{a0}s", decimal(value, decimals))
}

/// A figure whose unit stands in its name: `598`, `2,742`, `7.15`.
pub(crate) fn figure(value: f64) -> String {
    if value.fract() == 0.0 { decimal(value, 0) } else { three_digits(value) }
}

/// How often a second: `412/s`.
pub(crate) fn rate(per_s: f64) -> String {
    if per_s == 0.0 { "0/s".to_owned() } else { format!("{}/s", three_digits(per_s)) }
}

/// A ratio as a percentage: `0.612` is `61 %`.
pub(crate) fn percent(ratio: f64) -> String {
    let value = ratio * 100.0;
    if !value.is_finite() {
        return NOTHING.to_owned();
    }
    if value > 0.0 && value < 0.05 {
        return "<\u{a0}0.1\u{a0}%".to_owned();
    }
    let decimals = if value != 0.0 && value.abs() < 9.95 { 1 } else { 0 };
    format!("{}\u{a0}%", decimal(value, decimals))
}

/// A change against a base, in percent with its sign; nothing where the base is zero.
pub(crate) fn change_percent(value: f64, base: f64) -> Option<String> {
    (base != 0.0 && base.is_finite() && value.is_finite()).then(|| {
        let change = value / base - 1.0;
        signed(percent(if change.abs() < 0.0005 { 0.0 } else { change }))
    })
}

/// A difference of latencies with its sign: `+1.20 ms`.
pub(crate) fn latency_difference(us: f64) -> String {
    signed(latency_or_zero(us))
}

/// Adds the plus that a difference needs.
fn signed(written: String) -> String {
    if written.starts_with('−')
        || written.starts_with('0') && !written.contains(['1', '2', '3', '4', '5', '6', '7', '8', '9'])
    {
        written
    } else {
        format!("+{written}")
    }
}

/// Bytes in binary units: `24.0 GiB`.
pub(crate) fn bytes(value: u64) -> String {
    scenario::units::approximate_size(value as f64).replace(' ', "\u{a0}")
}

/// `1 client`, `2 clients`: a count and its noun.
pub fn counted(value: u64, singular: &str, plural: &str) -> String {
    format!("{} {}", count(value), if value == 1 { singular } else { plural })
}

/// `a`, `a and b`, `a, b and 3 more`: names in a sentence, no more than four of them.
pub(crate) fn listed(names: &[String]) -> String {
    const SHOWN: usize = 4;
    let mut shown: Vec<String> = names.iter().take(SHOWN).cloned().collect();
    if names.len() > SHOWN {
        shown.push(format!("{} more", count((names.len() - SHOWN) as u64)));
    }
    match shown.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, before)) => format!("{} and {last}", before.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(written: String, expected: &str) {
        assert_eq!(written.replace('\u{a0}', " "), expected);
    }

    #[test]
    fn thousands_are_separated() {
        check(count(0), "0");
        check(count(999), "999");
        check(count(1_234), "1,234");
        check(count(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn latencies_choose_their_unit() {
        check(latency(0.0), "–");
        check(latency(3.0), "3.0 µs");
        check(latency(412.0), "412 µs");
        check(latency(999.7), "1.00 ms");
        check(latency(12_340.0), "12.3 ms");
        check(latency(99_960.0), "100 ms");
        check(latency(1_204_000.0), "1.20 s");
        check(latency(7_300_000_000.0), "7,300 s");
        check(latency(f64::NAN), "–");
    }

    #[test]
    fn spans_and_rates_read_naturally() {
        check(seconds(7.31), "7.3 s");
        check(seconds(0.0), "0.0 s");
        check(seconds(0.04), "0.04 s");
        check(seconds(-3.2), "−3.2 s");
        check(seconds(-0.001), "0.00 s");
        check(rate(412.4), "412/s");
        check(rate(18.87), "18.9/s");
        check(rate(3.284), "3.28/s");
        check(rate(12_581.6), "12,582/s");
    }

    #[test]
    fn percentages_keep_small_values_visible() {
        check(percent(0.612), "61 %");
        check(percent(0.0), "0 %");
        check(percent(0.0001), "< 0.1 %");
        check(percent(0.055), "5.5 %");
        check(percent(f64::INFINITY), "–");
    }

    #[test]
    fn changes_carry_their_sign() {
        check(change_percent(150.0, 100.0).unwrap_or_default(), "+50 %");
        check(change_percent(40.0, 100.0).unwrap_or_default(), "−60 %");
        check(change_percent(100.0, 100.0).unwrap_or_default(), "0 %");
        check(change_percent(100.01, 100.0).unwrap_or_default(), "0 %");
        assert_eq!(change_percent(1.0, 0.0), None);
        check(latency_difference(1_200.0), "+1.20 ms");
        check(latency_difference(-40.0), "−40 µs");
        check(latency_difference(0.0), "0");
    }

    #[test]
    fn long_lists_are_cut_in_sentences() {
        let names: Vec<String> = ["a", "b", "c", "d", "e", "f"].map(str::to_owned).to_vec();
        check(listed(&names[..0]), "");
        check(listed(&names[..1]), "a");
        check(listed(&names[..2]), "a and b");
        check(listed(&names), "a, b, c, d and 2 more");
    }
}

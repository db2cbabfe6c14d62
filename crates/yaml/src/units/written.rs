//! Quantities as a scenario writes them, and rounded for a person.

use std::time::Duration;

use super::kind::{BIT_RATE, DURATION, Kind, SIZE};

/// Writes events a second so that [`rate_per_s`] reads the same back.
#[must_use]
pub fn format_rate(per_s: f64) -> String {
    format!("{per_s}/s")
}

/// Writes a ratio so that [`percent`] reads the same back.
#[must_use]
pub fn format_percent(ratio: f64) -> String {
    // The shortest digits that mean this number, and the point moved by text: arithmetic would round.
    let digits = format!("{ratio}");
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let fraction = format!("{fraction:0<2}");
    let (up, down) = fraction.split_at(2);
    let whole = format!("{whole}{up}");
    let whole = whole.trim_start_matches('0');
    let point = if down.is_empty() { "" } else { "." };
    format!("{}{point}{down}%", if whole.is_empty() { "0" } else { whole })
}

/// Writes a size so that [`size_bytes`] reads the same back, in the largest unit that divides it.
#[must_use]
pub fn format_size(bytes: u64) -> String {
    written(u128::from(bytes), &SIZE, "B")
}

/// Writes about how many bytes these are, for people: `23.5 GiB`, `512 B`.
#[must_use]
pub fn approximate_size(bytes: f64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    // Beyond three digits a tenth says nothing, and of a byte there is none.
    let decimals = usize::from(unit > 0 && value < 99.95);
    format!("{value:.decimals$} {}", UNITS[unit])
}

/// A bit rate for people, in the unit that keeps the number small: `2 Mbit/s`, `1 Gbit/s`.
#[must_use]
pub fn approximate_bit_rate(bits_per_s: u64) -> String {
    let (value, unit) = match bits_per_s {
        rate if rate >= 1_000_000_000 => (rate as f64 / 1e9, "Gbit/s"),
        rate if rate >= 1_000_000 => (rate as f64 / 1e6, "Mbit/s"),
        rate => (rate as f64 / 1e3, "kbit/s"),
    };
    let written = format!("{value:.2}");
    format!("{} {unit}", written.trim_end_matches('0').trim_end_matches('.'))
}

/// Writes a duration so that [`duration`] reads the same back, in the largest unit that divides it. What is finer
/// than a microsecond is cut off; no scenario holds any.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    written(duration.as_micros(), &DURATION, "s")
}

/// Writes a bit rate so that [`bit_rate_per_s`] reads the same back, in the largest unit that divides it.
#[must_use]
pub fn format_bit_rate(bits_per_s: u64) -> String {
    written(u128::from(bits_per_s), &BIT_RATE, "bit/s")
}

/// So many of the base unit, in the largest unit that divides it; nothing in `unit_of_nothing`.
fn written(quantity: u128, kind: &Kind, unit_of_nothing: &str) -> String {
    let largest = kind
        .units
        .iter()
        .rev()
        .map(|(unit, worth)| (*unit, u128::from(*worth)))
        .find(|(_, worth)| quantity > 0 && quantity.is_multiple_of(*worth));
    match largest {
        Some((unit, worth)) => format!("{}{unit}", quantity / worth),
        None => format!("0{unit_of_nothing}"),
    }
}

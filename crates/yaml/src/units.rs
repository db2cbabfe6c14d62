//! Quantities with units: `50ms`, `4GiB`, `10Gbit/s`, `2000/s`, `95%`. Text to numbers in base units, and back for
//! those that a scenario keeps.
//!
//! Knows nothing of where the text stands; whoever reads it adds the place.

mod error;
mod kind;
mod written;

use std::time::Duration;

pub use self::error::UnitError;
use self::kind::{BIT_RATE, DURATION, Kind, SIZE};
pub use self::written::{
    approximate_bit_rate, approximate_size, format_bit_rate, format_duration, format_percent, format_rate,
    format_size,
};

/// Reads a duration: `100us`, `50ms`, `1.5s`, `2m`, `1h`. `likely_unit` is what the message proposes for a bare number.
///
/// # Errors
/// When there is no number, no unit, an unknown unit, or more precision than a microsecond.
pub fn duration(text: &str, likely_unit: &str) -> Result<Duration, UnitError> {
    quantity(text, &DURATION, likely_unit).map(Duration::from_micros)
}

/// Reads a size in bytes: `512B`, `64MiB`, `4GiB`, `10GB`. `likely_unit` is what the message proposes for a bare number.
///
/// # Errors
/// As [`duration`], with a byte as the finest step.
pub fn size_bytes(text: &str, likely_unit: &str) -> Result<u64, UnitError> {
    quantity(text, &SIZE, likely_unit)
}

/// Reads a bit rate in bits a second: `10Gbit/s`.
///
/// # Errors
/// As [`duration`], with a bit a second as the finest step.
pub fn bit_rate_per_s(text: &str) -> Result<u64, UnitError> {
    quantity(text, &BIT_RATE, "Mbit/s")
}

/// Reads events a second: `2000/s`, `0.5/s`.
///
/// # Errors
/// When it is not a number followed by `/s`.
pub fn rate_per_s(text: &str) -> Result<f64, UnitError> {
    let (number, unit) = split(text);
    if number.is_empty() {
        return Err(UnitError::NotAQuantity { text: text.to_owned(), kind: "a rate", example: "2000/s" });
    }
    match unit {
        "/s" => float(number, text),
        "" => Err(UnitError::NoUnit { text: text.to_owned(), write: format!("{number}/s") }),
        _ => Err(UnitError::UnknownUnit {
            text: text.to_owned(),
            unit: unit.to_owned(),
            kind: "rate",
            known: "/s".to_owned(),
        }),
    }
}

/// Reads a share as a ratio: `95%` is 0.95, and so is `0.95`. A bare number above 1 is refused: it lacks its `%`.
///
/// # Errors
/// When it is neither.
pub fn ratio(text: &str) -> Result<f64, UnitError> {
    let (number, unit) = split(text);
    if number.is_empty() {
        return Err(UnitError::NotAQuantity {
            text: text.to_owned(),
            kind: "a share",
            example: "95% or 0.95",
        });
    }
    let value = float(number, text)?;
    match unit {
        "%" => hundredth(number, text),
        "" if value <= 1.0 => Ok(value),
        "" => Err(UnitError::NoUnit { text: text.to_owned(), write: format!("{number}%") }),
        _ => Err(UnitError::UnknownUnit {
            text: text.to_owned(),
            unit: unit.to_owned(),
            kind: "share",
            known: "%".to_owned(),
        }),
    }
}

/// Reads a percentage as a ratio: `0.1%` is 0.001. A bare number is refused: nobody knows which of the two it is.
///
/// # Errors
/// When it is not a number followed by `%`.
pub fn percent(text: &str) -> Result<f64, UnitError> {
    let (number, unit) = split(text);
    if number.is_empty() {
        return Err(UnitError::NotAQuantity { text: text.to_owned(), kind: "a percentage", example: "0.1%" });
    }
    match unit {
        "%" => hundredth(number, text),
        "" => Err(UnitError::NoUnit { text: text.to_owned(), write: format!("{number}%") }),
        _ => Err(UnitError::UnknownUnit {
            text: text.to_owned(),
            unit: unit.to_owned(),
            kind: "percentage",
            known: "%".to_owned(),
        }),
    }
}

/// Splits the number in front from what follows it.
fn split(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let well_formed = !number.is_empty()
        && !number.starts_with('.')
        && !number.ends_with('.')
        && number.matches('.').count() <= 1;
    if well_formed { (number, unit) } else { ("", text) }
}

fn quantity(text: &str, kind: &Kind, likely_unit: &str) -> Result<u64, UnitError> {
    let (number, unit) = split(text);
    if number.is_empty() {
        return Err(UnitError::NotAQuantity {
            text: text.to_owned(),
            kind: kind.with_article,
            example: kind.example,
        });
    }
    if unit.trim().is_empty() {
        return Err(UnitError::NoUnit { text: text.to_owned(), write: format!("{number}{likely_unit}") });
    }
    let worth = kind.units.iter().find(|(name, _)| *name == unit).map(|(_, worth)| *worth);
    if worth.is_none() && kind.units.iter().any(|(name, _)| *name == unit.trim_start()) {
        return Err(UnitError::Blank {
            text: text.to_owned(),
            write: format!("{number}{}", unit.trim_start()),
        });
    }
    let worth = worth.ok_or_else(|| UnitError::UnknownUnit {
        text: text.to_owned(),
        unit: unit.to_owned(),
        kind: kind.name,
        known: kind.units.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
    })?;
    scaled(number, worth, text, kind.finest)
}

/// `number * worth` without going through floating point: `0.1s` is exactly 100000 us.
fn scaled(number: &str, worth: u64, text: &str, finest: &'static str) -> Result<u64, UnitError> {
    let too_large = || UnitError::TooLarge { text: text.to_owned() };
    let too_fine = || UnitError::TooFine { text: text.to_owned(), finest };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = fraction.trim_end_matches('0');
    let decimals = u32::try_from(fraction.len()).map_err(|_| too_fine())?;
    let step = 10_u128.checked_pow(decimals).filter(|step| *step < 1 << 64).ok_or_else(too_fine)?;
    let whole: u64 = whole.parse().map_err(|_| too_large())?;
    let fraction: u64 = if fraction.is_empty() { 0 } else { fraction.parse().map_err(|_| too_fine())? };
    // Both factors are below 2^64, so neither product overflows 128 bits.
    let of_fraction = u128::from(fraction) * u128::from(worth);
    if !of_fraction.is_multiple_of(step) {
        return Err(too_fine());
    }
    let total =
        (u128::from(whole) * u128::from(worth)).checked_add(of_fraction / step).ok_or_else(too_large)?;
    u64::try_from(total).map_err(|_| too_large())
}

/// A hundredth of the number, as near as a float can be to the text.
fn hundredth(number: &str, text: &str) -> Result<f64, UnitError> {
    float(&format!("{number}e-2"), text)
}

fn float(number: &str, text: &str) -> Result<f64, UnitError> {
    match number.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err(UnitError::TooLarge { text: text.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: Result<u64, &str>) {
        let read = duration(text, "s").map(|d| u64::try_from(d.as_micros()).unwrap());
        assert_eq!(
            read.map_err(|error| format!("{error}; {}", error.help())),
            expected.map_err(str::to_owned),
            "{text}"
        );
    }

    #[test]
    fn durations_are_read_exactly() {
        check("100us", Ok(100));
        check("50ms", Ok(50_000));
        check("0.1s", Ok(100_000));
        check("1.50s", Ok(1_500_000));
        check("2m", Ok(120_000_000));
        check("1h", Ok(3_600_000_000));
        check("0s", Ok(0));
    }

    #[test]
    fn what_is_no_duration_is_told_how_to_be_one() {
        check("20", Err("`20` has no unit; write 20s"));
        check("5 ms", Err("`5 ms` has a blank before its unit; write 5ms"));
        check(
            "20sec",
            Err(
                "`20sec` ends in `sec`, which is not a unit of time; put one of these straight after the number: us, ms, s, m, h",
            ),
        );
        check(
            "-5s",
            Err("`-5s` is not a duration; write a number with its unit straight after it, such as 20s"),
        );
        check(
            "1.s",
            Err("`1.s` is not a duration; write a number with its unit straight after it, such as 20s"),
        );
        check(
            "1..2s",
            Err("`1..2s` is not a duration; write a number with its unit straight after it, such as 20s"),
        );
        check("0.5us", Err("`0.5us` is finer than 1us; write it in whole multiples of 1us"));
        check("99999999999999h", Err("`99999999999999h` is too large; write a smaller number"));
        check(
            "99999999999999999999999s",
            Err("`99999999999999999999999s` is too large; write a smaller number"),
        );
    }

    #[test]
    fn sizes_and_rates_are_read_in_base_units() {
        assert_eq!(size_bytes("4GiB", "MiB"), Ok(4 << 30));
        assert_eq!(size_bytes("10GB", "MiB"), Ok(10_000_000_000));
        assert_eq!(size_bytes("1.5KiB", "MiB"), Ok(1536));
        let sizes = [512.0, 1536.0, 734_003_200.0, 25_276_502_016.0, 3.0 * (1_u64 << 60) as f64];
        assert_eq!(sizes.map(approximate_size), ["512 B", "1.5 KiB", "700 MiB", "23.5 GiB", "3.0 EiB"]);
        let rates = [64_000, 1_500_000, 100_000_000, 1_000_000_000, 40_000_000_000];
        let in_words = ["64 kbit/s", "1.5 Mbit/s", "100 Mbit/s", "1 Gbit/s", "40 Gbit/s"];
        assert_eq!(rates.map(approximate_bit_rate), in_words);
        assert!(matches!(size_bytes("4096", "MiB"), Err(UnitError::NoUnit { .. })));
        assert_eq!(bit_rate_per_s("10Gbit/s"), Ok(10_000_000_000));
        assert!(matches!(bit_rate_per_s("10GB/s"), Err(UnitError::UnknownUnit { .. })));
        assert_eq!(rate_per_s("2000/s"), Ok(2000.0));
        assert!(matches!(rate_per_s("2000"), Err(UnitError::NoUnit { .. })));
        assert_eq!(ratio("95%"), Ok(0.95));
        assert_eq!(ratio("0.95"), Ok(0.95));
        assert!(matches!(ratio("95"), Err(UnitError::NoUnit { .. })));
        assert_eq!(percent("0.1%"), Ok(0.001));
        assert_eq!(percent("7%"), Ok(0.07));
        assert!(matches!(percent("0.1"), Err(UnitError::NoUnit { .. })));
        let written = [0.0, 0.001, 0.07, 0.1, 1.0, 0.125].map(format_percent);
        assert_eq!(written, ["0%", "0.1%", "7%", "10%", "100%", "12.5%"]);
    }

    proptest! {
        #[test]
        fn a_duration_written_is_read_back(micros in 0_u64..10_000_000_000_000) {
            let original = Duration::from_micros(micros);
            prop_assert_eq!(duration(&format_duration(original), "s"), Ok(original));
        }

        #[test]
        fn a_bit_rate_written_is_read_back(bits_per_s in 0_u64..2_000_000_000_000, thousands in 0_u32..4) {
            let bits_per_s = bits_per_s / 1000_u64.pow(thousands) * 1000_u64.pow(thousands);
            prop_assert_eq!(bit_rate_per_s(&format_bit_rate(bits_per_s)), Ok(bits_per_s));
        }

        #[test]
        fn a_size_written_is_read_back(bytes in any::<u64>(), shift in 0_u32..40) {
            let bytes = bytes >> shift << shift;
            prop_assert_eq!(size_bytes(&format_size(bytes), "MiB"), Ok(bytes));
        }

        #[test]
        fn a_percentage_written_is_read_back(whole in 0_u32..101, fraction in "[0-9]{0,12}", bits in any::<u64>()) {
            let text = if fraction.is_empty() { format!("{whole}%") } else { format!("{whole}.{fraction}%") };
            let ratio = percent(&text).unwrap();
            prop_assert_eq!(percent(&format_percent(ratio)), Ok(ratio));
            let any = f64::from_bits(bits).abs();
            if any.is_finite() {
                prop_assert_eq!(percent(&format_percent(any)), Ok(any));
            }
        }

        #[test]
        fn no_text_makes_the_readers_panic(text in "[0-9.eE+/%a-zA-Z -]{0,40}") {
            let _ = duration(&text, "s");
            let _ = size_bytes(&text, "MiB");
            let _ = bit_rate_per_s(&text);
            let _ = rate_per_s(&text);
            let _ = ratio(&text);
            let _ = percent(&text);
        }
    }
}

//! Whole numbers with their thousands separated, as sentences have them.

/// A whole number with thousands separated: `1,234`.
#[must_use]
pub fn with_thousands(value: u64) -> String {
    group(&value.to_string())
}

/// Puts a comma between each three digits, from the right.
#[must_use]
pub fn group(digits: &str) -> String {
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

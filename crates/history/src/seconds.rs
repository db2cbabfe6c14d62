//! The form of times in a history: seconds rounded to the nanosecond.
//!
//! A clock's nanoseconds turned into a floating-point number print with up to seventeen digits, of which all
//! after the ninth are noise; rounded, they are shorter and read back as exactly the number that was written.

use serde::Serializer;
use serde::ser::Error;

/// Writes a time, seconds.
///
/// # Errors
/// When it is not a finite number: JSON has no word for it, so it could not be read again.
pub(crate) fn serialize<S: Serializer>(time_s: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if !time_s.is_finite() {
        return Err(S::Error::custom(format!("time {time_s} is not a number of seconds")));
    }
    serializer.serialize_f64((time_s * 1e9).round() / 1e9)
}

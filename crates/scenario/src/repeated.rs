//! `every` of a fault: when it strikes again in its phase.
//!
//! Owns the moments and what makes them sound. What is broken is in `fault`.

use std::time::Duration;

use crate::rejection::{Findings, Spanned};
use crate::units::format_duration;

/// Most faults of a run: each is held against those before it.
pub(crate) const MOST_FAULTS: usize = 1_000;

/// A fault's moments as written.
pub(crate) struct Repetition<'d> {
    /// How often it strikes; once where absent.
    pub(crate) every: Option<&'d Spanned<Duration>>,
    /// When it strikes first, from the start of its phase.
    pub(crate) at: Duration,
    /// How long it stands each time.
    pub(crate) length: Option<Duration>,
}

/// When the fault strikes, from the start of a phase of this length: once, or as often as it is healed before the phase
/// ends. Once, too, where `every` is refused; and no oftener than tells that these are more faults than a run may have.
pub(crate) fn moments(
    repetition: &Repetition<'_>,
    phase: Duration,
    findings: &mut Findings,
) -> Vec<Duration> {
    let Repetition { every, at, length } = *repetition;
    let Some(every) = every else { return vec![at] };
    let Some(length) = length else {
        findings.add(
            "repeated-without-length",
            every.at,
            "a repeated fault needs a duration, so that it heals in between",
            "healed when?",
            format!("add `for`, shorter than {}: how long it lasts each time", format_duration(every.value)),
        );
        return vec![at];
    };
    if every.value <= length {
        findings.add(
            "overlapping-faults",
            every.at,
            format!("the fault lasts {} and repeats before it is healed", format_duration(length)),
            "not after its end",
            format!("write more than {}", format_duration(length)),
        );
        return vec![at];
    }
    let mut moments = Vec::new();
    let mut next = at;
    // What is over by itself must still begin within the phase.
    while next < phase && next + length <= phase && moments.len() <= MOST_FAULTS {
        moments.push(next);
        next += every.value;
    }
    if moments.len() < 2 {
        findings.add(
            "repeated-once",
            every.at,
            format!("the phase of {} is long enough for the fault only once", format_duration(phase)),
            "does not repeat",
            format!(
                "make the phase {} or longer, or remove `every`",
                format_duration(at + every.value + length)
            ),
        );
        return vec![at];
    }
    moments
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rejection::Spot;

    fn strikes(every_s: u64, at_s: u64, length_s: Option<u64>, phase_s: u64) -> (Vec<u64>, usize) {
        let every = Spanned { value: Duration::from_secs(every_s), at: Spot { text: 0, start: 0, end: 1 } };
        let repetition = Repetition {
            every: Some(&every),
            at: Duration::from_secs(at_s),
            length: length_s.map(Duration::from_secs),
        };
        let mut findings = Findings::default();
        let moments = moments(&repetition, Duration::from_secs(phase_s), &mut findings);
        (moments.iter().map(Duration::as_secs).collect(), findings.len())
    }

    #[test]
    fn a_fault_strikes_again_as_long_as_it_is_healed_in_its_phase() {
        assert_eq!(strikes(20, 0, Some(5), 60), (vec![0, 20, 40], 0));
        assert_eq!(strikes(20, 0, Some(0), 60), (vec![0, 20, 40], 0));
        assert_eq!(strikes(20, 5, Some(15), 60), (vec![5, 25, 45], 0), "healed as the phase ends");
        assert_eq!(strikes(20, 6, Some(15), 60), (vec![6, 26], 0), "the third would outlast it");
    }

    #[test]
    fn a_fault_that_strikes_too_often_is_followed_no_further_than_that_shows() {
        let every = Spanned { value: Duration::from_micros(1), at: Spot { text: 0, start: 0, end: 1 } };
        let repetition = Repetition { every: Some(&every), at: Duration::ZERO, length: Some(Duration::ZERO) };
        let mut findings = Findings::default();
        let day = Duration::from_secs(86_400);
        assert_eq!(moments(&repetition, day, &mut findings).len(), MOST_FAULTS + 1);
        assert!(findings.is_empty());
    }

    #[test]
    fn a_fault_that_cannot_repeat_is_refused() {
        assert_eq!(strikes(20, 0, None, 60).1, 1);
        assert_eq!(strikes(20, 0, Some(20), 60).1, 1);
        assert_eq!(strikes(50, 0, Some(11), 60).1, 1);
    }
}

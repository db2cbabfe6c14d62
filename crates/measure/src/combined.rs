//! The waits of one load whose clients were recorded in several processes, each with a record of its own.
//!
//! Owns how the records become one. The combined load waits while none of its parts succeeds and something is due in at least
//! one. Waits longer than [`KEPT_ABOVE_S`](crate::waits::KEPT_ABOVE_S) come out as one process would have recorded them, because
//! each part keeps all of its own that are so long; shorter ones are incomplete.

use crate::waits::Wait;

/// What one part recorded, each in order of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Part {
    /// Something was due and nothing succeeded.
    pub waits: Vec<Wait>,
    /// Nothing succeeded.
    pub quiet: Vec<Wait>,
}

/// The waits of all parts taken together, in order of time.
#[must_use]
pub fn combined(parts: &[Part]) -> Vec<Wait> {
    let quiet = parts.iter().map(|part| part.quiet.clone());
    let quiet = quiet.reduce(|all, part| both(&all, &part)).unwrap_or_default();
    quiet.iter().flat_map(|quiet| due_within(parts, quiet)).collect()
}

/// Stretches in which both are.
fn both(one: &[Wait], other: &[Wait]) -> Vec<Wait> {
    let mut found = Vec::new();
    let (mut left, mut right) = (one.iter().peekable(), other.iter().peekable());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        found.extend(overlap(a, b));
        if a.to_s <= b.to_s {
            left.next();
        } else {
            right.next();
        }
    }
    found
}

/// The stretch that two have in common. It is open where the one that ends first is.
fn overlap(one: &Wait, other: &Wait) -> Option<Wait> {
    let first = if one.to_s <= other.to_s { one } else { other };
    let (from_s, to_s) = (one.from_s.max(other.from_s), first.to_s);
    (from_s < to_s).then_some(Wait { from_s, to_s, is_open: first.is_open })
}

/// What was due within a stretch without a success, in one part or another.
fn due_within(parts: &[Part], quiet: &Wait) -> Vec<Wait> {
    let mut due: Vec<Wait> = parts
        .iter()
        .flat_map(|part| {
            let first = part.waits.partition_point(|wait| wait.to_s <= quiet.from_s);
            part.waits[first..].iter().map_while(|wait| overlap(wait, quiet))
        })
        .collect();
    due.sort_by(|one, other| one.from_s.total_cmp(&other.from_s));
    let mut joined: Vec<Wait> = Vec::new();
    for wait in due {
        match joined.last_mut() {
            Some(last) if wait.from_s <= last.to_s => {
                last.is_open |= wait.is_open && wait.to_s >= last.to_s;
                last.to_s = last.to_s.max(wait.to_s);
            }
            _ => joined.push(wait),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::waits::{KEPT_ABOVE_S, Waits};

    fn stretch(from_s: f64, to_s: f64) -> Wait {
        Wait { from_s, to_s, is_open: false }
    }

    #[test]
    fn a_load_waits_only_while_none_of_its_parts_succeeds() {
        let stuck = Part { waits: vec![stretch(2.0, 9.0)], quiet: vec![stretch(2.0, 9.0)] };
        let back_sooner = Part { waits: vec![stretch(3.0, 5.0)], quiet: vec![stretch(3.0, 5.0)] };
        assert_eq!(combined(&[stuck.clone(), back_sooner.clone()]), [stretch(3.0, 5.0)]);
        assert_eq!(combined(&[stuck.clone(), Part::default()]), [], "one that always succeeds");
        assert_eq!(combined(std::slice::from_ref(&stuck)), [stretch(2.0, 9.0)]);
        assert_eq!(combined(&[]), []);
    }

    #[test]
    fn a_part_in_which_nothing_is_due_ends_no_wait_of_another() {
        let thinks = Part { waits: vec![stretch(4.0, 4.5)], quiet: vec![stretch(1.0, 4.5)] };
        let waits = Part { waits: vec![stretch(2.0, 8.0)], quiet: vec![stretch(0.5, 8.0)] };
        assert_eq!(combined(&[thinks.clone(), waits]), [stretch(2.0, 4.5)]);
        let idle = Part { waits: Vec::new(), quiet: vec![stretch(0.0, 9.0)] };
        assert_eq!(combined(&[thinks, idle]), [stretch(4.0, 4.5)]);
    }

    #[test]
    fn a_wait_that_the_end_cuts_off_stays_open() {
        let open = |from_s| Wait { from_s, to_s: 20.0, is_open: true };
        let part = |from_s| Part { waits: vec![open(from_s)], quiet: vec![open(from_s)] };
        assert_eq!(combined(&[part(12.0), part(13.0)]), [open(13.0)]);
    }

    proptest! {
        #[test]
        fn several_records_give_the_long_waits_of_one_record_of_everything(
            successes in prop::collection::vec((prop_oneof![4 => 1..60_u64, 1 => 60..900_u64], 0..3_usize), 1..400),
        ) {
            let mut whole = Waits::default();
            let mut records = [Waits::default(), Waits::default(), Waits::default()];
            let mut parts = vec![Part::default(); records.len()];
            let mut expected = Vec::new();
            whole.due(0.0);
            records.iter_mut().for_each(|record| record.due(0.0));
            let (mut now_ms, mut second) = (0, 0);
            let mut take = |whole: &mut Waits, records: &mut [Waits; 3], parts: &mut [Part]| {
                expected.extend(whole.take().waits);
                for (record, part) in records.iter_mut().zip(parts) {
                    let taken = record.take();
                    part.waits.extend(taken.waits);
                    part.quiet.extend(taken.quiet);
                }
            };
            for (pause_ms, place) in successes {
                now_ms += pause_ms;
                while second < now_ms / 1_000 {
                    take(&mut whole, &mut records, &mut parts);
                    second += 1;
                }
                let at_s = now_ms as f64 / 1e3;
                whole.succeeded(at_s, true);
                records[place].succeeded(at_s, true);
            }
            let end_s = now_ms as f64 / 1e3 + 0.5;
            whole.end(end_s);
            records.iter_mut().for_each(|record| record.end(end_s));
            take(&mut whole, &mut records, &mut parts);
            let long = |waits: Vec<Wait>| -> Vec<Wait> {
                waits.into_iter().filter(|wait| wait.length_s() > KEPT_ABOVE_S).collect()
            };
            prop_assert_eq!(long(combined(&parts)), long(expected));
        }
    }
}

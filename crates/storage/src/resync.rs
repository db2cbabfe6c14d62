//! When components of a volume caught up, as one who looks ever so often sees it: from when to when, and how much was copied.
//!
//! Owns the judgement alone. Who looks is `watch`; what it did to the loads' latency is `measure::meanwhile`'s business.

use disk::mirror::Standing;

use crate::mirrored::{ComponentState, Role};

/// One time that a component caught up.
#[derive(Debug, Clone, PartialEq)]
pub struct CatchUp {
    /// Its host's path.
    pub host: String,
    /// From when: no earlier than the last look before it began.
    pub from_s: f64,
    /// To when: the first look at which it was over, or the last of all.
    pub to_s: f64,
    pub copied_bytes: u64,
    /// Whether it was up to date in the end.
    pub is_whole: bool,
}

/// What the looks so far have shown of one volume.
#[derive(Debug, Clone, Default)]
pub(super) struct Resyncs {
    /// By the component's number.
    components: Vec<Followed>,
    done: Vec<CatchUp>,
}

#[derive(Debug, Clone)]
struct Followed {
    host: String,
    looked_s: f64,
    copied_bytes: u64,
    /// Since when it catches up, and what had been copied before.
    since: Option<(f64, u64)>,
}

impl Resyncs {
    /// Takes one look.
    pub(super) fn take(&mut self, t_s: f64, states: &[ComponentState]) {
        for (number, state) in states.iter().enumerate() {
            let copied_bytes = state.moved.copied_bytes;
            if self.components.len() <= number {
                let host = state.host.clone();
                self.components.push(Followed { host, looked_s: t_s, copied_bytes, since: None });
            }
            let followed = &mut self.components[number];
            let catches_up = matches!(state.role, Role::Peer(Standing::CatchingUp | Standing::Finishing(_)));
            // What was over before anybody looked has left its bytes.
            if followed.since.is_none() && (catches_up || copied_bytes > followed.copied_bytes) {
                followed.since = Some((followed.looked_s, followed.copied_bytes));
            }
            (followed.looked_s, followed.copied_bytes) = (t_s, copied_bytes);
            if !catches_up {
                let is_whole = state.role == Role::Peer(Standing::Live);
                self.done.extend(followed.end(is_whole));
            }
        }
    }

    /// All of them, in the order in which they ended; what has not ended ends with the last look.
    pub(super) fn finish(mut self) -> Vec<CatchUp> {
        for followed in &mut self.components {
            self.done.extend(followed.end(false));
        }
        self.done
    }
}

impl Followed {
    /// What is over, if it copied anything.
    fn end(&mut self, is_whole: bool) -> Option<CatchUp> {
        let (from_s, before) = self.since.take()?;
        let copied_bytes = self.copied_bytes.saturating_sub(before);
        let (host, to_s) = (self.host.clone(), self.looked_s);
        (copied_bytes > 0).then_some(CatchUp { host, from_s, to_s, copied_bytes, is_whole })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::mirrored::Moved;

    const AWAY: Role = Role::Peer(Standing::Away);
    const CATCHING_UP: Role = Role::Peer(Standing::CatchingUp);
    const LIVE: Role = Role::Peer(Standing::Live);

    /// Looks a tenth of a second apart: how one component stood, and what had been copied to it; from when to when it caught
    /// up, with how much, and whether to the end.
    fn check(looks: &[(Role, u64)], expected: &[(f64, f64, u64, bool)]) {
        let mut resyncs = Resyncs::default();
        for (number, (role, copied_bytes)) in looks.iter().enumerate() {
            let moved = Moved { copied_bytes: *copied_bytes, ..Moved::default() };
            let (lag_bytes, lag, bytes_left) = (0, Duration::ZERO, 0);
            let state =
                ComponentState { host: "h".to_owned(), role: *role, lag_bytes, lag, bytes_left, moved };
            resyncs.take(number as f64 / 10.0, &[state]);
        }
        let found: Vec<(f64, f64, u64, bool)> = resyncs
            .finish()
            .into_iter()
            .map(|of| (of.from_s, of.to_s, of.copied_bytes, of.is_whole))
            .collect();
        assert_eq!(found, expected, "{looks:?}");
    }

    #[test]
    fn a_component_catches_up_from_the_look_before_it_began_to_the_first_at_which_it_is_over() {
        let looks = [(LIVE, 7), (AWAY, 7), (CATCHING_UP, 7), (CATCHING_UP, 50), (LIVE, 90), (LIVE, 90)];
        check(&looks, &[(0.1, 0.4, 83, true)]);
    }

    #[test]
    fn what_was_over_between_two_looks_is_known_by_its_bytes() {
        check(&[(AWAY, 0), (LIVE, 60), (LIVE, 60)], &[(0.0, 0.1, 60, true)]);
    }

    #[test]
    fn nothing_copied_is_nothing_caught_up_and_changes_are_none() {
        check(&[(LIVE, 0), (CATCHING_UP, 0), (LIVE, 0)], &[]);
        check(&[(LIVE, 5), (LIVE, 5)], &[]);
        check(&[], &[]);
    }

    #[test]
    fn one_that_broke_off_or_never_ended_is_not_whole() {
        let looks = [(AWAY, 0), (CATCHING_UP, 10), (AWAY, 10), (CATCHING_UP, 12), (CATCHING_UP, 30)];
        check(&looks, &[(0.0, 0.2, 10, false), (0.2, 0.4, 20, false)]);
    }
}

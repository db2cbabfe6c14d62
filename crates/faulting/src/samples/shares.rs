//! Shares of datagrams that meet a fate, and whether what was counted is such a share. Pure.
//!
//! Intervals are Wilson's (1927) at five standard deviations: one in a million honest counts lies outside. A run judges dozens,
//! and is repeated hundreds of times: at four, one in ten thousand, an honest fault was refuted now and then.

/// Half an interval's width in standard deviations.
const DEVIATIONS: f64 = 5.0;
/// Datagrams that a machine may lose without being asked to, of as many as a look sends.
const STRAYS: usize = 1;
/// So many datagrams are sent that a share is known to this part of itself, or of what it leaves,
const NARROW_SHARE: f64 = 0.35;
/// or to this.
const NARROW: f64 = 0.0125;
/// So many must be expected to meet a fate, so that next to none is no chance.
const EXPECTED_MIN: f64 = 30.0;
/// So many show a share at the least,
const COUNT_MIN: usize = 250;
/// and so many, of which a busy machine sends fewer while a short fault stands, are sent for it: some may stray, or fewer arrive than is expected by chance.
const SENT_MIN: usize = 600;
const COUNT_MAX: f64 = 20_000.0;

/// A share as counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// How many met the fate.
    pub count: usize,
    /// Of how many.
    pub of: usize,
}

/// How wide the interval of a share may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// For a first answer, and where a share is looked at for a short time: wide enough for a machine that sends half as many
    /// datagrams as it should.
    AtOnce,
    /// For all datagrams of a fault: narrow enough to find out that 5 % were lost where 10 % were asked for.
    Throughout,
}

impl Width {
    /// By so much it may be wider than what is sent for it.
    fn allowance(self) -> f64 {
        match self {
            Width::AtOnce => 2.7,
            Width::Throughout => 1.2,
        }
    }
}

/// What a count shows of a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    AsAsked,
    /// It is another.
    Off,
    /// The interval is too wide to say.
    Wide,
}

impl Counted {
    /// The interval in which the share lies.
    #[must_use]
    pub fn interval(self) -> (f64, f64) {
        if self.of == 0 {
            return (0.0, 1.0);
        }
        let (count, of) = (self.count as f64, self.of as f64);
        let (share, square) = (count / of, DEVIATIONS * DEVIATIONS);
        let middle = (share + square / (2.0 * of)) / (1.0 + square / of);
        let half =
            DEVIATIONS * (share * (1.0 - share) / of + square / (4.0 * of * of)).sqrt() / (1.0 + square / of);
        ((middle - half).max(0.0), (middle + half).min(1.0))
    }

    /// Whether chance makes such a count of a share.
    #[must_use]
    pub fn is_explained_by(self, share: f64) -> bool {
        let (low, high) = self.interval();
        match share {
            share if share <= 0.0 => self.count <= STRAYS,
            share if share >= 1.0 => self.count == self.of,
            share => (low..=high).contains(&share),
        }
    }

    /// What it shows of a share that was asked for.
    #[must_use]
    pub fn judge(self, asked: f64, width: Width) -> Fit {
        let (low, high) = self.interval();
        let is_asked = self.is_explained_by(asked);
        let narrow = (asked.min(1.0 - asked) * NARROW_SHARE).max(NARROW);
        let narrow = if 0.0 < asked && asked < 1.0 { narrow * width.allowance() } else { narrow * 3.0 };
        if !is_asked {
            Fit::Off
        } else if self.of < COUNT_MIN || (high - low) / 2.0 > narrow {
            Fit::Wide
        } else {
            Fit::AsAsked
        }
    }
}

/// How many datagrams tell a share as narrowly as must be.
#[must_use]
pub fn needed(asked: f64) -> usize {
    let rare = asked.min(1.0 - asked);
    if rare <= 0.0 {
        return SENT_MIN;
    }
    let narrow = (rare * NARROW_SHARE).max(NARROW);
    let by_width = DEVIATIONS * DEVIATIONS * asked * (1.0 - asked) / (narrow * narrow);
    let by_number = EXPECTED_MIN / rare;
    (by_width.max(by_number).min(COUNT_MAX) as usize).max(SENT_MIN)
}

/// A share in percent, as short as it is exact.
#[must_use]
pub fn percent(share: f64) -> String {
    let written = format!("{:.3}", share * 100.0);
    written.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use rand::Rng;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    const SHARES: [f64; 8] = [0.0, 0.002, 0.01, 0.05, 0.1, 0.5, 0.9, 1.0];

    fn counted(share: f64, of: usize, seed: u64) -> Counted {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let happens = |_: &usize| ((random.next_u64() >> 11) as f64) < share * 9_007_199_254_740_992.0;
        Counted { count: (0..of).filter(happens).count(), of }
    }

    #[test]
    fn a_share_as_asked_is_known_to_be_it_and_what_was_not_imposed_is_found_out() {
        for share in SHARES {
            for seed in 0..50 {
                let of = needed(share);
                assert_eq!(
                    counted(share, of, seed).judge(share, Width::Throughout),
                    Fit::AsAsked,
                    "{share} of {of}"
                );
                if share > 0.0 {
                    assert_eq!(
                        counted(0.0, of, seed).judge(share, Width::Throughout),
                        Fit::Off,
                        "{share} of {of}"
                    );
                    assert_ne!(
                        counted(share, of, seed).judge(0.0, Width::Throughout),
                        Fit::AsAsked,
                        "{share} of {of}"
                    );
                }
            }
        }
    }

    #[test]
    fn half_of_a_share_that_was_asked_for_is_found_out() {
        for share in SHARES.into_iter().filter(|share| (0.1..=0.5).contains(share)) {
            for seed in 0..50 {
                let of = needed(share);
                assert_eq!(
                    counted(share / 2.0, of, seed).judge(share, Width::Throughout),
                    Fit::Off,
                    "{share} of {of}"
                );
            }
        }
    }

    #[test]
    fn one_packet_of_fifty_through_what_should_stop_all_is_found_out() {
        for seed in 0..50 {
            assert_eq!(counted(0.98, 500, seed).judge(1.0, Width::Throughout), Fit::Off);
        }
    }

    #[test]
    fn too_few_leave_doubt() {
        assert_eq!(Counted { count: 5, of: 10 }.judge(0.5, Width::Throughout), Fit::Wide);
        assert_eq!(Counted { count: 0, of: 0 }.judge(0.5, Width::Throughout), Fit::Wide);
        assert_eq!(Counted { count: 20, of: 20 }.judge(1.0, Width::Throughout), Fit::Wide);
        assert_eq!(Counted { count: 0, of: 249 }.judge(0.0, Width::Throughout), Fit::Wide);
        assert_eq!(Counted { count: 0, of: 500 }.judge(0.0, Width::Throughout), Fit::AsAsked);
    }

    #[test]
    fn a_first_answer_may_rest_on_fewer_than_what_is_said_of_all_that_was_seen() {
        let few = Counted { count: 60, of: 600 };
        assert_eq!(few.judge(0.1, Width::AtOnce), Fit::AsAsked);
        assert_eq!(few.judge(0.1, Width::Throughout), Fit::Wide);
    }

    #[test]
    fn percents_are_short() {
        assert_eq!([0.05, 0.001, 1.0].map(percent), ["5", "0.1", "100"]);
    }
}

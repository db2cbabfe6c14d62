//! A part of a load that several processes share: so many of its clients, so much of its rate.
//!
//! Owns how a load is divided, so that the parts together ask what one process would have asked.

use crate::pace::{Part, Step};
use crate::plan::LoadPlan;

impl LoadPlan {
    /// A part of this load. The client numbers of different parts do not overlap, and together they are those of the whole.
    #[must_use]
    pub fn part(&self, part: Part) -> LoadPlan {
        let share = |step: &Step| Step {
            from_s: step.from_s,
            clients: part.clients_of(step.clients),
            rate_per_s: step.rate_per_s.map(|rate| rate / f64::from(part.of.max(1))),
        };
        LoadPlan {
            steps: self.steps.iter().map(share).collect(),
            first_client: self.first_client + u64::from(part.clients_before(self.most_clients())),
            part,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;
    use crate::pace::{Arrival, Arrivals};

    #[test]
    fn parts_share_the_clients_and_leave_none_out() {
        let shares = |clients| Part::all(3).map(|part| part.clients_of(clients)).collect::<Vec<_>>();
        assert_eq!(shares(10), [4, 3, 3]);
        assert_eq!(shares(3), [1, 1, 1]);
        assert_eq!(shares(2), [1, 1, 0]);
        let before = |clients| Part::all(3).map(|part| part.clients_before(clients)).collect::<Vec<_>>();
        assert_eq!(before(10), [0, 4, 7]);
    }

    #[test]
    fn operations_of_parts_are_due_one_after_the_other_as_those_of_the_whole() {
        let step = |rate| vec![Step { from_s: 0.0, clients: 1, rate_per_s: Some(rate) }];
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut dues = |rate: f64, part: Part, count: usize| {
            let mut arrivals = Arrivals::new(&step(rate), Arrival::Constant, part);
            (0..count).filter_map(|_| arrivals.next_s(&mut rng)).collect::<Vec<f64>>()
        };
        let whole = dues(30.0, Part::default(), 30);
        let mut parts: Vec<f64> = Part::all(3).flat_map(|part| dues(10.0, part, 10)).collect();
        parts.sort_by(f64::total_cmp);
        let near = |(one, other): (&f64, &f64)| (one - other).abs() < 1e-9;
        assert!(whole.iter().zip(&parts).all(near), "{whole:?} {parts:?}");
    }
}

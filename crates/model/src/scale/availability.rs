//! How likely a majority of replicas is there, by their number, when hosts fail independently of each other.

/// How likely more than half of so many replicas are up when each is up with this probability.
#[must_use]
pub fn majority(replicas: usize, up: f64) -> f64 {
    let needed = replicas / 2 + 1;
    // The unlikely side is summed: near 1 the likely one would lose its digits.
    let down = 1.0 - up;
    let stopped: f64 = (replicas + 1 - needed..=replicas).map(|dead| exactly(replicas, dead, down)).sum();
    1.0 - stopped
}

/// The same as the share of time without one.
#[must_use]
pub fn no_majority(replicas: usize, down: f64) -> f64 {
    let needed = replicas / 2 + 1;
    (replicas + 1 - needed..=replicas).map(|dead| exactly(replicas, dead, down)).sum()
}

fn exactly(of: usize, dead: usize, down: f64) -> f64 {
    let ways = (0..dead).fold(1.0, |ways, taken| ways * (of - taken) as f64 / (taken + 1) as f64);
    ways * down.powi(dead as i32) * (1.0 - down).powi((of - dead) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Textbook figures for majorities of hosts that are up 99 % of the time: 3 p^2 - 2 p^3, and so on.
    #[test]
    fn majorities_of_three_five_and_seven_are_the_textbooks() {
        let check = |replicas, up: f64, expected: f64| {
            assert!(
                (majority(replicas, up) - expected).abs() < 1e-12,
                "{replicas}: {}",
                majority(replicas, up)
            );
        };
        check(1, 0.99, 0.99);
        check(2, 0.99, 0.9801);
        check(3, 0.99, 0.999_702);
        check(5, 0.99, 0.999_990_149_4);
        check(7, 0.99, 0.999_999_658_330_2);
    }

    #[test]
    fn an_even_number_is_no_better_than_the_odd_one_below() {
        for replicas in [1, 3, 5, 7] {
            assert!(no_majority(replicas + 1, 0.01) > no_majority(replicas, 0.01));
            assert!(no_majority(replicas + 2, 0.01) < no_majority(replicas, 0.01));
        }
    }
}

//! Which numbers the clients of each load have: ranges that cannot overlap, however many clients a load has.
//!
//! A ledger makes its rows' numbers, and a register the values it writes, from the client's number, and loads of one
//! workload share a table. Two clients of one number would write the same rows, and a check would take one client's write
//! for the other's.

use workload::workload::CLIENT_ROUND;

/// The number of the first client of each load, given the most clients each has.
#[must_use]
pub fn first_clients(most_clients: impl IntoIterator<Item = u32>) -> Vec<u64> {
    let mut next = 0_u64;
    let first_client = |clients: u32| {
        let first = next;
        next = (first + u64::from(clients.max(1))).next_multiple_of(CLIENT_ROUND);
        first
    };
    most_clients.into_iter().map(first_client).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(most_clients: &[u32], expected: &[u64]) {
        let first = first_clients(most_clients.iter().copied());
        assert_eq!(first, expected, "{most_clients:?}");
        let ends = first.iter().zip(most_clients).map(|(first, clients)| first + u64::from(*clients));
        for (end, next) in ends.zip(first.iter().skip(1)) {
            assert!(end <= *next, "{most_clients:?}: clients up to {end}, the next load from {next}");
        }
    }

    #[test]
    fn no_load_has_a_client_number_of_another_however_many_clients_it_has() {
        check(&[], &[]);
        check(&[4, 2, 1], &[0, 10_000, 20_000]);
        check(&[10_000, 1], &[0, 10_000]);
        check(&[10_001, 1], &[0, 20_000]);
        check(&[100_000, 100_000, 3], &[0, 100_000, 200_000]);
        check(&[0, 0], &[0, 10_000]);
        check(&[u32::MAX, 1], &[0, 4_294_970_000]);
    }
}

//! Ranges of IPv4 addresses: whose pods and services are where.
//!
//! Owns their arithmetic. Which ranges a cluster has, `plan` says.

use std::fmt;
use std::net::Ipv4Addr;

use serde::{Serialize, Serializer};

/// The addresses that share their first bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    network: Ipv4Addr,
    bits: u8,
}

impl Range {
    /// The range of an address and so many first bits, 32 at most; what the address has beyond them is of no meaning.
    #[must_use]
    pub const fn new(address: Ipv4Addr, bits: u8) -> Range {
        let bits = if bits > 32 { 32 } else { bits };
        Range { network: Ipv4Addr::from_bits(address.to_bits() & mask(bits)), bits }
    }

    /// Its first address.
    #[must_use]
    pub const fn network(self) -> Ipv4Addr {
        self.network
    }

    /// How many first bits its addresses share.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.bits
    }

    /// The address so many after its first.
    #[must_use]
    pub const fn address(self, number: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.network.to_bits().wrapping_add(number))
    }

    /// Whether an address is in it.
    #[must_use]
    pub const fn contains(self, address: Ipv4Addr) -> bool {
        address.to_bits() & mask(self.bits) == self.network.to_bits()
    }

    /// Whether some address is in both.
    #[must_use]
    pub const fn overlaps(self, other: Range) -> bool {
        self.contains(other.network) || other.contains(self.network)
    }
}

/// The first bits.
const fn mask(bits: u8) -> u32 {
    if bits == 0 { 0 } else { u32::MAX << (32 - bits) }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.bits)
    }
}

impl Serialize for Range {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(a: u8, b: u8, c: u8, bits: u8) -> Range {
        Range::new(Ipv4Addr::new(a, b, c, 0), bits)
    }

    #[test]
    fn a_range_has_its_first_and_its_last_address_and_no_other() {
        let range = range(10, 244, 3, 24);
        assert_eq!(range.to_string(), "10.244.3.0/24");
        assert!(
            range.contains(Ipv4Addr::new(10, 244, 3, 0)) && range.contains(Ipv4Addr::new(10, 244, 3, 255))
        );
        assert!(
            !range.contains(Ipv4Addr::new(10, 244, 4, 0)) && !range.contains(Ipv4Addr::new(10, 244, 2, 255))
        );
        assert_eq!(range.address(1), Ipv4Addr::new(10, 244, 3, 1));
    }

    #[test]
    fn ranges_overlap_when_one_lies_in_the_other() {
        assert!(range(10, 244, 0, 16).overlaps(range(10, 244, 3, 24)));
        assert!(range(10, 244, 3, 24).overlaps(range(10, 244, 0, 16)));
        assert!(!range(10, 244, 3, 24).overlaps(range(10, 244, 4, 24)));
        assert!(range(0, 0, 0, 0).overlaps(range(192, 168, 0, 16)));
    }

    #[test]
    fn what_an_address_has_beyond_the_bits_is_of_no_meaning() {
        let range = Range::new(Ipv4Addr::new(10, 96, 7, 7), 16);
        assert_eq!(range, Range::new(Ipv4Addr::new(10, 96, 0, 0), 16));
        assert_eq!(Range::new(Ipv4Addr::LOCALHOST, 40).bits(), 32);
    }
}

//! A range of addresses that share their first bits: a network behind a port, such as that of a host's containers. Pure.

use std::net::IpAddr;

/// The addresses whose first bits are those of `network`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    network: IpAddr,
    bits: u8,
}

impl Prefix {
    /// The range of so many first bits of an address; none where an address of that version has not as many.
    #[must_use]
    pub fn new(network: IpAddr, bits: u8) -> Option<Prefix> {
        (bits <= length(network)).then_some(Prefix { network, bits })
    }

    /// How many first bits its addresses share.
    #[must_use]
    pub fn bits(self) -> u8 {
        self.bits
    }

    /// Whether an address is in it.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        length(address) == length(self.network) && self.first(address) == self.first(self.network)
    }

    fn first(self, address: IpAddr) -> u128 {
        let bits = match address {
            IpAddr::V4(address) => u128::from(u32::from(address)),
            IpAddr::V6(address) => u128::from(address),
        };
        // A shift by all 128 bits is none that a processor knows.
        bits.checked_shr(u32::from(length(address) - self.bits)).unwrap_or(0)
    }
}

fn length(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(network: &str, bits: u8, address: &str, expected: bool) {
        let parse = |text: &str| text.parse::<IpAddr>().expect("an address");
        let prefix = Prefix::new(parse(network), bits).expect("a range");
        assert_eq!(prefix.contains(parse(address)), expected, "{address} in {network}/{bits}");
    }

    #[test]
    fn an_address_is_in_a_range_when_its_first_bits_are_the_same() {
        check("10.244.1.0", 24, "10.244.1.7", true);
        check("10.244.1.9", 24, "10.244.1.7", true);
        check("10.244.1.0", 24, "10.244.2.7", false);
        check("10.244.1.7", 32, "10.244.1.7", true);
        check("10.244.1.7", 32, "10.244.1.6", false);
        check("0.0.0.0", 0, "255.0.0.1", true);
        check("fd00:1::", 64, "fd00:1::5", true);
        check("fd00:1::", 64, "fd00:1:0:1::5", false);
        check("::", 0, "fd00::1", true);
    }

    #[test]
    fn no_range_has_addresses_of_both_versions_or_more_bits_than_they_have() {
        check("::", 0, "10.0.0.1", false);
        check("0.0.0.0", 0, "fd00::1", false);
        assert_eq!(Prefix::new(IpAddr::from([10, 0, 0, 0]), 33), None);
    }
}

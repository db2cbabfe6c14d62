//! A place's addresses: one IPv4 address, and the IPv6 address that can be read off it.
//!
//! Owns how the one follows from the other. Who gets which is the business of whoever builds the lab.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One of the two versions of the internet protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
}

impl std::fmt::Display for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        })
    }
}

/// A place's address in each family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Addresses {
    ipv4: Ipv4Addr,
}

impl Addresses {
    /// Those of the place with this IPv4 address.
    #[must_use]
    pub fn of(ipv4: Ipv4Addr) -> Addresses {
        Addresses { ipv4 }
    }

    /// The IPv4 address.
    #[must_use]
    pub fn ipv4(self) -> Ipv4Addr {
        self.ipv4
    }

    /// The IPv6 address, unique and local (RFC 4193): `fd00::10:2:0:1` for `10.2.0.1`. Each group shows the decimal
    /// digits of one byte, so that a person reads the one address in the other.
    #[must_use]
    pub fn ipv6(self) -> Ipv6Addr {
        let [a, b, c, d] = self.ipv4.octets().map(digits_as_hexadecimal);
        Ipv6Addr::new(0xfd00, 0, 0, 0, a, b, c, d)
    }

    /// The address in one family.
    #[must_use]
    pub fn in_family(self, family: Family) -> IpAddr {
        match family {
            Family::V4 => self.ipv4.into(),
            Family::V6 => self.ipv6().into(),
        }
    }

    /// Both, that of `first` first; only the IPv4 one where the kernel knows no IPv6.
    #[must_use]
    pub fn all(self, first: Family) -> Vec<IpAddr> {
        let both = match first {
            Family::V4 => [Family::V4, Family::V6],
            Family::V6 => [Family::V6, Family::V4],
        };
        let known = |family: &Family| *family == Family::V4 || crate::ipv6::has_ipv6();
        both.into_iter().filter(known).map(|family| self.in_family(family)).collect()
    }
}

/// The number whose hexadecimal digits are the decimal digits of this one: 0x255 for 255.
fn digits_as_hexadecimal(byte: u8) -> u16 {
    let (hundreds, tens, ones) = (byte / 100, byte / 10 % 10, byte % 10);
    u16::from(hundreds) << 8 | u16::from(tens) << 4 | u16::from(ones)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ipv4: [u8; 4], expected: &str) {
        assert_eq!(Addresses::of(ipv4.into()).ipv6().to_string(), expected);
    }

    #[test]
    fn one_address_is_read_in_the_other() {
        check([10, 2, 0, 1], "fd00::10:2:0:1");
        check([10, 1, 255, 109], "fd00::10:1:255:109");
        check([0, 0, 0, 0], "fd00::");
    }

    #[test]
    fn different_addresses_stay_different() {
        let groups: std::collections::BTreeSet<u16> = (0..=255).map(digits_as_hexadecimal).collect();
        assert_eq!(groups.len(), 256);
    }
}

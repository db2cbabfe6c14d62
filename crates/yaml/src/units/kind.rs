//! The units of each kind of quantity, and what each is worth in the base unit.

/// A kind of quantity: its units and what they are worth in the base unit.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) with_article: &'static str,
    pub(super) example: &'static str,
    pub(super) finest: &'static str,
    pub(super) units: &'static [(&'static str, u64)],
}

pub(super) const DURATION: Kind = Kind {
    name: "time",
    with_article: "a duration",
    example: "20s",
    finest: "1us",
    units: &[("us", 1), ("ms", 1_000), ("s", 1_000_000), ("m", 60_000_000), ("h", 3_600_000_000)],
};

pub(super) const SIZE: Kind = Kind {
    name: "size",
    with_article: "a size",
    example: "4GiB",
    finest: "1B",
    units: &[
        ("B", 1),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
    ],
};

pub(super) const BIT_RATE: Kind = Kind {
    name: "bit rate",
    with_article: "a bit rate",
    example: "10Gbit/s",
    finest: "1bit/s",
    units: &[
        ("bit/s", 1),
        ("kbit/s", 1_000),
        ("Mbit/s", 1_000_000),
        ("Gbit/s", 1_000_000_000),
        ("Tbit/s", 1_000_000_000_000),
    ],
};

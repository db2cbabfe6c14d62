//! What went through the network, as a whole and between pairs of places that are counted, and what did not.

/// What went through the network and what did not. Packets are counted as on the wire. In whatever way packets end,
/// they are counted there once; those missing in the sum are on their way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames read (a segmented frame is one).
    pub frames: u64,
    /// Packets read.
    pub packets: u64,
    /// Bytes read, as on the wire, IP headers included.
    pub bytes: u64,
    /// Packets that came into being on the way: second copies,
    pub duplicated_packets: u64,
    /// fragments beyond the first,
    pub fragment_packets: u64,
    /// and answers of the network itself.
    pub answer_packets: u64,
    pub delivered_packets: u64,
    /// Packets for an address nobody has.
    pub no_such_address_packets: u64,
    /// Packets that were blocked.
    pub blocked_packets: u64,
    /// Packets larger than their path carries.
    pub too_big_packets: u64,
    /// Packets lost by chance.
    pub lost_packets: u64,
    /// Packets for which a link's queue had no room.
    pub queue_full_packets: u64,
    /// Packets on their way to a port that went away.
    pub port_gone_packets: u64,
    /// Packets the receiving interface refused.
    pub refused_packets: u64,
    /// Packets of frames that made no sense.
    pub malformed_packets: u64,
    /// Of all packets, those that overtook,
    pub overtaking_packets: u64,
    /// and those with a bit flipped.
    pub corrupted_packets: u64,
}

/// What became of the packets between one pair of places while they were counted, as they were taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PairCounters {
    /// Packets that came.
    pub packets: u64,
    /// Of them those that were blocked,
    pub blocked_packets: u64,
    /// and those larger than their path carries.
    pub too_big_packets: u64,
    /// Fragments that came into being beyond the first of each.
    pub fragment_packets: u64,
    /// Packets lost by chance.
    pub lost_packets: u64,
    /// Packets sent on twice.
    pub duplicated_packets: u64,
    /// Packets that overtook.
    pub overtaking_packets: u64,
    /// Packets with a bit flipped.
    pub corrupted_packets: u64,
}

impl PairCounters {
    /// Packets that chance could meet: those that are neither blocked nor too big, each fragment for itself.
    #[must_use]
    pub fn chanced_packets(&self) -> u64 {
        let begun = self.packets + self.fragment_packets;
        begun.saturating_sub(self.blocked_packets).saturating_sub(self.too_big_packets)
    }

    /// Of these, those that were not lost.
    #[must_use]
    pub fn passed_packets(&self) -> u64 {
        self.chanced_packets().saturating_sub(self.lost_packets)
    }
}

impl Counters {
    /// Packets that came in or came into being.
    #[must_use]
    pub fn begun_packets(&self) -> u64 {
        self.packets + self.duplicated_packets + self.fragment_packets + self.answer_packets
    }

    /// Packets that have met their end, whichever.
    #[must_use]
    pub fn ended_packets(&self) -> u64 {
        self.delivered_packets
            + self.no_such_address_packets
            + self.blocked_packets
            + self.too_big_packets
            + self.lost_packets
            + self.queue_full_packets
            + self.port_gone_packets
            + self.refused_packets
            + self.malformed_packets
    }
}

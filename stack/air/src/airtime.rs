//! The time of a station by use. The booked times add up to the clock.

/// The kind of packet that the air carries, given by the world's driver, which can read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AirLoad {
    /// A segment with payload.
    TcpData,
    /// A segment without.
    TcpAck,
    /// A beacon of 802.11.
    Beacon,
    /// A request or a reply of ARP.
    Arp,
    /// A message of a routing protocol.
    Routing,
    /// Everything else, such as UDP of programs.
    #[default]
    Other,
}

impl AirLoad {
    /// All loads, in the order of their numbers.
    pub const ALL: [AirLoad; 6] =
        [AirLoad::TcpData, AirLoad::TcpAck, AirLoad::Beacon, AirLoad::Arp, AirLoad::Routing, AirLoad::Other];
}

hopwise_core::named! {
    /// A use of a station's time; the first that claims a moment has it.
    pub enum AirtimeUse {
        /// A station sends an RTS.
        SendsRts = "sends-rts",
        /// A station sends a CTS.
        SendsCts = "sends-cts",
        /// Packets but TCP's ACKs.
        SendsData = "sends-data",
        /// TCP ACKs.
        SendsTcpAck = "sends-tcp-ack",
        /// A station sends an ACK of 802.11.
        SendsAck = "sends-ack",
        /// A frame for this station, or for all.
        Receives = "receives",
        /// An understood frame between two other stations.
        Overhears = "overhears",
        /// A frame too weak to understand, or one that came while the station sent.
        Noise = "noise",
        /// Frames overlap at the station, and it understands none of them.
        Collision = "collision",
        /// The air is idle here: backoff, NAV, or nothing to do.
        Idle = "idle",
    }
}

/// The book of one station: nanoseconds by use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AirtimeBook {
    until: u64,
    last: usize,
    ns: [u64; AirtimeUse::ALL.len()],
}

impl AirtimeBook {
    /// Books a stretch that is not booked already; the time before it was idle.
    pub(crate) fn book(&mut self, spent: AirtimeUse, from: u64, until: u64) {
        let from = from.max(self.until);
        if until <= from {
            return;
        }
        self.ns[AirtimeUse::Idle as usize] += from - self.until;
        self.ns[spent as usize] += until - from;
        (self.until, self.last) = (until, spent as usize);
    }

    /// The book as of `now`, which is no earlier than the start of any event.
    #[must_use]
    pub(crate) fn closed_at(mut self, now: u64) -> AirtimeBook {
        if now >= self.until {
            self.ns[AirtimeUse::Idle as usize] += now - self.until;
        } else {
            self.ns[self.last] = self.ns[self.last].saturating_sub(self.until - now);
        }
        self.until = now;
        self
    }

    /// The nanoseconds that went to this use.
    pub fn ns(&self, spent: AirtimeUse) -> u64 {
        self.ns[spent as usize]
    }

    /// The booked time in nanoseconds. It is the length of the run, up to when the book was closed.
    pub fn total_ns(&self) -> u64 {
        self.ns.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_stretches_are_booked_once_and_all_sums_to_the_clock() {
        let mut airtime = AirtimeBook::default();
        airtime.book(AirtimeUse::SendsData, 10, 20);
        airtime.book(AirtimeUse::Noise, 15, 30);
        airtime.book(AirtimeUse::Collision, 12, 18);
        airtime.book(AirtimeUse::SendsAck, 40, 60);
        let closed = airtime.closed_at(50);
        assert_eq!(closed.total_ns(), 50);
        let of = |spent| closed.ns(spent);
        assert_eq!(
            (of(AirtimeUse::SendsData), of(AirtimeUse::Noise), of(AirtimeUse::Collision)),
            (10, 10, 0)
        );
        assert_eq!((of(AirtimeUse::SendsAck), of(AirtimeUse::Idle)), (10, 20));
        assert_eq!(airtime.closed_at(100).total_ns(), 100);
    }
}

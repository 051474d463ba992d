//! The time of a station by use. The booked times add up to the clock.

/// The kind of packet that the air carries, given by the world's driver, which can read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Load {
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
    /// Everything that is none of the others, such as UDP of programs.
    #[default]
    Other,
}

impl Load {
    /// All loads, in the order of their numbers.
    pub const ALL: [Load; 6] =
        [Load::TcpData, Load::TcpAck, Load::Beacon, Load::Arp, Load::Routing, Load::Other];
}

/// A use of a station's time; the first that claims a moment has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spent {
    /// A station sends an RTS.
    SendsRts,
    /// A station sends a CTS.
    SendsCts,
    /// Packets but those of the next kind.
    SendsData,
    /// TCP ACKs.
    SendsTcpAck,
    /// A station sends an ACK of 802.11.
    SendsAck,
    /// A frame for this station, or for all.
    Receives,
    /// A frame between others, understood.
    Overhears,
    /// A frame too weak to understand, or one that came while the station sent.
    Noise,
    /// Frames overlap at the station, and it understands none of them.
    Collision,
    /// The air is idle here: backoff, NAV, or nothing to do.
    Idle,
}

impl Spent {
    /// All uses, in the order in which results list them.
    pub const ALL: [Spent; 10] = [
        Spent::SendsRts,
        Spent::SendsCts,
        Spent::SendsData,
        Spent::SendsTcpAck,
        Spent::SendsAck,
        Spent::Receives,
        Spent::Overhears,
        Spent::Noise,
        Spent::Collision,
        Spent::Idle,
    ];

    /// The word for it in results.
    pub fn name(self) -> &'static str {
        match self {
            Spent::SendsRts => "sends-rts",
            Spent::SendsCts => "sends-cts",
            Spent::SendsData => "sends-data",
            Spent::SendsTcpAck => "sends-tcp-ack",
            Spent::SendsAck => "sends-ack",
            Spent::Receives => "receives",
            Spent::Overhears => "overhears",
            Spent::Noise => "noise",
            Spent::Collision => "collision",
            Spent::Idle => "idle",
        }
    }
}

/// The book of one station: nanoseconds by use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Airtime {
    until: u64,
    last: usize,
    ns: [u64; Spent::ALL.len()],
}

impl Airtime {
    /// Books a stretch that is not booked already; the time before it was idle.
    pub(crate) fn book(&mut self, spent: Spent, from: u64, until: u64) {
        let from = from.max(self.until);
        if until <= from {
            return;
        }
        self.ns[Spent::Idle as usize] += from - self.until;
        self.ns[spent as usize] += until - from;
        (self.until, self.last) = (until, spent as usize);
    }

    /// The book as of `now`, which is no earlier than the start of any event.
    #[must_use]
    pub(crate) fn closed_at(mut self, now: u64) -> Airtime {
        if now >= self.until {
            self.ns[Spent::Idle as usize] += now - self.until;
        } else {
            self.ns[self.last] = self.ns[self.last].saturating_sub(self.until - now);
        }
        self.until = now;
        self
    }

    /// The nanoseconds that went to this use.
    pub fn ns(&self, spent: Spent) -> u64 {
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
        let mut airtime = Airtime::default();
        airtime.book(Spent::SendsData, 10, 20);
        airtime.book(Spent::Noise, 15, 30);
        airtime.book(Spent::Collision, 12, 18);
        airtime.book(Spent::SendsAck, 40, 60);
        let closed = airtime.closed_at(50);
        assert_eq!(closed.total_ns(), 50);
        let of = |spent| closed.ns(spent);
        assert_eq!((of(Spent::SendsData), of(Spent::Noise), of(Spent::Collision)), (10, 10, 0));
        assert_eq!((of(Spent::SendsAck), of(Spent::Idle)), (10, 20));
        assert_eq!(airtime.closed_at(100).total_ns(), 100);
    }
}

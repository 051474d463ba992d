//! Packets that may leave a base station: packets that came, and packets that an agent may write in an end's name.

use std::collections::BTreeSet;

use hopwise_core::wire::{Checksums, Flags, IpView, TcpView, protocol};

pub(super) struct Leaving {
    /// Agents that write ACKs in the mobile's name.
    writes: bool,
    /// Flows that are cut in two have a TCP of their own.
    cuts: bool,
    checksums: Checksums,
    /// The packets that came, with their side.
    came: BTreeSet<(bool, Vec<u8>)>,
    /// Any bytes came in: they may say in an end's name what that end never said.
    pub(super) is_misled: bool,
}

impl Leaving {
    pub(super) fn new(spec: &str, checksums: Checksums) -> Leaving {
        let writes = spec == "freeze" || spec == "m-tcp";
        let cuts = spec.starts_with("split");
        Leaving { writes, cuts, checksums, came: BTreeSet::new(), is_misled: false }
    }

    pub(super) fn note_arrival(&mut self, is_to_mobile: bool, packet: &[u8]) {
        self.came.insert((is_to_mobile, packet.to_vec()));
    }

    pub(super) fn check(&self, is_to_mobile: bool, packet: &[u8]) {
        if self.came.contains(&(is_to_mobile, packet.to_vec())) {
            return;
        }
        assert!(self.writes || self.cuts, "a packet left that never came: {packet:x?}");
        let ip = IpView::parse(packet).expect("a sound packet");
        assert_eq!(ip.protocol, protocol::TCP);
        // With trusted checksums, a device finishes the sums of some packets.
        let tcp = TcpView::parse(ip.src, ip.dst, ip.payload, self.checksums).expect("a sound segment");
        if self.writes {
            assert!(!is_to_mobile && tcp.flags == Flags::ACK && tcp.payload.is_empty(), "it is no ACK");
            assert!(self.is_misled || self.has_said(&ip, tcp.ack.0), "the mobile never said {}", tcp.ack.0);
        }
    }

    /// Returns whether the mobile has acknowledged at least that number before, in this flow.
    fn has_said(&self, ip: &IpView<'_>, number: u32) -> bool {
        let ports = &ip.payload[..4];
        let segments = self.came.iter().filter(|(is_to_mobile, _)| !is_to_mobile);
        let acks = segments.filter_map(|(_, packet)| {
            let came = IpView::parse(packet).ok().filter(|came| (came.src, came.dst) == (ip.src, ip.dst))?;
            let tcp = TcpView::parse(came.src, came.dst, came.payload, Checksums::Trust).ok()?;
            (came.payload[..4] == *ports).then_some(tcp.ack.0)
        });
        acks.into_iter().any(|ack| ack.wrapping_sub(number) < 1 << 31)
    }
}

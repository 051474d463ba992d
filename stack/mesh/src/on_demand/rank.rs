//! How sure it is that a node wants a destination: strangers can make it answer addresses that no node has.

use hopwise_core::wire::{IpView, protocol};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// Its packets only answer what anybody may have sent.
    Doubtful,
    /// A program of this node began to speak to it, or it has been found before.
    Sure,
}

/// ICMP messages that begin an exchange: solicitation (RFC 1256), echo, time stamp (RFC 792), and mask (RFC 950).
const ICMP_REQUESTS: [u8; 4] = [8, 10, 13, 17];
const RST: u8 = 0x04;
const SYN_AND_ACK: u8 = 0x12;

/// Whether an operating system sends such a packet by itself, to wherever another one seemed to come from: ICMP's
/// replies and errors, a RST, a SYN-ACK. Answers of programs over UDP look like beginnings.
pub(crate) fn is_answer(packet: &[u8]) -> bool {
    let Ok(view) = IpView::parse(packet) else { return true };
    let is_first = view.fragment.is_none_or(|fragment| fragment.offset == 0);
    match view.protocol {
        protocol::ICMP => !is_first || view.payload.first().is_none_or(|kind| !ICMP_REQUESTS.contains(kind)),
        protocol::TCP if is_first => {
            view.payload.get(13).is_none_or(|flags| flags & RST != 0 || flags & SYN_AND_ACK == SYN_AND_ACK)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use hopwise_core::wire::IpHeader;

    use super::*;

    fn packet(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = Vec::new();
        IpHeader::plain([10, 0, 0, 1].into(), [10, 0, 0, 9].into(), protocol)
            .emit(payload.len(), &mut packet);
        packet.extend(payload);
        packet
    }

    #[test]
    fn what_a_kernel_says_by_itself_is_an_answer() {
        let segment = |flags| [vec![0; 13], vec![flags], vec![0; 6]].concat();
        for (what, packet, expected) in [
            ("an echo", packet(1, &[8; 8]), false),
            ("an echo reply", packet(1, &[0; 8]), true),
            ("an error", packet(1, &[3; 8]), true),
            ("a SYN", packet(6, &segment(0x02)), false),
            ("data", packet(6, &segment(0x18)), false),
            ("a SYN-ACK", packet(6, &segment(0x12)), true),
            ("a RST", packet(6, &segment(0x04)), true),
            ("UDP", packet(17, &[0; 8]), false),
            ("another protocol", packet(253, &[]), false),
            ("no packet", vec![1, 2, 3], true),
        ] {
            assert_eq!(is_answer(&packet), expected, "{what}");
        }
    }
}

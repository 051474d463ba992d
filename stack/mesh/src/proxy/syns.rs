//! SYNs that may begin another connection with the ports of a flow. Any of them may be forged: the flow continues until
//! the other end answers one (RFC 5961 §4).
//!
//! All flows share the room. A host that cannot see the flow has to send as many SYNs as there is room for, within the
//! time of an answer, to have an honest one forgotten.

use std::collections::BTreeMap;

use hopwise_core::Seq;
use hopwise_core::agent::Side;
use hopwise_core::narrow::as_u32;
use hopwise_core::wire::Flags;

use super::read::{FlowKey, ReadPacket, with_zeros, without_data};

/// The largest number of SYNs. The oldest gives way.
const MOST: usize = 4_096;
/// The most data that a packet has.
const MOST_DATA: u32 = u16::MAX as u32;

/// The largest number of SYNs that one answer is compared with. Those of a blind host lie anywhere.
const MOST_NEAR: usize = 16;

/// A flow, the opener, and the number of its SYN.
type Opening = (FlowKey, Side, u32);

#[derive(Debug)]
struct KeptSyn {
    /// The packet without its data, and the length of that.
    headers: Box<[u8]>,
    data: u32,
    nth: u64,
}

#[derive(Debug, Default)]
pub(super) struct Syns {
    all: BTreeMap<Opening, KeptSyn>,
    in_order: BTreeMap<u64, Opening>,
    noted: u64,
}

impl Syns {
    pub(super) fn note(&mut self, from: Side, read: &ReadPacket<'_>, packet: &[u8]) {
        let Some(headers) = without_data(packet) else { return };
        let opening = (read.key, from, read.tcp.seq.0);
        self.noted += 1;
        let syn = KeptSyn { headers: headers.into(), data: as_u32(read.tcp.payload.len()), nth: self.noted };
        if let Some(before) = self.all.insert(opening, syn) {
            self.in_order.remove(&before.nth);
        }
        self.in_order.insert(self.noted, opening);
        if self.all.len() > MOST
            && let Some((_, oldest)) = self.in_order.pop_first()
        {
            self.all.remove(&oldest);
        }
    }

    /// Takes the SYN that this segment answers out, with zeros in place of its data. A part of the data may be
    /// acknowledged with the SYN (RFC 7413 §4). `opened` is the SYN that the flow began with.
    pub(super) fn answered(
        &mut self,
        from: Side,
        answer: &ReadPacket<'_>,
        opened: Option<(Side, Seq)>,
    ) -> Option<Vec<u8>> {
        if !answer.tcp.flags.contains(Flags::SYN | Flags::ACK) {
            return None;
        }
        let opener = from.other();
        let Seq(last) = answer.tcp.ack - 1;
        let first = last.wrapping_sub(MOST_DATA);
        let between = |first, last| self.all.range((answer.key, opener, first)..=(answer.key, opener, last));
        // The numbers may wrap.
        let (below, above) = if first <= last { (first, None) } else { (0, Some(between(first, u32::MAX))) };
        let near = above.into_iter().flatten().chain(between(below, last)).rev();
        let mut fitting =
            near.take(MOST_NEAR).filter(|((_, _, seq), syn)| last.wrapping_sub(*seq) <= syn.data);
        let (opening, _) = fitting.next().filter(|((_, _, seq), _)| opened != Some((opener, Seq(*seq))))?;
        let opening = *opening;
        let KeptSyn { headers, data, nth } = self.all.remove(&opening)?;
        self.in_order.remove(&nth);
        with_zeros(&headers, data as usize)
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use hopwise_core::wire::{Checksums, TcpOptions};

    use super::*;
    use crate::proxy::read;
    use crate::proxy::tests::packet;

    const ENDS: [[&str; 2]; 2] = [["10.0.0.1:5001", "10.0.0.2:40000"], ["[fd00::1]:5001", "[fd00::2]:40000"]];

    fn ends(of: [&str; 2]) -> [SocketAddr; 2] {
        of.map(|end| end.parse().expect("an address and a port"))
    }

    impl Syns {
        fn note_one(&mut self, [fixed, mobile]: [SocketAddr; 2], seq: u32, data: usize) -> Vec<u8> {
            let options = TcpOptions { mss: Some(1_460), ..TcpOptions::default() };
            let syn = packet(fixed, mobile, (seq, 0), Flags::SYN, &options, &vec![1; data]);
            let read = read::read(&syn, Side::Fixed, Checksums::Verify).expect("a segment");
            self.note(Side::Fixed, &read, &syn);
            assert!(self.all.len() <= MOST && self.in_order.len() == self.all.len());
            syn
        }

        /// The number and length of the SYN that is answered by this number.
        fn answer(&mut self, [fixed, mobile]: [SocketAddr; 2], ack: u32) -> Option<(u32, usize)> {
            let flags = Flags::SYN | Flags::ACK;
            let answer = packet(mobile, fixed, (5, ack), flags, &TcpOptions::default(), &[]);
            let answer = read::read(&answer, Side::Mobile, Checksums::Verify).expect("a segment");
            let again = self.answered(Side::Mobile, &answer, Some((Side::Fixed, Seq(1 << 30))))?;
            let again = read::read(&again, Side::Fixed, Checksums::Trust).expect("a segment");
            assert_eq!((again.tcp.options.mss, again.key.fixed), (Some(1_460), fixed));
            Some((again.tcp.seq.0, again.tcp.payload.len()))
        }
    }

    #[test]
    fn of_a_syn_that_may_open_a_flow_again_nothing_is_kept_beside_its_headers() {
        for of in ENDS.map(ends) {
            let mut syns = Syns::default();
            let syn = syns.note_one(of, 77, 1_400);
            let kept: usize = syns.all.values().map(|syn| syn.headers.len()).sum();
            assert_eq!(kept, syn.len() - 1_400);
            assert_eq!(syns.answer(of, 78), Some((77, 1_400)));
            assert_eq!((syns.answer(of, 78), syns.all.len()), (None, 0), "it is answered once");
        }
    }

    #[test]
    fn an_answer_fits_a_syn_and_any_part_of_its_data_and_no_other_number() {
        for first in [77, u32::MAX - 100, u32::MAX] {
            for (ack, fits) in [(0, false), (1, true), (500, true), (1_401, true), (1_402, false)] {
                let mut syns = Syns::default();
                let of = ends(ENDS[0]);
                syns.note_one(of, first, 1_400);
                let answered = syns.answer(of, first.wrapping_add(ack));
                assert_eq!(answered, fits.then_some((first, 1_400)), "{first} {ack}");
            }
        }
    }

    #[test]
    fn the_syn_that_a_flow_began_with_opens_it_no_second_time() {
        let (mut syns, of) = (Syns::default(), ends(ENDS[1]));
        syns.note_one(of, 1 << 30, 0);
        assert_eq!(syns.answer(of, (1 << 30) + 1), None);
    }

    #[test]
    fn the_oldest_of_too_many_gives_way_and_one_that_comes_again_is_new() {
        let (mut syns, of) = (Syns::default(), ends(ENDS[0]));
        for seq in 0..MOST as u32 {
            syns.note_one(of, 2 * seq, 0);
        }
        syns.note_one(of, 0, 0);
        syns.note_one(of, 1, 0);
        assert_eq!([1, 3, 2].map(|ack| syns.answer(of, ack)), [Some((0, 0)), None, Some((1, 0))]);
    }
}

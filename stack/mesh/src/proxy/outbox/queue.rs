//! The packets that wait for one link, and the place of each flow's last pure ACK among them.

use std::collections::{BTreeMap, VecDeque};

use super::Leaving;

#[derive(Debug, Default)]
pub(in crate::proxy) struct Queue {
    waiting: VecDeque<Leaving>,
    /// The bytes of these packets.
    bytes: usize,
    /// The number of packets that have left.
    gone: u64,
    /// By flow: how many packets came before the last replaceable one.
    replaceable: BTreeMap<u32, u64>,
}

impl Queue {
    pub(in crate::proxy) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(in crate::proxy) fn front(&self) -> Option<&Leaving> {
        self.waiting.front()
    }

    pub(super) fn push(&mut self, leaving: Leaving) {
        let before = self.gone + self.waiting.len() as u64;
        self.replaceable.extend(leaving.replaceable.map(|flow| (flow, before)));
        self.bytes += leaving.packet.len();
        self.waiting.push_back(leaving);
    }

    pub(in crate::proxy) fn pop(&mut self) -> Option<Leaving> {
        let leaving = self.waiting.pop_front()?;
        self.bytes -= leaving.packet.len();
        if let Some(flow) = leaving.replaceable
            && self.replaceable.get(&flow) == Some(&self.gone)
        {
            self.replaceable.remove(&flow);
        }
        self.gone += 1;
        Some(leaving)
    }

    /// Puts a packet in place of the last one of this flow that can be replaced; returns the id of that.
    pub(super) fn replace_last_of(&mut self, flow: u32, id: u64, packet: &mut Vec<u8>) -> Option<u64> {
        let before = self.replaceable.get(&flow)? - self.gone;
        let last = self.waiting.get_mut(usize::try_from(before).ok()?)?;
        self.bytes = self.bytes - last.packet.len() + packet.len();
        std::mem::swap(&mut last.packet, packet);
        Some(std::mem::replace(&mut last.id, id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaving(id: u64, replaceable: Option<u32>) -> Leaving {
        Leaving { id, is_passing: false, replaceable, packet: vec![0; id as usize] }
    }

    proptest::proptest! {
        #[test]
        fn the_last_packet_of_a_flow_is_found_wherever_it_stands(
            flows in proptest::collection::vec(proptest::option::of(0u32..4), 0..100),
            pops in proptest::collection::vec(proptest::bool::ANY, 100),
        ) {
            let mut queue = Queue::default();
            for ((id, flow), pops) in (0..).zip(flows).zip(pops) {
                queue.push(leaving(id, flow));
                if pops {
                    queue.pop();
                }
                for flow in 0..4 {
                    let last = queue.waiting.iter().rev().find(|other| other.replaceable == Some(flow));
                    let last = last.map(|leaving| leaving.id);
                    let mut other = vec![0; id as usize + 7];
                    proptest::prop_assert_eq!(queue.replace_last_of(flow, id, &mut other), last);
                }
                let bytes = queue.waiting.iter().map(|leaving| leaving.packet.len()).sum::<usize>();
                proptest::prop_assert_eq!(queue.bytes(), bytes);
            }
            while queue.pop().is_some() {}
            proptest::prop_assert!(queue.replaceable.is_empty());
        }
    }
}

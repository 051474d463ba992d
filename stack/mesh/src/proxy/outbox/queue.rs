//! The packets that wait for one link, and the place of each flow's last pure ACK among them.

use std::collections::{BTreeMap, VecDeque};

use super::Leaving;

#[derive(Debug, Default)]
pub(in crate::proxy) struct Queue {
    waiting: VecDeque<Leaving>,
    /// The number of packets that have left.
    gone: u64,
    /// By flow: how many packets came before the last replaceable one.
    replaceable: BTreeMap<u32, u64>,
}

impl Queue {
    pub(in crate::proxy) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(in crate::proxy) fn front(&self) -> Option<&Leaving> {
        self.waiting.front()
    }

    pub(super) fn push(&mut self, leaving: Leaving) {
        let before = self.gone + self.waiting.len() as u64;
        self.replaceable.extend(leaving.replaceable.map(|flow| (flow, before)));
        self.waiting.push_back(leaving);
    }

    pub(in crate::proxy) fn pop(&mut self) -> Option<Leaving> {
        let leaving = self.waiting.pop_front()?;
        if let Some(flow) = leaving.replaceable
            && self.replaceable.get(&flow) == Some(&self.gone)
        {
            self.replaceable.remove(&flow);
        }
        self.gone += 1;
        Some(leaving)
    }

    /// The last packet of this flow that can be replaced.
    pub(super) fn last_of(&mut self, flow: u32) -> Option<&mut Leaving> {
        let before = self.replaceable.get(&flow)? - self.gone;
        self.waiting.get_mut(usize::try_from(before).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaving(id: u64, replaceable: Option<u32>) -> Leaving {
        Leaving { id, is_passing: false, replaceable, packet: Vec::new() }
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
                    proptest::prop_assert_eq!(queue.last_of(flow).map(|leaving| leaving.id), last);
                }
            }
            while queue.pop().is_some() {}
            proptest::prop_assert!(queue.replaceable.is_empty());
        }
    }
}

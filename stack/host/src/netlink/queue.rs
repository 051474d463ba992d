//! The kernel's queue of an interface: how much waits there (linux/pkt_sched.h, linux/gen_stats.h).

use std::io;

use super::ask::{ask, open};
use super::message::{DUMP, Heard, Message, attribute, word};

const NEW_QDISC: u16 = 36;
const GET_QDISC: u16 = 38;
/// A struct tcmsg: family, index, handle, parent, info.
const HEADER: usize = 20;
const INDEX_AT: usize = 4;
const PARENT_AT: usize = 12;
/// The outermost discipline of an interface, whose counts include those of the others (TC_H_ROOT).
const ROOT: u32 = u32::MAX;
const STATS2: u16 = 7;
const STATS_QUEUE: u16 = 3;

/// Packets that wait in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queued {
    /// Their number.
    pub packets: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Packets that found the queue full since it was made.
    pub drops: u64,
}

/// The queue of the interface with that number; `None` if it has none, or does not count.
pub fn queued(index: u32) -> io::Result<Option<Queued>> {
    let mut found = None;
    ask(open(None)?, Message::new(GET_QDISC, DUMP, 0).fixed(&[0; HEADER]), |heard| {
        found = found.or_else(|| queue(heard, index));
    })?;
    Ok(found)
}

fn queue(heard: &Heard<'_>, index: u32) -> Option<Queued> {
    let is_of = |at, wanted| word(heard.body, at) == Some(wanted);
    if heard.kind != NEW_QDISC || !is_of(INDEX_AT, index) || !is_of(PARENT_AT, ROOT) {
        return None;
    }
    let counts = attribute(attribute(heard.body.get(HEADER..)?, STATS2)?, STATS_QUEUE)?;
    let count = |nth: usize| word(counts, 4 * nth).map(u64::from);
    Some(Queued { packets: count(0)?, bytes: count(1)?, drops: count(2)? })
}

#[cfg(test)]
mod tests {
    use super::super::message::messages;
    use super::*;

    fn header(index: u32, parent: u32) -> Vec<u8> {
        [0, index, 1, parent, 0].iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn counts(all: [u32; 5]) -> Vec<u8> {
        let bytes: Vec<u8> = all.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let nested = Message::new(0, 0, 0).attribute(STATS_QUEUE, &bytes).finish();
        nested[super::super::message::HEADER..].to_vec()
    }

    #[test]
    fn the_outermost_queue_of_the_interface_counts() {
        let message = |index, parent| {
            let message = Message::new(NEW_QDISC, 0, 1).fixed(&header(index, parent));
            message.attribute(STATS2, &counts([3, 4500, 7, 0, 0])).finish()
        };
        let read = |bytes: &[u8]| messages(bytes).find_map(|heard| queue(&heard, 4));
        assert_eq!(read(&message(4, ROOT)), Some(Queued { packets: 3, bytes: 4500, drops: 7 }));
        assert_eq!(read(&message(5, ROOT)), None);
        assert_eq!(read(&message(4, 1)), None);
    }

    #[test]
    fn the_loopback_has_nothing_waiting() {
        let index = crate::netlink::index_of("lo").expect("it is always there");
        let waiting = queued(index).expect("the kernel answers");
        assert!(waiting.is_none_or(|queue| queue.packets == 0), "{waiting:?}");
    }
}

//! Frames of Ethernet that wait: to whom they go, in which category, and which one is next.

use std::collections::VecDeque;

use hopwise_core::NextHop;
use hopwise_core::queue::Category;

use super::name_of;
use crate::frames::ETHERNET_BYTES;

/// The receiver of an Ethernet frame.
pub(super) fn receiver(frame: &[u8]) -> NextHop {
    match *frame {
        [a, b, c, d, e, f, ..] if a & 1 == 0 => NextHop::Neighbour(name_of([a, b, c, d, e, f])),
        _ => NextHop::All,
    }
}

/// The category of an Ethernet frame: Linux looks at the DSCP of IP, and at nothing else here.
pub(super) fn category(frame: &[u8]) -> Category {
    match frame.get(ETHERNET_BYTES - 2..ETHERNET_BYTES) {
        Some([0x08, 0x00] | [0x86, 0xdd]) => Category::of_packet(&frame[ETHERNET_BYTES..]),
        _ => Category::BestEffort,
    }
}

/// Takes the first frame of a category that is meant; without categories, the first that is meant.
pub(super) fn take_from(
    (frames, of_category): (&mut VecDeque<Vec<u8>>, &mut Option<[usize; 4]>),
    wanted: Category,
    (is_meant, most): (impl Fn(&[u8]) -> bool, usize),
) -> Option<Vec<u8>> {
    let is_divided = of_category.is_some();
    let is_it = |frame: &Vec<u8>| (!is_divided || category(frame) == wanted) && is_meant(frame);
    let place = frames.iter().position(is_it).filter(|place| frames[*place].len() <= most)?;
    if let Some(counts) = of_category {
        counts[wanted.index()] -= 1;
    }
    frames.remove(place)
}

//! The neighbour that makes room where a protocol knows as many as it may. Strangers can make up any number of
//! addresses, and these must not keep real neighbours out.

use std::net::Ipv4Addr;

use hopwise_core::Instant;

/// The largest number of neighbours of which a node keeps something.
pub(crate) const MOST_NEIGHBOURS: usize = 4_096;

/// The standing of a neighbour, from what any stranger can bring about up to what it cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// Its frames arrive here.
    Heard,
    /// Ours are known not to arrive there.
    Blacklisted,
    /// Ours arrive there, too. A stranger can acknowledge in many names.
    Confirmed,
    /// Data goes to it. Its silence has to be noticed.
    InUse,
}

/// The neighbour that goes: one of the lowest standing, and among these the one that was silent for longest. Each is
/// given with its standing and the time at which it was last heard.
pub(crate) fn gives_way(known: impl Iterator<Item = (Ipv4Addr, Standing, Instant)>) -> Option<Ipv4Addr> {
    known.min_by_key(|(_, standing, heard)| (*standing, *heard)).map(|(address, ..)| address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stranger_goes_before_a_next_hop_and_the_silent_one_before_the_others() {
        let node = |last: u8| Ipv4Addr::new(10, 0, 0, last);
        let mut known = vec![
            (node(1), Standing::InUse, Instant::from_secs(1)),
            (node(2), Standing::Confirmed, Instant::from_secs(2)),
            (node(3), Standing::Blacklisted, Instant::from_secs(3)),
            (node(4), Standing::Heard, Instant::from_secs(9)),
            (node(5), Standing::Heard, Instant::from_secs(8)),
        ];
        let mut gone = Vec::new();
        while let Some(next) = gives_way(known.iter().copied()) {
            known.retain(|(address, ..)| *address != next);
            gone.push(next);
        }
        assert_eq!(gone, [5, 4, 3, 2, 1].map(node));
    }
}

//! The limits on messages of other nodes, and on messages to them, that hold in addition to the protocol's rules.
//! Also the routes that were requested, so that only awaited replies are taken.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::ip::Prefix;

use super::{Key, Keys, is_host};

/// The strangers and sizes that a node accepts in messages.
#[derive(Clone, Debug)]
pub struct Trust {
    /// Routes lead only to addresses of this network; `None`: to any host.
    pub network: Option<Prefix>,
    /// The largest packet that all interfaces carry in one piece. Longer messages are neither taken nor sent.
    pub mtu: u16,
    /// With keys, only messages with a right signature are taken, and sent messages are signed.
    pub keys: Option<Keys>,
}

impl Default for Trust {
    /// As in a simulation, where there are no strangers.
    fn default() -> Trust {
        Trust { network: None, mtu: u16::MAX, keys: None }
    }
}

impl Trust {
    /// As in a simulation, where signatures only cost their bytes: all nodes have one key.
    pub fn simulated(is_signed: bool) -> Trust {
        let keys = is_signed.then(|| Keys::new(vec![(1, Key::new([1; 32]))], None).ok()).flatten();
        Trust { keys, ..Trust::default() }
    }

    /// Returns whether there may be a route to that address, and news of it.
    pub fn covers(&self, address: Ipv4Addr) -> bool {
        is_host(address) && self.network.is_none_or(|network| is_host_of(&network, address))
    }

    /// The longest message that one packet carries.
    pub(crate) fn most_bytes(&self) -> usize {
        usize::from(self.mtu).saturating_sub(HEADERS)
    }
}

/// Excludes the network's own address and its broadcast address, where it has these (RFC 3021).
fn is_host_of(network: &Prefix, address: Ipv4Addr) -> bool {
    let Some(broadcast) = network.broadcast() else { return network.contains(address.into()) };
    let hosts = u32::MAX.checked_shr(network.bits().into()).unwrap_or(0);
    network.contains(address.into()) && address != broadcast && address.to_bits() & hosts != 0
}

/// The IPv4 header without options, and the UDP header.
const HEADERS: usize = 28;

/// The largest number of remembered requests; beyond it the oldest are forgotten.
const MOST: usize = 16_384;

/// The origin of the request, and its destination.
pub(crate) type RequestPair = (Ipv4Addr, Ipv4Addr);

/// The routes that were requested, so that only awaited replies are taken.
#[derive(Debug, Default)]
pub(crate) struct RequestedRoutes {
    until: BTreeMap<RequestPair, Instant>,
    /// In the order of the requests.
    asked: VecDeque<(Instant, RequestPair)>,
}

impl RequestedRoutes {
    /// A reply may come within that time.
    pub(crate) fn note(&mut self, now: Instant, pair: RequestPair, memory: Duration) {
        while let Some((until, oldest)) = self.asked.front().copied()
            && (until <= now || self.asked.len() >= MOST)
        {
            self.asked.pop_front();
            // It may have been requested again since.
            if self.until.get(&oldest) == Some(&until) {
                self.until.remove(&oldest);
            }
        }
        self.until.insert(pair, now + memory);
        self.asked.push_back((now + memory, pair));
    }

    pub(crate) fn has(&self, now: Instant, pair: RequestPair) -> bool {
        self.until.get(&pair).is_some_and(|until| *until > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_its_own_hosts_and_no_others() {
        let network = Some("10.0.0.0/24".parse().expect("a network"));
        let (open, closed) = (Trust::default(), Trust { network, ..Trust::default() });
        for (address, in_open, in_closed) in [
            ([10, 0, 0, 9], true, true),
            ([10, 0, 1, 9], true, false),
            ([10, 0, 0, 0], true, false),
            ([10, 0, 0, 255], true, false),
            ([8, 8, 8, 8], true, false),
            ([0, 0, 0, 0], false, false),
            ([224, 0, 0, 1], false, false),
            ([127, 0, 0, 1], false, false),
        ] {
            let address = Ipv4Addr::from(address);
            assert_eq!((open.covers(address), closed.covers(address)), (in_open, in_closed), "{address}");
        }
    }

    const MEMORY: Duration = Duration::from_secs(5);

    fn pair(n: u32) -> RequestPair {
        (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::from_bits(n))
    }

    #[test]
    fn a_question_is_open_for_its_time_and_longer_when_it_is_asked_again() {
        let mut asked = RequestedRoutes::default();
        let at = Instant::from_secs;
        asked.note(at(0), pair(1), MEMORY);
        assert!(asked.has(at(4), pair(1)) && !asked.has(at(5), pair(1)) && !asked.has(at(0), pair(2)));
        asked.note(at(4), pair(1), MEMORY);
        asked.note(at(6), pair(2), MEMORY);
        assert!(asked.has(at(8), pair(1)) && !asked.has(at(9), pair(1)));
    }

    #[test]
    fn a_flood_of_questions_takes_bounded_memory() {
        let mut asked = RequestedRoutes::default();
        (0..50_000).for_each(|n| asked.note(Instant::ZERO, pair(n), MEMORY));
        assert!(asked.until.len() <= MOST && asked.asked.len() <= MOST);
        assert!(asked.has(Instant::ZERO, pair(49_999)));
    }
}

//! The limits on messages of other nodes, and on messages to them, beside the protocol's rules.

use std::net::Ipv4Addr;

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
}

//! The peers of an interface of 802.11s.

use std::io;

use hopwise_core::StationAddress;

use super::kernel::{GET_STATION, Nl80211};
use super::station::{address, attributes_of};
use crate::netlink::ask::ask;
use crate::netlink::message::attribute;

/// The state of a peering, in NL80211_ATTR_STA_INFO, and the one in which frames go to the peer (linux/nl80211.h).
const PLINK_STATE: u16 = 6;
const ESTABLISHED: u8 = 4;

impl Nl80211 {
    /// The stations that exchange data with this interface of 802.11s, by its number.
    pub fn peers(&mut self, interface: u32) -> io::Result<Vec<StationAddress>> {
        let mut peers = Vec::new();
        ask(&self.socket, self.question(GET_STATION, interface), |heard| peers.extend(peer(heard.body)))?;
        Ok(peers)
    }
}

/// The peer in one message of a dump of stations.
fn peer(body: &[u8]) -> Option<StationAddress> {
    let (all, info) = attributes_of(body)?;
    (attribute(info, PLINK_STATE)? == [ESTABLISHED]).then(|| address(all)).flatten()
}

#[cfg(test)]
mod tests {
    use super::super::station::{ADDRESS, NEW_STATION, STATION_INFO, nested};
    use super::*;
    use crate::netlink::message::{HEADER, Message};

    fn told(command: u8, state: Option<u8>) -> Vec<u8> {
        let info = nested(|info| match state {
            Some(state) => info.attribute(PLINK_STATE, &[state]),
            None => info,
        });
        let message = Message::new(0, 0, 0).fixed(&[command, 0, 0, 0]);
        message.attribute(ADDRESS, &[2; 6]).attribute(STATION_INFO, &info).finish().split_off(HEADER)
    }

    #[test]
    fn a_station_is_a_peer_once_its_peering_is_established() {
        assert_eq!(peer(&told(NEW_STATION, Some(ESTABLISHED))), Some(StationAddress([2; 6])));
        for (command, state) in [(NEW_STATION, Some(3)), (NEW_STATION, None), (0, Some(ESTABLISHED))] {
            assert_eq!(peer(&told(command, state)), None);
        }
        assert_eq!(peer(&[]), None);
    }
}

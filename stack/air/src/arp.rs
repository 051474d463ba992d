//! ARP (RFC 826) at one station: the known addresses, the requests that are out, and the packets that wait for a reply.
//!
//! Replies are believed for ever, since no station changes its address. The target of a request learns the sender's
//! address. Not modelled: announcements, NDP (neighbours with addresses of IPv6 are known).
//!
//! Written by hand: smoltcp writes ARP only with its Ethernet medium, and this needs one message of 28 bytes.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

use crate::frames::{Mac, mac_of};

/// RFC 1122 §2.3.2.1: one request a second at most.
pub(crate) const ASK_EVERY_NS: u64 = 1_000_000_000;
const MOST_QUESTIONS: u8 = 3;
const BYTES: usize = 28;

/// The source of neighbours' addresses: known from the start, or requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arp {
    /// Stations know them, as in the calibration.
    #[default]
    Known,
    /// Stations ask by ARP, and packets wait for the reply.
    Asked,
}

/// A packet that waits for a reply.
#[derive(Debug)]
pub(crate) struct PendingPacket {
    pub(crate) id: u64,
    /// When it came into its machine's queue, where that is known.
    pub(crate) queued_at: Option<u64>,
    pub(crate) packet: Vec<u8>,
}

#[derive(Debug)]
enum ArpEntry {
    Known,
    Sought { questions: u8, due: u64, waiting: VecDeque<PendingPacket> },
}

/// The state of a packet for a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolution {
    Known,
    /// The packet waits, and a request leaves now.
    Ask,
    Waits,
}

/// The addresses that one station knows or seeks.
#[derive(Debug, Default)]
pub(crate) struct ArpTable(BTreeMap<IpAddr, ArpEntry>);

impl ArpTable {
    pub(crate) fn knows(&self, who: IpAddr) -> bool {
        who.is_ipv6() || matches!(self.0.get(&who), Some(ArpEntry::Known))
    }

    /// Keeps a packet until its neighbour has replied, `most` of them at a time. The oldest are lost if there are more
    /// (RFC 1122 §2.3.2.2); the second value returned has their ids.
    pub(crate) fn hold(
        &mut self,
        now: u64,
        who: IpAddr,
        packet: PendingPacket,
        most: usize,
    ) -> (Resolution, Vec<u64>) {
        let sought = ArpEntry::Sought { questions: 0, due: now, waiting: VecDeque::new() };
        let ArpEntry::Sought { questions, due, waiting } = self.0.entry(who).or_insert(sought) else {
            return (Resolution::Known, Vec::new());
        };
        waiting.push_back(packet);
        let too_many = waiting.len().saturating_sub(most);
        let lost = waiting.drain(..too_many).map(|waiting| waiting.id).collect();
        let found = if *questions == 0 { Resolution::Ask } else { Resolution::Waits };
        if found == Resolution::Ask {
            (*questions, *due) = (1, now + ASK_EVERY_NS);
        }
        (found, lost)
    }

    /// Takes a neighbour's address and returns the packets that waited for it. An unknown neighbour is stored only if
    /// the ARP packet was for this station.
    pub(crate) fn learn(&mut self, who: IpAddr, concerns_us: bool) -> VecDeque<PendingPacket> {
        if !concerns_us && !self.0.contains_key(&who) {
            return VecDeque::new();
        }
        match self.0.insert(who, ArpEntry::Known) {
            Some(ArpEntry::Sought { waiting, .. }) => waiting,
            _ => VecDeque::new(),
        }
    }

    /// The neighbours to request again, and the given-up neighbours with the packets that waited for them.
    pub(crate) fn overdue(&mut self, now: u64) -> (Vec<IpAddr>, Vec<(IpAddr, VecDeque<PendingPacket>)>) {
        let (mut again, mut lost) = (Vec::new(), Vec::new());
        for (who, neighbour) in &mut self.0 {
            let ArpEntry::Sought { questions, due, waiting } = neighbour else { continue };
            if *due > now {
                continue;
            }
            if *questions == MOST_QUESTIONS {
                lost.push((*who, std::mem::take(waiting)));
            } else {
                (*questions, *due) = (*questions + 1, now + ASK_EVERY_NS);
                again.push(*who);
            }
        }
        lost.iter().for_each(|(who, _)| drop(self.0.remove(who)));
        (again, lost)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Request = 1,
    Reply,
}

/// The contents of an ARP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArpMessage {
    pub(crate) operation: Operation,
    /// The address that the packet reports.
    pub(crate) sender: Ipv4Addr,
    /// The address that is requested, or the receiver of the reply.
    pub(crate) target: Ipv4Addr,
}

/// A packet as RFC 826 has it, for IPv4 on an Ethernet.
pub(crate) fn write(said: &ArpMessage, sender: u32, target: Option<u32>, out: &mut Vec<u8>) {
    let unknown: Mac = [0; 6];
    out.extend_from_slice(&[0, 1, 8, 0, 6, 4, 0, said.operation as u8]);
    out.extend_from_slice(&mac_of(sender));
    out.extend_from_slice(&said.sender.octets());
    out.extend_from_slice(&target.map_or(unknown, mac_of));
    out.extend_from_slice(&said.target.octets());
}

pub(crate) fn read(packet: &[u8]) -> Option<ArpMessage> {
    if packet.len() != BYTES {
        return None;
    }
    let address = |at: usize| Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3]);
    let operation = match packet[7] {
        1 => Operation::Request,
        2 => Operation::Reply,
        _ => return None,
    };
    Some(ArpMessage { operation, sender: address(14), target: address(24) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who() -> IpAddr {
        IpAddr::from([10, 0, 0, 2])
    }

    fn packet(id: u64) -> PendingPacket {
        PendingPacket { id, queued_at: None, packet: Vec::new() }
    }

    fn ids(waiting: &VecDeque<PendingPacket>) -> Vec<u64> {
        waiting.iter().map(|waiting| waiting.id).collect()
    }

    #[test]
    fn packets_wait_for_one_question_and_the_oldest_give_way() {
        let mut table = ArpTable::default();
        assert_eq!(table.hold(0, who(), packet(1), 2), (Resolution::Ask, vec![]));
        assert_eq!(table.hold(5, who(), packet(2), 2), (Resolution::Waits, vec![]));
        assert_eq!(table.hold(6, who(), packet(3), 2), (Resolution::Waits, vec![1]));
        assert!(!table.knows(who()));
        assert_eq!(ids(&table.learn(who(), false)), [2, 3]);
        assert!(table.knows(who()));
        assert_eq!(table.hold(7, who(), packet(4), 2), (Resolution::Known, vec![]));
    }

    #[test]
    fn after_three_questions_what_waits_is_given_up() {
        let mut table = ArpTable::default();
        table.hold(0, who(), packet(1), 8);
        let mut asked = 1;
        for second in 1..3 {
            let (again, lost) = table.overdue(second * ASK_EVERY_NS);
            asked += again.len();
            assert!(lost.is_empty());
        }
        assert_eq!((asked, table.overdue(3 * ASK_EVERY_NS - 1).1.len()), (3, 0));
        let (again, lost) = table.overdue(3 * ASK_EVERY_NS);
        assert_eq!((again.len(), ids(&lost[0].1)), (0, vec![1]));
        assert_eq!(table.hold(0, who(), packet(2), 8).0, Resolution::Ask, "it is asked for anew");
    }

    #[test]
    fn strangers_are_remembered_only_by_whom_they_ask_for() {
        let mut table = ArpTable::default();
        table.learn(who(), false);
        assert!(!table.knows(who()));
        table.learn(who(), true);
        assert!(table.knows(who()));
    }

    #[test]
    fn packets_are_read_as_they_were_written() {
        let said = ArpMessage {
            operation: Operation::Reply,
            sender: Ipv4Addr::new(10, 0, 0, 1),
            target: Ipv4Addr::new(10, 0, 0, 9),
        };
        let mut packet = Vec::new();
        write(&said, 0, Some(8), &mut packet);
        assert_eq!((packet.len(), read(&packet)), (BYTES, Some(said)));
        assert_eq!(packet[8..14], mac_of(0));
        assert_eq!(read(&packet[..20]), None);
        packet[7] = 9;
        assert_eq!(read(&packet), None);
    }
}

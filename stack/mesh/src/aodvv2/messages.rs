//! AODVv2's messages in the format of RFC 5444. A message is kept as it came, so that it is passed on with the parts
//! that were not understood. The fields that we need are read from it.

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::on_demand::ack_seq::Statement;
use crate::rfc5444::{Address, AddressBlock, AddressTlv, Rfc5444Message, Tlv, TlvValue};
use hopwise_core::narrow::as_u8;

/// Message types; the draft leaves the numbers to a registry that never had them, and all implementations use these.
pub(crate) const RREQ: u8 = 10;
pub(crate) const RREP: u8 = 11;
pub(crate) const RERR: u8 = 12;
pub(crate) const RREP_ACK: u8 = 13;

/// Address TLVs.
pub(crate) const PATH_METRIC: u8 = 10;
pub(crate) const SEQ_NUM: u8 = 11;
pub(crate) const ADDRESS_TYPE: u8 = 15;
/// A type of RFC 5497.
pub(crate) const VALIDITY_TIME: u8 = 1;

/// Values of ADDRESS_TYPE.
pub(crate) const ORIG: u8 = 0;
pub(crate) const TARG: u8 = 1;
pub(crate) const UNREACHABLE: u8 = 2;
pub(crate) const PKT_SOURCE: u8 = 3;

/// The metric type "hop count" (RFC 6551), an extension of PATH_METRIC.
pub(crate) const HOP_COUNT: u8 = 3;

/// Message TLVs: a request for an acknowledgement, and arrivals (experimental range), open and signed.
pub(crate) const ACK_REQ: u8 = 10;
/// The type of the message TLV that carries arrivals, from the experimental range.
pub const ACK_SEQ: u8 = 224;
const OPEN: u8 = 0;
const SIGNED: u8 = 1;

/// The largest number of unreachable destinations in one RERR.
pub(crate) const MOST_UNREACHABLE: usize = 200;

/// Why a message is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageRefusal {
    /// A part that the draft requires is missing or has another form.
    Malformed,
    /// It is well formed, but not supported here: IPv6, networks, other metrics.
    Foreign,
}

/// What a message says, or why it is refused.
pub type MessageResult<T = ()> = Result<T, MessageRefusal>;

/// The content of a RREQ or a RREP: the route to its origin, and its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteMessage {
    /// The hops that the message may still take.
    pub hop_limit: u8,
    /// The node to which the message offers a route: the origin of a RREQ, the target of a RREP.
    pub to: Ipv4Addr,
    /// The sequence number of `to`; never 0.
    pub seq: u16,
    /// The hops from `to` to the node that sent this copy.
    pub metric: u8,
    /// The time for which the route may be used; `None` if the message sets no limit.
    pub validity: Option<Duration>,
    /// The other one.
    pub other: Ipv4Addr,
    /// Its last known number.
    pub other_seq: Option<u16>,
}

/// The content of a RERR: destinations that the sender has no route to any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rerr {
    /// The hops that the message may still take.
    pub hop_limit: u8,
    /// The source of the packet that was not forwarded.
    pub pkt_source: Option<Ipv4Addr>,
    /// The lost destinations with their last known sequence numbers.
    pub unreachable: Vec<(Ipv4Addr, Option<u16>)>,
}

fn short(value: &[u8]) -> Option<u16> {
    value.try_into().ok().map(u16::from_be_bytes)
}

/// RFC 5497 §5: three bits of mantissa, five of exponent, in units of 1/1024 s.
fn time(code: u8) -> Duration {
    let (mantissa, exponent) = (u64::from(code & 7), u32::from(code >> 3));
    // In units of 1/8192 s, of which the longest have 35 bits.
    Duration::from_micros((((8 + mantissa) << exponent) * 1_000_000) / (8 * 1_024))
}

impl RouteMessage {
    /// `shows` is the address type to which this kind of message offers a route.
    fn parse(message: &Rfc5444Message, shows: u8) -> MessageResult<RouteMessage> {
        let hop_limit = message.hop_limit.ok_or(MessageRefusal::Malformed)?;
        let (block, to) = find(message, shows)?;
        let other = find(message, if shows == ORIG { TARG } else { ORIG })?;
        let seq = block.said(SEQ_NUM, 0, to).and_then(short).ok_or(MessageRefusal::Malformed)?;
        let (kind, metric) = block.said_of_any(PATH_METRIC, to).ok_or(MessageRefusal::Malformed)?;
        if kind != HOP_COUNT {
            return Err(MessageRefusal::Foreign);
        }
        let [metric] = *metric else { return Err(MessageRefusal::Malformed) };
        let other_seq =
            other.0.said(SEQ_NUM, 0, other.1).map(|seq| short(seq).ok_or(MessageRefusal::Malformed));
        let validity = block.said(VALIDITY_TIME, 0, to).and_then(|value| value.first().copied()).map(time);
        if seq == 0 {
            return Err(MessageRefusal::Malformed); // 0 stands for an unknown number.
        }
        Ok(RouteMessage {
            hop_limit,
            to: host(block, to)?,
            seq,
            metric,
            validity,
            other: host(other.0, other.1)?,
            other_seq: other_seq.transpose()?.filter(|seq| *seq != 0),
        })
    }

    pub(crate) fn of_rreq(message: &Rfc5444Message) -> MessageResult<RouteMessage> {
        RouteMessage::parse(message, ORIG)
    }

    /// Reads a RREP, whatever its type field says.
    pub fn of_rrep(message: &Rfc5444Message) -> MessageResult<RouteMessage> {
        RouteMessage::parse(message, TARG)
    }

    fn message(&self, kind: u8, shows: u8) -> Rfc5444Message {
        let of = |address: Ipv4Addr| (Address::from(address), 32);
        let (addresses, to) = match shows {
            ORIG => (vec![of(self.to), of(self.other)], 0),
            _ => (vec![of(self.other), of(self.to)], 1),
        };
        let mut tlvs = vec![
            AddressTlv {
                kind: ADDRESS_TYPE,
                extension: 0,
                first: 0,
                last: 1,
                value: TlvValue::Each(vec![ORIG, TARG]),
            },
            AddressTlv::of(PATH_METRIC, HOP_COUNT, to, &[self.metric]),
            AddressTlv::of(SEQ_NUM, 0, to, &self.seq.to_be_bytes()),
        ];
        tlvs.extend(self.other_seq.map(|seq| AddressTlv::of(SEQ_NUM, 0, 1 - to, &seq.to_be_bytes())));
        Rfc5444Message {
            hop_limit: Some(self.hop_limit),
            blocks: vec![AddressBlock { addresses, tlvs }],
            ..Rfc5444Message::new(kind, 4)
        }
    }

    /// The message as a RREQ.
    pub fn rreq(&self) -> Rfc5444Message {
        self.message(RREQ, ORIG)
    }

    /// The message as a RREP.
    pub fn rrep(&self) -> Rfc5444Message {
        self.message(RREP, TARG)
    }
}

/// The address of that type, with its block.
fn find(message: &Rfc5444Message, wanted: u8) -> MessageResult<(&AddressBlock, usize)> {
    for block in &message.blocks {
        let is_wanted = |index: &usize| block.said(ADDRESS_TYPE, 0, *index) == Some(&[wanted]);
        if let Some(index) = (0..block.addresses.len()).find(is_wanted) {
            return Ok((block, index));
        }
    }
    Err(MessageRefusal::Malformed)
}

fn host(block: &AddressBlock, index: usize) -> MessageResult<Ipv4Addr> {
    let (address, bits) = block.addresses[index];
    address.v4().filter(|_| bits == address.bits()).ok_or(MessageRefusal::Foreign)
}

/// The same message one hop on.
pub(crate) fn passed_on(message: &Rfc5444Message, hop_limit: u8, metric: u8) -> Rfc5444Message {
    let mut passed = Rfc5444Message { hop_limit: Some(hop_limit), ..message.clone() };
    for tlv in passed.blocks.iter_mut().flat_map(|block| &mut block.tlvs) {
        // A TLV without a value goes on as it came: the message grows by no byte.
        if (tlv.kind, tlv.extension) == (PATH_METRIC, HOP_COUNT) && tlv.value != TlvValue::None {
            tlv.value = TlvValue::Shared(vec![metric]);
        }
    }
    passed
}

/// The largest size of a RERR without destinations, and of each destination in it.
const RERR_BYTES: usize = 40;
const UNREACHABLE_BYTES: usize = 4 + 1 + 6;

impl Rerr {
    /// The number of destinations for which a packet of that length has room: at least one.
    pub fn room(bytes: usize) -> usize {
        (bytes.saturating_sub(RERR_BYTES) / UNREACHABLE_BYTES).clamp(1, MOST_UNREACHABLE)
    }

    /// Reads a RERR, whatever its type field says.
    pub fn parse(message: &Rfc5444Message) -> MessageResult<Rerr> {
        let hop_limit = message.hop_limit.ok_or(MessageRefusal::Malformed)?;
        let mut rerr = Rerr { hop_limit, pkt_source: None, unreachable: Vec::new() };
        for block in &message.blocks {
            for index in 0..block.addresses.len() {
                match block.said(ADDRESS_TYPE, 0, index) {
                    Some(&[UNREACHABLE]) => {
                        let seq = block.said(SEQ_NUM, 0, index).and_then(short).filter(|seq| *seq != 0);
                        rerr.unreachable.push((host(block, index)?, seq));
                    }
                    Some(&[PKT_SOURCE]) => rerr.pkt_source = Some(host(block, index)?),
                    _ => {}
                }
            }
        }
        if rerr.unreachable.is_empty() { Err(MessageRefusal::Malformed) } else { Ok(rerr) }
    }

    /// There is at least one, and at most `MOST_UNREACHABLE`.
    pub fn message(&self) -> Rfc5444Message {
        let unreachable = self.unreachable.iter().map(|(dst, _)| *dst);
        let addresses = unreachable.chain(self.pkt_source).map(|address| (address.into(), 32)).collect();
        let last = as_u8(self.unreachable.len() - 1);
        let mut types = vec![UNREACHABLE; self.unreachable.len()];
        types.extend(self.pkt_source.map(|_| PKT_SOURCE));
        let value = if types.len() == 1 { TlvValue::Shared(types) } else { TlvValue::Each(types) };
        let all = as_u8(self.unreachable.len() + usize::from(self.pkt_source.is_some()) - 1);
        let mut tlvs = vec![
            AddressTlv { kind: ADDRESS_TYPE, extension: 0, first: 0, last: all, value },
            AddressTlv { kind: PATH_METRIC, extension: HOP_COUNT, first: 0, last, value: TlvValue::None },
        ];
        for ((_, seq), index) in self.unreachable.iter().zip(0..) {
            tlvs.extend(seq.map(|seq| AddressTlv::of(SEQ_NUM, 0, index, &seq.to_be_bytes())));
        }
        let blocks = vec![AddressBlock { addresses, tlvs }];
        Rfc5444Message { hop_limit: Some(self.hop_limit), blocks, ..Rfc5444Message::new(RERR, 4) }
    }
}

/// A request for an acknowledgement, or an acknowledgement.
pub fn rrep_ack(is_request: bool) -> Rfc5444Message {
    let request = Tlv { kind: ACK_REQ, extension: 0, value: Vec::new() };
    Rfc5444Message {
        tlvs: is_request.then_some(request).into_iter().collect(),
        ..Rfc5444Message::new(RREP_ACK, 4)
    }
}

pub(crate) fn is_request(message: &Rfc5444Message) -> bool {
    message.tlv(ACK_REQ, 0).is_some()
}

/// A message TLV with arrivals.
pub(crate) fn statement(said: Statement) -> Tlv {
    match said {
        Statement::Open(value) => Tlv { kind: ACK_SEQ, extension: OPEN, value },
        Statement::Signed(value) => Tlv { kind: ACK_SEQ, extension: SIGNED, value },
    }
}

/// The arrivals in a message: open, signed.
pub(crate) fn statements(message: &Rfc5444Message) -> (Option<&[u8]>, Option<&[u8]>) {
    (message.tlv(ACK_SEQ, OPEN), message.tlv(ACK_SEQ, SIGNED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rfc5444::Packet;

    fn rreq() -> RouteMessage {
        RouteMessage {
            hop_limit: 20,
            to: Ipv4Addr::new(10, 0, 0, 1),
            seq: 0x0102,
            metric: 3,
            validity: None,
            other: Ipv4Addr::new(10, 0, 0, 9),
            other_seq: None,
        }
    }

    #[test]
    fn a_rreq_is_these_bytes() {
        let bytes = Packet::of(rreq().rreq()).bytes().expect("short enough");
        let expected = [
            0, 10, 0x43, 0, 34, 20, 0, 0, // Packet, message with a hop limit, no TLVs.
            2, 0x80, 3, 10, 0, 0, 1, 9, // The origin's address and the target's.
            0, 17, 15, 0x14, 2, 0, 1, // The types of both,
            10, 0xd0, 3, 0, 1, 3, // hops to the origin,
            11, 0x50, 0, 2, 1, 2, // and its number.
        ];
        assert_eq!(bytes, expected);
    }

    #[test]
    fn what_is_written_is_read() {
        let known = RouteMessage { other_seq: Some(7), ..rreq() };
        assert_eq!(RouteMessage::of_rreq(&known.rreq()), Ok(known));
        assert_eq!(RouteMessage::of_rrep(&rreq().rrep()), Ok(rreq()));
        let unreachable = vec![(Ipv4Addr::new(10, 0, 0, 9), Some(5)), (Ipv4Addr::new(10, 0, 0, 8), None)];
        for pkt_source in [None, Some(Ipv4Addr::new(10, 0, 0, 1))] {
            let rerr = Rerr { hop_limit: 20, pkt_source, unreachable: unreachable.clone() };
            assert_eq!(Rerr::parse(&rerr.message()), Ok(rerr));
        }
        assert!(is_request(&rrep_ack(true)) && !is_request(&rrep_ack(false)));
        assert_eq!(Packet::of(rrep_ack(false)).bytes().expect("short enough"), [0, 13, 3, 0, 6, 0, 0]);
    }

    #[test]
    fn what_is_not_understood_goes_on_with_the_message() {
        let mut message = rreq().rreq();
        message.tlvs.push(Tlv { kind: 99, extension: 1, value: vec![1] });
        message.blocks[0].tlvs.push(AddressTlv::of(98, 0, 1, &[2]));
        let passed = passed_on(&message, 19, 4);
        assert_eq!(RouteMessage::of_rreq(&passed), Ok(RouteMessage { hop_limit: 19, metric: 4, ..rreq() }));
        assert_eq!(passed.tlv(99, 1), Some(&[1][..]));
        assert_eq!(passed.blocks[0].said(98, 0, 1), Some(&[2][..]));
    }

    #[test]
    fn what_is_missing_or_foreign_is_refused() {
        let read = |spoil: fn(&mut Rfc5444Message)| {
            let mut message = rreq().rreq();
            spoil(&mut message);
            RouteMessage::of_rreq(&message)
        };
        assert_eq!(read(|message| message.hop_limit = None), Err(MessageRefusal::Malformed));
        assert_eq!(read(|message| message.blocks.clear()), Err(MessageRefusal::Malformed));
        for index in 0..3 {
            let mut message = rreq().rreq();
            message.blocks[0].tlvs.remove(index);
            assert_eq!(
                RouteMessage::of_rreq(&message),
                Err(MessageRefusal::Malformed),
                "without TLV {index}"
            );
        }
        assert_eq!(
            read(|m| m.blocks[0].tlvs[2].value = TlvValue::Shared(vec![0, 0])),
            Err(MessageRefusal::Malformed)
        );
        assert_eq!(
            read(|m| m.blocks[0].tlvs[2].value = TlvValue::Shared(vec![1])),
            Err(MessageRefusal::Malformed)
        );
        assert_eq!(
            read(|m| m.blocks[0].tlvs[1].extension = 7),
            Err(MessageRefusal::Foreign),
            "another metric"
        );
        assert_eq!(read(|m| m.blocks[0].addresses[0].1 = 24), Err(MessageRefusal::Foreign), "a network");
    }

    #[test]
    fn times_are_in_three_bits_and_an_exponent() {
        for (code, us) in [(0, 976), (8 * 10, 1_000_000), (8 * 10 + 4, 1_500_000), (255, 3_932_160_000_000)] {
            assert_eq!(time(code).as_micros(), us, "{code}");
        }
    }
}

//! Frames of a mesh (IEEE 802.11-2020, 9.4.2 and 9.6): beacons, peering, and the elements of HWMP. A message is the
//! Frame Control field and the body of the frame. The addresses of stations are made from nodes' IP addresses.

use std::net::Ipv4Addr;

use hopwise_core::narrow::as_u8;

/// Frame Control of a beacon and of an action frame.
const BEACON: [u8; 2] = [0x80, 0];
const ACTION: [u8; 2] = [0xd0, 0];
/// Categories of action frames, and the codes of the frames that are used here.
const MESH: u8 = 13;
const SELF_PROTECTED: u8 = 15;
const PATH_SELECTION: u8 = 1;
const OPEN: u8 = 1;
const CONFIRM: u8 = 2;
const CLOSE: u8 = 3;
/// Elements.
const SSID: u8 = 0;
const RATES: u8 = 1;
const CONFIGURATION: u8 = 113;
const MESH_ID: u8 = 114;
const PEERING: u8 = 117;
const PREQ: u8 = 130;
const PREP: u8 = 131;
const PERR: u8 = 132;
/// The length of PREQ with one target, of PREP, and of PERR with one destination.
const PREQ_BYTES: usize = 37;
const PREP_BYTES: usize = 31;
const PERR_BYTES: usize = 15;

const NAME: &[u8] = b"hopwise";
/// The rates of 802.11b, as basic ones.
const ALL_RATES: [u8; 4] = [0x82, 0x84, 0x8b, 0x96];
/// HWMP, the airtime metric, no control of congestion, the default synchronization, no authentication.
const PROTOCOLS: [u8; 5] = [1, 1, 0, 1, 0];
/// Mesh capabilities: more peers are welcome, and the station forwards.
const ACCEPTS: u8 = 0x01;
const FORWARDS: u8 = 0x08;
/// Bytes of a beacon before its elements, and of a timestamp among them. No station here keeps time by other stations.
const FIXED_BYTES: usize = 12;
const TIMESTAMP: [u8; 8] = [0; 8];
/// Only the target may answer (TO).
const TARGET_ONLY: u8 = 0x01;

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Beacon {
        /// In time units of 1,024 µs.
        interval: u16,
        peers: u8,
        /// More peers are welcome.
        accepts: bool,
    },
    Open(Peering),
    Confirm(Peering),
    Close(Peering),
    Preq(Preq),
    Prep(Prep),
    Perr(Perr),
}

/// The identities of a peering: the sender's, and the receiver's where it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Peering {
    pub(super) own: u16,
    /// 0 if it is not known.
    pub(super) peer: u16,
    /// Why it ends; 0 in frames that end nothing.
    pub(super) reason: u16,
}

/// Path request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Preq {
    pub(super) hop_count: u8,
    pub(super) ttl: u8,
    pub(super) id: u32,
    pub(super) originator: Ipv4Addr,
    pub(super) originator_sn: u32,
    /// In time units.
    pub(super) lifetime: u32,
    pub(super) metric: u32,
    /// No other node may answer for the target.
    pub(super) target_only: bool,
    pub(super) target: Ipv4Addr,
    pub(super) target_sn: u32,
}

/// Path reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prep {
    pub(super) hop_count: u8,
    pub(super) ttl: u8,
    pub(super) target: Ipv4Addr,
    pub(super) target_sn: u32,
    /// In time units.
    pub(super) lifetime: u32,
    pub(super) metric: u32,
    pub(super) originator: Ipv4Addr,
    pub(super) originator_sn: u32,
}

/// Path error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Perr {
    pub(super) ttl: u8,
    pub(super) destination: Ipv4Addr,
    /// 0 if the sender knows none.
    pub(super) sn: u32,
    pub(super) reason: u16,
}

impl Frame {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        match self {
            Frame::Beacon { interval, peers, accepts } => {
                out.extend(BEACON);
                out.extend(TIMESTAMP);
                out.extend(interval.to_le_bytes());
                out.extend([0, 0]);
                element(&mut out, SSID, &[]);
                element(&mut out, RATES, &ALL_RATES);
                element(&mut out, MESH_ID, NAME);
                element(&mut out, CONFIGURATION, &configuration(*peers, *accepts));
            }
            Frame::Open(peering) => write_peering(&mut out, OPEN, *peering),
            Frame::Confirm(peering) => write_peering(&mut out, CONFIRM, *peering),
            Frame::Close(peering) => write_peering(&mut out, CLOSE, *peering),
            Frame::Preq(preq) => write_path(&mut out, PREQ, &preq.bytes()),
            Frame::Prep(prep) => write_path(&mut out, PREP, &prep.bytes()),
            Frame::Perr(perr) => write_path(&mut out, PERR, &perr.bytes()),
        }
        out
    }

    /// `None` for what is not whole, and for what no node here sends.
    pub(super) fn read(message: &[u8]) -> Option<Frame> {
        let (control, body) = message.split_first_chunk()?;
        if *control == BEACON {
            let (fixed, elements) = body.split_at_checked(FIXED_BYTES)?;
            let [.., peers, capability] = *find(elements, CONFIGURATION)? else { return None };
            let interval = u16::from_le_bytes([fixed[8], fixed[9]]);
            return Some(Frame::Beacon { interval, peers: peers >> 1, accepts: capability & ACCEPTS != 0 });
        }
        if *control != ACTION {
            return None;
        }
        match *body {
            [SELF_PROTECTED, OPEN, ref rest @ ..] => Some(Frame::Open(read_peering(rest.get(2..)?, OPEN)?)),
            [SELF_PROTECTED, CONFIRM, ref rest @ ..] => {
                Some(Frame::Confirm(read_peering(rest.get(4..)?, CONFIRM)?))
            }
            [SELF_PROTECTED, CLOSE, ref rest @ ..] => Some(Frame::Close(read_peering(rest, CLOSE)?)),
            [MESH, PATH_SELECTION, id, bytes, ref content @ ..] if usize::from(bytes) == content.len() => {
                match id {
                    PREQ => Preq::read(content.try_into().ok()?).map(Frame::Preq),
                    PREP => Prep::read(content.try_into().ok()?).map(Frame::Prep),
                    PERR => Perr::read(content.try_into().ok()?).map(Frame::Perr),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

fn element(out: &mut Vec<u8>, id: u8, content: &[u8]) {
    out.extend([id, as_u8(content.len())]);
    out.extend(content);
}

/// The content of the first element of that kind.
fn find(mut elements: &[u8], id: u8) -> Option<&[u8]> {
    loop {
        let (head, rest) = elements.split_first_chunk::<2>()?;
        let (content, rest) = rest.split_at_checked(usize::from(head[1]))?;
        if head[0] == id {
            return Some(content);
        }
        elements = rest;
    }
}

fn configuration(peers: u8, accepts: bool) -> [u8; 7] {
    let [path, metric, congestion, sync, auth] = PROTOCOLS;
    let capability = if accepts { FORWARDS | ACCEPTS } else { FORWARDS };
    [path, metric, congestion, sync, auth, peers.min(63) << 1, capability]
}

fn write_peering(out: &mut Vec<u8>, action: u8, peering: Peering) {
    out.extend(ACTION);
    out.extend([SELF_PROTECTED, action]);
    // Capabilities, and the association ID in a confirmation.
    match action {
        OPEN => out.extend([0, 0]),
        CONFIRM => out.extend([0, 0, 1, 0]),
        _ => {}
    }
    if action != CLOSE {
        element(out, RATES, &ALL_RATES);
    }
    element(out, MESH_ID, NAME);
    if action != CLOSE {
        element(out, CONFIGURATION, &configuration(0, true));
    }
    // The peering protocol is 0.
    let mut content = vec![0, 0];
    content.extend(peering.own.to_le_bytes());
    if action == CONFIRM || action == CLOSE && peering.peer != 0 {
        content.extend(peering.peer.to_le_bytes());
    }
    if action == CLOSE {
        content.extend(peering.reason.to_le_bytes());
    }
    element(out, PEERING, &content);
}

fn read_peering(elements: &[u8], action: u8) -> Option<Peering> {
    let content = find(elements, PEERING)?;
    let word = |at: usize| Some(u16::from_le_bytes(*content.get(at..)?.first_chunk()?));
    let peering = match action {
        OPEN => Peering { own: word(2)?, peer: 0, reason: 0 },
        CONFIRM => Peering { own: word(2)?, peer: word(4)?, reason: 0 },
        // The other identity may be unknown.
        _ if content.len() < 8 => Peering { own: word(2)?, peer: 0, reason: word(4)? },
        _ => Peering { own: word(2)?, peer: word(4)?, reason: word(6)? },
    };
    Some(peering)
}

fn write_path(out: &mut Vec<u8>, id: u8, content: &[u8]) {
    out.extend(ACTION);
    out.extend([MESH, PATH_SELECTION]);
    element(out, id, content);
}

/// The address of a node's station.
fn station(node: Ipv4Addr) -> [u8; 6] {
    let [a, b, c, d] = node.octets();
    [0x02, 0, a, b, c, d]
}

/// Fields of an element, one after the other.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn octets<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    fn byte(&mut self) -> Option<u8> {
        self.octets().map(|[byte]| byte)
    }

    fn word(&mut self) -> Option<u32> {
        self.octets().map(u32::from_le_bytes)
    }

    /// The node of that station; `None` for one that no node has.
    fn node(&mut self) -> Option<Ipv4Addr> {
        if let [0x02, 0, a, b, c, d] = self.octets()? { Some(Ipv4Addr::new(a, b, c, d)) } else { None }
    }
}

impl Preq {
    fn bytes(&self) -> Vec<u8> {
        let mut out = vec![0, self.hop_count, self.ttl];
        out.extend(self.id.to_le_bytes());
        out.extend(station(self.originator));
        out.extend([self.originator_sn, self.lifetime, self.metric].map(u32::to_le_bytes).concat());
        out.extend([1, if self.target_only { TARGET_ONLY } else { 0 }]);
        out.extend(station(self.target));
        out.extend(self.target_sn.to_le_bytes());
        out
    }

    fn read(content: &[u8; PREQ_BYTES]) -> Option<Preq> {
        let mut fields = Fields(content);
        let [_flags, hop_count, ttl] = fields.octets()?;
        let id = fields.word()?;
        let originator = fields.node()?;
        let (originator_sn, lifetime, metric) = (fields.word()?, fields.word()?, fields.word()?);
        let ([1, flags], target) = (fields.octets()?, fields.node()?) else { return None };
        let (target_only, target_sn) = (flags & TARGET_ONLY != 0, fields.word()?);
        Some(Preq {
            hop_count,
            ttl,
            id,
            originator,
            originator_sn,
            lifetime,
            metric,
            target_only,
            target,
            target_sn,
        })
    }
}

impl Prep {
    fn bytes(&self) -> Vec<u8> {
        let mut out = vec![0, self.hop_count, self.ttl];
        out.extend(station(self.target));
        out.extend([self.target_sn, self.lifetime, self.metric].map(u32::to_le_bytes).concat());
        out.extend(station(self.originator));
        out.extend(self.originator_sn.to_le_bytes());
        out
    }

    fn read(content: &[u8; PREP_BYTES]) -> Option<Prep> {
        let mut fields = Fields(content);
        let [_flags, hop_count, ttl] = fields.octets()?;
        let target = fields.node()?;
        let (target_sn, lifetime, metric) = (fields.word()?, fields.word()?, fields.word()?);
        let (originator, originator_sn) = (fields.node()?, fields.word()?);
        Some(Prep { hop_count, ttl, target, target_sn, lifetime, metric, originator, originator_sn })
    }
}

impl Perr {
    fn bytes(&self) -> Vec<u8> {
        let mut out = vec![self.ttl, 1, 0];
        out.extend(station(self.destination));
        out.extend(self.sn.to_le_bytes());
        out.extend(self.reason.to_le_bytes());
        out
    }

    fn read(content: &[u8; PERR_BYTES]) -> Option<Perr> {
        let mut fields = Fields(content);
        let ttl = fields.byte()?;
        let [1, _flags] = fields.octets()? else { return None };
        let (destination, sn) = (fields.node()?, fields.word()?);
        Some(Perr { ttl, destination, sn, reason: u16::from_le_bytes(fields.octets()?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_of_each() -> Vec<Frame> {
        let node = |last| Ipv4Addr::new(10, 0, 0, last);
        let peering = Peering { own: 0x1234, peer: 0x5678, reason: 57 };
        let preq = Preq {
            hop_count: 2,
            ttl: 29,
            id: 7,
            originator: node(1),
            originator_sn: 65_537,
            lifetime: 4_882,
            metric: 1_490,
            target_only: true,
            target: node(9),
            target_sn: 3,
        };
        let prep = Prep {
            hop_count: 1,
            ttl: 30,
            target: node(9),
            target_sn: 4,
            lifetime: 4_882,
            metric: 745,
            originator: node(1),
            originator_sn: 65_537,
        };
        vec![
            Frame::Beacon { interval: 1_000, peers: 2, accepts: true },
            Frame::Open(Peering { peer: 0, reason: 0, ..peering }),
            Frame::Confirm(Peering { reason: 0, ..peering }),
            Frame::Close(peering),
            Frame::Close(Peering { peer: 0, ..peering }),
            Frame::Preq(preq),
            Frame::Preq(Preq { target_only: false, ..preq }),
            Frame::Prep(prep),
            Frame::Perr(Perr { ttl: 31, destination: node(9), sn: 5, reason: 63 }),
        ]
    }

    #[test]
    fn frames_are_read_as_they_were_written() {
        for frame in one_of_each() {
            assert_eq!(Frame::read(&frame.bytes()), Some(frame));
        }
    }

    #[test]
    fn what_is_cut_or_foreign_is_no_frame() {
        for frame in one_of_each() {
            let bytes = frame.bytes();
            for end in 0..bytes.len() {
                assert_eq!(Frame::read(&bytes[..end]), None, "{frame:?} cut to {end}");
            }
        }
        let mut preq = one_of_each()[5].bytes();
        preq[13] = 0x04;
        assert_eq!(Frame::read(&preq), None, "no node has such a station");
    }
}

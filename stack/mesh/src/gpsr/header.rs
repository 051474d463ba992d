//! The header that GPSR puts behind the IPv4 header. The paper names the fields but gives no encoding. Here a position
//! is two whole numbers of centimetres, in network order.
//!
//! ```text
//! | kind (8)  | next header (8) | length in bytes (16) |
//! | where the sender of this frame stands: x, y (64)   |
//! | where the packet is to go: x, y (64)               |   not in beacons
//! | Lp: where it began to go around: x, y (64)         |   these only in perimeter mode
//! | Lf: where it came upon the face it is on (64)      |
//! | e0: the first edge on it, as two addresses (64)    |
//! ```

use std::net::Ipv4Addr;

use super::plane::Point;
use crate::on_demand::is_host;
use hopwise_core::narrow::as_u16;
use hopwise_core::wire::protocol;

const BEACON: u8 = 1;
const GREEDY: u8 = 2;
const PERIMETER: u8 = 3;

const BEACON_BYTES: usize = 12;
const GREEDY_BYTES: usize = 20;
const PERIMETER_BYTES: usize = 44;

/// The next header that says "nothing follows".
pub const NOTHING: u8 = protocol::NO_NEXT_HEADER;

/// The bytes are no such header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedHeader;

/// The perimeter state of a packet that goes around, because no neighbour is closer to its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerimeterState {
    /// Lp: the position at which it left greedy mode.
    pub entered: Point,
    /// Lf: the point where the line from there to its destination meets the current face.
    pub face: Point,
    /// e0: the first edge that it took on that face.
    pub(crate) first_edge: (Ipv4Addr, Ipv4Addr),
}

/// The part of the header that depends on the kind of packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// The announcement of a position, without a packet.
    Beacon,
    /// In greedy mode, unless `around` is set.
    Data {
        /// The position of the destination when the packet left its source.
        destination: Point,
        /// The state of perimeter mode; `None` in greedy mode.
        around: Option<PerimeterState>,
    },
}

/// The header that GPSR puts between the IP header and the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The protocol of what follows.
    pub next: u8,
    /// The position of the node that sent this copy.
    pub sender: Point,
    /// The part that depends on the kind of packet.
    pub body: Body,
}

impl Header {
    /// Reads the header at the beginning of `bytes`, and returns its length too.
    pub fn parse(bytes: &[u8]) -> Result<(Header, usize), MalformedHeader> {
        let [kind, next, high, low, ..] = bytes else { return Err(MalformedHeader) };
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        let expected = match *kind {
            BEACON => BEACON_BYTES,
            GREEDY => GREEDY_BYTES,
            PERIMETER => PERIMETER_BYTES,
            _ => return Err(MalformedHeader),
        };
        if len != expected || bytes.len() < len {
            return Err(MalformedHeader);
        }
        let sender = point(bytes, 4);
        let body = match *kind {
            BEACON => Body::Beacon,
            GREEDY => Body::Data { destination: point(bytes, 12), around: None },
            _ => {
                let first_edge = (address(bytes, 36), address(bytes, 40));
                if !is_host(first_edge.0) || !is_host(first_edge.1) {
                    return Err(MalformedHeader);
                }
                let around = PerimeterState { entered: point(bytes, 20), face: point(bytes, 28), first_edge };
                Body::Data { destination: point(bytes, 12), around: Some(around) }
            }
        };
        Ok((Header { next: *next, sender, body }, len))
    }

    /// The header in its binary form.
    pub fn bytes(&self) -> Vec<u8> {
        let (kind, len) = match self.body {
            Body::Beacon => (BEACON, BEACON_BYTES),
            Body::Data { around: None, .. } => (GREEDY, GREEDY_BYTES),
            Body::Data { around: Some(_), .. } => (PERIMETER, PERIMETER_BYTES),
        };
        let mut out = Vec::with_capacity(len);
        out.extend([kind, self.next]);
        out.extend(as_u16(len).to_be_bytes());
        write(self.sender, &mut out);
        if let Body::Data { destination, around } = self.body {
            write(destination, &mut out);
            if let Some(around) = around {
                write(around.entered, &mut out);
                write(around.face, &mut out);
                out.extend(around.first_edge.0.octets());
                out.extend(around.first_edge.1.octets());
            }
        }
        out
    }
}

fn word(bytes: &[u8], at: usize) -> [u8; 4] {
    [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]
}

fn point(bytes: &[u8], at: usize) -> Point {
    Point { x: i32::from_be_bytes(word(bytes, at)), y: i32::from_be_bytes(word(bytes, at + 4)) }
}

fn address(bytes: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::from(word(bytes, at))
}

fn write(point: Point, out: &mut Vec<u8>) {
    out.extend(point.x.to_be_bytes());
    out.extend(point.y.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn node(last: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, last)
    }

    #[test]
    fn a_packet_that_goes_around_is_written_as_above() {
        let around = PerimeterState {
            entered: Point { x: 2, y: -1 },
            face: Point { x: 3, y: 4 },
            first_edge: (node(1), node(2)),
        };
        let body = Body::Data { destination: Point { x: 1_000, y: 0 }, around: Some(around) };
        let header = Header { next: 6, sender: Point { x: 258, y: 5 }, body };
        let bytes = header.bytes();
        #[rustfmt::skip]
        assert_eq!(bytes, [
            3, 6, 0, 44,
            0, 0, 1, 2,  0, 0, 0, 5,
            0, 0, 3, 232,  0, 0, 0, 0,
            0, 0, 0, 2,  255, 255, 255, 255,
            0, 0, 0, 3,  0, 0, 0, 4,
            10, 0, 0, 1,  10, 0, 0, 2,
        ]);
        assert_eq!(Header::parse(&bytes), Ok((header, 44)));
    }

    #[test]
    fn kinds_and_lengths_that_lie_are_malformed() {
        let beacon = Header { next: NOTHING, sender: Point::default(), body: Body::Beacon }.bytes();
        assert_eq!(beacon.len(), 12);
        assert!(Header::parse(&beacon).is_ok());
        assert_eq!(Header::parse(&beacon[..11]), Err(MalformedHeader));
        let with = |at: usize, byte: u8| {
            let mut bytes = beacon.clone();
            bytes[at] = byte;
            Header::parse(&bytes)
        };
        assert_eq!(with(0, 9), Err(MalformedHeader));
        assert_eq!(with(0, 2), Err(MalformedHeader), "too short for what it says it is");
        assert_eq!(with(3, 11), Err(MalformedHeader));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn no_bytes_make_the_reader_panic_and_what_it_reads_is_written_the_same(
            kind in 0_u8..5,
            len in 0_u8..60,
            rest in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            let bytes = [&[kind, 6, 0, len][..], &rest].concat();
            if let Ok((header, read)) = Header::parse(&bytes) {
                prop_assert_eq!(&header.bytes(), &bytes[..read]);
            }
        }
    }
}

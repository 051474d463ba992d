//! PROXY protocol, version 2 (haproxy's proxy-protocol.txt, §2.2): the addresses of a connection, before its data.
//!
//! A node tells the other one who opens a connection, and where to. The other answers in the same format when its
//! connection stands, with the addresses of that one. A value of our own carries the hop limit and the DSCP. A sender
//! without that value is no node of ours, and is refused.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::{AsyncRead, AsyncReadExt};

const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Version 2, and the command PROXY.
const PROXY: u8 = 0x21;
const TCP4: u8 = 0x11;
const TCP6: u8 = 0x21;
/// Signature, command, family, and the length of the rest.
const FIXED: usize = 16;
/// The rest of a header of ours has less than 50 bytes. Others may add values of their own.
const LONGEST_REST: usize = 512;
/// No header is longer.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) const LONGEST: usize = FIXED + LONGEST_REST;
/// Our value, of the range for private use: version, hop limit, DSCP.
const OURS: u8 = 0xe7;
const VERSION: u8 = 1;

/// The addresses of a connection as its host knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    /// The hops that packets of the connection may still go.
    pub(crate) hop_limit: u8,
    pub(crate) dscp: u8,
}

/// Why a header is refused.
#[derive(Debug)]
pub(crate) enum BadHeader {
    /// It is no header of a node of ours.
    Malformed,
    Ended(io::Error),
}

impl Told {
    /// The bytes, if both addresses are of one version of IP.
    pub(crate) fn bytes(&self) -> Option<Vec<u8>> {
        let (family, addresses) = match (self.from.ip(), self.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => (TCP4, [from.octets(), to.octets()].concat()),
            (IpAddr::V6(from), IpAddr::V6(to)) => (TCP6, [from.octets(), to.octets()].concat()),
            _ => return None,
        };
        let ours = [OURS, 0, 3, VERSION, self.hop_limit, self.dscp];
        let ports = [self.from.port().to_be_bytes(), self.to.port().to_be_bytes()].concat();
        let rest = [&addresses[..], &ports, &ours].concat();
        let len = u16::try_from(rest.len()).ok()?.to_be_bytes();
        Some([&SIGNATURE[..], &[PROXY, family], &len, &rest].concat())
    }

    /// Reads a header, and no byte after it.
    pub(crate) async fn read(from: &mut (impl AsyncRead + Unpin)) -> Result<Told, BadHeader> {
        let mut fixed = [0; FIXED];
        from.read_exact(&mut fixed).await.map_err(BadHeader::Ended)?;
        let (family, len) = fixed_part(&fixed).ok_or(BadHeader::Malformed)?;
        let mut rest = vec![0; len];
        from.read_exact(&mut rest).await.map_err(BadHeader::Ended)?;
        told(family, &rest).ok_or(BadHeader::Malformed)
    }
}

/// The family and the length of the rest.
fn fixed_part(fixed: &[u8; FIXED]) -> Option<(u8, usize)> {
    let [signature @ .., command, family, high, low] = fixed;
    let len = usize::from(u16::from_be_bytes([*high, *low]));
    let is_ours = *signature == SIGNATURE && *command == PROXY && len <= LONGEST_REST;
    is_ours.then_some((*family, len))
}

fn told(family: u8, rest: &[u8]) -> Option<Told> {
    let (from, to, rest) = match family {
        TCP4 => {
            let (from, rest) = rest.split_first_chunk::<4>()?;
            let (to, rest) = rest.split_first_chunk::<4>()?;
            (IpAddr::V4(Ipv4Addr::from(*from)), IpAddr::V4(Ipv4Addr::from(*to)), rest)
        }
        TCP6 => {
            let (from, rest) = rest.split_first_chunk::<16>()?;
            let (to, rest) = rest.split_first_chunk::<16>()?;
            (IpAddr::V6(Ipv6Addr::from(*from)), IpAddr::V6(Ipv6Addr::from(*to)), rest)
        }
        _ => return None,
    };
    let (from_port, rest) = rest.split_first_chunk::<2>()?;
    let (to_port, values) = rest.split_first_chunk::<2>()?;
    let [VERSION, hop_limit, dscp, ..] = *ours(values)? else { return None };
    let from = SocketAddr::new(from, u16::from_be_bytes(*from_port));
    let to = SocketAddr::new(to, u16::from_be_bytes(*to_port));
    let is_whole = from.port() != 0 && to.port() != 0 && dscp < 64;
    is_whole.then_some(Told { from, to, hop_limit, dscp })
}

/// Our value among the others; all have to be whole.
fn ours(mut values: &[u8]) -> Option<&[u8]> {
    let mut found = None;
    while let Some(([kind, high, low], rest)) = values.split_first_chunk::<3>() {
        let (value, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([*high, *low])))?;
        if *kind == OURS {
            found = Some(value);
        }
        values = rest;
    }
    found.filter(|_| values.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(from: &str, to: &str) -> Told {
        let at = |text: &str| text.parse().expect("an address");
        Told { from: at(from), to: at(to), hop_limit: 56, dscp: 46 }
    }

    fn read(mut bytes: &[u8]) -> (Result<Told, BadHeader>, usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts");
        let told = runtime.block_on(Told::read(&mut bytes));
        (told, bytes.len())
    }

    /// The bytes by the specification, not by our writer.
    #[test]
    fn a_header_has_the_bytes_of_the_specification_and_is_read_as_it_was_written() {
        let four = of("10.1.0.2:40000", "10.2.0.2:80");
        let wanted = [
            &b"\x0d\x0a\x0d\x0a\x00\x0d\x0a\x51\x55\x49\x54\x0a\x21\x11\x00\x12"[..],
            &[10, 1, 0, 2, 10, 2, 0, 2, 0x9c, 0x40, 0, 80, 0xe7, 0, 3, 1, 56, 46],
        ];
        assert_eq!(four.bytes().expect("one version"), wanted.concat());
        for told in [four, of("[fd01::2]:40000", "[fd02::2]:443")] {
            let bytes = [&told.bytes().expect("one version")[..], b"data"].concat();
            let (read, left) = read(&bytes);
            assert_eq!((read.expect("it is ours"), left), (told, 4));
        }
        assert!(of("10.1.0.2:1", "[fd02::2]:2").bytes().is_none());
    }

    #[test]
    fn what_is_no_header_of_a_node_is_refused() {
        let whole = of("10.1.0.2:40000", "10.2.0.2:80").bytes().expect("one version");
        let changed = |at: usize, to: u8| {
            let mut bytes = whole.clone();
            bytes[at] = to;
            [bytes, vec![0; 600]].concat()
        };
        // Signature, LOCAL, UDP, a long rest, no destination port, no value of ours, its version, its DSCP.
        for (at, to) in
            [(0, b'G'), (12, 0x20), (13, 0x12), (14, 9), (27, 0), (28, 0xe8), (31, 2), (33, 64), (30, 9)]
        {
            let refused = read(&changed(at, to)).0;
            assert!(matches!(refused, Err(BadHeader::Malformed)), "{at}: {refused:?}");
        }
        for len in 0..whole.len() {
            assert!(matches!(read(&whole[..len]).0, Err(BadHeader::Ended(_))), "{len}");
        }
        assert!(matches!(read(b"GET / HTTP/1.1\r\n\r\n").0, Err(BadHeader::Malformed)));
    }

    #[test]
    fn values_of_others_are_skipped() {
        let told = of("10.1.0.2:40000", "10.2.0.2:80");
        let mut bytes = told.bytes().expect("one version");
        bytes.extend([0x04, 0, 2, 7, 7]);
        bytes[15] += 5;
        assert_eq!(read(&bytes).0.expect("it is ours"), told);
    }
}

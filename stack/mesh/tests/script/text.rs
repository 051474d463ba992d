//! The notation of AODV's messages in scripts:
//!
//! - `RREQ n3>n9 id 7 seq 5 asks 4 hops 1 ttl 10 G D`: n3 requests a route to n9, whose number 4 it knows (`?`: none)
//! - `RREP n9>n3 seq 5 hops 2 life 6000 A`: the route to n9, for n3
//! - `HELLO n2 seq 5 life 2000`, `RERR n9 5, n8 6 N`, `RREP-ACK`

use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::Cast;
use hopwise_mesh::aodv::messages::{AodvMessage, Rerr, Rrep, Rreq};

/// A received message.
pub(crate) struct Heard {
    pub(crate) message: AodvMessage,
    pub(crate) ttl: u8,
    pub(crate) cast: Cast,
}

pub(crate) fn node(name: &str) -> Ipv4Addr {
    let number = name.strip_prefix('n').and_then(|number| number.parse().ok());
    Ipv4Addr::new(10, 0, 0, number.unwrap_or_else(|| panic!("`{name}` is no node")))
}

pub(crate) fn name(address: Ipv4Addr) -> String {
    format!("n{}", address.octets()[3])
}

pub(crate) fn time(text: &str) -> Duration {
    let (number, unit) = text.split_at(text.find(char::is_alphabetic).unwrap_or(text.len()));
    let number: u64 = number.parse().unwrap_or_else(|_| panic!("`{text}` is no time"));
    match unit {
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        _ => panic!("`{text}` is no time"),
    }
}

fn ends(text: &str) -> (Ipv4Addr, Ipv4Addr) {
    let (first, second) = text.split_once('>').unwrap_or_else(|| panic!("`{text}`: expected n3>n9"));
    (node(first), node(second))
}

/// The word after `key`.
fn after<'a>(words: &[&'a str], key: &str) -> &'a str {
    let at = words.iter().position(|word| *word == key).unwrap_or_else(|| panic!("no `{key}` in {words:?}"));
    words[at + 1]
}

fn number<T: std::str::FromStr>(words: &[&str], key: &str) -> T {
    after(words, key).parse().unwrap_or_else(|_| panic!("`{key}` in {words:?}"))
}

pub(crate) fn read(text: &str) -> Heard {
    let words: Vec<_> = text.split(' ').collect();
    let has = |flag: &str| words.contains(&flag);
    match words[0] {
        "RREQ" => {
            let (origin, dst) = ends(words[1]);
            let message = AodvMessage::Rreq(Rreq {
                is_join: false,
                is_repair: false,
                is_gratuitous: has("G"),
                is_destination_only: has("D"),
                hop_count: number(&words, "hops"),
                id: number(&words, "id"),
                dst,
                dst_seq: after(&words, "asks").parse().ok(),
                origin,
                origin_seq: number(&words, "seq"),
            });
            Heard { message, ttl: number(&words, "ttl"), cast: Cast::ToAll }
        }
        "RREP" => {
            let (dst, origin) = ends(words[1]);
            Heard { message: rrep(&words, dst, origin, number(&words, "hops")), ttl: 1, cast: Cast::ToUs }
        }
        "HELLO" => {
            let from = node(words[1]);
            Heard { message: rrep(&words, from, from, 0), ttl: 1, cast: Cast::ToAll }
        }
        "RERR" => {
            let listed = text["RERR ".len()..].trim_end_matches(" N").split(", ");
            let of = |pair: &str| {
                let (dst, seq) = pair.split_once(' ').unwrap_or_else(|| panic!("`{pair}`: expected n9 5"));
                (node(dst), seq.parse().unwrap_or_else(|_| panic!("`{pair}`")))
            };
            let rerr = Rerr { is_no_delete: has("N"), unreachable: listed.map(of).collect() };
            Heard { message: AodvMessage::Rerr(rerr), ttl: 1, cast: Cast::ToUs }
        }
        "RREP-ACK" => Heard { message: AodvMessage::RrepAck, ttl: 1, cast: Cast::ToUs },
        other => panic!("no message `{other}`"),
    }
}

fn rrep(words: &[&str], dst: Ipv4Addr, origin: Ipv4Addr, hop_count: u8) -> AodvMessage {
    AodvMessage::Rrep(Rrep {
        is_repair: false,
        wants_ack: words.contains(&"A"),
        prefix_size: 0,
        hop_count,
        dst,
        dst_seq: number(words, "seq"),
        origin,
        lifetime_ms: number(words, "life"),
    })
}

pub(crate) fn print(message: &AodvMessage, ttl: u8) -> String {
    let flags = |flags: &[(bool, &str)]| {
        flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| format!(" {flag}")).collect::<String>()
    };
    match message {
        AodvMessage::Rreq(rreq) => format!(
            "RREQ {}>{} id {} seq {} asks {} hops {} ttl {ttl}{}",
            name(rreq.origin),
            name(rreq.dst),
            rreq.id,
            rreq.origin_seq,
            rreq.dst_seq.map_or("?".to_owned(), |seq| seq.to_string()),
            rreq.hop_count,
            flags(&[(rreq.is_gratuitous, "G"), (rreq.is_destination_only, "D")])
        ),
        AodvMessage::Rrep(rrep) if rrep.dst == rrep.origin => {
            format!("HELLO {} seq {} life {}", name(rrep.dst), rrep.dst_seq, rrep.lifetime_ms)
        }
        AodvMessage::Rrep(rrep) => format!(
            "RREP {}>{} seq {} hops {} life {}{}",
            name(rrep.dst),
            name(rrep.origin),
            rrep.dst_seq,
            rrep.hop_count,
            rrep.lifetime_ms,
            flags(&[(rrep.wants_ack, "A")])
        ),
        AodvMessage::Rerr(rerr) => {
            let listed = rerr.unreachable.iter().map(|(dst, seq)| format!("{} {seq}", name(*dst)));
            format!("RERR {}{}", listed.collect::<Vec<_>>().join(", "), flags(&[(rerr.is_no_delete, "N")]))
        }
        AodvMessage::RrepAck => "RREP-ACK".to_owned(),
    }
}

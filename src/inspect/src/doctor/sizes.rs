//! Packets of two sizes to each neighbour of a radio: some drivers lose the large ones alone.

use std::process::Command;

use super::finding::Finding;
use super::interfaces::InterfaceFacts;
use super::{System, faults};

/// Neighbours that are asked; further ones are left out.
const ASKED: usize = 3;
/// Pings of each size.
const PINGS: u32 = 3;
/// The headers of an echo request over IPv4.
const HEADERS: u32 = 28;
const SMALL: u32 = 64;
/// The flag of a neighbour whose Ethernet address is known (ATF_COM), in /proc/net/arp.
const COMPLETE: &str = "0x2";
/// A size that most drivers carry.
const SAFE_MTU: &str = "1400";

pub(super) fn examine(system: &System, facts: &InterfaceFacts) -> Vec<Finding> {
    let InterfaceFacts { name, mtu: Some(mtu), .. } = facts else { return Vec::new() };
    let finding = |neighbour: String| {
        let small = answered(name, &neighbour, SMALL);
        let large = small.filter(|answers| *answers > 0).and_then(|_| answered(name, &neighbour, *mtu));
        judged(name, &neighbour, *mtu, (small, large))
    };
    neighbours(system, name).into_iter().take(ASKED).map(finding).collect()
}

/// The neighbours of an interface.
pub(super) fn neighbours(system: &System, name: &str) -> Vec<String> {
    let rows = system.read("proc/net/arp").unwrap_or_default();
    let address = |row: &str| match row.split_whitespace().collect::<Vec<_>>()[..] {
        [address, _, COMPLETE, _, _, device] if device == name => Some(address.to_owned()),
        _ => None,
    };
    rows.lines().filter_map(address).collect()
}

/// The number of answers; none if `ping` cannot be run, or does not tell it.
fn answered(name: &str, neighbour: &str, size: u32) -> Option<u32> {
    let (count, bytes) = (PINGS.to_string(), size.saturating_sub(HEADERS).to_string());
    let words =
        ["-n", "-q", "-c", &count, "-i", "0.2", "-W", "1", "-M", "do", "-s", &bytes, "-I", name, neighbour];
    received(&String::from_utf8_lossy(&Command::new("ping").args(words).output().ok()?.stdout))
}

/// The answers in what `ping` said: `3 packets transmitted, 2 received, 33% packet loss`.
pub(super) fn received(said: &str) -> Option<u32> {
    said.split(", ").find_map(|part| part.strip_suffix(" received")?.parse().ok())
}

/// The finding by the answers to small packets and to large ones.
pub(super) fn judged(name: &str, to: &str, mtu: u32, answers: (Option<u32>, Option<u32>)) -> Finding {
    match answers {
        (Some(PINGS), Some(0)) => faults::LARGE_VANISH
            .found(format!("{name}: {to} answers packets of {SMALL} bytes, and none of {mtu}, expected both"))
            .with("IF", name)
            .with("MTU", SAFE_MTU),
        (Some(_), Some(large)) if large > 0 => {
            faults::LARGE_VANISH.ok(format!("{name}: {to} answers packets of {SMALL} and of {mtu} bytes"))
        }
        _ => faults::LARGE_VANISH.skipped(format!("{name}: too few answers of {to} to pings")),
    }
}

//! Changes of a device on loan, as lines of a file on disk: what a killed daemon has left.
//!
//! A daemon's user may write such a file without any rights, and root reads it. At worst it takes down a TUN device
//! that no program has open, sets its MTU, queue and `keep_addr_on_down`, and removes its addresses and routes.

use std::fmt;

use hopwise_core::ip::Prefix;

/// The numbers that an MTU may have, as the kernel allows them for a TUN device.
const MTUS: std::ops::RangeInclusive<u32> = 68..=65_535;
/// The values of `keep_addr_on_down`.
const KEEPS: [&str; 3] = ["-1", "0", "1"];

/// One change, with the old value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Set {
    /// It was down.
    Up,
    Mtu {
        before: u32,
        after: u32,
    },
    Queue {
        before: u32,
        after: u32,
    },
    Keeps {
        before: String,
        after: String,
    },
    Address(Prefix),
    Route(Prefix),
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Set::Up => write!(f, "up"),
            Set::Mtu { before, after } => write!(f, "mtu {before} {after}"),
            Set::Queue { before, after } => write!(f, "queue {before} {after}"),
            Set::Keeps { before, after } => write!(f, "keeps {before} {after}"),
            Set::Address(address) => write!(f, "address {address}"),
            Set::Route(route) => write!(f, "route {route}"),
        }
    }
}

impl Set {
    /// Reads a line; `None` for one that no daemon of ours wrote.
    fn read(line: &str) -> Option<Set> {
        let words: Vec<_> = line.split(' ').collect();
        let number = |word: &str| word.parse::<u32>().ok();
        match words[..] {
            ["up"] => Some(Set::Up),
            ["mtu", before, after] => {
                let (before, after) = (number(before)?, number(after)?);
                MTUS.contains(&before).then_some(Set::Mtu { before, after })
            }
            ["queue", before, after] => Some(Set::Queue { before: number(before)?, after: number(after)? }),
            ["keeps", before, after] if [before, after].iter().all(|value| KEEPS.contains(value)) => {
                Some(Set::Keeps { before: before.to_owned(), after: after.to_owned() })
            }
            ["address", address] => Some(Set::Address(address.parse().ok()?)),
            ["route", route] => Some(Set::Route(route.parse().ok()?)),
            _ => None,
        }
    }
}

/// The changes of the device with that number.
pub(super) fn text(index: u32, changes: &[Set]) -> String {
    changes.iter().fold(format!("device {index}\n"), |text, change| format!("{text}{change}\n"))
}

/// The device's number, and its changes. `None` if no daemon of ours wrote the first line.
pub(super) fn read(lines: &[String]) -> Option<(u32, Vec<Set>)> {
    let (first, others) = lines.split_first()?;
    let index = first.strip_prefix("device ")?.parse().ok()?;
    Some((index, others.iter().filter_map(|line| Set::read(line)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_come_back_from_their_text_and_other_lines_are_passed_over() {
        let prefix = |text: &str| text.parse().expect("a prefix");
        let changes = [
            Set::Up,
            Set::Mtu { before: 1400, after: 1500 },
            Set::Queue { before: 500, after: 8192 },
            Set::Keeps { before: "0".into(), after: "1".into() },
            Set::Address(prefix("10.7.0.1/24")),
            Set::Route(prefix("fd07::/64")),
        ];
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let written = text(7, &changes);
        assert_eq!(read(&lines(&written)), Some((7, changes.to_vec())));
        for line in
            ["mtu 0 1500", "mtu 1400", "keeps ../x 1", "keeps 0 1-\r\r", "address 10.7.0.1/33", "mac 2 1", ""]
        {
            let with = format!("{written}{line}\n");
            assert_eq!(read(&lines(&with)), Some((7, changes.to_vec())), "{line}");
        }
        assert_eq!(read(&lines("up\n")), None, "it names no device");
        assert_eq!(read(&[]), None);
    }
}

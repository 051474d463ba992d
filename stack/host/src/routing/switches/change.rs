//! A change of one switch, and its line in the file of old values. The line ends with the number of the switch's
//! device, where it has one. Files of older daemons have no such numbers.
//!
//! A daemon's user may write such a file without any rights, and root reads it. It names only switches that we change,
//! with values that we give them. At worst it turns `forwarding` off, turns `accept_redirects` of single interfaces on,
//! turns `tcp_early_demux` on, and raises `send_redirects` or `rp_filter`, where 2 is loose. It lowers these two only
//! where `all` has as much, which counts as well. A file of any other user is refused.

use crate::netlink;

/// One switch that was changed, or that another daemon had already changed to this value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SwitchChange {
    pub(super) key: String,
    pub(super) before: String,
    pub(super) after: String,
    /// The number of its device, which may get another name.
    pub(super) device: Option<u32>,
}

impl SwitchChange {
    pub(super) fn new(key: &str, before: String, after: &str) -> SwitchChange {
        let device = interface(key).and_then(|name| netlink::index_of(name).ok());
        SwitchChange { key: key.to_owned(), before, after: after.to_owned(), device }
    }

    /// True while its device is there, under any name.
    pub(super) fn has_device(&self) -> bool {
        self.device.is_some_and(|device| netlink::name_of(device).is_ok())
    }

    /// The switch's key by now.
    pub(super) fn place(&self) -> String {
        let name = self.device.and_then(|device| netlink::name_of(device).ok());
        match (name, parts(&self.key)) {
            (Some(name), Some((_, switch))) => format!("ipv4/conf/{name}/{switch}"),
            _ => self.key.clone(),
        }
    }

    pub(super) fn line(&self) -> String {
        let device = self.device.map_or(String::new(), |device| format!(" {device}"));
        format!("{} {} {}{device}\n", self.key, self.before, self.after)
    }

    /// A switch that the kernel combines with the switch of `all`, and that was raised to its value.
    pub(super) fn raised(&self) -> Option<(String, u8)> {
        let (before, after) = (self.before.parse().ok()?, self.after.parse::<u8>().ok()?);
        let (interface, switch) = parts(&self.key)?;
        let is_raised =
            after > before && interface != "all" && ["rp_filter", "send_redirects"].contains(&switch);
        is_raised.then(|| (format!("ipv4/conf/all/{switch}"), after))
    }
}

/// Interface and switch of a key such as `ipv4/conf/wlan0/forwarding`.
fn parts(key: &str) -> Option<(&str, &str)> {
    key.strip_prefix("ipv4/conf/")?.split_once('/').filter(|(_, switch)| !switch.contains('/'))
}

pub(super) fn interface(key: &str) -> Option<&str> {
    Some(parts(key)?.0)
}

/// The changes of a file's lines.
pub(super) fn read(lines: &[String]) -> Vec<SwitchChange> {
    let changes: Vec<_> = lines.iter().filter_map(|line| read_change(line)).collect();
    let others = lines.len() - changes.len();
    if others > 0 {
        tracing::warn!(lines = others, "a file of old switches names some that no daemon changes: they stay");
    }
    changes
}

/// Reads a change; `None` for a line that no daemon of ours wrote. A value that the kernel's documents do not list is
/// restored by an orderly end alone.
pub(super) fn read_change(line: &str) -> Option<SwitchChange> {
    let mut words = line.split(' ').map(str::to_owned);
    let (key, before, after) = (words.next()?, words.next()?, words.next()?);
    let change = SwitchChange { key, before, after, device: words.next().and_then(|word| word.parse().ok()) };
    let (before, after) = (value(&change.before)?, value(&change.after)?);
    let is_ours = match parts(&change.key) {
        Some(("" | "." | "..", _)) => false,
        Some((interface, switch)) => is_made(interface, switch, before, after),
        None => change.key == "ipv4/tcp_early_demux" && before <= 1 && after == 0,
    };
    is_ours.then_some(change)
}

/// Returns whether a daemon of ours makes this change.
fn is_made(interface: &str, switch: &str, before: u8, after: u8) -> bool {
    let is_one = !matches!(interface, "all" | "default");
    let (largest, is_ours) = match switch {
        "forwarding" => (1, is_one && after == 1),
        "accept_redirects" => (1, is_one && after == 0),
        // Interfaces are lowered, or raised to what `all` had.
        "send_redirects" => (1, interface != "all" || after == 0),
        "rp_filter" => (2, interface != "all" || after == 0),
        _ => return false,
    };
    is_ours && before.max(after) <= largest
}

/// A value as the kernel writes it.
fn value(text: &str) -> Option<u8> {
    text.parse().ok().filter(|value: &u8| value.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_number_of_its_device_where_it_is_known() {
        let device = |line| read_change(line).expect("a change").device;
        assert_eq!(device("ipv4/conf/wlan0/rp_filter 2 0"), None);
        assert_eq!(device("ipv4/conf/wlan0/rp_filter 2 0 7"), Some(7));
        let change = read_change("ipv4/conf/before/rp_filter 2 0 1").expect("a change");
        assert_eq!(change.place(), "ipv4/conf/lo/rp_filter", "device 1 is the loopback");
        assert_eq!(interface("ipv4/conf/wlan0/rp_filter"), Some("wlan0"));
        let change = read_change("ipv4/conf/conf/rp_filter 2 0 1").expect("a change");
        assert_eq!(change.place(), "ipv4/conf/lo/rp_filter");
    }

    #[test]
    fn lines_that_name_no_switch_are_passed_over() {
        for line in [
            "wlan0/rp_filter 2 0",
            "wlan0/rp_filter 0 2",
            "wlan0/forwarding 0 1",
            "wlan0/accept_redirects 1 0",
            "wlan0/send_redirects 0 1",
            "all/send_redirects 1 0",
            "all/rp_filter 2 0",
            "default/rp_filter 0 1 7",
            "br-lan.7/rp_filter 0 1 9",
        ] {
            assert!(read_change(&format!("ipv4/conf/{line}")).is_some(), "{line}");
        }
        for (line, is_ours) in [("1 0", true), ("0 0", true), ("0 1", false), ("2 0", false)] {
            assert_eq!(read_change(&format!("ipv4/tcp_early_demux {line}")).is_some(), is_ours, "{line}");
        }
        for line in [
            "../ip_forward 1 0",
            "../rp_filter 1 0",
            "./rp_filter 1 0",
            "/rp_filter 1 0",
            "a/../all/rp_filter 0 1",
            "a/b x 0",
            "a/b 1",
            "a/rp_filter 1",
            // Switches that no daemon changes.
            "all/accept_source_route 1 0",
            "all/bootp_relay 1 0",
            "wlan0/proxy_arp 1 0",
            // Values that they do not have.
            "wlan0/rp_filter 3 0",
            "wlan0/forwarding 2 1",
            "wlan0/send_redirects +1 0",
            "wlan0/rp_filter 01 0",
            // Changes that no daemon makes.
            "wlan0/forwarding 1 0",
            "all/forwarding 0 1",
            "default/forwarding 0 1",
            "all/accept_redirects 1 0",
            "wlan0/accept_redirects 0 1",
            "all/rp_filter 0 1",
        ] {
            assert_eq!(read_change(&format!("ipv4/conf/{line}")), None, "{line}");
        }
        assert_eq!(read_change("core/x 1 0"), None);
        assert_eq!(read_change("ipv6/conf/wlan0/forwarding 0 1"), None);
    }
}

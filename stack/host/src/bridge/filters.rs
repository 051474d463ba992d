//! Finds tables of nft that filter bridged frames, or frames that come in on a bridge's ports.

use std::collections::BTreeSet;
use std::io;

use crate::firewall::OURS;
use crate::nft::ruleset;

/// The administrator's tables for bridged frames, and for these devices, by their families and names.
pub(super) fn beside(devices: &[&str]) -> io::Result<Vec<String>> {
    let (bridge, netdev) = (ruleset(Some("bridge"))?, ruleset(Some("netdev"))?);
    let of_bridge = tables(&bridge, |chain| chain.contains(" hook "));
    let on_devices = tables(&netdev, |chain| {
        // nft quotes a single device, and none of several.
        let mut words = chain.split(|letter: char| letter.is_whitespace() || "\",{}".contains(letter));
        chain.contains(" hook ") && words.any(|word| devices.contains(&word))
    });
    Ok(of_bridge.into_iter().chain(on_devices).collect())
}

/// The tables with a wanted line, in a listing of nft.
fn tables(listed: &str, is_wanted: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let (mut found, mut table) = (BTreeSet::new(), "");
    for line in listed.lines() {
        if let Some(name) = line.strip_prefix("table ") {
            table = name.split(" {").next().unwrap_or(name);
        } else if is_wanted(line) && !table.contains(OURS) {
            found.insert(table.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "\
table netdev f {
\tchain c {
\t\ttype filter hook ingress device \"radio\" priority 10; policy accept;
\t\tip protocol tcp drop
\t}
}
table netdev hopwise_bridge_wire { # progname nft
\tchain wire {
\t\ttype filter hook ingress device \"wire\" priority filter; policy accept;
\t}
}
table bridge without_a_hook {
\tchain c {
\t}
}
";

    #[test]
    fn a_table_counts_by_its_hook_and_ours_does_not() {
        assert_eq!(tables(LISTED, |line| line.contains(" hook ")), BTreeSet::from(["netdev f".to_owned()]));
        assert!(tables(LISTED, |line| line.contains("\"lan\"")).is_empty());
    }
}

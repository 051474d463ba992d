//! Checks of links: names, sizes, and keys that a kind of link does not have.

use std::collections::BTreeMap;

use hopwise_daemon::check_interface;
use hopwise_lab::located::{Checked, Document, YamlPath};

use crate::config::{Link, LinkKind, NodeConfig};

/// RFC 8200 requires every host to accept this size.
const SMALLEST_MTU_V6: u16 = 1280;

pub(super) fn all(document: &Document, config: &NodeConfig) -> Checked {
    let at = YamlPath::root().key("links");
    let mut names = BTreeMap::new();
    for (nth, link) in config.links.iter().enumerate() {
        let at = at.index(nth);
        if let Some(first) = names.insert(&link.name, nth) {
            let problem = format!("the name `{}` is links.{first}'s already", link.name);
            return Err(document.refuse(&at.key("name"), problem, "a name of its own for each link"));
        }
        one_link(document, config, &at, link)?;
    }
    Ok(())
}

fn one_link(document: &Document, config: &NodeConfig, at: &YamlPath, link: &Link) -> Checked {
    check_interface(document, &at.key("name"), &link.name)?;
    let is_tun = matches!(link.kind, LinkKind::Tun | LinkKind::TunFast);
    if !link.kernel.is_empty() && !is_tun {
        let problem = "`kernel` is the kernel's address on its end of a TUN, which this link is not";
        return Err(document.refuse_key(&at.key("kernel"), problem, "kind: tun or tun-fast, or no `kernel`"));
    }
    if link.mtu.is_some() && !is_tun {
        let problem = "an interface brings its own MTU";
        return Err(document.refuse_key(&at.key("mtu"), problem, "kind: tun or tun-fast, or no `mtu`"));
    }
    if link.offload.is_some() && is_tun {
        let problem = "the kind of a TUN decides about offload";
        return Err(document.refuse_key(
            &at.key("offload"),
            problem,
            "kind: tun-fast for offload, tun for none",
        ));
    }
    queues(document, config, at, link)?;
    captures(document, at, link)?;
    let of_link = if link.address.is_empty() { &config.node.address } else { &link.address };
    let has_v6 = of_link.iter().any(|address| address.0.address().is_ipv6());
    if let Some(mtu) = link.mtu.filter(|mtu| has_v6 && *mtu < SMALLEST_MTU_V6) {
        let problem = format!("{mtu} is too small for IPv6");
        return Err(document.refuse(&at.key("mtu"), problem, &format!("{SMALLEST_MTU_V6} or more")));
    }
    Ok(())
}

/// Checks `queues`. Shards share nothing, so that a link with one queue could belong to one shard only.
fn queues(document: &Document, config: &NodeConfig, at: &YamlPath, link: &Link) -> Checked {
    let Some(queues) = link.queues else { return Ok(()) };
    let at = at.key("queues");
    if link.kind != LinkKind::TunFast {
        let problem = "only a TUN with offload has several queues";
        return Err(document.refuse_key(&at, problem, "kind: tun-fast, or no `queues`"));
    }
    if queues > 1 && config.links.len() > 1 {
        let problem = "only the first queue could use the other links";
        return Err(document.refuse_key(&at, problem, "no `queues` beside other links"));
    }
    Ok(())
}

/// Checks the keys of capture links.
fn captures(document: &Document, at: &YamlPath, link: &Link) -> Checked {
    let is_capture = matches!(link.kind, LinkKind::Pcap | LinkKind::Replay);
    if is_capture && !cfg!(feature = "pcap") {
        let accepted = "tun, tun-fast or raw, or a build with --features pcap";
        return Err(document.refuse(&at.key("kind"), "this build is without libpcap", accepted));
    }
    let plays = link.kind == LinkKind::Replay;
    let refuse_key =
        |key: &str, problem: &str, accepted: &str| Err(document.refuse_key(&at.key(key), problem, accepted));
    if link.filter.is_some() && link.kind != LinkKind::Pcap {
        return refuse_key("filter", "only a live capture takes a filter", "kind: pcap, or no `filter`");
    }
    if link.file.is_some() && !plays {
        return refuse_key("file", "only a replay has a file", "kind: replay, or no `file`");
    }
    if link.pace.is_some() && !plays {
        return refuse_key("pace", "only a replay has a pace", "kind: replay, or no `pace`");
    }
    if link.checksums.is_some() && !is_capture {
        return refuse_key(
            "checksums",
            "only captures may lack checksums",
            "kind: pcap or replay, or no `checksums`",
        );
    }
    if plays && link.file.is_none() {
        return Err(document.refuse(at, "a replay needs a file", "file: a capture, such as run.pcap"));
    }
    if is_capture && link.offload.is_some() {
        return refuse_key("offload", "this link sends nothing", "no `offload` here");
    }
    Ok(())
}

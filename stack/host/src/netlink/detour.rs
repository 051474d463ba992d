//! Detours: TCP that a router forwards between two interfaces for some networks goes through two devices of ours, one a
//! direction. A table of nft marks the packets, and routing rules lead marked packets to tables of ours.
//!
//! The kernel removes a device's routes with the device, and the marks with our process. Packets then go their ordinary
//! route. A dropped detour also removes its rules. Rules of a killed process have a table without a route, and our
//! protocol number. The table of a device that is down has no route either: a name that the detour holds tells the two
//! apart.
//!
//! Routing rules cannot match the outgoing interface of a packet, but nft can. Connection tracking would see each
//! packet of a detour twice, and decide on its addresses before its outgoing interface is known. It is therefore
//! switched off on the radio's side, and sees each packet once, at the wire.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use futures_util::TryStreamExt;
use hopwise_core::ip::Prefix;
use netlink_packet_route::route::{RouteAttribute, RouteMessage};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use rtnetlink::{Error, Handle, IpVersion, RuleAddRequest};

use super::carrier::CarrierSocket;
use super::routes::{all_of, network_of, new_route};
use super::{BoundName, NetlinkError, NetlinkResult, OURS, blocking, index_of, kernel, names_with, way};
use crate::firewall::{Between, Ruleset};
use crate::nft::OwnedTable;
use crate::own_file::{NameLock, lock_name};

/// The kind in the names that detours hold.
const KIND: &str = "detour";

/// The address of a packet that lies in the networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DetourEnd {
    Source,
    Destination,
}

/// The interfaces, networks and devices of a detour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetourConfig {
    /// The two interfaces of the router.
    pub wire: String,
    /// The interface towards the mobiles.
    pub radio: String,
    /// The networks beyond the radio.
    pub networks: Vec<Prefix>,
    /// The devices for packets that come in by the wire, and by the radio.
    pub fixed: String,
    /// The device for packets that come in by the radio.
    pub mobile: String,
    /// The first of two tables that no other program uses, and the priority of the routing rules that lead there.
    pub table: u32,
}

/// Packets that come in on one interface, and the device that they go to.
struct DetourSide<'a> {
    from: &'a str,
    end: DetourEnd,
    to: &'a str,
    table: u32,
}

impl DetourConfig {
    fn sides(&self) -> [DetourSide<'_>; 2] {
        let DetourConfig { wire, radio, fixed, mobile, table, .. } = self;
        [
            DetourSide { from: wire, end: DetourEnd::Destination, to: fixed, table: *table },
            DetourSide { from: radio, end: DetourEnd::Source, to: mobile, table: *table + 1 },
        ]
    }
}

/// The route over a device that a table of ours has. The kernel removes it when the device goes down.
#[derive(Debug)]
struct DetourRoute {
    table: u32,
    is_v6: bool,
    device: String,
    index: u32,
}

/// Looks at our routes after news of a link. The kernel tells of a device that goes down before it removes the routes,
/// so that the first look may find them.
const LOOKS: u32 = 2;

/// Invariant 1: each rule here is one that this detour has made.
#[derive(Debug)]
pub struct Detour {
    rules: Vec<RuleMessage>,
    routes: Vec<DetourRoute>,
    /// News of a device that goes down. Without news no route is looked for: that can take a lock of the kernel's.
    news: CarrierSocket,
    looks: u32,
    /// The rules apply to marked packets alone.
    marks: Option<OwnedTable>,
    /// Names that mark the rules as in use. They go after the rules.
    _locks: Vec<NameLock>,
}

impl Detour {
    /// Adds marks, rules and routes. An error leaves none of them.
    pub fn open(config: &DetourConfig) -> NetlinkResult<Detour> {
        let sides = config.sides();
        let mut indices = Vec::new();
        for side in &sides {
            indices.push(index_of(side.to)?);
        }
        let news = CarrierSocket::listen();
        let news = news.map_err(|error| NetlinkError::System { doing: "listen for links", error })?;
        let mut detour =
            Detour { rules: Vec::new(), routes: Vec::new(), news, looks: 0, marks: None, _locks: Vec::new() };
        let Detour { rules: made, routes, _locks: locks, .. } = &mut detour;
        blocking(async move |handle| {
            for (side, index) in sides.iter().zip(&indices) {
                check_table(&handle, side.table, *index).await?;
            }
            for (side, index) in sides.iter().zip(indices) {
                locks.extend(lock(side));
                let families =
                    [false, true].map(|is_v6| config.networks.iter().any(|n| n.address().is_ipv6() == is_v6));
                for (is_v6, _) in [false, true].into_iter().zip(families).filter(|(_, is_used)| *is_used) {
                    route(&handle, index, is_v6, side.table).await?;
                    routes.push(DetourRoute { table: side.table, is_v6, device: side.to.to_owned(), index });
                }
                for network in &config.networks {
                    made.push(rule(&handle, side, config.table, network).await?);
                }
            }
            Ok(())
        })?;
        let marks = set(config)
            .map_err(|error| NetlinkError::System { doing: "mark packets for a detour", error })?;
        detour.marks = Some(marks);
        Ok(detour)
    }

    /// The part that leads packets here no longer. They go their ordinary way then.
    pub fn gap(&mut self) -> Option<String> {
        if !self.marks.as_mut().is_some_and(OwnedTable::stands) {
            return Some("nft has ended, which marks them".to_owned());
        }
        // News that cannot be read may be of our devices.
        if self.news.empty().unwrap_or(true) {
            self.looks = LOOKS;
        }
        let looks = self.looks.checked_sub(1)?;
        for DetourRoute { table, is_v6, device, index } in &self.routes {
            match way::leads_to(*table, *is_v6, *index) {
                Ok(true) => {}
                Ok(false) => {
                    return Some(format!(
                        "table {table} has no route over {device} any more: {device} is down, or was; start again \
                         with it up"
                    ));
                }
                // A kernel that does not answer is asked again.
                Err(_) => return None,
            }
        }
        self.looks = looks;
        None
    }
}

/// Takes the name that marks a side's rules as in use. The detour works without it.
fn lock(side: &DetourSide<'_>) -> Option<NameLock> {
    let lock = NameLock::of(KIND, &format!("{} {}", side.table, side.to));
    lock.inspect_err(|error| tracing::warn!(%error, "its rules may be taken for those of a killed one")).ok()
}

/// Refuses a table that has a route to another device.
pub(crate) async fn check_table(handle: &Handle, table: u32, index: u32) -> NetlinkResult {
    let is_others = |route: &RouteMessage| {
        table_of_route(route) == table && !route.attributes.contains(&RouteAttribute::Oif(index))
    };
    for version in [IpVersion::V4, IpVersion::V6] {
        if all_of(handle, version).await?.iter().any(is_others) {
            return Err(NetlinkError::TableTaken(table));
        }
    }
    Ok(())
}

/// The detours that lead packets now, by the rules that nft lists and by the names that detours hold.
pub fn detours(rules: &Ruleset) -> NetlinkResult<Vec<Between>> {
    let in_use = in_use()?;
    let between = |(table, wire, radio)| {
        let fixed = in_use.get(&table)?.clone();
        Some(Between { wire, radio, fixed })
    };
    Ok(listed(rules).filter_map(between).collect())
}

/// The devices of detours in use, by their tables. Any user can take such a name; the only effect is that rules without
/// a route stay.
fn in_use() -> NetlinkResult<BTreeMap<u32, String>> {
    let prefix = lock_name(KIND, "");
    let names = names_with(&prefix)
        .map_err(|error| NetlinkError::System { doing: "ask which detours are in use", error })?;
    let read = |BoundName { name, .. }: BoundName| {
        let (table, device) = name.strip_prefix(&prefix)?.split_once(' ')?;
        // A detour ends with its device.
        index_of(device).ok()?;
        Some((table.parse().ok()?, device.to_owned()))
    };
    Ok(names.into_iter().filter_map(read).collect())
}

async fn route(handle: &Handle, index: u32, is_v6: bool, table: u32) -> NetlinkResult {
    let everywhere: IpAddr = if is_v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let message = new_route(everywhere, 0, |route| route.output_interface(index).table_id(table))?;
    let request = handle.route().add(message).replace();
    request.execute().await.map_err(kernel("add a detour's route"))
}

/// Our rules whose table has no route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftRules {
    /// The rules that killed detours have left.
    rules: Vec<RuleMessage>,
    /// Devices of detours in use without a route, because they are or were down.
    pub of_devices: BTreeSet<String>,
}

impl LeftRules {
    /// The number of rules that killed detours have left.
    pub fn count(&self) -> usize {
        self.rules.len()
    }
}

/// Counts rules of killed detours, which lead packets nowhere.
pub fn left_rules() -> NetlinkResult<LeftRules> {
    blocking(async move |handle| left(&handle).await)
}

/// Removes the rules that killed detours have left, and returns their number.
pub fn remove_left_rules() -> NetlinkResult<usize> {
    let mut count = 0;
    let removed = &mut count;
    blocking(async move |handle| {
        for rule in left(&handle).await?.rules {
            handle.rule().del(rule).execute().await.map_err(kernel("remove a rule that was left"))?;
            *removed += 1;
        }
        Ok(())
    })?;
    Ok(count)
}

async fn left(handle: &Handle) -> NetlinkResult<LeftRules> {
    let mut left = LeftRules::default();
    let in_use = in_use()?;
    for version in [IpVersion::V4, IpVersion::V6] {
        let ours = rules_of_ours(handle, version.clone()).await?;
        if ours.is_empty() {
            continue;
        }
        let used: BTreeSet<u32> = all_of(handle, version).await?.iter().map(table_of_route).collect();
        for rule in ours {
            let Some(table) = table_of(&rule).filter(|table| !used.contains(table)) else { continue };
            match in_use.get(&table) {
                Some(device) => drop(left.of_devices.insert(device.clone())),
                None => left.rules.push(rule),
            }
        }
    }
    Ok(left)
}

/// The rules with our protocol number; a kernel without IPv6 has none for it.
pub(crate) async fn rules_of_ours(handle: &Handle, version: IpVersion) -> NetlinkResult<Vec<RuleMessage>> {
    let rules: Vec<_> = match handle.rule().get(version).execute().try_collect().await {
        Ok(rules) => rules,
        Err(Error::NetlinkError(message)) if message.raw_code().abs() == libc::EAFNOSUPPORT => Vec::new(),
        Err(error) => return Err(kernel("list the rules")(error)),
    };
    Ok(rules.into_iter().filter(is_ours).collect())
}

fn is_ours(rule: &RuleMessage) -> bool {
    rule.attributes.contains(&RuleAttribute::Protocol(OURS))
}

pub(crate) fn table_of(rule: &RuleMessage) -> Option<u32> {
    rule.attributes.iter().find_map(|attribute| match attribute {
        RuleAttribute::Table(table) => Some(*table),
        _ => None,
    })
}

/// The table of a route. Small numbers are in the header.
fn table_of_route(route: &RouteMessage) -> u32 {
    let large = route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Table(table) => Some(*table),
        _ => None,
    });
    large.unwrap_or(route.header.table.into())
}

async fn rule(
    handle: &Handle,
    side: &DetourSide<'_>,
    priority: u32,
    network: &Prefix,
) -> NetlinkResult<RuleMessage> {
    let mut request = handle
        .rule()
        .add()
        .input_interface(side.from)
        .table_id(side.table)
        .priority(priority)
        .fw_mark(MARK)
        .action(RuleAction::ToTable);
    let more = [RuleAttribute::FwMask(MARK), RuleAttribute::Protocol(OURS)];
    request.message_mut().attributes.extend(more);
    let bits = network.bits();
    let doing = format!("add a rule for {network}");
    match (network_of(network), side.end) {
        (IpAddr::V4(address), DetourEnd::Source) => {
            add_rule(request.v4().source_prefix(address, bits), &doing).await
        }
        (IpAddr::V4(address), DetourEnd::Destination) => {
            add_rule(request.v4().destination_prefix(address, bits), &doing).await
        }
        (IpAddr::V6(address), DetourEnd::Source) => {
            add_rule(request.v6().source_prefix(address, bits), &doing).await
        }
        (IpAddr::V6(address), DetourEnd::Destination) => {
            add_rule(request.v6().destination_prefix(address, bits), &doing).await
        }
    }
}

/// Adds a rule. One that exists was left by a killed process, since `check_table` refuses tables of other programs.
pub(crate) async fn add_rule<T>(mut request: RuleAddRequest<T>, doing: &str) -> NetlinkResult<RuleMessage> {
    let message = request.message_mut().clone();
    match request.execute().await {
        Err(Error::NetlinkError(told)) if told.raw_code().abs() == libc::EEXIST => Ok(message),
        made => made.map(|()| message).map_err(kernel(doing)),
    }
}

impl Drop for Detour {
    fn drop(&mut self) {
        drop(self.marks.take());
        let rules = std::mem::take(&mut self.rules);
        let taken_back = blocking(async move |handle| {
            for rule in rules {
                handle.rule().del(rule).execute().await.map_err(kernel("take a rule back"))?;
            }
            Ok(())
        });
        if let Err(error) = taken_back {
            tracing::warn!(%error, "a rule stays behind, and leads nowhere");
        }
    }
}

/// The bit of a packet's mark that the rules of detours match.
const MARK: u32 = 0x0800_0000;

/// The beginning of the family and the name of our nft table. The number of a table of routing follows.
const TABLE: &str = "inet hopwise_detour_";

fn set(config: &DetourConfig) -> io::Result<OwnedTable> {
    OwnedTable::set(&format!("{TABLE}{}", config.table), &chains(config))
}

/// The first tables of routing of the detours that nft lists, each with its wire and its radio.
fn listed(rules: &Ruleset) -> impl Iterator<Item = (u32, String, String)> {
    rules.chains().iter().filter_map(|chain| {
        let table = chain.table.strip_prefix(TABLE)?.parse().ok()?;
        let is_of_radio = |rule: &&String| rule.contains(" saddr ") && rule.contains(" mark set ");
        let mut names = chain.rules.iter().find(is_of_radio)?.split('"').skip(1).step_by(2);
        let (radio, wire) = (names.next()?, names.next()?);
        Some((table, wire.to_owned(), radio.to_owned()))
    })
}

fn chains(config: &DetourConfig) -> String {
    let DetourConfig { wire, radio, networks, mobile, .. } = config;
    let mut untracked = String::new();
    // A destination that the router rewrites is tracked from the mobile's own packets on: its connections pass.
    let mut marked = format!(
        "iifname \"{radio}\" ct status dnat return; \
         iifname \"{wire}\" ct direction reply ct status dnat return; "
    );
    for network in networks {
        // Writing to a String does not fail.
        let from = between(radio, "saddr", network, wire);
        let _ = write!(untracked, "{from} notrack; ");
        for passing in [from, between(wire, "daddr", network, radio)] {
            let _ = write!(marked, "{passing} meta mark set meta mark | {MARK:#x}; ");
        }
    }
    // Before connection tracking (-200), and after it has restored the addresses of replies (-100).
    format!(
        "chain untracked {{ type filter hook prerouting priority -300; policy accept; \
         iifname \"{mobile}\" notrack; {untracked}}}; \
         chain marked {{ type filter hook prerouting priority -99; policy accept; {marked}}}; "
    )
}

fn between(from: &str, end: &str, network: &Prefix, to: &str) -> String {
    let family = if network.address().is_ipv4() { "ip" } else { "ip6" };
    format!("iifname \"{from}\" meta l4proto tcp {family} {end} {network} fib daddr oifname \"{to}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_between_both_interfaces_is_marked_and_the_radio_s_side_is_untracked() {
        let networks = ["10.9.0.0/24", "fd09::/64"].map(|text| text.parse().expect("a prefix")).to_vec();
        let [wire, radio, fixed, mobile] = ["eth0", "wlan0", "hopf", "hopm"].map(str::to_owned);
        let config = DetourConfig { wire, radio, networks, fixed, mobile, table: 7100 };
        let chains = chains(&config);
        for rule in [
            "iifname \"wlan0\" meta l4proto tcp ip saddr 10.9.0.0/24 fib daddr oifname \"eth0\" notrack; ",
            "iifname \"hopm\" notrack; ",
            "iifname \"eth0\" meta l4proto tcp ip6 daddr fd09::/64 fib daddr oifname \"wlan0\" meta mark set",
        ] {
            assert!(chains.contains(rule), "{rule} in {chains}");
        }
        assert_eq!([chains.matches("notrack").count(), chains.matches("mark set").count()], [3, 4]);
    }
}

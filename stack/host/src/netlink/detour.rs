//! Detours: what comes in on one interface for some networks, or from them, goes to another device than the main table
//! says. The kernel forgets a device's routes with the device, so that without whoever made it packets go their
//! ordinary way; the rules are taken back too when a detour is dropped. Rules that a killed one left have a table with
//! no route, and bear our mark. A table is without a route, too, while the device of a detour is down: a name that the
//! detour holds tells the two apart.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use std::collections::{BTreeMap, BTreeSet};

use futures_util::TryStreamExt;
use netlink_packet_route::route::{RouteAttribute, RouteMessage};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use rtnetlink::{Error, Handle, IpVersion, RouteMessageBuilder};

use hopwise_core::ip::Prefix;

use super::routes::network_of;
use super::{Named, NetlinkError, OURS, blocking, index_of, kernel, names_with};
use crate::claim::{self, Claim};

/// Of the names that detours hold.
const KIND: &str = "detour";

/// Which of a packet's addresses lies in the networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Source,
    Destination,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetourConfig {
    /// The interface on which packets come in.
    pub from: String,
    pub end: End,
    pub networks: Vec<Prefix>,
    /// The device that they go to.
    pub to: String,
    /// Of its own, and nobody else's.
    pub table: u32,
    pub priority: u32,
}

/// Invariant 1: each rule here is one that this detour has made.
#[derive(Debug)]
pub struct Detour {
    rules: Vec<RuleMessage>,
    /// Says that the rules are in use. It goes after them.
    _claim: Option<Claim>,
}

impl Detour {
    pub fn open(config: &DetourConfig) -> Result<Detour, NetlinkError> {
        let index = index_of(&config.to)?;
        let mut detour = Detour { rules: Vec::new(), _claim: claim(config) };
        let made = &mut detour.rules;
        blocking(async move |handle| {
            let families =
                [false, true].map(|is_v6| config.networks.iter().any(|n| n.address().is_ipv6() == is_v6));
            for (everywhere, is_used) in
                [IpAddr::from([0_u8; 4]), IpAddr::from([0_u8; 16])].iter().zip(families)
            {
                if is_used {
                    route(&handle, index, *everywhere, config.table).await?;
                }
            }
            for network in &config.networks {
                made.push(rule(&handle, config, network).await?);
            }
            Ok(())
        })?;
        Ok(detour)
    }
}

/// Without it the detour works as well.
fn claim(config: &DetourConfig) -> Option<Claim> {
    let claim = Claim::to(KIND, &format!("{} {}", config.table, config.to));
    claim.inspect_err(|error| tracing::warn!(%error, "its rules may be taken for those of a killed one")).ok()
}

/// The devices of detours that are in use, by their tables. Any user can take such a name; what that brings about is
/// that rules stay which lead nowhere.
fn in_use() -> Result<BTreeMap<u32, String>, NetlinkError> {
    let prefix = claim::name(KIND, "");
    let names = names_with(&prefix)
        .map_err(|error| NetlinkError::System { doing: "ask which detours are in use", error })?;
    let read = |Named { name, .. }: Named| {
        let (table, device) = name.strip_prefix(&prefix)?.split_once(' ')?;
        // A detour ends with its device.
        index_of(device).ok()?;
        Some((table.parse().ok()?, device.to_owned()))
    };
    Ok(names.into_iter().filter_map(read).collect())
}

async fn route(handle: &Handle, index: u32, everywhere: IpAddr, table: u32) -> Result<(), NetlinkError> {
    let message = RouteMessageBuilder::<IpAddr>::new()
        .destination_prefix(everywhere, 0)
        .map(|builder| builder.output_interface(index).table_id(table).build())
        .map_err(|error| NetlinkError::System {
            doing: "write a route",
            error: std::io::Error::new(std::io::ErrorKind::InvalidInput, error.to_string()),
        })?;
    let request = handle.route().add(message).replace();
    request.execute().await.map_err(|error| kernel("add a detour's route", error))
}

/// Our rules that lead nowhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftRules {
    /// Number of those that killed detours have left.
    pub count: usize,
    /// Devices of detours in use that have no route any more, since they are down or were.
    pub of_devices: BTreeSet<String>,
}

pub fn left_rules() -> Result<LeftRules, NetlinkError> {
    blocking(async move |handle| {
        let Left { rules, of_devices } = left(&handle).await?;
        Ok(LeftRules { count: rules.len(), of_devices })
    })
}

/// Removes them, and answers how many there were.
pub fn remove_left_rules() -> Result<usize, NetlinkError> {
    let mut count = 0;
    let removed = &mut count;
    blocking(async move |handle| {
        for rule in left(&handle).await?.rules {
            let request = handle.rule().del(rule);
            request.execute().await.map_err(|error| kernel("remove a rule that was left", error))?;
            *removed += 1;
        }
        Ok(())
    })?;
    Ok(count)
}

/// The same as [`LeftRules`], with the rules themselves.
#[derive(Debug, Default)]
struct Left {
    rules: Vec<RuleMessage>,
    of_devices: BTreeSet<String>,
}

async fn left(handle: &Handle) -> Result<Left, NetlinkError> {
    let everywhere = [
        (IpVersion::V4, RouteMessageBuilder::<Ipv4Addr>::new().build()),
        (IpVersion::V6, RouteMessageBuilder::<Ipv6Addr>::new().build()),
    ];
    let mut left = Left::default();
    let in_use = in_use()?;
    for (version, any) in everywhere {
        let rules: Vec<_> = match handle.rule().get(version).execute().try_collect().await {
            Ok(rules) => rules,
            // A kernel without IPv6 has no rules for it.
            Err(Error::NetlinkError(message)) if message.raw_code().abs() == libc::EAFNOSUPPORT => continue,
            Err(error) => return Err(kernel("list the rules", error)),
        };
        let ours: Vec<RuleMessage> = rules.into_iter().filter(is_ours).collect();
        if ours.is_empty() {
            continue;
        }
        let routes: Vec<RouteMessage> = handle
            .route()
            .get(any)
            .execute()
            .try_collect()
            .await
            .map_err(|e| kernel("list the routes", e))?;
        let used: BTreeSet<u32> = routes.iter().map(table_of_route).collect();
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

fn is_ours(rule: &RuleMessage) -> bool {
    rule.attributes.contains(&RuleAttribute::Protocol(OURS))
}

fn table_of(rule: &RuleMessage) -> Option<u32> {
    rule.attributes.iter().find_map(|attribute| match attribute {
        RuleAttribute::Table(table) => Some(*table),
        _ => None,
    })
}

/// Small numbers are in the header.
fn table_of_route(route: &RouteMessage) -> u32 {
    let large = route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Table(table) => Some(*table),
        _ => None,
    });
    large.unwrap_or(route.header.table.into())
}

async fn rule(handle: &Handle, config: &DetourConfig, network: &Prefix) -> Result<RuleMessage, NetlinkError> {
    let mut request = handle
        .rule()
        .add()
        .input_interface(config.from.as_str())
        .table_id(config.table)
        .priority(config.priority)
        .action(RuleAction::ToTable);
    request.message_mut().attributes.push(RuleAttribute::Protocol(OURS));
    let bits = network.bits();
    let doing = format!("add a rule for {network}");
    let failed = |error| kernel(&doing, error);
    match (network_of(network), config.end) {
        (IpAddr::V4(address), End::Source) => {
            let mut request = request.v4().source_prefix(address, bits);
            let message = request.message_mut().clone();
            new_or_left(request.execute().await).map_err(failed)?;
            Ok(message)
        }
        (IpAddr::V4(address), End::Destination) => {
            let mut request = request.v4().destination_prefix(address, bits);
            let message = request.message_mut().clone();
            new_or_left(request.execute().await).map_err(failed)?;
            Ok(message)
        }
        (IpAddr::V6(address), End::Source) => {
            let mut request = request.v6().source_prefix(address, bits);
            let message = request.message_mut().clone();
            new_or_left(request.execute().await).map_err(failed)?;
            Ok(message)
        }
        (IpAddr::V6(address), End::Destination) => {
            let mut request = request.v6().destination_prefix(address, bits);
            let message = request.message_mut().clone();
            new_or_left(request.execute().await).map_err(failed)?;
            Ok(message)
        }
    }
}

/// A rule that is there already was left by one who was killed: the table and the priority are nobody else's.
fn new_or_left(made: Result<(), Error>) -> Result<(), Error> {
    match made {
        Err(Error::NetlinkError(message)) if message.raw_code().abs() == libc::EEXIST => Ok(()),
        made => made,
    }
}

impl Drop for Detour {
    fn drop(&mut self) {
        let rules = std::mem::take(&mut self.rules);
        let taken_back = blocking(async move |handle| {
            for rule in rules {
                let request = handle.rule().del(rule);
                request.execute().await.map_err(|error| kernel("take a rule back", error))?;
            }
            Ok(())
        });
        if let Err(error) = taken_back {
            tracing::warn!(%error, "a rule stays behind, and leads nowhere");
        }
    }
}

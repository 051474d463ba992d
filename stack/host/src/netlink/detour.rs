//! Detours: what comes in on one interface for some networks, or from them, goes to another device than the main table
//! says. The kernel forgets a device's routes with the device, so that without whoever made it packets go their
//! ordinary way; the rules are taken back too when a detour is dropped. Rules that a killed one left have a table with
//! no route, and bear our mark.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use std::collections::BTreeSet;

use futures_util::TryStreamExt;
use netlink_packet_route::route::{RouteAttribute, RouteMessage};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use rtnetlink::{Error, Handle, IpVersion, RouteMessageBuilder};

use hopwise_core::ip::Prefix;

use super::routes::network_of;
use super::{NetlinkError, OURS, blocking, index_of, kernel};

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
}

impl Detour {
    pub fn open(config: &DetourConfig) -> Result<Detour, NetlinkError> {
        let index = index_of(&config.to)?;
        let mut detour = Detour { rules: Vec::new() };
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

/// How many rules killed ones have left.
pub fn left_rules() -> Result<usize, NetlinkError> {
    let mut count = 0;
    let counted = &mut count;
    blocking(async move |handle| {
        *counted = left(&handle).await?.len();
        Ok(())
    })?;
    Ok(count)
}

/// Removes them, and answers how many there were.
pub fn remove_left_rules() -> Result<usize, NetlinkError> {
    let mut count = 0;
    let removed = &mut count;
    blocking(async move |handle| {
        for rule in left(&handle).await? {
            let request = handle.rule().del(rule);
            request.execute().await.map_err(|error| kernel("remove a rule that was left", error))?;
            *removed += 1;
        }
        Ok(())
    })?;
    Ok(count)
}

async fn left(handle: &Handle) -> Result<Vec<RuleMessage>, NetlinkError> {
    let everywhere = [
        (IpVersion::V4, RouteMessageBuilder::<Ipv4Addr>::new().build()),
        (IpVersion::V6, RouteMessageBuilder::<Ipv6Addr>::new().build()),
    ];
    let mut left = Vec::new();
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
        left.extend(
            ours.into_iter().filter(|rule| table_of(rule).is_some_and(|table| !used.contains(&table))),
        );
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

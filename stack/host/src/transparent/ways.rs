//! The rules and routes of routing that lead marked packets to sockets of this host, whatever their destination.
//!
//! A killed process leaves them. They do no harm, since the table that marks packets is gone, and the next start takes
//! them over.

use std::collections::BTreeSet;
use std::net::IpAddr;

use netlink_packet_route::route::{RouteMessage, RouteScope, RouteType};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use rtnetlink::{Error, Handle, IpVersion};

use super::{ANY, CAUGHT};
use crate::netlink::{
    NetlinkResult, OURS, add_rule, blocking, check_table, index_of, kernel, new_route, rules_of_ours,
    table_of,
};

#[derive(Debug)]
pub(super) struct HostWays {
    made: Vec<(RuleMessage, RouteMessage)>,
}

impl HostWays {
    pub(super) fn open(table: u32) -> NetlinkResult<HostWays> {
        let loopback = index_of("lo")?;
        let mut ways = HostWays { made: Vec::new() };
        let made = &mut ways.made;
        blocking(async move |handle| {
            check_table(&handle, table, loopback).await?;
            for any in ANY {
                let route = route(any, loopback, table)?;
                match handle.route().add(route.clone()).replace().execute().await {
                    Ok(()) => {}
                    Err(error) if any.is_ipv6() && lacks_ipv6(&error) => continue,
                    Err(error) => return Err(kernel("add the route to sockets of this host")(error)),
                }
                let rule = rule(&handle, any, table).await?;
                made.push((rule, route));
            }
            Ok(())
        })?;
        Ok(ways)
    }
}

/// The tables of routing to which rules of ours lead marked packets.
pub(super) fn tables() -> NetlinkResult<BTreeSet<u32>> {
    blocking(async move |handle| {
        let mut tables = BTreeSet::new();
        for version in [IpVersion::V4, IpVersion::V6] {
            tables.extend(marked(&handle, version).await?.iter().filter_map(table_of));
        }
        Ok(tables)
    })
}

/// Removes the rules of ours that lead there, and the routes.
pub(super) fn remove(from: &BTreeSet<u32>) -> NetlinkResult {
    let loopback = index_of("lo")?;
    blocking(async move |handle| {
        for (version, any) in [IpVersion::V4, IpVersion::V6].into_iter().zip(ANY) {
            for rule in marked(&handle, version).await? {
                let Some(table) = table_of(&rule).filter(|table| from.contains(table)) else { continue };
                remove_both(&handle, rule, route(any, loopback, table)?).await?;
            }
        }
        Ok(())
    })
}

async fn remove_both(handle: &Handle, rule: RuleMessage, route: RouteMessage) -> NetlinkResult {
    handle.rule().del(rule).execute().await.map_err(kernel("remove a rule for marked packets"))?;
    match handle.route().del(route).execute().await {
        // It went with its device.
        Err(Error::NetlinkError(message)) if message.raw_code().abs() == libc::ESRCH => Ok(()),
        route => route.map_err(kernel("remove a route to sockets of this host")),
    }
}

/// The rules of ours for marked packets.
async fn marked(handle: &Handle, version: IpVersion) -> NetlinkResult<Vec<RuleMessage>> {
    let mut rules = rules_of_ours(handle, version).await?;
    rules.retain(|rule| rule.attributes.contains(&RuleAttribute::FwMark(CAUGHT)));
    Ok(rules)
}

/// A kernel without IPv6 has no packets of it either.
fn lacks_ipv6(error: &Error) -> bool {
    let codes = [libc::EAFNOSUPPORT, libc::EOPNOTSUPP, libc::EACCES];
    matches!(error, Error::NetlinkError(message) if codes.contains(&message.raw_code().abs()))
}

fn route(any: IpAddr, loopback: u32, table: u32) -> NetlinkResult<RouteMessage> {
    new_route(any, 0, |route| {
        let to_here = route.output_interface(loopback).table_id(table).kind(RouteType::Local);
        to_here.scope(RouteScope::Host).protocol(OURS)
    })
}

async fn rule(handle: &Handle, any: IpAddr, table: u32) -> NetlinkResult<RuleMessage> {
    let request = handle.rule().add().table_id(table).priority(table).fw_mark(CAUGHT);
    let mut request = request.action(RuleAction::ToTable);
    let more = [RuleAttribute::FwMask(CAUGHT), RuleAttribute::Protocol(OURS)];
    request.message_mut().attributes.extend(more);
    let doing = "add the rule of routing for marked packets";
    if any.is_ipv4() { add_rule(request.v4(), doing).await } else { add_rule(request.v6(), doing).await }
}

impl Drop for HostWays {
    fn drop(&mut self) {
        let made = std::mem::take(&mut self.made);
        let taken_back = blocking(async move |handle| {
            for (rule, route) in made {
                remove_both(&handle, rule, route).await?;
            }
            Ok(())
        });
        if let Err(error) = taken_back {
            tracing::warn!(%error, "a rule of routing stays behind, for marks that nobody sets");
        }
    }
}

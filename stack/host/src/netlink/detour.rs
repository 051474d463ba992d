//! Detours: what comes in on one interface for some networks, or from them, goes to another device than the main table
//! says. The kernel forgets a device's routes with the device, so that without whoever made it packets go their
//! ordinary way; the rules are taken back too when a detour is dropped.

use std::net::IpAddr;

use netlink_packet_route::rule::{RuleAction, RuleMessage};
use rtnetlink::{Error, Handle, RouteMessageBuilder};

use hopwise_core::ip::Prefix;

use super::routes::network_of;
use super::{NetlinkError, blocking, index_of, kernel};

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

async fn rule(handle: &Handle, config: &DetourConfig, network: &Prefix) -> Result<RuleMessage, NetlinkError> {
    let request = handle
        .rule()
        .add()
        .input_interface(config.from.as_str())
        .table_id(config.table)
        .priority(config.priority)
        .action(RuleAction::ToTable);
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

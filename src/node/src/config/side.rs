//! An end of a forward: a host and a port, on this machine or over Hopwise.

use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU16;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

/// One end of a forward: on this machine's own TCP, or over Hopwise.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(with = "String")]
pub(crate) enum Side {
    Local(HostPort),
    Mesh(HostPort),
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (side, HostPort { host, port }) = match self {
            Side::Local(at) => ("", at),
            Side::Mesh(at) => ("mesh:", at),
        };
        match host.as_str() {
            "" if !side.is_empty() => write!(f, "{side}{port}"),
            host if host.contains(':') => write!(f, "{side}[{host}]:{port}"),
            host => write!(f, "{side}{host}:{port}"),
        }
    }
}

/// `10.7.0.2:80`, `[fd07::2]:80`, `name:80`. For a listener `:80` means every address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostPort {
    pub host: String,
    pub(crate) port: u16,
}

impl HostPort {
    pub(crate) fn parse(text: &str) -> Option<HostPort> {
        let (host, port) = text.rsplit_once(':')?;
        let port = port.parse::<NonZeroU16>().ok()?.get();
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_name = |host: &str| host.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
        match bare {
            Some(v6) if v6.parse::<std::net::Ipv6Addr>().is_ok() => {
                Some(HostPort { host: v6.to_owned(), port })
            }
            None if is_name(host) => Some(HostPort { host: host.to_owned(), port }),
            _ => None,
        }
    }

    pub(crate) fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }
}

impl<'de> Deserialize<'de> for Side {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Side, D::Error> {
        let text = String::deserialize(from)?;
        let read = match text.strip_prefix("mesh:") {
            Some(rest) => {
                HostPort::parse(rest).or_else(|| HostPort::parse(&format!(":{rest}"))).map(Side::Mesh)
            }
            None => HostPort::parse(&text).map(Side::Local),
        };
        read.ok_or_else(|| {
            let wanted = "expected 127.0.0.1:8080 on this machine or mesh:10.7.0.2:80 over Hopwise";
            let fault = if has_no_port(&text) { ": its port is not from 1 to 65535" } else { "" };
            serde::de::Error::custom(format_args!("`{text}`{fault}, {wanted}"))
        })
    }
}

/// Returns whether a number stands in the place of the port, and is none.
fn has_no_port(text: &str) -> bool {
    let port = text.rsplit_once(':').map_or("", |(_, port)| port);
    let is_number = !port.is_empty() && port.bytes().all(|one| one.is_ascii_digit());
    is_number && port.parse::<NonZeroU16>().is_err()
}

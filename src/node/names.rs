//! From names to addresses: the configuration's own first, then the system's.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Addresses of one name that are tried, in the resolver's order.
const MOST_TRIED: usize = 4;

#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    hosts: Arc<BTreeMap<String, IpAddr>>,
}

impl Names {
    pub(super) fn new(hosts: &BTreeMap<String, IpAddr>) -> Names {
        Names { hosts: Arc::new(hosts.clone()) }
    }

    pub(super) async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let known = host.parse().ok().or_else(|| self.hosts.get(host).copied());
        if let Some(ip) = known {
            return Ok(vec![SocketAddr::new(ip, port)]);
        }
        let found: Vec<_> = tokio::net::lookup_host((host, port)).await?.take(MOST_TRIED).collect();
        if found.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address")));
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn own_names_and_addresses_need_no_resolver() {
        let names = Names::new(&BTreeMap::from([("gateway".to_owned(), IpAddr::from([10, 7, 0, 1]))]));
        let one = |text: &str| text.parse().map(|address| vec![address]).expect("an address");
        assert_eq!(names.resolve("gateway", 80).await.expect("known"), one("10.7.0.1:80"));
        assert_eq!(names.resolve("fd07::1", 80).await.expect("an address"), one("[fd07::1]:80"));
    }
}

//! Resolves names to addresses: the configuration's own first, then the system's.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use super::lookups::Lookups;
use super::origin::Origin;

/// The largest number of addresses of one name that are tried, in the resolver's order.
const MOST_TRIED: usize = 4;

#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    hosts: Arc<BTreeMap<String, IpAddr>>,
    lookups: Lookups,
}

impl Names {
    pub(super) fn new(hosts: &BTreeMap<String, IpAddr>) -> Names {
        Names { hosts: Arc::new(hosts.clone()), lookups: Lookups::default() }
    }

    pub(super) fn lookups(&self) -> &Lookups {
        &self.lookups
    }

    /// Resolves a name for a client from `from`.
    pub(super) async fn resolve(&self, from: Origin, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let known = host.parse().ok().or_else(|| self.hosts.get(host).copied());
        if let Some(ip) = known {
            return Ok(vec![SocketAddr::new(ip, port)]);
        }
        let asked = (host.to_owned(), port);
        let look_up = move || asked.to_socket_addrs().map(|found| found.take(MOST_TRIED).collect());
        let found: Vec<_> = self.lookups.run(from, look_up).await?;
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
        let from = Origin::from([127, 0, 0, 1]);
        assert_eq!(names.resolve(from, "gateway", 80).await.expect("known"), one("10.7.0.1:80"));
        assert_eq!(names.resolve(from, "fd07::1", 80).await.expect("an address"), one("[fd07::1]:80"));
    }
}

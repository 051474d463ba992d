//! The settings of a network, and their check.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use hopwise_core::NextHop;
use hopwise_core::endpoint::{AgentChoice, EndpointConfig};
use hopwise_core::ip::Prefix;
use hopwise_core::tcp::TcpConfig;
use hopwise_host::{Drives, Link, Raw, RawConfig, StackConfig, TUN_CROSSINGS, TunConfig, TunFast};

use super::{MTU, Network, NetworkError, config};

/// A network before it opens. Texts are read by [`open`](NetworkBuilder::open).
#[derive(Clone, Debug)]
#[must_use = "it opens by `open`"]
pub struct NetworkBuilder {
    /// An Ethernet or Wi-Fi device; None is a TUN device.
    device: Option<String>,
    addresses: Vec<String>,
    kernel: Vec<String>,
    gateway: Option<String>,
    name: Option<String>,
    mtu: Option<u16>,
    agents: AgentChoice,
    tcp: TcpConfig,
    drives: Drives,
}

impl NetworkBuilder {
    pub(super) fn tun(address: &str) -> NetworkBuilder {
        NetworkBuilder {
            device: None,
            addresses: vec![address.to_owned()],
            kernel: Vec::new(),
            gateway: None,
            name: None,
            mtu: None,
            agents: AgentChoice::default(),
            tcp: TcpConfig::modern(),
            drives: Drives::Thread,
        }
    }

    pub(super) fn device(name: &str, address: &str) -> NetworkBuilder {
        NetworkBuilder { device: Some(name.to_owned()), ..NetworkBuilder::tun(address) }
    }

    /// One more address of the network, such as `fd07::1/64`.
    pub fn address(mut self, address: &str) -> NetworkBuilder {
        self.addresses.push(address.to_owned());
        self
    }

    /// An address of the kernel on the TUN device, such as `10.7.0.2/24`. Without one, the kernel routes the network's
    /// subnets to the device.
    pub fn kernel(mut self, address: &str) -> NetworkBuilder {
        self.kernel.push(address.to_owned());
        self
    }

    /// The router to addresses outside the subnets, on an Ethernet or Wi-Fi device.
    pub fn gateway(mut self, address: &str) -> NetworkBuilder {
        self.gateway = Some(address.to_owned());
        self
    }

    /// The name of the TUN device. By default it is `hop` and a number that is free.
    pub fn name(mut self, name: &str) -> NetworkBuilder {
        self.name = Some(name.to_owned());
        self
    }

    /// The longest IP packet on the TUN device, 1500 bytes by default.
    pub fn mtu(mut self, bytes: u16) -> NetworkBuilder {
        self.mtu = Some(bytes);
        self
    }

    /// The agents of connections that name none.
    pub fn agents(mut self, agents: AgentChoice) -> NetworkBuilder {
        self.agents = agents;
        self
    }

    /// TCP settings of connections that bring none.
    pub fn tcp(mut self, tcp: TcpConfig) -> NetworkBuilder {
        self.tcp = tcp;
        self
    }

    /// Drives the network by the tokio runtime in which it opens, in place of a thread. This saves switches of threads
    /// in a runtime of one thread. A program that blocks the runtime silences
    /// the network.
    pub fn in_runtime(mut self) -> NetworkBuilder {
        self.drives = Drives::Runtime;
        self
    }

    /// Opens the device and starts the network.
    pub fn open(self) -> Result<Network, NetworkError> {
        let addresses = read_all("address", &self.addresses)?;
        let (link, endpoint) = match &self.device {
            None => self.open_tun(addresses)?,
            Some(device) => self.open_device(device, addresses)?,
        };
        let endpoint = EndpointConfig { agents: self.agents, tcp: Arc::new(self.tcp), ..endpoint };
        let config = StackConfig { drives: self.drives, ..StackConfig::new(endpoint) };
        Network::start(config, link)?.with_facts()
    }

    fn open_tun(&self, addresses: Vec<Prefix>) -> Result<(Box<dyn Link>, EndpointConfig), NetworkError> {
        if let Some(gateway) = &self.gateway {
            let problem = "the kernel routes the packets of a TUN device: expected no gateway";
            return Err(setting("gateway", gateway, problem));
        }
        let kernel = read_all("kernel", &self.kernel)?;
        for (text, address) in self.kernel.iter().zip(&kernel) {
            check_kernel(text, *address, &addresses)?;
        }
        let routes = if kernel.is_empty() { addresses.clone() } else { Vec::new() };
        let named = TunConfig::new(self.name.as_deref().unwrap_or("hop%d"));
        let settings = TunConfig { mtu: self.mtu.unwrap_or(MTU), kernel_addresses: kernel, routes, ..named };
        let link = TunFast::open(&settings).map_err(NetworkError::Link)?;
        let mut endpoint = config(&link, addresses, NextHop::Link)?;
        endpoint.links.iter_mut().for_each(|link| link.crossings = TUN_CROSSINGS);
        Ok((Box::new(link), endpoint))
    }

    fn open_device(
        &self,
        device: &str,
        addresses: Vec<Prefix>,
    ) -> Result<(Box<dyn Link>, EndpointConfig), NetworkError> {
        let belongs_to_a_tun = "it belongs to a network on a TUN device: expected none";
        if let Some(kernel) = self.kernel.first() {
            return Err(setting("kernel", kernel, belongs_to_a_tun));
        }
        if let Some(name) = &self.name {
            return Err(setting("name", name, belongs_to_a_tun));
        }
        if let Some(mtu) = self.mtu {
            return Err(setting("mtu", mtu, belongs_to_a_tun));
        }
        let via = match &self.gateway {
            None => NextHop::Link,
            Some(text) => NextHop::Neighbour(read_gateway(text, &addresses)?),
        };
        let settings = RawConfig { device: device.to_owned(), addresses: addresses.clone(), offload: true };
        let link = Raw::open(&settings).map_err(NetworkError::Link)?;
        let mut endpoint = config(&link, addresses, via)?;
        endpoint.routes.retain(|route| match via {
            NextHop::Neighbour(router) => route.to.address().is_ipv4() == router.is_ipv4(),
            _ => false,
        });
        Ok((Box::new(link), endpoint))
    }
}

pub(super) fn setting(
    name: &'static str,
    given: impl fmt::Display,
    problem: impl fmt::Display,
) -> NetworkError {
    NetworkError::Setting { name, given: given.to_string(), problem: problem.to_string() }
}

/// An address with its subnet.
pub(super) fn read_address(name: &'static str, text: &str) -> Result<Prefix, NetworkError> {
    let wanted = "expected an address with the bits of its subnet, such as 10.7.0.1/24";
    text.parse().map_err(|error| setting(name, text, format_args!("{error}: {wanted}")))
}

fn read_all(name: &'static str, texts: &[String]) -> Result<Vec<Prefix>, NetworkError> {
    texts.iter().map(|text| read_address(name, text)).collect()
}

fn read_gateway(text: &str, addresses: &[Prefix]) -> Result<IpAddr, NetworkError> {
    let gateway: IpAddr = text
        .parse()
        .map_err(|_| setting("gateway", text, "expected the address of a router, such as 10.0.0.1"))?;
    if !addresses.iter().any(|own| own.contains(gateway)) {
        return Err(setting("gateway", text, "it is in no subnet of the network: expected one that is"));
    }
    Ok(gateway)
}

fn check_kernel(text: &str, kernel: Prefix, addresses: &[Prefix]) -> Result<(), NetworkError> {
    if addresses.iter().any(|own| own.address() == kernel.address()) {
        return Err(setting("kernel", text, "the network has it: expected another address in the subnet"));
    }
    let shares = |own: &Prefix| own.contains(kernel.address()) || kernel.contains(own.address());
    if !addresses.iter().any(shares) {
        return Err(setting("kernel", text, "it is in no subnet of the network: expected one that is"));
    }
    Ok(())
}

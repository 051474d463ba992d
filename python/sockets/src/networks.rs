//! Networks.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hopwise_sockets::blocking::{TcpListener, TcpStream};
use hopwise_sockets::{AgentChoice, NetworkBuilder, NetworkError};
use pyo3::prelude::*;

use crate::open::{Open, raised, refused};
use crate::sockets::{Listener, Stream};

fn address_of(ip: &str, port: u16) -> PyResult<SocketAddr> {
    let ip: IpAddr =
        ip.parse().map_err(|_| refused(format_args!("{ip:?}: expected an IP address, such as 10.7.0.2")))?;
    Ok(SocketAddr::new(ip, port))
}

fn choice(receiver: Option<String>, senders: Option<String>) -> AgentChoice {
    AgentChoice { receiver, senders, ..AgentChoice::default() }
}

fn not_opened(error: NetworkError) -> PyErr {
    raised(&io::Error::from(error))
}

/// A TCP/IP of the program's own.
#[pyclass(frozen, module = "hopwise_sockets._native")]
#[derive(Debug)]
pub(crate) struct Network(Open<hopwise_sockets::Network>);

impl Network {
    fn open(python: Python<'_>, builder: NetworkBuilder) -> PyResult<Network> {
        let network = python.detach(|| builder.open()).map_err(not_opened)?;
        Ok(Network(Open::new(network)))
    }
}

#[pymethods]
impl Network {
    #[staticmethod]
    fn tun(
        python: Python<'_>,
        addresses: Vec<String>,
        kernel: Vec<String>,
        name: Option<&str>,
        mtu: Option<u16>,
        receiver: Option<String>,
        senders: Option<String>,
    ) -> PyResult<Network> {
        let Some((first, more)) = addresses.split_first() else { return Err(no_address()) };
        let mut builder = hopwise_sockets::Network::tun(first).agents(choice(receiver, senders));
        builder = more.iter().fold(builder, |builder, address| builder.address(address));
        builder = kernel.iter().fold(builder, |builder, address| builder.kernel(address));
        if let Some(name) = name {
            builder = builder.name(name);
        }
        if let Some(bytes) = mtu {
            builder = builder.mtu(bytes);
        }
        Network::open(python, builder)
    }

    #[staticmethod]
    fn device(
        python: Python<'_>,
        name: &str,
        addresses: Vec<String>,
        gateway: Option<&str>,
        receiver: Option<String>,
        senders: Option<String>,
    ) -> PyResult<Network> {
        let Some((first, more)) = addresses.split_first() else { return Err(no_address()) };
        let mut builder = hopwise_sockets::Network::device(name, first).agents(choice(receiver, senders));
        builder = more.iter().fold(builder, |builder, address| builder.address(address));
        if let Some(gateway) = gateway {
            builder = builder.gateway(gateway);
        }
        Network::open(python, builder)
    }

    #[staticmethod]
    fn pair(address: &str, others: &str) -> PyResult<(Network, Network)> {
        let (near, far) = hopwise_sockets::Network::pair(address, others).map_err(not_opened)?;
        Ok((Network(Open::new(near)), Network(Open::new(far))))
    }

    fn set_agents(
        &self,
        python: Python<'_>,
        receiver: Option<String>,
        senders: Option<String>,
    ) -> PyResult<()> {
        let (network, agents) = (self.0.get()?, choice(receiver, senders));
        python.detach(|| network.set_agents(&agents)).map_err(not_opened)
    }

    fn connect(
        &self,
        python: Python<'_>,
        ip: &str,
        port: u16,
        receiver: Option<String>,
        senders: Option<String>,
    ) -> PyResult<Stream> {
        let (network, to) = (self.0.get()?, address_of(ip, port)?);
        let options = choice(receiver, senders).into();
        let stream = python.detach(|| TcpStream::begin_connect(&network, to, &options));
        stream.map(Stream::of).map_err(|error| raised(&error))
    }

    fn listen(
        &self,
        python: Python<'_>,
        ip: &str,
        port: u16,
        receiver: Option<String>,
        senders: Option<String>,
    ) -> PyResult<Listener> {
        let (network, at) = (self.0.get()?, address_of(ip, port)?);
        let options = choice(receiver, senders).into();
        let listener = python.detach(|| TcpListener::bind(&network, at, &options));
        listener.map(Listener::of).map_err(|error| raised(&error))
    }

    fn close(&self, python: Python<'_>, within: f64) -> PyResult<usize> {
        let within = Duration::try_from_secs_f64(within).map_err(refused)?;
        let Some(network) = self.0.take() else { return Ok(0) };
        Ok(python.detach(|| hopwise_sockets::Network::clone(&network).close(within).reset))
    }
}

fn no_address() -> PyErr {
    refused("a network has an address: expected one or more, such as 10.7.0.1/24")
}

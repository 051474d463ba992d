//! A TCP/IP of the program's own: a stack, its link, and what keeps both going.

mod builder;

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hopwise_agents::StandardAgents;
use hopwise_core::endpoint::{AgentChoice, EndpointConfig, Route, Rule};
use hopwise_core::ip::Prefix;
use hopwise_core::{LinkId, NextHop};
use hopwise_host::{
    Capture, Link, LinkError, LinkTeller, Stack, StackConfig, StackError, Stopped, Wire, describe, random_key,
};

pub use builder::NetworkBuilder;

/// The MTU of Ethernet and of Wi-Fi.
const MTU: u16 = 1500;

/// The program's own TCP/IP. A clone is another handle to the same one. The network lives as long as a handle, a stream
/// or a listener holds it.
#[derive(Clone, Debug)]
pub struct Network {
    stack: Stack,
    /// Tells connections the facts about the first link on their way.
    _teller: Option<Arc<LinkTeller>>,
}

impl Network {
    /// A network on a TUN device, with this address and its subnet, such as `10.7.0.1/24`. The kernel routes the
    /// device's packets. It takes CAP_NET_ADMIN.
    pub fn tun(address: &str) -> NetworkBuilder {
        NetworkBuilder::tun(address)
    }

    /// A network on an Ethernet or Wi-Fi device that the kernel uses too, with an address of its own there. It takes
    /// CAP_NET_ADMIN and CAP_NET_RAW.
    pub fn device(name: &str, address: &str) -> NetworkBuilder {
        NetworkBuilder::device(name, address)
    }

    /// Two networks of one program with a wire between them, each with the agents of the default. It takes no rights
    /// and serves tests.
    pub fn pair(address: &str, others: &str) -> Result<(Network, Network), NetworkError> {
        let [address, others] = [address, others].map(|text| builder::read_address("address", text));
        let (address, others) = (address?, others?);
        if address.address() == others.address() {
            let problem = "the other network has it: expected an address of its own for each";
            return Err(builder::setting("address", others, problem));
        }
        let (near, far) = Wire::pair(MTU).map_err(NetworkError::Link)?;
        let open = |wire, address| {
            let config = config(&wire, vec![address], NextHop::Link)?;
            Network::start(StackConfig::new(config), Box::new(wire))
        };
        Ok((open(near, address)?, open(far, others)?))
    }

    fn start(config: StackConfig, link: Box<dyn Link>) -> Result<Network, NetworkError> {
        let stack = Stack::start(config, vec![link], Box::new(StandardAgents::default()));
        Ok(Network { stack: stack.map_err(NetworkError::Stack)?, _teller: None })
    }

    /// The same network, whose connections learn the facts about their first links from the device's driver.
    fn with_facts(self) -> Result<Network, NetworkError> {
        let teller = LinkTeller::start(vec![self.stack.clone()], Capture::default());
        Ok(Network { _teller: Some(Arc::new(teller.map_err(NetworkError::System)?)), ..self })
    }

    /// Sets the agents of new connections that bring none of their own; existing ones keep theirs. A spec that is not
    /// known changes nothing.
    pub fn set_agents(&self, agents: &AgentChoice) -> Result<(), NetworkError> {
        let AgentChoice { receiver, senders, shadows } = agents.clone();
        let rule = Rule { receiver, senders, shadows, ..Rule::default() };
        self.stack.with(|_, endpoint| endpoint.set_rules(vec![rule])).map_err(NetworkError::Agents)
    }

    /// Ends the network: no new connections, and those that are open have `within` to deliver what was written. It
    /// blocks. A program that ends without it may cut its last bytes off, since no kernel sends them afterwards.
    pub fn close(self, within: Duration) -> Stopped {
        let Network { stack, _teller } = self;
        drop(_teller);
        stack.stop(within)
    }

    /// The stack, for all that it can do besides.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }
}

impl AsRef<Stack> for Network {
    fn as_ref(&self) -> &Stack {
        &self.stack
    }
}

/// An endpoint on one link that leads everywhere, with a key of its own.
fn config(link: &dyn Link, addresses: Vec<Prefix>, via: NextHop) -> Result<EndpointConfig, NetworkError> {
    let mut routes = Vec::new();
    for everything in ["0.0.0.0/0", "::/0"] {
        routes.push(Route { to: builder::read_address("route", everything)?, link: LinkId(0), via });
    }
    let described = describe(link, LinkId(0), addresses);
    let key = random_key().map_err(NetworkError::System)?;
    Ok(EndpointConfig { routes, ..EndpointConfig::new(described, key) })
}

// The reasons why a network did not open.

/// The reason why a network did not open, or did not take a setting.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// A setting that cannot work.
    #[error("{name} {given:?}: {problem}")]
    Setting {
        /// The setting, such as `kernel`.
        name: &'static str,
        /// The value that was given.
        given: String,
        /// The fault, and what would be accepted.
        problem: String,
    },
    /// A spec that names no agent, or gives one a value that it does not take.
    #[error("{0}")]
    Agents(Box<dyn Error + Send + Sync>),
    /// The device could not be opened.
    #[error("{0}")]
    Link(LinkError),
    /// The stack could not be started.
    #[error("{0}")]
    Stack(StackError),
    /// A call to the system failed.
    #[error("{0}")]
    System(io::Error),
}

impl NetworkError {
    /// The kind of the same error of a socket.
    fn kind(&self) -> io::ErrorKind {
        match self {
            NetworkError::Setting { .. } | NetworkError::Agents(_) => io::ErrorKind::InvalidInput,
            NetworkError::Link(error) if error.is_forbidden() => io::ErrorKind::PermissionDenied,
            NetworkError::Link(LinkError::Setting { .. }) => io::ErrorKind::InvalidInput,
            NetworkError::Link(LinkError::System { error, .. }) | NetworkError::System(error) => error.kind(),
            NetworkError::Stack(StackError::Agents(_)) => io::ErrorKind::InvalidInput,
            NetworkError::Link(_) | NetworkError::Stack(_) => io::ErrorKind::Other,
        }
    }
}

impl From<NetworkError> for io::Error {
    fn from(error: NetworkError) -> io::Error {
        io::Error::new(error.kind(), error)
    }
}

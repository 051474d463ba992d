//! The arguments of `hopwise exec`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use hopwise_core::endpoint::AgentChoice;
use hopwise_lab::named;

use super::outward::{CommandNode, Outward};
use crate::measure::carrier::checked_agents;
use crate::socks5_client::{ClientWishes, LONGEST_WORD};
use hopwise_daemon::failure::Failure;

/// The address at which the examples of a node have their SOCKS5 server.
const USUAL: &str = "127.0.0.1:1080";
/// No file with a name and a password comes near this.
const LARGEST: u64 = 1 << 20;

/// Run an unmodified command over Hopwise's TCP (no root needed)
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise exec --sender train -- curl -O http://10.7.0.3/file
  hopwise exec --node 127.0.0.1:1080 -- git clone git://10.7.0.3/repository
  hopwise exec -- ssh 10.7.0.3            # by the kernel's sockets, to try it

The command has a network of its own, in which Hopwise ends its TCP over IPv4 and IPv6. With --node, --receiver or
--sender, its connections go out by the node with this SOCKS5 server, with the agents asked for or else those of the
node's rules. Addresses that the node has no route to, and datagrams such as those of DNS, go by the kernel's sockets.
The host's own 127.0.0.1 is 198.18.0.2 for the command. No privileges are needed, and those of setuid programs such as
sudo have no effect inside. Root's command keeps uid 0: it may write root's files and the machine's sysctls, but for
those of the network and of the host's name. Run commands that are not trusted as another user.

Signals, the terminal and the exit status are the command's; 125 means that it was not run, 126 that it cannot be
executed, 127 that it was not found. Wrong options are 125, too.")]
pub struct Arguments {
    /// SOCKS5 server of a running node (default with agents: 127.0.0.1:1080; default without: the kernel's sockets)
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    node: Option<SocketAddr>,
    /// Receiver agent of the node's side, which decides when to acknowledge, such as delayed:d=3
    #[arg(long, value_name = "SPEC")]
    receiver: Option<String>,
    /// Sender agents of the node's side, which decide how much to send, such as '[newreno, limit:4]'
    #[arg(long, value_name = "SPECS")]
    sender: Option<String>,
    /// File with NAME:PASSWORD on its first line, for a node that asks for a login
    #[arg(long, value_name = "FILE")]
    login: Option<PathBuf>,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("expected an address and a port, such as {USUAL}"))
}

impl Arguments {
    /// The way on which connections go out.
    pub(super) fn outward(&self) -> Result<Outward, Failure> {
        let wishes = ClientWishes { login: self.login()?, agents: self.agents()? };
        let asks = wishes.agents != AgentChoice::default() || wishes.login.is_some();
        let usual = || USUAL.parse().ok().filter(|_| asks);
        Ok(match self.node.or_else(usual) {
            Some(address) => Outward::Node(CommandNode { address, wishes }),
            None => Outward::Kernel,
        })
    }

    fn agents(&self) -> Result<AgentChoice, Failure> {
        let choice = checked_agents([&self.receiver, &self.sender, &None])?;
        for (flag, spec) in [("--receiver", &self.receiver), ("--sender", &self.sender)] {
            if spec.as_ref().is_some_and(|spec| spec.len() > LONGEST_WORD) {
                let problem =
                    format_args!("expected at most {LONGEST_WORD} bytes: a node's rules have no limit");
                return Err(Failure::refused(flag, problem));
            }
        }
        Ok(choice)
    }

    fn login(&self) -> Result<Option<(String, String)>, Failure> {
        self.login.as_deref().map(read_login).transpose()
    }
}

fn read_login(path: &Path) -> Result<(String, String), Failure> {
    let place = || path.display().to_string();
    let text = named::read(path, LARGEST).map_err(|error| Failure::refused(place(), error))?;
    let login = text.lines().next().and_then(|line| line.split_once(':')).filter(|(name, password)| {
        !name.is_empty() && name.len() <= LONGEST_WORD && password.len() <= LONGEST_WORD
    });
    let (name, password) = login.ok_or_else(|| {
        let problem = "expected NAME:PASSWORD on its first line, each of at most 255 bytes";
        Failure::refused(place(), problem)
    })?;
    Ok((name.to_owned(), password.to_owned()))
}

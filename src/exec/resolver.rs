//! The command's `/etc/resolv.conf`. A name server at this machine's loopback is out of its reach: its file then names
//! the far end of its device, which stands for that server.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use hopwise_host::enclosure::OUTER_V4;

use crate::failure::Failure;
use crate::own_folder::OwnFolder;

const FILE: &str = "/etc/resolv.conf";

#[derive(Debug)]
pub(super) struct Resolver {
    server: Option<IpAddr>,
    /// The command's own file, if it needs one.
    own: Option<(OwnFolder, PathBuf)>,
}

impl Resolver {
    /// Reads the machine's file, and writes the command's beside it.
    pub(super) fn of_machine() -> Result<Resolver, Failure> {
        // Without a file, the C library asks the loopback; there is nothing then that the command's could cover.
        let Ok(text) = fs::read_to_string(FILE) else { return Ok(Resolver { server: None, own: None }) };
        let Some((server, text)) = for_command(&text) else {
            return Ok(Resolver { server: None, own: None });
        };
        let written = OwnFolder::make("hopwise-exec-").and_then(|folder| {
            let path = folder.path().join("resolv.conf");
            fs::write(&path, text)?;
            Ok((folder, path))
        });
        let own = written.map_err(|error| Failure::failed("write a resolv.conf for the command", error))?;
        Ok(Resolver { server: Some(server), own: Some(own) })
    }

    /// The server that the far end's port 53 stands for.
    pub(super) fn server(&self) -> Option<IpAddr> {
        self.server
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.own.as_ref().map(|(_, path)| path.as_path())
    }
}

/// The first server, and the command's file, if one of the servers is at the loopback or none is named.
fn for_command(text: &str) -> Option<(IpAddr, String)> {
    let servers: Vec<IpAddr> = text.lines().filter_map(server).collect();
    if !servers.is_empty() && !servers.iter().any(IpAddr::is_loopback) {
        return None;
    }
    let first = servers.first().copied().unwrap_or(IpAddr::from([127, 0, 0, 1]));
    let others = text.lines().filter(|line| server(line).is_none());
    let mut own = format!("nameserver {OUTER_V4}\n");
    others.for_each(|line| own.extend([line, "\n"]));
    Some((first, own))
}

fn server(line: &str) -> Option<IpAddr> {
    let mut words = line.split_whitespace();
    (words.next() == Some("nameserver")).then(|| words.next()?.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_at_the_loopback_is_replaced_and_the_rest_of_the_file_stays() {
        let stub = "# stub\nnameserver 127.0.0.53\noptions edns0 trust-ad\nsearch mesh\n";
        let (server, own) = for_command(stub).expect("the command cannot reach it");
        assert_eq!(server, IpAddr::from([127, 0, 0, 53]));
        assert_eq!(own, "nameserver 198.18.0.2\n# stub\noptions edns0 trust-ad\nsearch mesh\n");
        let (server, _) = for_command("search mesh\n").expect("the C library asks the loopback");
        assert_eq!(server, IpAddr::from([127, 0, 0, 1]));
        assert_eq!(for_command("nameserver 10.0.0.1\nnameserver fd00::1\n"), None);
    }
}

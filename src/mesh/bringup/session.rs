//! The ssh session in which a command runs, and how a process leaves its session.

use std::fs;
use std::net::IpAddr;

use hopwise_host::bringup::interface_with;
use rustix::process::{getpid, setsid};

/// The root of the second version of control groups.
const ALL_GROUPS: &str = "/sys/fs/cgroup/cgroup.procs";
const SSH: &str = "SSH_CONNECTION";
/// A deeper chain of parents than any.
const MOST_PARENTS: usize = 64;

/// Leaves the session and the control group of the command that started this process: neither the end of a terminal
/// nor that of a session's scope (systemd's `KillUserProcesses`) ends it. It may have to stay in its group without
/// root, or in a container.
pub(super) fn leave() {
    let _ = setsid();
    let _ = fs::write(ALL_GROUPS, getpid().as_raw_nonzero().to_string());
}

/// The interface over which this command's ssh session comes.
pub(super) fn ssh_interface() -> Option<String> {
    let connection = std::env::var(SSH).ok().or_else(of_a_parent)?;
    interface_with(server(&connection)?).ok().flatten()
}

/// `sudo` keeps the variable from its command, but not from its own environment.
fn of_a_parent() -> Option<String> {
    let mut process = getpid().as_raw_nonzero().get();
    for _ in 0..MOST_PARENTS {
        process = parent(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)?;
        let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        if let Some(connection) = variable(&environment) {
            return Some(connection);
        }
    }
    None
}

/// The parent in a process's `stat`, whose second word may have any letters in brackets.
fn parent(stat: &str) -> Option<i32> {
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(1)?.parse().ok().filter(|parent| *parent > 0)
}

fn variable(environment: &[u8]) -> Option<String> {
    let entries = environment.split(|byte| *byte == 0);
    let texts = entries.filter_map(|entry| std::str::from_utf8(entry).ok());
    texts.filter_map(|text| text.strip_prefix(SSH)?.strip_prefix('=')).map(str::to_owned).next()
}

/// The server's address among client, port, server, port.
fn server(connection: &str) -> Option<IpAddr> {
    let address = connection.split(' ').nth(2)?;
    // An address of one link has the link's name behind it.
    address.split('%').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_s_address_stands_third() {
        assert_eq!(server("10.0.0.9 50000 10.0.0.1 22"), "10.0.0.1".parse().ok());
        assert_eq!(server("fe80::9%wlan0 50000 fe80::1%wlan0 22"), "fe80::1".parse().ok());
        assert_eq!(server("10.0.0.9 50000"), None);
    }

    #[test]
    fn a_parent_and_its_environment_are_read_whatever_its_name_is() {
        assert_eq!(parent("12 (a) b) S 7 12 12 0"), Some(7));
        assert_eq!(parent("1 (init) S 0 1 1 0"), None);
        let environment = b"PATH=/bin\0SSH_CONNECTION=1.2.3.4 5 6.7.8.9 22\0X=\xff\0";
        assert_eq!(variable(environment).as_deref(), Some("1.2.3.4 5 6.7.8.9 22"));
        assert_eq!(variable(b"SSH_CONNECTION_X=1\0"), None);
    }
}

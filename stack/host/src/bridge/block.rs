//! Keeps the kernel from carrying what is read here, by a table of nft that belongs to a process (`flags owner`): the
//! kernel removes it when that process ends, which it does when ours does, however that is.

use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, Command, Stdio};

use super::BridgeConfig;
use crate::raw::ethernet::Mac;
use crate::raw::guard::in_a_name;
use crate::sys;

/// nft answers at once, or something is wrong.
const WITHIN_SECONDS: i64 = 3;

#[derive(Debug)]
pub(super) struct Block {
    nft: Child,
    /// When it is closed, by us or by our end, nft ends.
    input: Option<ChildStdin>,
}

impl Block {
    pub(super) fn set(config: &BridgeConfig, own: &[Mac]) -> io::Result<Block> {
        let mut nft = Command::new("nft");
        nft.arg("-i").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut nft = nft.spawn()?;
        let mut input = nft.stdin.take();
        let table = table(config);
        let script = format!("{}list table netdev {table}\n", rules(&table, config, own));
        if let Some(input) = &mut input {
            input.write_all(script.as_bytes())?;
        }
        let mut block = Block { nft, input };
        if block.hears(&format!("table netdev {table}")) {
            return Ok(block);
        }
        drop(block.input.take());
        let mut said = String::new();
        if let Some(mut errors) = block.nft.stderr.take() {
            errors.read_to_string(&mut said)?;
        }
        let first = said.lines().next().unwrap_or("it does not answer");
        Err(io::Error::other(format!("nft (package nftables): {first}")))
    }

    /// Whether nft shows the table that it was told to make.
    fn hears(&mut self, wanted: &str) -> bool {
        let Some(output) = &mut self.nft.stdout else { return false };
        let (mut said, mut buffer) = (String::new(), [0; 4096]);
        while !said.contains(wanted) {
            if sys::wait_to_read(output.as_fd(), WITHIN_SECONDS).is_err() {
                return false;
            }
            match output.read(&mut buffer) {
                Ok(bytes @ 1..) => said.push_str(&String::from_utf8_lossy(&buffer[..bytes])),
                _ => return false,
            }
        }
        true
    }

    /// Whether the table is there still.
    pub(super) fn stands(&mut self) -> bool {
        matches!(self.nft.try_wait(), Ok(None))
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.nft.wait();
    }
}

fn table(config: &BridgeConfig) -> String {
    format!("hopwise_bridge_{}", in_a_name(&config.wire))
}

/// At ingress, which is after packet sockets have had their copy and before the bridge. One line: nft takes each as a
/// step of its own.
fn rules(table: &str, config: &BridgeConfig, own: &[Mac]) -> String {
    let own: Vec<_> = own.iter().map(|mac| crate::nl80211::StationAddress(*mac).to_string()).collect();
    let own = own.join(", ");
    let chain = |name: &str, device: &str, end: &str| {
        let mut chain = format!("chain {name} {{ type filter hook ingress device \"{device}\" priority 0; ");
        for network in &config.mobiles {
            let (family, tcp) = if network.address().is_ipv4() {
                ("ip", "ip protocol tcp")
            } else {
                ("ip6", "ip6 nexthdr tcp")
            };
            // Writing to a String does not fail.
            let _ = write!(chain, "ether daddr != {{ {own} }} {tcp} {family} {end} {network} drop; ");
        }
        chain + "}; "
    };
    let chains = chain("wire", &config.wire, "daddr") + &chain("radio", &config.radio, "saddr");
    format!("table netdev {table} {{ flags owner; {chains}}}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_blocked_is_the_mobiles_tcp_and_never_what_is_for_the_bridge_itself() {
        let mobiles = ["10.9.0.0/24", "fd09::/64"].map(|text| text.parse().expect("a prefix")).to_vec();
        let config = BridgeConfig { wire: "eth0.1".into(), radio: "radio".into(), mobiles };
        let table = table(&config);
        let script = rules(&table, &config, &[[2, 0, 0, 0, 0, 1]]);
        assert!(script.starts_with("table netdev hopwise_bridge_eth0_2e1 { flags owner; "), "{script}");
        assert_eq!(script.lines().count(), 1);
        for rule in [
            "ether daddr != { 02:00:00:00:00:01 } ip protocol tcp ip daddr 10.9.0.0/24 drop;",
            "ether daddr != { 02:00:00:00:00:01 } ip6 nexthdr tcp ip6 saddr fd09::/64 drop;",
        ] {
            assert!(script.contains(rule), "{rule} in {script}");
        }
    }
}

//! The head of a script: the endpoint's configuration, its agents, and its peers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hopwise_agents::{Profile, StandardAgents};
use hopwise_core::endpoint::{AgentChoice, EndpointConfig, LinkConfig, Offload, SourceRoutes};
use hopwise_core::ip::Prefix;
use hopwise_core::secrets::{PortRange, Secrets};
use hopwise_core::tcp::{AckMerge, BufferLimits, KeepAlive, RecoveryStyle, TcpConfig};
use hopwise_core::{Endpoint, Instant};

use super::peer::Peer;
use super::text::{Problem, Range, Read, Words, field, number, pair, problem, switch, time};

/// Our addresses; each family's subnet holds the peers too.
const OURS: [&str; 2] = ["192.0.2.1/24", "2001:db8::1/64"];
const PEERS: [&str; 2] = ["192.0.2.2:9000", "[2001:db8::2]:9000"];
/// The ports that we listen at and connect from, unless a script names ports.
pub(crate) const LISTEN_PORT: u16 = 80;
pub(crate) const CONNECT_PORT: u16 = 40_000;
/// The peer's initial sequence number. It is no round figure: absolute and relative ones are then not confused.
const PEER_ISN: u32 = 3_141_592_653;
/// The clock of initial sequence numbers ticks every 4 µs.
const ISN_TICK_NS: u64 = 4_000;

#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) tcp: TcpConfig,
    agents: AgentChoice,
    profile: Profile,
    pub(crate) mtu: u16,
    offload: Offload,
    crossings: u8,
    addresses: Vec<Prefix>,
    pub(crate) is_v6: bool,
    pub(crate) peers: Vec<Peer>,
    start: Instant,
    our_isn: Option<u32>,
    peer_isn: u32,
    most_connections: Option<usize>,
    cookies_per_second: Option<u32>,
    source_routes: SourceRoutes,
    ports: PortRange,
    key: [u8; 32],
}

impl Settings {
    pub(crate) fn new() -> Read<Settings> {
        let addresses = OURS.iter().map(|text| prefix(text)).collect::<Read<_>>()?;
        Ok(Settings {
            tcp: TcpConfig::modern(),
            agents: AgentChoice::default(),
            profile: Profile::Modern,
            mtu: 1500,
            offload: Offload::None,
            crossings: 0,
            addresses,
            is_v6: false,
            peers: Vec::new(),
            start: Instant::ZERO,
            our_isn: None,
            peer_isn: PEER_ISN,
            most_connections: None,
            cookies_per_second: None,
            source_routes: SourceRoutes::Refuse,
            ports: PortRange::default(),
            key: [7; 32],
        })
    }

    /// Takes a line of the head. Returns whether it was one.
    pub(crate) fn take(&mut self, words: &mut Words) -> Read<bool> {
        let kind = words.peek().unwrap_or_default().to_owned();
        if !matches!(kind.as_str(), "config" | "agents" | "link" | "peer") {
            return Ok(false);
        }
        words.next();
        match kind.as_str() {
            "peer" => self.take_peer(words)?,
            "link" => self.take_link(words)?,
            _ => {
                while let Some(word) = words.next() {
                    let (key, value) = pair(word)?;
                    if kind == "agents" {
                        self.take_agents(key, value)?;
                    } else {
                        self.take_config(key, value)?;
                    }
                }
            }
        }
        Ok(true)
    }

    fn take_peer(&mut self, words: &mut Words) -> Read<()> {
        let name = words.want("the peer's name")?.to_owned();
        let remote = socket(words.want("the peer's address")?)?;
        let isn = match words.next().map(pair).transpose()? {
            None => self.peer_isn,
            Some(("isn", value)) => field(value)?,
            Some((key, _)) => return Err(problem!("`{key}`: a peer has `isn=`")),
        };
        let local = self.listening(remote.is_ipv6())?;
        self.peers.push(Peer::new(&name, local, remote, isn));
        words.finish()
    }

    fn take_link(&mut self, words: &mut Words) -> Read<()> {
        while let Some(word) = words.next() {
            match pair(word)? {
                ("mtu", value) => self.mtu = field(value)?,
                ("crossings", value) => self.crossings = field(value)?,
                ("cut", value) => self.offload = Offload::Cut { most_bytes: field(value)? },
                ("addresses", value) => {
                    self.addresses = value.split(',').map(prefix).collect::<Read<_>>()?;
                }
                (key, _) => {
                    return Err(problem!("`{key}`: a link has mtu=, cut=, crossings= and addresses="));
                }
            }
        }
        Ok(())
    }

    /// Makes the link take bundles, unless the script gives their size.
    pub(crate) fn takes_bundles(&mut self) {
        if self.offload == Offload::None {
            self.offload = Offload::Cut { most_bytes: 65_535 };
        }
    }

    /// The most bytes of one packet.
    pub(crate) fn most_bytes(&self, segment_bytes: Option<u16>) -> u16 {
        match self.offload {
            Offload::Cut { most_bytes } if segment_bytes.is_some() => most_bytes as u16,
            _ => self.mtu,
        }
    }

    fn take_agents(&mut self, key: &str, value: &str) -> Read<()> {
        let specs = &mut self.agents;
        let place = match key {
            "receiver" => &mut specs.receiver,
            "senders" => &mut specs.senders,
            "shadows" => &mut specs.shadows,
            other => return Err(problem!("`{other}`: agents are receiver=, senders= and shadows=")),
        };
        *place = Some(value.to_owned());
        Ok(())
    }

    fn take_config(&mut self, key: &str, value: &str) -> Read<()> {
        match key {
            "profile" => self.take_profile(value)?,
            "ip" => self.is_v6 = value == "6",
            "start" => self.start = Instant(time(value)?),
            "our_isn" => self.our_isn = Some(field(value)?),
            "peer_isn" => self.peer_isn = field(value)?,
            "key" => self.key = [field(value)?; 32],
            "most_connections" => self.most_connections = Some(field(value)?),
            "cookies_per_second" => self.cookies_per_second = Some(field(value)?),
            "source_routes" => {
                self.source_routes = if switch(value)? { SourceRoutes::Accept } else { SourceRoutes::Refuse };
            }
            "ports" => {
                let range = Range::read(value)?;
                self.ports = PortRange::new(range.least as u16, range.most as u16);
            }
            _ => return take_tcp(&mut self.tcp, key, value),
        }
        Ok(())
    }

    fn take_profile(&mut self, value: &str) -> Read<()> {
        match value.split_once(':') {
            None if value == "modern" => {
                self.tcp = TcpConfig::modern();
                self.profile = Profile::Modern;
            }
            Some(("ns2", segment_bytes)) => {
                self.tcp = TcpConfig::ns2(field(segment_bytes)?);
                self.profile = Profile::Ns2;
            }
            _ => return Err(problem!("`{value}`: the profiles are modern and ns2:SEGMENT_BYTES")),
        }
        Ok(())
    }

    fn listening(&self, is_v6: bool) -> Read<SocketAddr> {
        let ours = self.addresses.iter().map(Prefix::address).find(|address| address.is_ipv6() == is_v6);
        let ours = ours.ok_or_else(|| problem!("the link has no address of that family"))?;
        Ok(SocketAddr::new(ours, LISTEN_PORT))
    }

    fn default_peer(&self) -> Read<Peer> {
        let remote = socket(PEERS[usize::from(self.is_v6)])?;
        Ok(Peer::new("peer", self.listening(self.is_v6)?, remote, self.peer_isn))
    }

    /// The endpoint, and the instant of the script's 0.
    pub(crate) fn finish(&mut self) -> Read<(Endpoint, Instant)> {
        if self.peers.is_empty() {
            let peer = self.default_peer()?;
            self.peers.push(peer);
        }
        let link = LinkConfig {
            offload: self.offload,
            crossings: self.crossings,
            ..LinkConfig::wire(0, self.mtu, self.addresses.clone())
        };
        let mut config = EndpointConfig::new(link, self.key);
        config.tcp = Arc::new(self.tcp.clone());
        config.agents = self.agents.clone();
        config.source_routes = self.source_routes;
        config.ports = self.ports;
        config.trace_events = 1 << 16;
        if let Some(most) = self.most_connections {
            config.most_connections = most;
        }
        if let Some(most) = self.cookies_per_second {
            config.cookies_per_second = most;
        }
        let start = match self.our_isn {
            Some(isn) => self.start_for(isn),
            None => self.start,
        };
        let maker = StandardAgents::new(self.profile);
        let endpoint = Endpoint::new(config, Box::new(maker)).map_err(|error| problem!("{error}"))?;
        Ok((endpoint, start))
    }

    /// The clock of initial sequence numbers goes round in 4.8 hours. The script begins when a SYN to the first peer,
    /// from the usual port, gets this number.
    fn start_for(&self, isn: u32) -> Instant {
        let peer = &self.peers[0];
        let local = SocketAddr::new(peer.local.ip(), CONNECT_PORT);
        let secret = Secrets::new(self.key).isn(Instant::ZERO, local, peer.remote);
        Instant(u64::from(isn.wrapping_sub(secret.0)) * ISN_TICK_NS)
    }
}

fn prefix(text: &str) -> Read<Prefix> {
    text.parse().map_err(|error| problem!("`{text}`: {error}"))
}

fn socket(text: &str) -> Read<SocketAddr> {
    text.parse().map_err(|_| problem!("`{text}`: expected address:port"))
}

pub(crate) fn duration(text: &str) -> Read<Duration> {
    time(text).map(Duration::from_nanos)
}

/// A key of [`TcpConfig`].
fn take_tcp(tcp: &mut TcpConfig, key: &str, value: &str) -> Read<()> {
    if let Some(place) = switch_of(tcp, key) {
        *place = switch(value)?;
        return Ok(());
    }
    if let Some(place) = duration_of(tcp, key) {
        *place = duration(value)?;
        return Ok(());
    }
    match key {
        "segment_bytes" => tcp.segment_bytes = field(value)?,
        "least_path_mtu" => tcp.least_path_mtu = field(value)?,
        "send_buffer" => tcp.send_buffer = buffer(value)?,
        "recv_buffer" => tcp.recv_buffer = buffer(value)?,
        "keep_alive" => tcp.keep_alive = keep_alive(value)?,
        "hop_limit" => tcp.hop_limit = field(value)?,
        "peers_hop_limit" => tcp.hops.peers_hop_limit = field(value)?,
        "hops" => tcp.hops.configured = Some(field(value)?),
        "dscp" => tcp.dscp = field(value)?,
        "ack_merge" => tcp.ack_merge = if value == "read" { AckMerge::Read } else { AckMerge::Off },
        "recovery" => {
            tcp.recovery = match value.split_once(':') {
                None if value == "prr" => RecoveryStyle::Prr,
                Some(("inflate", per_ack)) => RecoveryStyle::Inflate { per_ack: field(per_ack)? },
                _ => return Err(problem!("`{value}`: expected prr or inflate:N")),
            }
        }
        other => return Err(problem!("`{other}` is no setting")),
    }
    Ok(())
}

fn switch_of<'a>(tcp: &'a mut TcpConfig, key: &str) -> Option<&'a mut bool> {
    Some(match key {
        "sack" => &mut tcp.sack,
        "timestamps" => &mut tcp.timestamps,
        "window_scale" => &mut tcp.window_scale,
        "ecn" => &mut tcp.ecn,
        "rack" => &mut tcp.rack,
        "undo" => &mut tcp.undo,
        "limited_transmit" => &mut tcp.limited_transmit,
        "nagle" => &mut tcp.nagle,
        "path_mtu_discovery" => &mut tcp.path_mtu_discovery,
        _ => return None,
    })
}

fn duration_of<'a>(tcp: &'a mut TcpConfig, key: &str) -> Option<&'a mut Duration> {
    Some(match key {
        "rto_min" => &mut tcp.rto.min,
        "rto_max" => &mut tcp.rto.max,
        "rto_initial" => &mut tcp.rto.initial,
        "user_timeout" => &mut tcp.user_timeout,
        "syn_timeout" => &mut tcp.syn_timeout,
        "msl" => &mut tcp.msl,
        "fin_wait_2" => &mut tcp.fin_wait_2,
        "ack_ceiling" => &mut tcp.ack_ceiling,
        _ => return None,
    })
}

/// `BYTES`, or `FROM..TO` for a tuned buffer.
fn buffer(text: &str) -> Read<BufferLimits> {
    let range = match text.split_once("..") {
        Some(_) => Range::read(text)?,
        None => Range { least: number(text)?, most: number(text)? },
    };
    let bytes = |number: u64| u32::try_from(number).map_err(|_| problem!("`{text}` is too large"));
    Ok(BufferLimits { initial: bytes(range.least)?, max: bytes(range.most)? })
}

/// `IDLE/INTERVAL/PROBES`, `on` for the defaults, or `off`.
pub(crate) fn keep_alive(text: &str) -> Read<Option<KeepAlive>> {
    let wrong = || -> Problem { problem!("`{text}`: expected IDLE/INTERVAL/PROBES, on or off") };
    let parts: Vec<&str> = text.split('/').collect();
    match parts.as_slice() {
        ["off"] => Ok(None),
        ["on"] => Ok(Some(KeepAlive::default())),
        [idle, interval, probes] => Ok(Some(KeepAlive {
            idle: duration(idle)?,
            interval: duration(interval)?,
            probes: field(probes)?,
        })),
        _ => Err(wrong()),
    }
}

#[test]
fn every_setting_is_read_and_others_are_refused() {
    let mut settings = Settings::new().unwrap();
    let mut take = |line: &str| Words::split(line).and_then(|mut words| settings.take(&mut words));
    for line in [
        "config profile=ns2:1000 nagle=on msl=5s keep_alive=10s/1s/3 recv_buffer=1000..2000 our_isn=2^32-1",
        "agents receiver=immediate senders=\"[newreno, limit:4]\"",
        "link mtu=576",
        "peer b 192.0.2.9:77 isn=5",
    ] {
        assert_eq!(take(line), Ok(true), "{line}");
    }
    assert_eq!(take("> S seq 0"), Ok(false));
    for line in
        ["config what=1", "config nagle=perhaps", "agents x=y", "link what=1", "peer b", "config profile=x"]
    {
        assert!(take(line).is_err(), "{line}");
    }
}

#[test]
fn our_initial_number_is_the_one_asked_for() {
    let mut settings = Settings::new().unwrap();
    settings.our_isn = Some(u32::MAX - 5);
    let (_, start) = settings.finish().unwrap();
    let local = SocketAddr::new(settings.peers[0].local.ip(), CONNECT_PORT);
    let isn = Secrets::new(settings.key).isn(start, local, settings.peers[0].remote);
    assert_eq!(isn.0, u32::MAX - 5);
}

//! Flows of one host to one peer, which may take turns.

use std::collections::BTreeMap;
use std::time::Duration;

use hopwise_core::agent::Turn;
use hopwise_core::endpoint::{AgentChoice, ConnId, ConnectOptions, ListenOptions, ListenerId};
use hopwise_core::tcp::{Info, TcpConfig};
use hopwise_core::{Endpoint, Seq};
use hopwise_testing::memory::End;

use super::net::{B, Net, PORT, Sent, pattern};

/// A path that holds a few segments, as radios make it: where more fit, trains are not waited for.
const BITS_PER_SECOND: u64 = 2_000_000;
pub(super) const LITTLE: usize = 2_000;

fn choice(senders: &str) -> AgentChoice {
    AgentChoice { receiver: Some("train".into()), senders: Some(senders.into()), ..AgentChoice::default() }
}

/// Flows from A to B, and the bytes that B received of each, by its port at A.
pub(super) struct Flows {
    pub(super) net: Net,
    pub(super) listener: ListenerId,
    pub(super) clients: Vec<ConnId>,
    pub(super) servers: Vec<ConnId>,
    pub(super) got: BTreeMap<u16, usize>,
    /// True if each flow always has more to send.
    pub(super) is_bulk: bool,
    /// The server whose data no program reads.
    pub(super) unread: Option<ConnId>,
}

impl Flows {
    pub(super) fn new(tcp: &TcpConfig) -> Flows {
        let mut net = Net::with_tcp(tcp);
        for end in [End::A, End::B] {
            net.hosts.path_from(end).impairment.bits_per_second = BITS_PER_SECOND;
        }
        let listener = net.listen(ListenOptions { agents: choice("[train]"), ..ListenOptions::default() });
        Flows {
            net,
            listener,
            clients: Vec::new(),
            servers: Vec::new(),
            got: BTreeMap::new(),
            is_bulk: true,
            unread: None,
        }
    }

    pub(super) fn of_trains(flows: usize) -> Flows {
        let mut all = Flows::new(&TcpConfig::modern());
        (0..flows).for_each(|_| {
            all.open("[train]", B);
        });
        all
    }

    pub(super) fn open(&mut self, senders: &str, to: std::net::IpAddr) -> ConnId {
        let options = ConnectOptions { agents: choice(senders), ..ConnectOptions::default() };
        let id = self.net.hosts.a.connect(self.net.now(), (to, PORT).into(), &options).expect("a route");
        self.clients.push(id);
        id
    }

    /// Lets time pass while programs act.
    pub(super) fn run(&mut self, time: Duration) {
        self.run_seen(time, |_| {});
    }

    /// The same; `look` sees A after each event, before programs act.
    pub(super) fn run_seen(&mut self, time: Duration, mut look: impl FnMut(&Endpoint)) {
        let Flows { net, listener, clients, servers, got, is_bulk, unread } = self;
        let (until, data, mut sink) = (net.now() + time, pattern(8192, 0), [0; 8192]);
        net.hosts.run(until, |hosts| {
            look(&hosts.a);
            let now = hosts.now();
            for id in clients.iter().filter(|_| *is_bulk) {
                while hosts.a.send(now, *id, &data).is_ok_and(|taken| taken > 0) {}
            }
            while let Some(id) = hosts.b.accept(now, *listener) {
                servers.push(id);
            }
            for id in servers.iter().filter(|id| *unread != Some(**id)) {
                while let Ok(len @ 1..) = hosts.b.recv(now, *id, &mut sink) {
                    let port = hosts.b.info(now, *id).expect("still named").flow.remote.port();
                    *got.entry(port).or_default() += len;
                }
            }
            false
        });
    }

    pub(super) fn info(&self, id: ConnId) -> Info {
        self.net.hosts.a.info(self.net.now(), id).expect("still named")
    }

    pub(super) fn turn(&self, id: ConnId) -> Turn {
        self.info(id).turn
    }

    pub(super) fn turns(&self) -> Vec<Turn> {
        self.clients.iter().map(|id| self.turn(*id)).collect()
    }

    pub(super) fn holder(&self) -> ConnId {
        let mut holders = self.clients.iter().filter(|id| self.turn(**id) == Turn::Holding);
        *holders.next().expect("somebody has the turn")
    }

    pub(super) fn heal(&mut self) {
        for end in [End::A, End::B] {
            self.net.hosts.path_from(end).is_down = false;
        }
    }

    pub(super) fn port(&self, id: ConnId) -> u16 {
        self.info(id).flow.local.port()
    }

    /// The other end of a flow.
    pub(super) fn server_of(&self, client: ConnId) -> ConnId {
        let (now, port) = (self.net.now(), self.port(client));
        let is_its =
            |id: &&ConnId| self.net.hosts.b.info(now, **id).is_ok_and(|info| info.flow.remote.port() == port);
        *self.servers.iter().find(is_its).expect("accepted")
    }

    /// The number of flows that have the turn while other flows wait, and the number that wait.
    pub(super) fn holding_and_waiting(&self) -> (usize, usize) {
        let turns = self.turns();
        (count(&turns, Turn::Holding), count(&turns, Turn::Waiting))
    }

    /// The data of this flow that left since the last call, by number.
    pub(super) fn data_sent(&mut self, id: ConnId) -> Vec<Seq> {
        let port = self.port(id);
        let sent = self.net.sent_by(End::A);
        let of_it = |sent: &Sent| {
            let segment = sent.tcp();
            (segment.src_port == port && !segment.payload.is_empty()).then_some(segment.seq)
        };
        sent.iter().filter_map(of_it).collect()
    }
}

fn count(turns: &[Turn], wanted: Turn) -> usize {
    turns.iter().filter(|turn| **turn == wanted).count()
}

//! Any bytes are a story of a network with a key, and of a stranger without it. Two routers are alike. Both get what
//! the holders of the key send. One gets also what the stranger sends: any bytes, messages of routers with other keys,
//! and changed or repeated messages of the network. In any story both stay alike, so nothing of the stranger is taken.

use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_mesh::OnDemand;
use hopwise_mesh::rfc5444::Packet;

use crate::input::{Bits, Input};
use crate::network::{self, Net, Said, drain, hear, pass, routed, router};
use crate::routers::address;

/// Longer stories find nothing that shorter ones do not, and take long.
const MOST_STEPS: usize = 300;
/// The most messages that a story remembers.
const MOST_SAID: usize = 64;

struct Story {
    net: Net,
    now: Instant,
    /// The router that the stranger attacks, and its twin.
    pair: [Box<dyn OnDemand>; 2],
    /// Another holder of the key, and two nodes with keys that are not the network's.
    friend: Box<dyn OnDemand>,
    strangers: [Box<dyn OnDemand>; 2],
    /// Messages under way to the pair, and messages that they have got.
    under_way: Vec<Said>,
    heard: Vec<Said>,
    of_strangers: Vec<Said>,
}

pub(crate) fn replay(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut story = Story::new(Net::of(Bits(input.octet())));
    for _ in 0..MOST_STEPS {
        if input.is_empty() {
            return;
        }
        story.step(&mut input);
        story.compare();
    }
}

impl Story {
    fn new(net: Net) -> Story {
        Story {
            net,
            now: Instant::from_millis(1),
            pair: [router(net, 1, &[(1, 1), (2, 2)]), router(net, 1, &[(1, 1), (2, 2)])],
            friend: router(net, 2, &[(1, 1)]),
            strangers: [router(net, 3, &[(1, 9)]), router(net, 4, &[(3, 1)])],
            under_way: Vec::new(),
            heard: Vec::new(),
            of_strangers: Vec::new(),
        }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.octet() % 10 {
            0 => self.search(input),
            1 | 2 => self.deliver(),
            3 => {
                let len = usize::from(input.word());
                let said = Said { bytes: input.bytes(len).to_vec(), ..self.net.said_by(input.octet()) };
                self.forge(&said);
            }
            4 => {
                if let Some(at) = input.index(self.of_strangers.len()) {
                    let said = self.of_strangers[at].clone();
                    self.forge(&said);
                }
            }
            5 | 6 => {
                if let Some(at) = input.index(self.heard.len()) {
                    let mut said = self.heard[at].clone();
                    change(&mut said, input);
                    self.forge(&said);
                }
            }
            7 => {
                if let Some(at) = input.index(self.under_way.len()) {
                    let mut said = self.under_way[at].clone();
                    change(&mut said, input);
                    if self.net.is_another(&self.under_way[at], &said) {
                        self.forge(&said);
                    }
                }
            }
            8 => self.wait(Duration::from_millis(u64::from(input.octet()))),
            _ => self.wait(Duration::from_millis(u64::from(input.octet()) * 100)),
        }
    }

    /// Some node has a packet for another node, and asks for a route to it.
    fn search(&mut self, input: &mut Input<'_>) {
        let (from, to) = (input.octet() % 4, address(input.octet() % 8 + 1));
        let now = self.now;
        let ask = |router: &mut dyn OnDemand, own: u8| {
            let _ = router.route(&network::cx(now), &routed(address(own), to));
        };
        match from {
            0 => self.pair.iter_mut().for_each(|router| ask(&mut **router, 1)),
            1 => ask(&mut *self.friend, 2),
            2 => ask(&mut *self.strangers[0], 3),
            _ => ask(&mut *self.strangers[1], 4),
        }
        self.collect();
    }

    /// The oldest message of the network arrives.
    fn deliver(&mut self) {
        if self.under_way.is_empty() {
            return;
        }
        let said = self.under_way.remove(0);
        for router in &mut self.pair {
            hear(&mut **router, self.now, &said);
        }
        self.heard.push(said);
        self.heard.truncate(MOST_SAID);
        self.collect();
    }

    fn forge(&mut self, said: &Said) {
        hear(&mut *self.pair[0], self.now, said);
        self.collect();
    }

    fn wait(&mut self, later: Duration) {
        let (now, until) = (self.now, self.now + later);
        self.now = until;
        let pass = |router: &mut Box<dyn OnDemand>| pass(&mut **router, now, until);
        let of_pair = self.pair.each_mut().map(pass);
        let (of_friend, of_strangers) = (pass(&mut self.friend), self.strangers.each_mut().map(pass));
        self.send(of_pair, of_friend, of_strangers);
        self.collect();
    }

    /// Takes the messages that all routers send now.
    fn collect(&mut self) {
        let now = self.now;
        let drain = |router: &mut Box<dyn OnDemand>| drain(&mut **router, now);
        let of_pair = self.pair.each_mut().map(drain);
        let (of_friend, of_strangers) = (drain(&mut self.friend), self.strangers.each_mut().map(drain));
        self.send(of_pair, of_friend, of_strangers);
    }

    /// The pair sends equal messages. The other nodes get it at once, and answer later.
    fn send(&mut self, of_pair: [Vec<Said>; 2], of_friend: Vec<Said>, of_strangers: [Vec<Said>; 2]) {
        let [own, same] = of_pair;
        assert_eq!(own, same, "the attacked router says what its twin does not");
        for said in &own {
            for router in [&mut self.friend].into_iter().chain(&mut self.strangers) {
                hear(&mut **router, self.now, said);
            }
        }
        self.under_way.extend(of_friend);
        self.under_way.truncate(MOST_SAID);
        self.of_strangers.extend(of_strangers.into_iter().flatten());
        self.of_strangers.truncate(MOST_SAID);
    }

    fn compare(&mut self) {
        let [attacked, twin] = &mut self.pair;
        assert_eq!(attacked.routes(self.now), twin.routes(self.now), "a route from no holder of the key");
        assert_eq!(attacked.signed_stamps(), twin.signed_stamps());
        assert_eq!(attacked.number(), twin.number());
        assert_eq!(attacked.poll_timeout(), twin.poll_timeout(), "a timer from no holder of the key");
    }
}

/// Changes bytes, lengths, or the addresses that a check value covers, or nothing.
fn change(said: &mut Said, input: &mut Input<'_>) {
    match input.octet() % 7 {
        0 => {}
        1 => {
            let octet = input.octet();
            let end = if octet & 0x80 == 0 { &mut said.src } else { &mut said.dst };
            *end = address(octet % 8 + 2);
        }
        2 => {
            if let Some(at) = input.index(said.bytes.len()) {
                said.bytes.truncate(at);
            }
        }
        3 => {
            let len = usize::from(input.word()).min(65_507 - said.bytes.len());
            said.bytes.extend(input.bytes(len));
        }
        4 => {
            if let Some(at) = input.index(said.bytes.len()) {
                let again = said.bytes[at..].to_vec();
                said.bytes.extend(again);
            }
        }
        5 => {
            if let Some(at) = input.index(said.bytes.len()) {
                said.bytes[at] = input.octet();
            }
        }
        _ => {
            if let Some(at) = input.index(said.bytes.len()) {
                said.bytes[at] ^= 1 << (input.octet() % 8);
            }
        }
    }
}

impl Net {
    /// Returns whether a changed message says something else. An equivalent message may be taken in its place: DYMO's
    /// receivers ignore reserved bits, and its check value does not cover the TTL.
    fn is_another(self, original: &Said, changed: &Said) -> bool {
        if self.is_aodv {
            return original != changed;
        }
        (original.src, original.dst) != (changed.src, changed.dst)
            || Packet::parse(&original.bytes).ok() != Packet::parse(&changed.bytes).ok()
    }

    /// An empty message in the name of any node.
    fn said_by(self, who: u8) -> Said {
        let dst = if who & 0x80 == 0 { Ipv4Addr::BROADCAST } else { address(1) };
        Said { src: address(who % 8 + 2), dst, ttl: self.ttl(who), bytes: Vec::new() }
    }

    fn ttl(self, who: u8) -> u8 {
        if self.is_aodv && who & 0x40 != 0 { 1 } else { u8::MAX }
    }
}

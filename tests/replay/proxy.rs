//! Any bytes are a story about a base station: the packets of both its sides, news of its mobiles' links, and time.
//! Packets are well made, or changed at random with right checksums, or any bytes. In any story the proxy alters no
//! packet that it should pass, writes sound ones, stays within its memory, and keeps nothing when it ends.

#[path = "proxy/leaving.rs"]
mod leaving;
#[path = "proxy/packets.rs"]
mod packets;

use std::time::Duration;

use hopwise_agents::StandardAgents;
use hopwise_core::wire::Checksums;
use hopwise_core::{Instant, LinkEvent, LinkId, Machine, Rx, Transmit};
use hopwise_mesh::{Proxy, ProxyConfig};

use leaving::Leaving;
use packets::{Flow, mobile};

use crate::input::{Bits, Input};

const FIXED: LinkId = LinkId(0);
const MOBILE: LinkId = LinkId(1);
/// Longer stories find nothing that shorter ones do not, and take long.
const MOST_STEPS: usize = 600;
const MOST_FLOWS: usize = 6;
const MOST_KEPT: usize = 200_000;
const MOST_KEPT_A_FLOW: usize = 90_000;
const MOST_QUEUED: usize = 64;
/// The buffers of a flow that is cut. The smallest ones let a story fill them.
const AGENTS: [&str; 13] = [
    "none",
    "ack-hold:mode=paper",
    "ack-hold:mode=corrected",
    "ack-hold:mode=cumulative",
    "ack-hold:mode=kick",
    "ack-hold",
    "snoop",
    "delayed-dupacks",
    "ack-filter",
    "freeze",
    "m-tcp",
    "split",
    "split:buffer=4096",
];

struct Story {
    proxy: Proxy,
    now: Instant,
    flows: Vec<Flow>,
    leaving: Leaving,
}

pub(crate) fn replay(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut story = Story::new(&mut input);
    for _ in 0..MOST_STEPS {
        if input.is_empty() {
            break;
        }
        story.step(&mut input);
        story.check();
    }
    story.end();
}

impl Story {
    fn new(input: &mut Input<'_>) -> Story {
        let spec = input.pick(AGENTS);
        let manner = Bits(input.octet());
        let checksums = if manner.has(0) { Checksums::Trust } else { Checksums::Verify };
        let config = ProxyConfig {
            most_flows: MOST_FLOWS,
            most_kept_bytes: MOST_KEPT,
            most_kept_bytes_a_flow: MOST_KEPT_A_FLOW,
            most_queued: MOST_QUEUED,
            checksums,
            trace_events: if manner.has(1) { 100 } else { 0 },
            ..ProxyConfig::new(FIXED, MOBILE, spec)
        };
        let proxy = Proxy::new(config, Box::new(StandardAgents::default())).expect("an agent that there is");
        let flows = (0..packets::FLOWS).map(Flow::new).collect();
        Story { proxy, now: Instant::from_millis(1), flows, leaving: Leaving::new(spec, checksums) }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.octet() % 16 {
            0..=8 => {
                let which = usize::from(input.octet()) % self.flows.len();
                let (is_from_mobile, packet) = self.flows[which].packet(input);
                self.carry(is_from_mobile, packet);
            }
            9 => {
                let (is_from_mobile, packet) = packets::anything(input);
                self.leaving.is_misled = true;
                self.carry(is_from_mobile, packet);
            }
            10 => {
                let (word, manner) = (u64::from(input.word()), input.octet());
                let outage = Duration::from_millis(word << (manner % 40));
                let rtt = Duration::from_millis(u64::from(input.octet()));
                // The control socket takes each of them up to the longest.
                let rtt = if manner & 0x40 == 0 { rtt } else { Duration::from_micros(u64::MAX - word) };
                let within = if manner & 0x80 == 0 { Duration::ZERO } else { outage };
                let peer = mobile(input.octet());
                self.tell(&LinkEvent::GoingDown { peer, rtt, outage, within });
            }
            11 => self.tell(&LinkEvent::Gone { peer: mobile(input.octet()) }),
            12 => self.tell(&LinkEvent::Up { peer: mobile(input.octet()) }),
            13 => {
                let which = usize::from(input.octet()) % self.flows.len();
                self.give_back(which);
            }
            14 => self.wait(Duration::from_millis(u64::from(input.octet()))),
            _ => self.wait(Duration::from_secs(u64::from(input.octet()))),
        }
        self.take_out();
        self.proxy.drain_trace(&mut |_| {});
    }

    fn carry(&mut self, is_from_mobile: bool, packet: Vec<u8>) {
        let link = if is_from_mobile { MOBILE } else { FIXED };
        self.leaving.note_arrival(!is_from_mobile, &packet);
        self.proxy.handle_packet(self.now, &Rx::new(link, &packet));
        for (link, is_to_mobile) in [(FIXED, false), (MOBILE, true)] {
            if self.proxy.next_is_passing(link) {
                self.poll(link, is_to_mobile);
            }
        }
    }

    /// The link to the mobile gives up the flow's last data.
    fn give_back(&mut self, which: usize) {
        let Some(packet) = self.flows[which].last_to_mobile() else { return };
        self.leaving.note_arrival(true, &packet);
        self.proxy.take_back(self.now, &packet);
    }

    fn tell(&mut self, event: &LinkEvent<'_>) {
        self.proxy.handle_link_event(self.now, MOBILE, event);
    }

    fn wait(&mut self, later: Duration) {
        let until = self.now + later;
        let mut at_once = 0;
        while let Some(due) = self.proxy.poll_timeout().filter(|due| *due <= until) {
            at_once = if due > self.now { 0 } else { at_once + 1 };
            assert!(at_once < 1_000, "a timer that stays due");
            self.now = self.now.max(due);
            self.proxy.handle_timeout(self.now);
            self.take_out();
        }
        self.now = until;
    }

    fn take_out(&mut self) {
        for (link, is_to_mobile) in [(FIXED, false), (MOBILE, true)] {
            let mut packets = 0;
            while self.poll(link, is_to_mobile).is_some() {
                packets += 1;
                assert!(packets < 10_000, "packets without end");
            }
        }
    }

    fn poll(&mut self, link: LinkId, is_to_mobile: bool) -> Option<Transmit> {
        let mut packet = Vec::new();
        let payload = hopwise_core::Payload::Inline;
        let transmit = self.proxy.poll_transmit(self.now, link, payload, &mut packet)?;
        self.leaving.check(is_to_mobile, &packet);
        if let Some(answered) = packets::read(&packet) {
            for flow in &mut self.flows {
                flow.hear(is_to_mobile, &answered);
            }
        }
        Some(transmit)
    }

    fn check(&self) {
        let counts = self.proxy.counts();
        assert!(counts.flows <= MOST_FLOWS, "{} flows", counts.flows);
        assert!(counts.kept_bytes <= MOST_KEPT, "{} bytes are kept", counts.kept_bytes);
        assert!(counts.cut_bytes <= counts.kept_bytes && counts.cut + counts.brief <= 2 * MOST_FLOWS);
    }

    /// All links come back, and the proxy ends: nothing waits any more.
    fn end(&mut self) {
        for number in 0..packets::FLOWS {
            self.tell(&LinkEvent::Up { peer: mobile(number) });
        }
        self.take_out();
        self.proxy.let_go(self.now);
        self.take_out();
        assert_eq!(self.proxy.counts().kept_packets, 0, "packets wait for ever");
    }
}

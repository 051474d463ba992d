//! The comments about ACKs compared with the ACKs themselves: segments are lost, come in another order and come twice.

use std::collections::BTreeMap;

use hopwise_core::endpoint::{AgentChoice, ConnId, ListenOptions};
use hopwise_core::tcp::{AckMerge, TcpConfig};
use hopwise_core::trace::TraceKind;
use hopwise_core::wire::{Checksums, Flags, IpView, TcpOptions, TcpView};
use hopwise_core::{Machine, Payload, Seq};
use hopwise_host::{Comment, Comments};
use hopwise_testing::memory::{LINK, Random};

use super::flow::ms;
use super::peer::{ACK, Host, plain};

const BYTES: u32 = 100;
const SEGMENTS: u32 = 3_000;
const UNDER_WAY: u32 = 300;

/// A receiver that gives the reasons of its ACKs, and a peer whose segments come by chance.
struct Counted {
    host: Host,
    id: ConnId,
    comments: Comments,
    random: Random,
    first: Seq,
    /// The segments that came, by the packets' numbers, and the comment of each.
    came: BTreeMap<u64, (u32, String)>,
    packets: u64,
    decided: u64,
    /// ACKs that left, and ACKs that merged into later ones by their comments.
    left: u64,
    merged: u64,
    duplicates: u64,
    seed: u64,
}

impl Counted {
    fn new(receiver: &str, ack_merge: AckMerge, seed: u64) -> Counted {
        let tcp = TcpConfig { sack: true, ack_merge, ..plain() };
        let mut host = Host::with(tcp, |config| config.trace_events = 1 << 16);
        let agents = AgentChoice { receiver: Some(receiver.into()), ..AgentChoice::default() };
        let listener = host.listen(ListenOptions { agents, ..ListenOptions::default() });
        host.options = TcpOptions { sack_permitted: true, ..TcpOptions::default() };
        host.open();
        let id = host.endpoint.accept(host.now, listener).expect("a connection");
        host.endpoint.drain_trace(&mut |_| {});
        let (random, first) = (Random::new(seed, 1), host.seq);
        let comments = Comments::new(Box::new(|_| None));
        Counted {
            host,
            id,
            comments,
            random,
            first,
            came: BTreeMap::new(),
            packets: 2,
            decided: 0,
            left: 0,
            merged: 0,
            duplicates: 0,
            seed,
        }
    }

    fn comes(&mut self, segment: u32) {
        self.packets += 1;
        self.comments.arrives(self.packets);
        self.host.say_at(self.first + segment * BYTES, ACK | Flags::PSH, &[7; BYTES as usize]);
        let left = self.hear_trace();
        assert_eq!(left, None, "nothing leaves before it is asked for");
        let said = self.comments.of_arrival().text;
        self.came.insert(self.packets, (segment, said));
    }

    /// The comment of the packet that has left, if one has.
    fn hear_trace(&mut self) -> Option<Comment> {
        let (comments, mut left, decided) = (&mut self.comments, None, &mut self.decided);
        self.host.endpoint.drain_trace(&mut |event| {
            *decided += u64::from(matches!(event.kind, TraceKind::AckDecided { .. }));
            left = comments.hear(event).or(left.take());
        });
        left
    }

    /// Takes at most this many packets.
    fn leave(&mut self, most: u64) {
        for _ in 0..most {
            let mut packet = Vec::new();
            if self.host.endpoint.poll_transmit(self.host.now, LINK, Payload::Inline, &mut packet).is_none() {
                return;
            }
            let comment = self.hear_trace().expect("a comment for each packet");
            let ip = IpView::parse(&packet).expect("a packet");
            let tcp = TcpView::parse(ip.src, ip.dst, ip.payload, Checksums::Verify).expect("a segment");
            let is_decision = tcp.payload.is_empty() || comment.text.contains("; with ACK ");
            self.left += u64::from(is_decision);
            let merged = comment.text.split(", in place of ").nth(1);
            self.merged +=
                merged.map_or(0, |rest| rest.split(' ').next().expect("words").parse().expect("a count"));
            if tcp.payload.is_empty() {
                self.check(&tcp, &comment);
            } else {
                self.host.ack = tcp.seq + tcp.payload.len() as u32;
            }
        }
    }

    /// RFC 2018 §4 and RFC 2883 §4: the first block reports the segment for which the ACK leaves, unless that advanced
    /// the number.
    fn check(&mut self, tcp: &TcpView<'_>, comment: &Comment) {
        let blocks: Vec<_> = tcp.options.sack.iter().map(|block| (block.left, block.right)).collect();
        let what = format!("seed {}: {:?} {blocks:?}: {comment:?}", self.seed, tcp.ack);
        let answered = comment.answers.and_then(|packet| self.came.get(&packet));
        let Some(&(segment, ref said)) = answered else { panic!("{what}") };
        let (from, to) = (self.first + segment * BYTES, self.first + (segment + 1) * BYTES);
        if let Some(place) = comment.text.split('(').nth(1).and_then(|rest| rest.split(')').next()) {
            assert!(said.contains(place), "{said}: {what}");
        }
        let Some(&(left, right)) = blocks.first() else { return };
        let within = |(a, b): (Seq, Seq)| a <= left && right <= b;
        if right <= tcp.ack || blocks.get(1).is_some_and(|block| within(*block)) {
            assert_eq!((from, to), (left, right), "{said}: {what}");
            self.duplicates += 1;
        } else {
            assert!(to <= tcp.ack || left <= from && to <= right, "{said}: {what}");
        }
    }

    /// All segments come, some of them late and some of them twice, and what they bring is read.
    fn run(&mut self) {
        let (mut next, mut late) = (0, Vec::new());
        while next < SEGMENTS || !late.is_empty() {
            // All segments under way fit into the window.
            let most = SEGMENTS.min(late.iter().min().map_or(SEGMENTS, |oldest| oldest + UNDER_WAY));
            for _ in 0..self.random.between(1, 12) {
                match self.random.below(12) {
                    0 | 1 if next < most => {
                        late.push(next);
                        next += 1;
                    }
                    2 if next > 0 => {
                        let again = next - 1 - self.random.below(u64::from(next.min(20))) as u32;
                        if !late.contains(&again) {
                            self.comes(again);
                        }
                    }
                    3 | 4 if !late.is_empty() => {
                        let place = self.random.below(late.len() as u64) as usize;
                        let segment = late.swap_remove(place);
                        self.comes(segment);
                    }
                    _ if next < most => {
                        self.comes(next);
                        next += 1;
                    }
                    _ => {}
                }
            }
            if self.random.one_in(9) {
                self.host.endpoint.send(self.host.now, self.id, &[1; 10]).expect("it is open");
            }
            let most = if self.random.one_in(4) { self.random.below(3) } else { u64::MAX };
            self.leave(most);
            while self.host.endpoint.recv(self.host.now, self.id, &mut [0; 4096]).is_ok_and(|count| count > 0)
            {
            }
            if self.random.one_in(20) {
                self.host.now += ms(250);
                self.host.endpoint.handle_timeout(self.host.now);
                self.hear_trace();
            }
        }
        self.host.now += ms(1000);
        self.host.endpoint.handle_timeout(self.host.now);
        self.hear_trace();
        self.leave(u64::MAX);
    }
}

#[test]
fn an_ack_answers_what_its_blocks_report_and_stands_for_those_that_went_into_it() {
    for (seed, receiver) in
        (1..).zip(["immediate", "delayed", "delayed:d=4,hold=80ms", "immediate", "delayed"])
    {
        for merge in [AckMerge::Off, AckMerge::Read] {
            let mut counted = Counted::new(receiver, merge, seed);
            counted.run();
            let Counted { decided, left, merged, duplicates, .. } = counted;
            println!(
                "{receiver} {merge:?}: {decided} decided, {left} left, {merged} merged, {duplicates} came twice"
            );
            assert!(
                duplicates > 100,
                "seed {seed}, {receiver}, {merge:?}: {duplicates} were told to have come twice"
            );
            assert_eq!(decided, left + merged, "seed {seed}, {receiver}, {merge:?}");
        }
    }
}

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use hopwise_core::endpoint::Neighbours;
use hopwise_core::trace::TraceEvent;
use hopwise_core::{LinkEvent, NextHop, QueueClass};
use parking_lot::Mutex;

use super::*;

/// Says how many packets have come since it was last asked.
#[derive(Default)]
struct Counting {
    unanswered: u8,
}

impl Machine for Counting {
    fn handle_packet(&mut self, _: Instant, _: &Rx<'_>) {
        self.unanswered += 1;
    }

    fn handle_link_event(&mut self, _: Instant, _: LinkId, _: &LinkEvent<'_>) {}

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant, _: LinkId, out: &mut Vec<u8>) -> Option<Transmit> {
        let count = std::mem::take(&mut self.unanswered);
        out.push(count);
        let transmit = Transmit { to: NextHop::Link, class: QueueClass::Data, segment_bytes: None, id: 0 };
        (count > 0).then_some(transmit)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn drain_trace(&mut self, _: &mut dyn FnMut(&TraceEvent)) {}
}

#[derive(Debug)]
struct Waiting {
    packets: VecDeque<u8>,
    sent: Arc<Mutex<Vec<u8>>>,
}

impl Link for Waiting {
    fn name(&self) -> &'static str {
        "waiting"
    }

    fn mtu(&self) -> u16 {
        1500
    }

    fn neighbours(&self) -> Neighbours {
        Neighbours::Implied
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn receive(&mut self, _: Instant, into: &mut [u8]) -> Received {
        let Some(packet) = self.packets.pop_front() else { return Received::Nothing };
        into[0] = packet;
        Received::Packet(Arrived::new(1))
    }

    fn transmit(&mut self, _: Instant, _: &Transmit, packet: &[u8]) -> Sent {
        self.sent.lock().extend_from_slice(packet);
        Sent::Taken
    }

    fn flush(&mut self, _: Instant) {}

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn drain_events(&mut self, _: &mut dyn FnMut(&LinkEvent<'_>)) {}

    fn counters(&self) -> LinkCounters {
        LinkCounters::default()
    }
}

/// What is sent, turn by turn, while so many packets wait on a link.
fn sent(answers: Answers, waiting: usize) -> Vec<Vec<u8>> {
    sent_over(1, answers, waiting)
}

fn sent_over(links: usize, answers: Answers, waiting: usize) -> Vec<Vec<u8>> {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let link =
        |_| Box::new(Waiting { packets: vec![7; waiting].into(), sent: Arc::clone(&sent) }) as Box<dyn Link>;
    let driver = Driver::new(Counting::default(), (0..links).map(link).collect(), Vec::new());
    let mut driver = driver.expect("the kernel gives descriptors").with_answers(answers);
    let mut turns = Vec::new();
    loop {
        let turn = driver.turn(&(0..links).collect::<Vec<_>>());
        turns.push(std::mem::take(&mut *sent.lock()));
        if turn == Turn::Idle {
            return turns;
        }
    }
}

#[test]
fn what_follows_from_a_packet_leaves_before_the_next_is_read() {
    assert_eq!(sent(Answers::EachPacket, 3), [[1; 3]]);
}

#[test]
fn what_was_read_in_a_row_is_answered_together_though_not_later_than_at_the_turns_end() {
    assert_eq!(sent(Answers::EachTurn, 3), [[3]]);
    assert_eq!(sent(Answers::EachTurn, MOST_AT_ONCE + 1), [[MOST_AT_ONCE as u8], [1]]);
}

/// The endpoint has room for as many RSTs, SYN-ACKs with cookies and ICMP messages as one read brings, not for two.
#[test]
fn what_one_read_leads_to_leaves_before_the_next() {
    assert_eq!(sent_over(2, Answers::EachTurn, MOST_AT_ONCE), [vec![MOST_AT_ONCE as u8; 2], vec![]]);
}

//! Packets in numbers that leave in several turns.

use super::*;

/// A machine with so many packets, all at once.
struct Many(u32);

impl Machine for Many {
    fn handle_packet(&mut self, _: Instant, _: &Rx<'_>) {}

    fn handle_link_event(&mut self, _: Instant, _: LinkId, _: &LinkEvent<'_>) {}

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant, _: LinkId, _: Payload, out: &mut Vec<u8>) -> Option<Transmit> {
        self.0 = self.0.checked_sub(1)?;
        out.extend(numbered::packet(self.0));
        Some(numbered::transmit(self.0))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

/// The packets that have left.
type Packets = Arc<Mutex<Vec<Vec<u8>>>>;

/// A driver of 2½ turns of packets, with what has left of them and the link's room.
fn with_many(room: usize) -> (Driver<Many>, Packets, Arc<Mutex<usize>>) {
    let (sent, room) = (Arc::default(), Arc::new(Mutex::new(room)));
    let far = Narrow { room: Arc::clone(&room), sent: Arc::clone(&sent), cuts: true };
    let many = Many(MOST_SENT_AT_ONCE as u32 / 2 * 5);
    let driver = driver_of(many, vec![Box::new(Memory::to(far))], Vec::new());
    (driver, sent, room)
}

#[test]
fn many_packets_leave_in_turns_and_between_two_of_them_nobody_waits() {
    let (mut driver, sent, _) = with_many(usize::MAX);
    assert_eq!(driver.poll_timeout(), None);
    driver.act(|_, _| ());
    let mut turns = vec![sent.lock().len()];
    while driver.poll_timeout().is_some() {
        let mut ready = Vec::new();
        driver.wait(&mut ready).expect("epoll works");
        let before = sent.lock().len();
        driver.iterate(&ready);
        turns.push(sent.lock().len() - before);
    }
    assert_eq!(turns, [MOST_SENT_AT_ONCE, MOST_SENT_AT_ONCE, MOST_SENT_AT_ONCE / 2]);
}

#[test]
fn a_driver_that_finishes_sends_all_though_it_waits_no_longer_than_it_is_told_for_a_full_link() {
    let (mut driver, sent, _) = with_many(usize::MAX);
    driver.finish(Instant::FAR).expect("epoll works");
    assert_eq!(sent.lock().len(), MOST_SENT_AT_ONCE / 2 * 5);
    let (mut driver, sent, room) = with_many(7);
    driver.finish(Instant::ZERO).expect("epoll works");
    assert_eq!(sent.lock().len(), 7);
    *room.lock() = usize::MAX;
    driver.finish(Instant::FAR).expect("epoll works");
    assert_eq!(sent.lock().len(), MOST_SENT_AT_ONCE / 2 * 5);
}

//! The times of packets that came, as observers see them.

use super::*;
use crate::observer::Direction;

/// Its packets leave another host while they are asked for, as the clock advances.
#[derive(Debug)]
struct Leaving {
    clock: Clock,
    left: Arc<Mutex<Vec<Instant>>>,
}

impl Far for Leaving {
    fn says(&mut self) -> Option<Vec<u8>> {
        let mut left = self.left.lock();
        self.clock.advance(Duration::from_nanos(1));
        let at = self.clock.now();
        left.push(at);
        (left.len() <= 2 * AT_ONE_TIME).then(|| vec![7])
    }

    fn hears(&mut self, _: &[u8]) -> Sent {
        Sent::Taken
    }
}

/// Notes the times of what it is shown.
struct Timing {
    takes_times: bool,
    came: Arc<Mutex<Vec<Instant>>>,
}

impl Observer for Timing {
    fn takes_times(&self) -> bool {
        self.takes_times
    }

    fn on_packet(&mut self, seen: &SeenPacket<'_>) {
        if seen.direction == Direction::In {
            self.came.lock().push(seen.at);
        }
    }

    fn on_trace(&mut self, _: &TraceEvent) {}
}

/// The times at which packets left, and those that an observer sees.
fn times(takes_times: bool) -> Vec<(Instant, Instant)> {
    let (clock, left, came) = (Clock::stopped(), Arc::default(), Arc::default());
    let link = Box::new(Memory::to(Leaving { clock, left: Arc::clone(&left) }));
    let observer = Box::new(Timing { takes_times, came: Arc::clone(&came) });
    let driver = Driver::new(Counting::default(), vec![link], vec![observer]);
    driver.expect("the kernel gives descriptors").with_clock(clock).iterate(&[0]);
    let (left, came) = (left.lock().clone(), came.lock().clone());
    assert_eq!(came.len(), 2 * AT_ONE_TIME);
    left.into_iter().zip(came).collect()
}

#[test]
fn no_packet_came_before_it_left_where_each_has_a_time() {
    assert!(times(true).iter().all(|(left, came)| left <= came));
    // Without an observer that takes times, they are read before the packets.
    assert!(times(false).iter().any(|(left, came)| left > came));
}

/// Its packets take long: the processor works for other programs meanwhile.
#[derive(Debug)]
struct Slow {
    clock: Clock,
    said: Arc<Mutex<usize>>,
}

impl Far for Slow {
    fn says(&mut self) -> Option<Vec<u8>> {
        self.clock.advance(LONGEST_READ / 4);
        *self.said.lock() += 1;
        Some(vec![7])
    }

    fn hears(&mut self, _: &[u8]) -> Sent {
        Sent::Taken
    }
}

#[test]
fn a_read_that_takes_long_ends_before_all_packets_are_read() {
    let (clock, said) = (Clock::stopped(), Arc::default());
    let link = Box::new(Memory::to(Slow { clock, said: Arc::clone(&said) }));
    let driver = Driver::new(Counting::default(), vec![link], Vec::new());
    let mut driver = driver.expect("the kernel gives descriptors").with_clock(clock);
    assert_eq!(driver.iterate(&[0]), Iteration::MoreToRead);
    assert_eq!(*said.lock(), AT_ONE_TIME + 1);
}

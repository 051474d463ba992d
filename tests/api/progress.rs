//! The progress of data in `info`, and the reasons that hold it back.

use std::time::Duration;

use hopwise_core::endpoint::{AgentChoice, ConnectOptions};
use hopwise_core::tcp::{BufferLimits, BusyTime, Info, TcpConfig};
use hopwise_testing::memory::End;

use super::net::{Net, Pair, ROUND_TRIP, ms, secs};

const MSS: u64 = 1448;
/// Times are kept in whole milliseconds.
const A_TICK: Duration = Duration::from_millis(1);

fn pair_with(senders: &str) -> Pair {
    let agents = AgentChoice { senders: Some(senders.into()), ..AgentChoice::default() };
    Net::new().pair_with(&ConnectOptions { agents, ..ConnectOptions::default() })
}

/// Keeps the send buffer full for a second; the peer's program reads all bytes, or none.
fn fill(pair: &mut Pair, reads: bool) -> Info {
    let begun = pair.net.now();
    while pair.net.now().since(begun) < secs(1) {
        pair.send(End::A, &[7; 100_000]);
        let until = begun + secs(1);
        pair.net.hosts.step(until);
        if reads {
            pair.read(End::B);
        }
    }
    pair.info(End::A)
}

#[test]
fn the_delivery_rate_is_a_window_a_round_trip() {
    let mut pair = pair_with("[newreno, limit:8]");
    let info = fill(&mut pair, true);
    let expected = 8 * MSS * 1_000 / ROUND_TRIP.as_millis() as u64;
    let rate = info.delivery_rate.expect("measured");
    assert!(rate.abs_diff(expected) < expected / 20, "{rate} against {expected}");
    assert_eq!(info.pacing_rate, None);
}

#[test]
fn the_pacing_rate_is_what_the_agents_let_leave() {
    let mut pair = pair_with("[newreno, limit:8, paced]");
    let info = fill(&mut pair, true);
    let srtt_us = info.path.rtt.smoothed.expect("measured").as_micros() as u64;
    let expected = 8 * MSS * 1_000_000 / srtt_us;
    let rate = info.pacing_rate.expect("it paces");
    assert!(rate.abs_diff(expected) < expected / 50, "{rate} against {expected}");
}

#[test]
fn a_path_that_holds_back_makes_busy_and_nothing_else() {
    let mut pair = pair_with("[newreno, limit:8]");
    let begun = pair.net.now();
    let spent = fill(&mut pair, true).busy_time;
    let elapsed = pair.net.now().since(begun);
    assert!(spent.busy.abs_diff(elapsed) <= A_TICK, "{spent:?}, {elapsed:?}");
    assert_eq!((spent.held_by_window, spent.held_by_buffer), (ms(0), ms(0)));
    pair.net.wait(secs(1));
    let drained = pair.info(End::A).busy_time;
    pair.net.wait(secs(10));
    assert_eq!(pair.info(End::A).busy_time, drained, "rest does not count");
}

#[test]
fn a_peer_that_does_not_read_holds_back_by_its_window() {
    let recv_buffer = BufferLimits { initial: 20_000, max: 20_000 };
    let mut pair = Pair::with_tcp(&TcpConfig { recv_buffer, ..TcpConfig::modern() });
    let BusyTime { busy, held_by_window, held_by_buffer } = fill(&mut pair, false).busy_time;
    assert!(held_by_window > ms(900) && held_by_window < busy, "{held_by_window:?} of {busy:?}");
    assert_eq!(held_by_buffer, ms(0));
}

#[test]
fn a_small_send_buffer_holds_back_a_program_that_would_write() {
    let send_buffer = BufferLimits { initial: 4 * MSS as u32, max: 4 * MSS as u32 };
    let mut pair = Pair::with_tcp(&TcpConfig { send_buffer, ..TcpConfig::modern() });
    let BusyTime { busy, held_by_window, held_by_buffer } = fill(&mut pair, true).busy_time;
    assert!(held_by_buffer > ms(800) && held_by_buffer <= busy, "{held_by_buffer:?} of {busy:?}");
    assert_eq!(held_by_window, ms(0));
}

#[test]
fn who_sends_little_is_not_taken_for_a_slow_path() {
    let mut pair = pair_with("[newreno, limit:8]");
    let full = fill(&mut pair, true).delivery_rate.expect("measured");
    pair.net.wait(secs(1));
    for _ in 0..20 {
        pair.send(End::A, b"a little");
        pair.net.wait(2 * ROUND_TRIP);
    }
    assert!(pair.info(End::A).delivery_rate >= Some(full / 2), "{full}");
}

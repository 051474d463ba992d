//! Trains of several flows of one host over a wire, which has room for more than one of them.

use std::time::Duration;

use hopwise_core::tcp::TcpConfig;
use hopwise_testing::memory::End;

use super::flows::Flows;
use super::net::{B, ms, pattern, secs};

const TURNS: &str = "[train]";
const NO_TURNS: &str = "['train:turns=off']";
/// The bytes and the interval of a flow with little data.
const LITTLE: usize = 10_000;
const EVERY: Duration = Duration::from_millis(150);

/// The bytes that bulk flows carry in ten seconds, once they know the path, while other flows have little data.
fn carried(spec: &str, bulk: usize, little: usize) -> usize {
    let mut flows = Flows::new(&TcpConfig::modern());
    for end in [End::A, End::B] {
        let path = flows.net.hosts.path_from(end);
        (path.impairment.bits_per_second, path.impairment.delay) = (10_000_000, ms(50));
    }
    let little: Vec<_> = (0..little).map(|_| flows.open(spec, B)).collect();
    flows.clients.clear();
    (0..bulk).for_each(|_| {
        flows.open(spec, B);
    });
    flows.run(secs(1));
    for _ in 0..2 {
        flows.got.clear();
        for _ in 0..secs(10).div_duration_f64(EVERY) as u32 {
            let now = flows.net.now();
            for id in &little {
                flows.net.hosts.a.send(now, *id, &pattern(LITTLE, 0)).expect("it is open");
            }
            flows.run(EVERY);
        }
    }
    flows.clients.iter().map(|id| flows.got[&flows.port(*id)]).sum()
}

#[test]
fn flows_in_turn_carry_what_one_does() {
    let alone = carried(TURNS, 1, 0);
    for bulk in [2, 5] {
        let together = carried(TURNS, bulk, 0);
        assert!(100 * together >= 97 * alone, "{bulk} flows: {together} of {alone} bytes");
    }
}

/// A flow without further data holds other flows up only until its ACK is in.
#[test]
fn who_has_little_to_say_takes_little_of_the_others_time() {
    let (turns, no_turns) = (carried(TURNS, 1, 1), carried(NO_TURNS, 1, 1));
    assert!(100 * turns >= 95 * no_turns, "{turns} bytes in turn, {no_turns} without");
}

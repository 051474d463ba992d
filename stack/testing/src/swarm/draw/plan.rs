//! The connections and their programs' plans.

use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::endpoint::Cookies;

use super::{Purpose, seconds};
use crate::memory::{End, Random};
use crate::swarm::scenario::{
    ConnectionPlan, Dialogue, Ending, Host, Opening, ReadHow, ReadPlan, Scenario, Setting, SidePlan,
};

/// Segments of one scenario, all connections and directions together.
const MOST_SEGMENTS: u64 = 2500;
const MOST_BYTES: u64 = 800_000;
const MOST_WRITES: u64 = 200;
/// The least size of a segment in the count; TCP makes no smaller ones on purpose.
const LEAST_UNIT: u64 = 16;

pub(super) fn draw(scenario: &Scenario) -> Vec<ConnectionPlan> {
    let mut random = Purpose::Plan.stream(scenario.seed);
    let count = random.pick(&[1, 1, 1, 2, 2, 3, 5, 8]);
    let mut plans: Vec<ConnectionPlan> = Vec::new();
    for _ in 0..count {
        let plan = connection(&mut random, scenario, &plans, MOST_SEGMENTS / count);
        plans.push(plan);
    }
    plans
}

fn connection(
    random: &mut Random,
    scenario: &Scenario,
    earlier: &[ConnectionPlan],
    most_segments: u64,
) -> ConnectionPlan {
    let opening = opening(random, earlier);
    let opener = match opening {
        Opening::AfterTheEndOf(other) => earlier[other].opener,
        _ => random.pick(&[End::A, End::B]),
    };
    let mut sides = [opener, opener.other()].map(|end| side(random, scenario, end, most_segments / 2));
    if random.one_in(4) {
        alternate(random, &mut sides);
    }
    endings(random, &mut sides);
    let accepter = &scenario.hosts[opener.other() as usize];
    if accepter.cookies != Cookies::Never {
        speak_first(&mut sides[0]);
    }
    let opens_at = match random.below(3) {
        0 => Instant::ZERO,
        _ => Instant::ZERO + random.time_between(Duration::from_millis(1), seconds(20)),
    };
    ConnectionPlan { opener, opens_at, opening, sides }
}

fn opening(random: &mut Random, earlier: &[ConnectionPlan]) -> Opening {
    let is_taken = |number: &usize| {
        earlier.iter().any(|plan| plan.opening == Opening::AfterTheEndOf(*number))
            || earlier[*number].opening == Opening::Simultaneous
            || earlier[*number].sides.iter().any(|side| side.ending.is_rude())
    };
    match random.below(10) {
        0 => Opening::Simultaneous,
        1..4 => {
            let free = (0..earlier.len()).find(|number| !is_taken(number));
            free.map_or(Opening::Ordinary, Opening::AfterTheEndOf)
        }
        _ => Opening::Ordinary,
    }
}

fn side(random: &mut Random, scenario: &Scenario, end: End, most_segments: u64) -> SidePlan {
    let unit = unit(&scenario.hosts[end as usize], &scenario.hosts[end.other() as usize]);
    let segments = match random.below(10) {
        0 | 1 => 0,
        2..5 => random.between(1, most_segments),
        _ => random.log_between(1, most_segments),
    };
    let send_bytes = (segments * unit + random.below(unit)).min(MOST_BYTES) * u64::from(segments > 0);
    let write_bytes = random.log_between((send_bytes / MOST_WRITES).max(1), send_bytes.max(1));
    let writes = send_bytes.div_ceil(write_bytes) as u32;
    let thinks = random.one_in(4) && writes > 0;
    let pauses = random.one_in(4);
    SidePlan {
        send_bytes,
        write_bytes,
        think: if thinks {
            random.time_between(Duration::from_micros(1), seconds(60)) / writes
        } else {
            Duration::ZERO
        },
        dialogue: Dialogue::Free,
        read: ReadPlan {
            bytes: random.log_between(1, 16 << 10).max(1 + MOST_BYTES / 2000) as usize,
            how: random.pick(&[ReadHow::Copy, ReadHow::InPlace]),
            pause_at: random.log_between(0, MOST_BYTES),
            pause: if pauses {
                random.time_between(Duration::from_millis(1), seconds(300))
            } else {
                Duration::ZERO
            },
        },
        urgent_every: if random.one_in(8) { random.between(1, 10) } else { 0 },
        ending: random.pick(&[Ending::HalfClose, Ending::LetGo]),
        settings: settings(random),
    }
}

/// The least payload of a segment, when there is enough to send.
fn unit(sender: &Host, receiver: &Host) -> u64 {
    let mtu = u64::from(sender.link_mtu.min(receiver.link_mtu).min(576)) - 40 - 40;
    let segment = u64::from(sender.tcp.segment_bytes).min(mtu);
    let window = u64::from(receiver.tcp.recv_buffer.initial) / 2;
    let buffer = u64::from(sender.tcp.send_buffer.initial);
    segment.min(window).min(buffer).max(LEAST_UNIT)
}

/// Round trips that a connection takes when every segment waits for the one before.
pub(super) fn rounds(scenario: &Scenario, plan: &ConnectionPlan) -> u64 {
    let ends = [plan.opener, plan.opener.other()];
    let hosts = ends.map(|end| (&scenario.hosts[end as usize], &scenario.hosts[end.other() as usize]));
    let each = hosts.iter().zip(&plan.sides).map(|((sender, receiver), side)| {
        // A silly window of half a tiny buffer, or single bytes that probe for more.
        let unit = unit(sender, receiver).min(u64::from(receiver.tcp.recv_buffer.initial) / 2).max(1);
        side.send_bytes.div_ceil(unit) + side.send_bytes.div_ceil(side.write_bytes)
    });
    each.sum::<u64>() + 20
}

/// Turns free writers into one that requests and one that responds.
fn alternate(random: &mut Random, sides: &mut [SidePlan; 2]) {
    let rounds = random.between(1, 20);
    for side in sides.iter_mut() {
        side.write_bytes = (side.send_bytes / rounds).max(1);
        side.send_bytes = side.write_bytes * rounds;
    }
    let (request, response) = (sides[0].write_bytes, sides[1].write_bytes);
    sides[0].dialogue = Dialogue::Alternate { lead: 0, bytes: response };
    sides[1].dialogue = Dialogue::Alternate { lead: 1, bytes: request };
}

fn endings(random: &mut Random, sides: &mut [SidePlan; 2]) {
    let (this, other) = random.pick(&[(0, 1), (1, 0)]);
    let total = sides[0].send_bytes + sides[1].send_bytes;
    match random.below(16) {
        0 => sides[this].ending = Ending::Abort { after: random.log_between(0, total) },
        1 => sides[this].ending = Ending::LeaveEarly { after: random.log_between(0, total) },
        2..6 => sides[this].ending = Ending::AfterPeer,
        6..9 if sides[other].send_bytes == 0 => sides[this].ending = Ending::WriteAndGo,
        _ => {}
    }
}

/// After a handshake that may have used a cookie, only the opener's data can make up for a lost last ACK.
fn speak_first(opener: &mut SidePlan) {
    let is_silent = opener.ending == Ending::AfterPeer || opener.ending.is_rude();
    if opener.send_bytes == 0 && is_silent {
        opener.ending = Ending::HalfClose;
    }
}

fn settings(random: &mut Random) -> Vec<Setting> {
    if !random.one_in(4) {
        return Vec::new();
    }
    let idle = random.time_between(seconds(1), seconds(100));
    let all = [
        Setting::Nagle(true),
        Setting::Nagle(false),
        Setting::KeepAlive { idle },
        Setting::NoKeepAlive,
        Setting::HopLimit(random.between(1, 255) as u8),
        Setting::Dscp(random.between(0, 63) as u8),
    ];
    (0..random.between(1, 4)).map(|_| random.pick(&all)).collect()
}

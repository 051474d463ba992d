//! The settings of both endpoints and of their drivers.

use std::time::Duration;

use hopwise_core::endpoint::{Cookies, Offload};
use hopwise_core::tcp::{AckMerge, BufferLimits, KeepAlive, RecoveryStyle, RtoConfig, RttMeasure, TcpConfig};

use super::{Purpose, Temper, agents, seconds};
use crate::memory::Random;
use crate::swarm::scenario::{Family, Host, MoodPlan};

pub(super) fn draw(seed: u64, family: Family, temper: Temper) -> [Host; 2] {
    let mut random = Purpose::Host.stream(seed);
    let mut agents = Purpose::Agents.stream(seed);
    let mut bundles = Purpose::Bundles.stream(seed);
    [(), ()].map(|()| Host {
        tcp: tcp(&mut random, temper),
        agents: agents::draw(&mut agents),
        link_mtu: mtu(&mut random, family),
        offload: offload(&mut bundles),
        cookies: random.pick(&[Cookies::WhenFull, Cookies::WhenFull, Cookies::Never, Cookies::Always]),
        half_open: random.pick(&[256, 256, 1, 2]),
        backlog: random.pick(&[128, 128, 1, 3]),
        accept_every: random.pick(&[Duration::ZERO, Duration::ZERO, seconds(1), seconds(5)]),
        mood: mood(&mut random),
    })
}

fn offload(random: &mut Random) -> Offload {
    match random.below(4) {
        0 | 1 => Offload::None,
        2 => Offload::Cut { most_bytes: 65_535 },
        _ => Offload::Cut { most_bytes: random.log_between(100, 100_000) as u32 },
    }
}

fn mtu(random: &mut Random, family: Family) -> u16 {
    match family {
        Family::V4 => random.pick(&[1500, 1500, 1500, 576, 1000, 1492, 9000]),
        Family::V6 => random.pick(&[1500, 1500, 1280, 1492, 9000]),
    }
}

fn mood(random: &mut Random) -> MoodPlan {
    let millis = Duration::from_millis(1);
    MoodPlan {
        late: if random.one_in(4) { random.time_between(millis, millis * 500) } else { Duration::ZERO },
        early_ppm: if random.one_in(4) { 100_000 } else { 0 },
        twice_ppm: if random.one_in(4) { 300_000 } else { 0 },
        stall_ppm: if random.one_in(5) { 20_000 } else { 0 },
        stall: random.time_between(millis, millis * 20_000),
    }
}

fn tcp(random: &mut Random, temper: Temper) -> TcpConfig {
    let segment_bytes = random.pick(&[65_495, 65_495, 1460, 1000, 536, 200, 64]);
    let mut tcp = match random.below(10) {
        0..6 => TcpConfig { segment_bytes, ..TcpConfig::modern() },
        6 => TcpConfig::ns2(segment_bytes.min(1460)),
        _ => switches(random, segment_bytes),
    };
    if random.one_in(2) {
        tcp.send_buffer = limits(random);
    }
    if random.one_in(2) {
        tcp.recv_buffer = limits(random);
    }
    if random.one_in(8) {
        // With these sizes the window field has steps of up to 16 KiB.
        tcp.recv_buffer.max = random.pick(&[1 << 24, 1 << 30]);
    }
    tcp.msl = random.time_between(seconds(1), seconds(30));
    tcp.fin_wait_2 = random.time_between(seconds(60), seconds(600));
    timeouts(&mut tcp, random, temper);
    tcp
}

fn switches(random: &mut Random, segment_bytes: u16) -> TcpConfig {
    let mut on = || random.one_in(2);
    let mut tcp = TcpConfig {
        segment_bytes,
        sack: on(),
        timestamps: on(),
        window_scale: on(),
        ecn: on(),
        rack: on(),
        undo: on(),
        limited_transmit: on(),
        nagle: on(),
        path_mtu_discovery: on(),
        ack_merge: if on() { AckMerge::Read } else { AckMerge::Off },
        recovery: if on() { RecoveryStyle::Inflate { per_ack: 2 } } else { RecoveryStyle::Prr },
        ..TcpConfig::modern()
    };
    tcp.rto = RtoConfig {
        min: random.time_between(Duration::from_millis(1), seconds(1)),
        max: random.time_between(seconds(20), seconds(60)),
        initial: random.time_between(Duration::from_millis(100), seconds(3)),
        measure: if random.one_in(3) {
            RttMeasure::OneTimed { tick: random.pick(&[1, 10, 100, 500].map(Duration::from_millis)) }
        } else {
            RttMeasure::EveryAck
        },
    };
    tcp
}

fn limits(random: &mut Random) -> BufferLimits {
    let initial = random.log_between(40, 64 << 10) as u32;
    BufferLimits { initial, max: initial * random.pick(&[1, 1, 2, 10]) }
}

fn timeouts(tcp: &mut TcpConfig, random: &mut Random, temper: Temper) {
    let asks = random.one_in(4);
    let idle = random.time_between(seconds(1), seconds(60));
    match temper {
        Temper::Patient => {
            tcp.user_timeout = seconds(4 * 3600);
            tcp.syn_timeout = seconds(4 * 3600);
            let patient = KeepAlive { idle, interval: seconds(75), probes: 255 };
            tcp.keep_alive = asks.then_some(patient);
        }
        Temper::Impatient => {
            tcp.user_timeout = random.time_between(seconds(5), seconds(300));
            tcp.syn_timeout = random.time_between(seconds(10), seconds(300));
            let hasty = KeepAlive { idle, interval: seconds(5), probes: 4 };
            tcp.keep_alive = asks.then_some(hasty);
        }
    }
}

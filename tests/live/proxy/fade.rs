//! Fades between real kernels: what comes of the sender's connection, by its own counters, and what the proxy sent.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use super::capture;
use super::{By, Network, Transfer, ways};
use crate::namespace::{Running, can_run};
use crate::world::{is_long, until, within_patience};

/// How a fade is foretold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Foretold {
    /// With its right length.
    Well,
    /// As a fifth as long as it is, after a false alarm.
    Badly,
    Not,
}

/// What the connection carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Traffic {
    /// As much as leaves, to the mobile.
    Bulk,
    /// A question of the mobile's each 50 ms after the answer to the last.
    Interactive,
}

#[derive(Clone, Copy, Debug)]
struct Plan {
    agent: &'static str,
    control: &'static str,
    traffic: Traffic,
    fade: Duration,
    /// So many fades, with as long a pause between them as is counted after the last.
    times: u32,
    foretold: Foretold,
    /// Counted after the link is back.
    after: Duration,
}

impl Plan {
    /// One fade that is foretold well, and bulk data.
    fn new(agent: &'static str, fade: Duration, after: Duration) -> Plan {
        let (traffic, foretold) = (Traffic::Bulk, Foretold::Well);
        Plan { agent, control: "cubic", traffic, fade, times: 1, foretold, after }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Came {
    /// In the time after the last fade.
    bytes: u64,
    /// How long after it nothing came.
    stalled: Duration,
    timeouts: u64,
    spurious: u64,
    retransmitted: u64,
    /// Packets that the sender found to have overtaken others.
    reordered: u64,
}

/// The path's round trip is twice this.
const DELAY: &str = "25ms";
const LEAD: Duration = Duration::from_millis(100);

/// Timeouts, what of them was taken back, what was sent again by timers, and what was found out of order.
fn counters(network: &Network) -> [u64; 4] {
    let sum = |names: &[&str]| names.iter().map(|name| network.counter(name)).sum();
    [
        network.counter("TCPTimeouts"),
        sum(&["TCPSpuriousRTOs", "TCPFullUndo"]),
        sum(&["TCPSlowStartRetrans", "TCPLossProbes"]),
        sum(&["TCPSACKReorder", "TCPRenoReorder", "TCPTSReorder"]),
    ]
}

/// The time that passes here is what is measured.
fn pause(time: Duration) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async { tokio::time::sleep(time).await });
}

/// One fade, and the time after it: what came in that, and how long nothing did.
fn fade(network: &Network, plan: &Plan, transfer: &Transfer) -> (u64, Duration) {
    let told_ms = plan.fade.as_millis() as u64;
    match plan.foretold {
        Foretold::Well => {
            network.tell_down(told_ms);
            pause(LEAD);
        }
        Foretold::Badly => {
            network.tell_down(told_ms);
            pause(Duration::from_secs(1));
            network.tell_of("up");
            network.tell_down(told_ms / 5);
            pause(LEAD);
        }
        Foretold::Not => {}
    }
    network.set_fade(true);
    network.tell_of("gone");
    pause(plan.fade);
    network.set_fade(false);
    network.tell_of("up");
    let at_up = transfer.bytes();
    let step = Duration::from_millis(10);
    let (mut passed, mut stalled) = (Duration::ZERO, None);
    while passed < plan.after {
        pause(step);
        passed += step;
        if transfer.bytes() > at_up {
            stalled = stalled.or(Some(passed));
        }
    }
    (transfer.bytes() - at_up, stalled.unwrap_or(plan.after))
}

fn run(network: &Network, plan: &Plan) -> Came {
    let _proxy = network.proxy(plan.agent, DELAY);
    let (transfer, enough) = match plan.traffic {
        Traffic::Bulk => (network.transfer(plan.control), 3_000_000),
        Traffic::Interactive => (network.conversation(plan.control), 10_000),
    };
    transfer.wait_for(enough);
    let before = counters(network);
    let (mut bytes, mut stalled) = (0, Duration::ZERO);
    for _ in 0..plan.times {
        (bytes, stalled) = fade(network, plan, &transfer);
    }
    let after = counters(network);
    let [timeouts, spurious, retransmitted, reordered] = std::array::from_fn(|nth| after[nth] - before[nth]);
    Came { bytes, stalled, timeouts, spurious, retransmitted, reordered }
}

/// Captures both sides of the router while it lives.
struct Captures([Running; 2]);

impl Captures {
    fn begin(network: &Network) -> Captures {
        Captures(["wire", "radio"].map(|device| {
            let file = network.path(&format!("{device}.pcap"));
            let words = ["tcpdump", "-i", device, "-s", "128", "-B", "16384", "-U", "--immediate-mode", "-w"];
            let mut command = network.router.command(&words);
            command.arg(&file).arg("tcp").stdout(Stdio::null()).stderr(Stdio::null());
            let running = Running(command.spawn().expect("it starts"));
            within_patience(until(|| fs::metadata(&file).is_ok_and(|facts| facts.len() >= 24)));
            running
        }))
    }

    fn end(mut self) {
        self.0.iter_mut().for_each(Running::interrupt);
    }
}

#[test]
fn what_leaves_the_proxy_on_the_wire_the_mobile_has_said() {
    const NAME: &str = "what_leaves_the_proxy_on_the_wire_the_mobile_has_said";
    if !can_run(NAME, &["nft", "ethtool", "tcpdump"]) {
        return;
    }
    let agents = ["ack-hold:mode=kick", "ack-hold:mode=cumulative"];
    for (by, agent) in ways(NAME).into_iter().flat_map(|by| agents.map(|agent| (by, agent))) {
        // One agent is enough to see what the other ways do to packets.
        if by != By::Tun && agent != agents[0] {
            continue;
        }
        let network = Network::by("fade-captured", by);
        let captures = Captures::begin(&network);
        let second = Duration::from_secs(1);
        run(&network, &Plan::new(agent, second, second));
        captures.end();
        let read = |device: &str| {
            capture::segments(&fs::read(network.path(&format!("{device}.pcap"))).expect("a capture"))
        };
        let checked = capture::check([10, 9, 0, 2], &read("radio"), &read("wire"));
        assert!(checked.as_ref().is_ok_and(|count| *count > 100), "{by:?} {agent}: {checked:?}");
    }
}

#[test]
fn after_a_fade_a_kernel_recovers_sooner_with_a_proxy_than_without() {
    const NAME: &str = "after_a_fade_a_kernel_recovers_sooner_with_a_proxy_than_without";
    if !can_run(NAME, &["nft", "ethtool"]) {
        return;
    }
    let came = |agent| {
        let (fade, after) = (Duration::from_secs(3), Duration::from_secs(2));
        run(&Network::new("fade-sooner"), &Plan::new(agent, fade, after))
    };
    let (router, kick, hopwise) = (came("none"), came("ack-hold:mode=kick"), came("ack-hold"));
    println!("none {router:?}\nkick {kick:?}\nhopwise {hopwise:?}");
    for served in [kick, hopwise] {
        assert!(served.bytes > router.bytes, "{served:?} against {router:?}");
        assert!(served.timeouts <= router.timeouts, "{served:?} against {router:?}");
    }
}

#[test]
fn whatever_fades_and_however_it_is_foretold_a_connection_goes_on() {
    const NAME: &str = "whatever_fades_and_however_it_is_foretold_a_connection_goes_on";
    if !can_run(NAME, &["nft", "ethtool"]) {
        return;
    }
    let (fade, after) = (Duration::from_millis(400), Duration::from_secs(1));
    let bulk =
        Plan { times: 2, foretold: Foretold::Badly, ..Plan::new("ack-hold:mode=cumulative", fade, after) };
    let talk = Plan { times: 1, traffic: Traffic::Interactive, ..bulk };
    let split = Plan { agent: "split", foretold: Foretold::Not, times: 1, ..bulk };
    for (name, network, plan) in [
        ("twice", Network::new("fade-twice"), bulk),
        ("a conversation over IPv6", Network::v6("fade-talk"), talk),
        ("a conversation that is kicked", Network::new("fade-kicked"), Plan { agent: "ack-hold", ..talk }),
        ("cut in two", Network::new("fade-split"), split),
        (
            "cut in two over IPv6",
            Network::v6("fade-split-v6"),
            Plan { traffic: Traffic::Interactive, ..split },
        ),
    ] {
        let came = run(&network, &plan);
        println!("{name}: {came:?}");
        assert!(came.bytes > 0 && came.stalled < after, "{name}: {came:?}");
    }
}

#[test]
fn a_minute_without_a_link_costs_a_kernel_no_more_with_the_proxy_than_without() {
    const NAME: &str = "a_minute_without_a_link_costs_a_kernel_no_more_with_the_proxy_than_without";
    if !can_run(NAME, &["nft", "ethtool"]) {
        return;
    }
    if !is_long() {
        println!("skipped: {NAME}: takes three minutes; scripts/test --long runs it");
        return;
    }
    let came = |agent| {
        let (fade, after) = (Duration::from_secs(60), Duration::from_secs(3));
        run(&Network::new("fade-minute"), &Plan::new(agent, fade, after))
    };
    let (router, hopwise) = (came("none"), came("ack-hold"));
    println!("none {router:?}\nhopwise {hopwise:?}");
    assert!(hopwise.bytes > router.bytes && hopwise.timeouts <= router.timeouts, "{hopwise:?}, {router:?}");
}

const CONTROLS: [&str; 3] = ["cubic", "reno", "bbr"];
const FADES_MS: [u64; 4] = [200, 1_000, 10_000, 60_000];
const ARMS: [(&str, &str); 10] = [
    ("none", "none"),
    ("kick", "ack-hold:mode=kick"),
    ("paper", "ack-hold:mode=paper"),
    ("corrected", "ack-hold:mode=corrected"),
    ("cumulative", "ack-hold:mode=cumulative"),
    ("hopwise", "ack-hold"),
    ("snoop", "snoop"),
    ("freeze", "freeze"),
    ("m-tcp", "m-tcp"),
    ("split", "split"),
];
const FORETOLD: [(&str, Foretold); 3] =
    [("well", Foretold::Well), ("badly", Foretold::Badly), ("not", Foretold::Not)];
const TRAFFIC: [(&str, Traffic); 2] = [("bulk", Traffic::Bulk), ("interactive", Traffic::Interactive)];

/// Whether a list in the environment, such as `ARMS=kick,none`, has this one; `default` stands where there is no list.
fn chosen(list: &str, default: &str, name: &str) -> bool {
    std::env::var(list).as_deref().unwrap_or(default).split(',').any(|one| one == name)
}

/// Every combination that was asked for, with the names of its parts.
fn plans() -> Vec<(String, Plan)> {
    let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    let times = std::env::var("TIMES").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let all = ARMS.map(|(arm, _)| arm).join(",");
    let mut plans = Vec::new();
    for control in
        CONTROLS.into_iter().filter(|name| known.contains(name) && chosen("CONTROLS", "cubic", name))
    {
        for ms in FADES_MS.into_iter().filter(|ms| chosen("FADES_MS", "200,1000,10000", &ms.to_string())) {
            for (said, foretold) in
                FORETOLD.into_iter().filter(|(name, _)| chosen("FORETOLD", "well,not", name))
            {
                for (what, traffic) in TRAFFIC.into_iter().filter(|(name, _)| chosen("TRAFFIC", "bulk", name))
                {
                    for (arm, agent) in ARMS.into_iter().filter(|(arm, _)| chosen("ARMS", &all, arm)) {
                        let (fade, after) = (Duration::from_millis(ms), Duration::from_secs(5));
                        let name = format!("{control} {what} {:.1} {times} {said} {arm}", fade.as_secs_f64());
                        let plan = Plan { agent, control, traffic, fade, times, foretold, after };
                        plans.push((name, plan));
                    }
                }
            }
        }
    }
    plans
}

/// What `scripts/trial-kernel-fade` prints.
#[test]
fn every_arm_over_every_fade_and_every_sender() {
    const NAME: &str = "every_arm_over_every_fade_and_every_sender";
    if !can_run(NAME, &["nft", "ethtool"]) {
        return;
    }
    if std::env::var_os("HOPWISE_FADE_TABLE").is_none() {
        println!("skipped: {NAME}: takes half an hour; scripts/trial-kernel-fade runs it");
        return;
    }
    let is_v6 = std::env::var("FAMILY").is_ok_and(|family| family == "6");
    println!("control traffic fade_s times foretold arm kB_after stall_ms timeouts undone resent reordered");
    for (name, plan) in plans() {
        let network = if is_v6 { Network::v6("fade-table") } else { Network::new("fade-table") };
        let Came { bytes, stalled, timeouts, spurious, retransmitted, reordered } = run(&network, &plan);
        let (kb, stalled) = (bytes as f64 / 1e3, stalled.as_millis());
        println!("{name} {kb:.0} {stalled} {timeouts} {spurious} {retransmitted} {reordered}");
    }
}

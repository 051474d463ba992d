//! Fades between real kernels: the state of the sender's connection by its own counters, and the proxy's packets.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use hopwise_agents::registry::{self, Kind};

use super::capture::{self, Segment, Words};
use super::table::Estimate;
use super::{By, Network, Transfer, ways};
use crate::namespace::Running;
use crate::world::{is_long, side_by_side, until, within_patience};

/// The forecast of a fade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Foretold {
    /// The forecast has the right length.
    Well,
    /// The forecast has a fifth of the length, and follows a false alarm.
    Badly,
    Not,
}

/// The traffic of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Traffic {
    /// Bulk data to the mobile.
    Bulk,
    /// A request of the mobile 50 ms after each response.
    Interactive,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) agent: &'static str,
    pub(super) control: &'static str,
    pub(super) traffic: Traffic,
    pub(super) fade: Duration,
    /// The number of fades; the pause between them is as long as `after`.
    pub(super) times: u32,
    pub(super) foretold: Foretold,
    /// The time of the count after the link is back.
    pub(super) after: Duration,
}

impl Plan {
    /// A plan of one fade that is foretold well, with bulk data.
    fn new(agent: &'static str, fade: Duration, after: Duration) -> Plan {
        let (traffic, foretold) = (Traffic::Bulk, Foretold::Well);
        Plan { agent, control: "cubic", traffic, fade, times: 1, foretold, after }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Came {
    /// The bytes in the time after the last fade.
    pub(super) bytes: u64,
    /// The time after it without any bytes.
    pub(super) stalled: Duration,
    pub(super) timeouts: u64,
    pub(super) undone: u64,
    pub(super) retransmitted: u64,
    pub(super) needless: u64,
    /// Packets that the sender found to have overtaken earlier packets.
    pub(super) reordered: u64,
}

/// The path's round trip is twice this.
const DELAY: &str = "25ms";
const LEAD: Duration = Duration::from_millis(100);

/// The kernel's counters: timeouts, windows given back, retransmissions by timers, needless retransmissions, and
/// packets out of order.
fn counters(network: &Network) -> [u64; 5] {
    let sum = |names: &[&str]| names.iter().map(|name| network.counter(name)).sum();
    [
        network.counter("TCPTimeouts"),
        // F-RTO's are counted in the first one.
        sum(&["TCPLossUndo", "TCPFullUndo", "TCPDSACKUndo"]),
        sum(&["TCPSlowStartRetrans", "TCPLossProbes"]),
        sum(&["TCPDSACKRecv", "TCPDSACKOfoRecv"]),
        sum(&["TCPSACKReorder", "TCPRenoReorder", "TCPTSReorder"]),
    ]
}

/// Waits in real time, which is what the test measures.
fn pause(time: Duration) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async { tokio::time::sleep(time).await });
}

/// One fade, and the time after it: the bytes that came in that time, and the time without any.
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

pub(super) fn run(network: &Network, plan: &Plan) -> Came {
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
    if bytes == 0 {
        // The transfer goes on, however late.
        transfer.wait_for(1);
    }
    let [timeouts, undone, retransmitted, needless, reordered] =
        std::array::from_fn(|nth| after[nth] - before[nth]);
    Came { bytes, stalled, timeouts, undone, retransmitted, needless, reordered }
}

/// Captures both sides of the router while it lives.
struct Captures([Running; 2]);

impl Captures {
    fn begin(network: &Network) -> Captures {
        Captures(["wire", "radio"].map(|device| {
            let file = network.path(&format!("{device}.pcap"));
            let words =
                ["tcpdump", "-i", device, "-s", "2000", "-B", "65536", "-U", "--immediate-mode", "-w"];
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

/// All agents but `split`, which is two TCPs and acknowledges bytes that the mobile does not have.
const CHECKED: [(&str, Words); 11] = [
    ("ack-hold:mode=kick", Words::TheMobiles),
    ("ack-hold:mode=paper", Words::TheMobiles),
    ("ack-hold:mode=corrected", Words::TheMobiles),
    ("ack-hold:mode=cumulative", Words::TheMobiles),
    ("ack-hold", Words::TheMobiles),
    ("none", Words::TheMobiles),
    ("snoop", Words::TheMobiles),
    ("delayed-dupacks", Words::TheMobiles),
    ("ack-filter", Words::TheMobiles),
    ("freeze", Words::InItsName),
    ("m-tcp", Words::InItsName),
];

#[test]
fn what_leaves_the_proxy_has_come_in_and_what_the_sender_is_told_the_mobile_has_said() {
    needs!["nft", "ethtool", "tcpdump"];
    let names: Vec<_> = CHECKED.iter().filter_map(|(agent, _)| agent.split(':').next()).collect();
    assert!(registry::names(Kind::BaseStation).all(|name| name == "split" || names.contains(&name)));
    let over_v4 = ways(name_of_test!()).into_iter().flat_map(|by| {
        // Two agents are enough to test the other places of the proxy.
        let agents = if by == By::Tun { &CHECKED[..] } else { &CHECKED[..2] };
        agents.iter().map(move |agent| (Some(by), agent))
    });
    let over_v6 = CHECKED.iter().map(|agent| (None, agent));
    side_by_side(over_v4.chain(over_v6), |(by, (agent, words))| {
        let network = by.map_or_else(|| Network::v6("fade-v6"), |by| Network::by("fade-v4", by));
        check(&network, agent, *words);
    });
}

#[test]
fn what_is_said_in_the_mobile_s_name_is_no_older_than_what_it_said_itself_where_data_goes_both_ways() {
    needs!["nft", "ethtool", "tcpdump"];
    let time = Duration::from_millis(700);
    let spoken_for = CHECKED.into_iter().filter(|(_, words)| *words == Words::InItsName);
    side_by_side(spoken_for, |(agent, words)| {
        let plan = Plan { traffic: Traffic::Interactive, ..Plan::new(agent, time, time) };
        let checked = captured(&Network::new("fade-captured-talk"), &plan, words);
        assert!(
            checked.as_ref().is_ok_and(|counts| counts.iter().all(|count| *count > 10)),
            "{agent}: {checked:?}"
        );
    });
}

/// A short fade in bulk data.
fn check(network: &Network, agent: &'static str, words: Words) {
    let time = Duration::from_millis(700);
    let checked = captured(network, &Plan::new(agent, time, time), words);
    let are_many = checked.as_ref().is_ok_and(|counts| counts.iter().all(|count| *count > 100));
    assert!(are_many, "{agent} at {}: {checked:?}", network.mobile_address);
}

/// A fade, captured on both sides of the router, with the independent reader's verdict.
fn captured(network: &Network, plan: &Plan, words: Words) -> Result<[usize; 2], String> {
    let captures = Captures::begin(network);
    run(network, plan);
    captures.end();
    let read = |device: &str| {
        capture::segments(&fs::read(network.path(&format!("{device}.pcap"))).expect("a capture"))
    };
    let (mut radio, mut wire) = (read("radio"), read("wire"));
    // One of them ends before the other, and traffic goes on meanwhile.
    let last = |segments: &[Segment]| segments.last().map(|segment| segment.at_us);
    let ends = last(&radio).min(last(&wire));
    [&mut radio, &mut wire].into_iter().for_each(|all| all.retain(|segment| Some(segment.at_us) <= ends));
    let mobile = network.mobile_address.parse().expect("an address");
    capture::check(mobile, words, &radio, &wire)
}

#[test]
fn after_a_fade_a_kernel_recovers_sooner_with_a_proxy_than_without() {
    needs!["nft", "ethtool"];
    let came = |agent| {
        let (fade, after) = (Duration::from_secs(3), Duration::from_secs(2));
        run(&Network::new("fade-sooner"), &Plan::new(agent, fade, after))
    };
    // A delay of the machine in one run changes the bytes of two seconds. Any of three rows of runs may therefore show
    // the gain, if it is larger than chance. With --long a test below compares many.
    let is_sooner = || {
        let (router, kick, hopwise) = (came("none"), came("ack-hold:mode=kick"), came("ack-hold"));
        println!("none {router:?}\nkick {kick:?}\nhopwise {hopwise:?}");
        [kick, hopwise].iter().all(|served| {
            served.bytes > router.bytes + router.bytes / 4 && served.timeouts <= router.timeouts
        })
    };
    assert!((0..3).any(|_| is_sooner()), "no row of runs shows it");
}

#[test]
fn whatever_fades_and_however_it_is_foretold_a_connection_goes_on() {
    needs!["nft", "ethtool"];
    let (fade, after) = (Duration::from_millis(400), Duration::from_secs(1));
    let bulk =
        Plan { times: 2, foretold: Foretold::Badly, ..Plan::new("ack-hold:mode=cumulative", fade, after) };
    let talk = Plan { times: 1, traffic: Traffic::Interactive, ..bulk };
    let split = Plan { agent: "split", foretold: Foretold::Not, times: 1, ..bulk };
    let cases = [
        ("twice", Network::new("fade-twice"), bulk),
        ("a conversation over IPv6", Network::v6("fade-talk"), talk),
        ("a conversation that is kicked", Network::new("fade-kicked"), Plan { agent: "ack-hold", ..talk }),
        ("cut in two", Network::new("fade-split"), split),
        (
            "cut in two over IPv6",
            Network::v6("fade-split-v6"),
            Plan { traffic: Traffic::Interactive, ..split },
        ),
    ];
    side_by_side(cases, |(name, network, plan)| {
        // The transfer always goes on, or the run would not end. It does so soon, if nothing holds the machine up in
        // just that second.
        let goes_on_soon = || {
            let came = run(&network, &plan);
            println!("{name}: {came:?}");
            came.bytes > 0 && came.stalled < after
        };
        assert!((0..3).any(|_| goes_on_soon()), "{name}");
    });
}

/// The proxy's duty where it matters most, run by run compared with a router and a kick.
#[test]
fn a_fade_of_ten_seconds_costs_no_more_timeouts_than_a_router_and_brings_what_a_kick_brings() {
    const NAME: &str =
        "a_fade_of_ten_seconds_costs_no_more_timeouts_than_a_router_and_brings_what_a_kick_brings";
    needs!["nft", "ethtool"];
    if !is_long() {
        println!("skipped: {NAME}: takes five minutes; scripts/test --long runs it");
        return;
    }
    let arms = ["none", "ack-hold:mode=kick", "ack-hold"];
    let mut came = [const { Vec::new() }; 3];
    for repeat in 0..5 {
        for nth in (0..arms.len()).map(|nth| (nth + repeat) % arms.len()) {
            let plan = Plan::new(arms[nth], Duration::from_secs(10), Duration::from_secs(5));
            came[nth].push(run(&Network::new("fade-ten"), &plan));
            println!("{}: {:?}", arms[nth], came[nth].last());
        }
    }
    let [router, kick, hopwise] = &came;
    let bytes = |came: &Came| came.bytes as f64;
    let timeouts = |came: &Came| came.timeouts as f64;
    let of_kick = Estimate::of(kick.iter().map(bytes));
    let less = Estimate::of(hopwise.iter().zip(kick).map(|(one, other)| bytes(one) - bytes(other)));
    assert!(less.mean > -0.05 * of_kick.mean || less.high() >= 0.0, "{less:?} than {of_kick:?}");
    for served in [kick, hopwise] {
        let more =
            Estimate::of(served.iter().zip(router).map(|(one, other)| timeouts(one) - timeouts(other)));
        assert!(more.mean <= 0.0 || more.low() <= 0.0, "{more:?} more timeouts than a router");
        assert!(served.iter().zip(router).all(|(one, other)| one.bytes > other.bytes), "{came:?}");
    }
}

#[test]
fn a_minute_without_a_link_costs_a_kernel_no_more_with_the_proxy_than_without() {
    const NAME: &str = "a_minute_without_a_link_costs_a_kernel_no_more_with_the_proxy_than_without";
    needs!["nft", "ethtool"];
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

//! Fades between real kernels: what comes of the sender's connection, by its own counters, and what the proxy sent.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use super::capture;
use super::{Network, down, news};
use crate::namespace::{Running, can_run};
use crate::world::{until, within_patience};

/// How a fade is foretold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Foretold {
    Well,
    Not,
}

#[derive(Clone, Copy, Debug)]
struct Plan {
    agent: &'static str,
    control: &'static str,
    fade: Duration,
    foretold: Foretold,
    /// Counted after the link is back.
    after: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct Came {
    /// In the time after the link was back.
    bytes: u64,
    /// Of it in the first second.
    first_second: u64,
    timeouts: u64,
    spurious: u64,
    retransmitted: u64,
}

/// The path's round trip is twice this.
const DELAY: &str = "25ms";
const LEAD: Duration = Duration::from_millis(100);

fn counters(network: &Network) -> [u64; 3] {
    let spurious = network.counter("TCPSpuriousRTOs") + network.counter("TCPFullUndo");
    [
        network.counter("TCPTimeouts"),
        spurious,
        network.counter("TCPSlowStartRetrans") + network.counter("TCPLossProbes"),
    ]
}

/// The time that passes here is what is measured.
fn pause(time: Duration) {
    within_patience(async { tokio::time::sleep(time).await });
}

fn run(network: &Network, plan: &Plan) -> Came {
    let _proxy = network.proxy(plan.agent, DELAY);
    let transfer = network.transfer(plan.control);
    transfer.wait_for(3_000_000);
    let before = counters(network);
    if plan.foretold == Foretold::Well {
        network.tell(&down(plan.fade.as_millis() as u64));
        pause(LEAD);
    }
    network.set_fade(true);
    network.tell(&news("gone"));
    pause(plan.fade);
    network.set_fade(false);
    network.tell(&news("up"));
    let at_up = transfer.bytes();
    let second = Duration::from_secs(1).min(plan.after);
    pause(second);
    let first_second = transfer.bytes() - at_up;
    pause(plan.after - second);
    let bytes = transfer.bytes() - at_up;
    let [timeouts, spurious, retransmitted] = std::array::from_fn(|nth| counters(network)[nth] - before[nth]);
    Came { bytes, first_second, timeouts, spurious, retransmitted }
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
    for agent in ["ack-hold:mode=kick", "ack-hold:mode=cumulative"] {
        let network = Network::new("fade-captured");
        let captures = Captures::begin(&network);
        let fade = Duration::from_secs(1);
        let after = Duration::from_secs(1);
        run(&network, &Plan { agent, control: "cubic", fade, foretold: Foretold::Well, after });
        captures.end();
        let read = |device: &str| {
            capture::segments(&fs::read(network.path(&format!("{device}.pcap"))).expect("a capture"))
        };
        let checked = capture::check([10, 9, 0, 2], &read("radio"), &read("wire"));
        assert!(checked.as_ref().is_ok_and(|count| *count > 100), "{agent}: {checked:?}");
    }
}

#[test]
fn after_a_fade_a_kernel_recovers_sooner_with_a_proxy_than_without() {
    const NAME: &str = "after_a_fade_a_kernel_recovers_sooner_with_a_proxy_than_without";
    if !can_run(NAME, &["nft", "ethtool"]) {
        return;
    }
    let came = |agent| {
        let network = Network::new("fade-sooner");
        let (fade, after) = (Duration::from_secs(3), Duration::from_secs(2));
        run(&network, &Plan { agent, control: "cubic", fade, foretold: Foretold::Well, after })
    };
    let (router, kick, hopwise) = (came("none"), came("ack-hold:mode=kick"), came("ack-hold"));
    println!("none {router:?}\nkick {kick:?}\nhopwise {hopwise:?}");
    for served in [kick, hopwise] {
        assert!(served.bytes > router.bytes, "{served:?} against {router:?}");
        assert!(served.timeouts <= router.timeouts, "{served:?} against {router:?}");
    }
}

const CONTROLS: [&str; 3] = ["cubic", "reno", "bbr"];
const FADES_MS: [u64; 4] = [200, 1_000, 10_000, 60_000];
const ARMS: [(&str, &str); 9] = [
    ("none", "none"),
    ("kick", "ack-hold:mode=kick"),
    ("paper", "ack-hold:mode=paper"),
    ("corrected", "ack-hold:mode=corrected"),
    ("cumulative", "ack-hold:mode=cumulative"),
    ("hopwise", "ack-hold"),
    ("snoop", "snoop"),
    ("freeze", "freeze"),
    ("m-tcp", "m-tcp"),
];

/// Whether a list in the environment, such as `ARMS=kick,none`, has this one; `default` stands where there is no list.
fn chosen(list: &str, default: &str, name: &str) -> bool {
    std::env::var(list).as_deref().unwrap_or(default).split(',').any(|one| one == name)
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
    let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    println!("control fade_s foretold arm MB_after MB_first_second timeouts undone retransmitted");
    let controls = CONTROLS
        .into_iter()
        .filter(|name| known.contains(name) && chosen("CONTROLS", "cubic,reno,bbr", name));
    for control in controls {
        for fade_ms in FADES_MS.into_iter().filter(|ms| chosen("FADES_MS", "200,1000,10000", &ms.to_string()))
        {
            for foretold in [Foretold::Well, Foretold::Not] {
                let all = ARMS.map(|(arm, _)| arm).join(",");
                for (arm, agent) in ARMS.into_iter().filter(|(arm, _)| chosen("ARMS", &all, arm)) {
                    let (fade, after) = (Duration::from_millis(fade_ms), Duration::from_secs(5));
                    let came =
                        run(&Network::new("fade-table"), &Plan { agent, control, fade, foretold, after });
                    println!(
                        "{control} {:.1} {} {arm} {:.2} {:.2} {} {} {}",
                        fade.as_secs_f64(),
                        if foretold == Foretold::Well { "well" } else { "not" },
                        came.bytes as f64 / 1e6,
                        came.first_second as f64 / 1e6,
                        came.timeouts,
                        came.spurious,
                        came.retransmitted,
                    );
                }
            }
        }
    }
}

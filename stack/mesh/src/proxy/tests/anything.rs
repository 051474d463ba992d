//! Any input, in any order.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    Data(u32),
    Ack(u32, u8),
    /// One of the mobile's last ACKs, byte for byte, late on the radio or brought twice.
    Late(usize),
    /// The mobile's data, with an ACK.
    Reply(u32),
    Flag(u8),
    Down(u64),
    Gone,
    Up,
    Wait,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1_u32..40).prop_map(Step::Data),
        4 => (1_u32..40, 0_u8..3).prop_map(|(nth, blocks)| Step::Ack(nth, blocks)),
        2 => (0_usize..4).prop_map(Step::Late),
        2 => (1_u32..40).prop_map(Step::Reply),
        1 => prop::sample::select(&[0x01_u8, 0x02, 0x04, 0x40, 0x08][..]).prop_map(Step::Flag),
        1 => prop::sample::select(&[0_u64, 300, 10_000, u64::MAX / 2_000_000][..]).prop_map(Step::Down),
        1 => Just(Step::Gone),
        1 => Just(Step::Up),
        2 => Just(Step::Wait),
    ]
}

/// The agents, with the number of copies of an ACK that each may send. The last two agents write ACKs anew; the first
/// ones alter nothing.
const AGENTS: [(&str, usize); 12] = [
    ("none", 1),
    ("ack-hold:mode=paper", 2),
    ("ack-hold:mode=corrected", 2),
    ("ack-hold:mode=paper,duplicates=2,guard=off", 3),
    ("ack-hold:mode=cumulative", 2),
    ("ack-hold:mode=kick", 2),
    ("ack-hold", 2),
    ("snoop", 1),
    ("delayed-dupacks", 1),
    ("ack-filter", 1),
    ("freeze", 2),
    ("m-tcp", 2),
];

/// The last window at the fixed end is open; the mobile here never closes its own.
fn is_open(left: &[(Side, Vec<u8>)]) -> bool {
    left.iter().rfind(|(to, _)| *to == Side::Fixed).is_none_or(|(_, packet)| said_in(packet).1 > 0)
}

/// Returns whether it is a pure ACK of a number that the mobile has sent by then.
fn is_written_in_its_name(packet: &[u8], said: u32) -> bool {
    let read = read::read(packet, Side::Mobile, Checksums::Verify).expect("a segment that is whole");
    read.tcp.payload.is_empty() && read.tcp.flags == Flags::ACK && read.tcp.ack.0 <= said
}

/// The TCP acknowledgment number, by its place in an IPv4 packet without options.
fn number_in(packet: &[u8]) -> u32 {
    u32::from_be_bytes([packet[28], packet[29], packet[30], packet[31]])
}

/// The fixed end gets an ACK as often as the mobile sent it, and once or twice more if an agent repeats ACKs.
fn check_copies(
    (spec, most_copies): (&str, usize),
    said: u32,
    came: &[(Side, Vec<u8>)],
    left: &[(Side, Vec<u8>)],
) -> Result<(), TestCaseError> {
    let acks_in = |packets: &[(Side, Vec<u8>)]| -> Vec<_> {
        // Data with an ACK's number is no copy of that ACK.
        let is_ack = |packet: &[u8]| is_written_in_its_name(packet, said);
        let acks = packets.iter().filter(|(to, packet)| *to == Side::Fixed && is_ack(packet));
        let keys = acks.map(|(_, packet)| said_in(packet));
        keys.map(|(number, window, timestamps)| (number, window, timestamps.map(|told| told.value))).collect()
    };
    let originals = acks_in(came);
    let mut copies = BTreeMap::new();
    for key in acks_in(left) {
        let count = copies.entry(key).or_insert(0);
        *count += 1;
        let heard = originals.iter().filter(|original| **original == key).count().max(1);
        prop_assert!(*count < heard + most_copies, "{spec} said an ACK {count} times");
    }
    Ok(())
}

proptest! {
    /// No packet is altered, invented, sent too often or before the mobile sent it, or kept for ever.
    #[test]
    fn what_leaves_came_in(
        agent in prop::sample::select(&AGENTS[..]),
        steps in prop::collection::vec((any_step(), 0_u64..400), 1..80),
    ) {
        let (spec, _) = agent;
        let mut path = Path::new(spec);
        path.syns(ms(0));
        let (mut came, mut left, mut now, mut said) = (Vec::new(), Vec::new(), ms(0), 1_000);
        // The mobile's ACKs in order, and its newest values before and during each step.
        let mut acks = Vec::new();
        let mut ages = [(path.next, path.clock); 2];
        for (step, later) in steps {
            now += Duration::from_millis(later);
            ages[0] = ages[1];
            let mut out = Vec::new();
            while let Some(due) = path.proxy.poll_timeout().filter(|due| *due <= now) {
                path.proxy.handle_timeout(due);
                out.extend(path.take_out(due));
            }
            let handed = match step {
                Step::Data(nth) => Some((Side::Fixed, path.data(nth))),
                Step::Ack(nth, blocks) => Some((Side::Mobile, with_blocks(&mut path, nth, blocks))),
                Step::Late(back) => acks.iter().rev().nth(back).map(|ack| (Side::Mobile, Vec::clone(ack))),
                Step::Reply(nth) => Some((Side::Mobile, path.reply(nth))),
                Step::Flag(flag) => {
                    Some((Side::Mobile, path.segment(Side::Mobile, path.next, said, Flags(flag) | Flags::ACK, 0)))
                }
                Step::Down(outage_ms) => { out.extend(path.going_down(now, Duration::from_millis(outage_ms))); None }
                Step::Gone => { out.extend(path.gone(now)); None }
                Step::Up => { out.extend(path.up(now)); None }
                Step::Wait => None,
            };
            if let Some((from, packet)) = handed {
                if from == Side::Mobile {
                    said = said.max(number_in(&packet));
                    ages[1] = newest(ages[1], &packet);
                    if let Step::Ack(..) = step { acks.push(packet.clone()); }
                }
                out.extend(path.carry(now, from, &packet));
                came.push((from.other(), packet));
            }
            for (_, packet) in out.iter().filter(|(to, _)| *to == Side::Fixed) {
                prop_assert!(number_in(packet) <= said);
                let has_come = came.contains(&(Side::Fixed, packet.clone()));
                prop_assert!(has_come || ages.contains(&age(packet)), "{spec} wrote an ACK that is older or newer");
            }
            left.extend(out);
            let kept: usize = path.proxy.flows.values().map(ProxyFlow::kept_bytes).sum();
            prop_assert_eq!(path.proxy.entries.bytes(), kept);
            if let Step::Up = step { prop_assert!(is_open(&left), "{spec} left the window closed"); }
        }
        path.gone(now);
        left.extend(path.up(now));
        let writes = ["freeze", "m-tcp"].contains(&spec);
        for (to, packet) in &left {
            let is_written = writes && *to == Side::Fixed && is_written_in_its_name(packet, said);
            prop_assert!(
                is_written || came.contains(&(*to, packet.clone())),
                "{spec} sent what nobody handed in"
            );
        }
        check_copies(agent, said, &came, &left)?;
        if spec.starts_with("ack-hold") {
            prop_assert_eq!(path.proxy.counts().kept_packets, 0);
            prop_assert_eq!(path.proxy.counts().kept_bytes, 0);
        }
    }
}

//! The Wireshark dissector of our TCP options reads what we write.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::Command;

use hopwise_core::Seq;
use hopwise_core::wire::{
    Checksums, Ecn, Flags, HopwiseOption, IpHeader, Notes, OfferFlags, RateRequest, SackBlock, TcpHeader,
    TcpOptions, Timestamps, protocol,
};

const FIELDS: [&str; 10] = [
    "hopwise.offer",
    "hopwise.offer.tell_cwnd",
    "hopwise.offer.use_told",
    "hopwise.rate_offer",
    "hopwise.cwnd",
    "hopwise.dup_count",
    "hopwise.told",
    "hopwise.rate",
    // Wireshark's own word for the same request.
    "tcp.options.tarr.rate",
    "hopwise.malformed",
];

/// Captures whose link layer is IP itself.
const LINKTYPE_RAW: u32 = 101;

fn packet(flags: Flags, options: &TcpOptions) -> Vec<u8> {
    let [src, dst] = [1, 2].map(|last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)));
    let header = TcpHeader {
        src_port: 40_000,
        dst_port: 7,
        seq: Seq(1),
        ack: Seq(1),
        flags,
        window: 1_000,
        urgent: 0,
        options,
    };
    let ip = IpHeader {
        src,
        dst,
        protocol: protocol::TCP,
        hop_limit: 64,
        ecn: Ecn::NotEct,
        dscp: 0,
        dont_fragment: true,
        id: 0,
        source_route: None,
    };
    let mut packet = Vec::new();
    ip.emit(header.len() + 3, &mut packet);
    header.emit(src, dst, (b"abc", &[]), Checksums::Verify, &mut packet);
    packet
}

fn capture(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend([0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, LINKTYPE_RAW].map(u32::to_le_bytes).concat());
    for (packet, second) in packets.iter().zip(0_u32..) {
        let len = packet.len() as u32;
        file.extend([second, 0, len, len].map(u32::to_le_bytes).concat());
        file.extend_from_slice(packet);
    }
    file
}

/// What tshark makes of each packet: the fields' values, joined by commas. None without tshark.
fn dissected(name: &str, packets: &[Vec<u8>]) -> Option<Vec<String>> {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.pcap"));
    std::fs::write(&file, capture(packets)).expect("the build folder takes files");
    let script = concat!("lua_script:", env!("CARGO_MANIFEST_DIR"), "/docs/wireshark/hopwise.lua");
    let mut tshark = Command::new("tshark");
    tshark.args(["-X", script, "-T", "fields", "-E", "separator=,", "-r"]).arg(&file);
    tshark.args(FIELDS.iter().flat_map(|field| ["-e", field]));
    let Ok(done) = tshark.output() else {
        println!("skipped: {name}: tshark is not installed");
        return None;
    };
    let errors = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success() && !errors.contains("Lua"), "{errors}");
    Some(String::from_utf8_lossy(&done.stdout).lines().map(str::to_owned).collect())
}

#[test]
fn offers_notes_and_rate_requests_are_shown() {
    let offer = OfferFlags::TELL_CWND | OfferFlags::USE_CWND | OfferFlags::USE_TOLD;
    let syn = TcpOptions {
        mss: Some(1_460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 1, echo: 0 }),
        hopwise: Some(HopwiseOption::Offer(offer)),
        rate_request: Some(RateRequest::Offer),
        ..TcpOptions::default()
    };
    let notes = |cwnd, dup_count, told| TcpOptions {
        timestamps: Some(Timestamps { value: 2, echo: 1 }),
        sack: [SackBlock { left: Seq(9), right: Seq(19) }].into_iter().collect(),
        hopwise: Some(HopwiseOption::Notes(Notes { cwnd, dup_count, told })),
        ..TcpOptions::default()
    };
    let asks = TcpOptions { rate_request: Some(RateRequest::Ask(5)), ..TcpOptions::default() };
    let packets = [
        packet(Flags::SYN, &syn),
        packet(Flags::ACK, &notes(Some(1_000), Some(3), Some(7))),
        packet(Flags::ACK, &notes(None, Some(255), None)),
        packet(Flags::ACK, &asks),
        packet(Flags::ACK, &TcpOptions::default()),
    ];
    let Some(lines) = dissected("offers_notes_and_rate_requests_are_shown", &packets) else { return };
    assert_eq!(lines, ["0x23,1,1,1,,,,,,", ",,,,1000,3,7,,,", ",,,,,255,,,,", ",,,,,,,5,5,", ",,,,,,,,,"]);
}

#[test]
fn an_option_that_is_not_well_formed_is_called_so() {
    let whole = TcpOptions {
        hopwise: Some(HopwiseOption::Notes(Notes { cwnd: Some(4), dup_count: None, told: None })),
        ..TcpOptions::default()
    };
    let mut packet = packet(Flags::ACK, &whole);
    let place = packet.windows(4).position(|bytes| bytes == [0xfd, 7, 0x48, 0x57]).expect("our option");
    packet[place + 4] = 0xff; // Announces more than there is.
    let Some(lines) = dissected("an_option_that_is_not_well_formed_is_called_so", &[packet]) else { return };
    assert_eq!(lines, [",,,,4,,,,,1"]);
}

//! Wireshark reads our bytes: TCP options, captures' comments and GPSR's header by our dissector, messages of
//! B.A.T.M.A.N. and frames of a mesh network by its own.

mod commented;
mod mesh_frames;

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::Command;

use hopwise_core::agent::{Path, PathEvent};
use hopwise_core::endpoint::PathSeam;
use hopwise_core::wire::{
    Checksums, Ecn, Flags, HopwiseOption, IpHeader, Notes, OfferFlags, RateRequest, SackBlock, TcpHeader,
    TcpOptions, Timestamps, protocol,
};
use hopwise_core::{Instant, LinkId, Seq};
use hopwise_mesh::aodv::Interface;
use hopwise_mesh::{Cx, Routing, RoutingOrder, RoutingSetup, batman};

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
    capture_of(LINKTYPE_RAW, packets)
}

fn capture_of(linktype: u32, packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend([0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, linktype].map(u32::to_le_bytes).concat());
    for (packet, second) in packets.iter().zip(0_u32..) {
        let len = packet.len() as u32;
        file.extend([second, 0, len, len].map(u32::to_le_bytes).concat());
        file.extend_from_slice(packet);
    }
    file
}

/// tshark's values for each packet, joined by commas. None without tshark.
fn dissected(packets: &[Vec<u8>]) -> Option<Vec<String>> {
    let ours = "offer offer.tell_cwnd offer.use_ack_after rate_offer cwnd dup_count ack_after rate malformed";
    dissected_fields(&capture(packets), "hopwise.", ours, [","; 2])
}

/// tshark's values of fields with this prefix, a line for each packet, with the signs between fields and between values
/// of one field. None without tshark.
fn dissected_fields(capture: &[u8], prefix: &str, fields: &str, signs: [&str; 2]) -> Option<Vec<String>> {
    let [separator, aggregator] = signs;
    let mut options: Vec<_> = ["-T", "fields", "-E"].map(str::to_owned).into();
    options.extend([format!("separator={separator}"), "-E".to_owned(), format!("aggregator={aggregator}")]);
    options.extend(fields.split(' ').flat_map(|field| ["-e".to_owned(), format!("{prefix}{field}")]));
    tshark(capture, &options.iter().map(String::as_str).collect::<Vec<_>>())
}

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/wireshark");

/// The lines that tshark prints. None without tshark.
fn tshark(capture: &[u8], options: &[&str]) -> Option<Vec<String>> {
    let test = std::thread::current();
    let name = test.name().unwrap_or("dissector").replace("::", "-");
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.pcap"));
    std::fs::write(&file, capture).expect("the build folder takes files");
    let mut tshark = Command::new("tshark");
    tshark.args(["-X", &format!("lua_script:{FOLDER}/hopwise.lua"), "-r"]).arg(&file).args(options);
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
    let offer = OfferFlags::TELL_CWND | OfferFlags::USE_CWND | OfferFlags::USE_ACK_AFTER;
    let syn = TcpOptions {
        mss: Some(1_460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 1, echo: 0 }),
        hopwise: Some(HopwiseOption::Offer(offer)),
        rate_request: Some(RateRequest::Offer),
        ..TcpOptions::default()
    };
    let notes = |cwnd, dup_count, ack_after| TcpOptions {
        timestamps: Some(Timestamps { value: 2, echo: 1 }),
        sack: [SackBlock { left: Seq(9), right: Seq(19) }].into_iter().collect(),
        hopwise: Some(HopwiseOption::Notes(Notes { cwnd, dup_count, ack_after })),
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
    let Some(lines) = dissected(&packets) else { return };
    assert_eq!(lines, ["0x23,1,1,1,,,,,", ",,,,1000,3,7,,", ",,,,,255,,,", ",,,,,,,5,", ",,,,,,,,"]);
    // Wireshark's own name of the request for a rate.
    let rates = dissected_fields(&capture(&packets), "tcp.options.", "tarr.rate", [","; 2]);
    assert_eq!(rates.unwrap_or_default(), ["", "", "", "5", ""]);
}

#[test]
fn an_option_that_is_not_well_formed_is_called_so() {
    let whole = TcpOptions {
        hopwise: Some(HopwiseOption::Notes(Notes { cwnd: Some(4), dup_count: None, ack_after: None })),
        ..TcpOptions::default()
    };
    let mut packet = packet(Flags::ACK, &whole);
    let place = packet.windows(4).position(|bytes| bytes == [0xfd, 7, 0x48, 0x57]).expect("our option");
    packet[place + 4] = 0xff; // Announces more than there is.
    let Some(lines) = dissected(&[packet]) else { return };
    assert_eq!(lines, [",,,,4,,,,1"]);
}

#[test]
fn what_gpsrs_header_hides_is_seen() {
    let whole = packet(Flags::ACK, &TcpOptions::default());
    let mut header = vec![2, protocol::TCP, 0, 20];
    header.extend([100_i32, -200, 300, 400].map(i32::to_be_bytes).concat());
    let mut hidden = Vec::new();
    let (ip, tcp) = whole.split_at(20);
    hidden.extend([ip, &header, tcp].concat());
    hidden[9] = 254;
    let len = hidden.len() as u16;
    hidden[2..4].copy_from_slice(&len.to_be_bytes());
    let beacon = [&hidden[..20], &[1, 59, 0, 12], &[0; 8]].concat();
    let fields = "gpsr.kind gpsr.sender_y gpsr.destination_x tcp.srcport tcp.len";
    let Some(lines) = dissected_fields(&capture(&[hidden, beacon]), "", fields, [","; 2]) else { return };
    assert_eq!(lines[0], "2,-200,300,40000,3");
}

/// Connections that have received nothing.
struct Nothing;

impl PathSeam for Nothing {
    fn handle_path(&mut self, _: Instant, _: IpAddr, _: Option<(u16, u16)>, _: &PathEvent, _: &Path) {}

    fn ack_hints(&self, _: IpAddr, _: &mut dyn FnMut((u16, u16), Seq)) {}
}

#[test]
fn messages_of_batman_are_those_that_wireshark_knows() {
    let interface = Interface { link: LinkId(0), address: Ipv4Addr::new(10, 0, 0, 1) };
    let setup = RoutingSetup::new(vec![interface], 1);
    let mut node = batman::Batman::new(batman::Settings::default(), setup);
    let packets: Vec<_> = std::iter::from_fn(|| {
        let now = node.poll_timeout().expect("it sends for ever");
        node.handle_timeout(&Cx { now, endpoint: &Nothing });
        Some(node.poll_order(now))
    })
    .take(9)
    .filter_map(|order| if let Some(RoutingOrder::Send { packet, .. }) = order { Some(packet) } else { None })
    .collect();
    let fields = "version flags ttl seq orig old_orig tq hna_len";
    let Some(lines) = dissected_fields(&capture(&packets), "bat.batman.", fields, [","; 2]) else { return };
    assert_eq!(lines[..2], [1, 2].map(|seq| format!("5,0x00,50,{seq},10.0.0.1,10.0.0.1,255,0")));
}

/// A profile's filters are of no use where a field has another name.
#[test]
fn the_profile_is_one_that_wireshark_takes() {
    let colours = std::fs::read_to_string(format!("{FOLDER}/Hopwise/colorfilters")).expect("it is there");
    let packets = commented::capture(&commented::words()[4..5]);
    let mut matched = Vec::new();
    for line in colours.lines() {
        let [_, name, filter, _] = line.split('@').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let Some(lines) = tshark(&packets, &["-Y", filter]) else { return };
        if !lines.is_empty() {
            matched.push(name);
        }
    }
    assert_eq!(matched, ["Dropped", "ACK that the protocol demands", "ACK by an agent"]);
    let preferences = std::fs::read_to_string(format!("{FOLDER}/Hopwise/preferences")).expect("it is there");
    let script = std::fs::read_to_string(format!("{FOLDER}/hopwise.lua")).expect("it is there");
    let settings =
        preferences.lines().filter_map(|line| line.split_once(": ")).filter(|(_, value)| !value.is_empty());
    let settings: Vec<_> = settings
        .filter(|(name, _)| !name.starts_with('#'))
        .map(|(name, value)| format!("{name}:{value}"))
        .collect();
    assert!(settings.iter().any(|setting| setting == "wlan_radio.tsf_at_end:FALSE"), "{settings:?}");
    let options: Vec<_> = settings.iter().flat_map(|setting| ["-o", setting]).collect();
    tshark(&packets, &options);
    for field in preferences.split("%Cus:").skip(1).filter_map(|rest| rest.split(':').next()) {
        assert!(script.contains(&format!("\"{field}\"")), "no field is named {field}");
    }
}

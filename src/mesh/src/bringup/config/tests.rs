use hopwise_host::nl80211::radio::ChannelSetting;
use miette::Diagnostic;

use super::*;

const WHOLE: &str = include_str!("../../../../../configs/keys/mesh.yaml");

fn parse(text: &str) -> Checked<BringupConfig> {
    read(&Document::parse("mesh.yaml", text)?)
}

fn refused(text: &str) -> String {
    let refusal = parse(text).expect_err(text);
    format!("{refusal}; {}", refusal.help().map(|help| help.to_string()).unwrap_or_default())
}

#[test]
fn every_key_reaches_what_is_wanted() {
    let BringupConfig { clock, wanted: WantedState { country, interfaces } } =
        parse(WHOLE).expect("it is sound");
    assert_eq!(clock, ClockDemand::Require);
    assert_eq!(country.as_deref(), Some("DE"));
    let radio = &interfaces[0];
    let network = radio.network.as_ref().expect("a radio");
    let channel = ChannelSetting { mhz: 2_412, width: 0, centre_mhz: 2_412 };
    assert_eq!((network.kind, network.cell.channel), (InterfaceType::IBSS, channel));
    assert_eq!(network.cell.bssid, Some([2, 0xca, 0xfe, 0, 0, 1]));
    assert_eq!((&network.cell.basic[..], network.cell.multicast), (&[2, 4][..], Some(20)));
    assert_eq!(network.rates, Rates { legacy: vec![22], mcs: vec![] });
    assert_eq!((network.power, network.power_save), (Some(1_000), Some(false)));
    assert_eq!(radio.addresses.as_ref().map(Vec::len), Some(2));
    assert_eq!((radio.mtu, radio.forwards), (Some(1_500), Some(true)));
    assert!(radio.without_offloads && radio.without_managers);
    assert!(!interfaces[2].without_offloads, "they stay as they are unless the file says otherwise");
    let mesh = interfaces[1].network.as_ref().expect("a radio");
    assert_eq!((mesh.kind, mesh.cell.forwards), (InterfaceType::MESH, true));
    assert_eq!(mesh.cell.channel, ChannelSetting { mhz: 5_180, width: 2, centre_mhz: 5_190 });
    assert_eq!(mesh.rates.mcs, [0, 1, 2, 3]);
    assert_eq!(interfaces[2].network, None);
}

/// Each of these files is refused with these words.
fn hold(all: &[(&str, &str)]) {
    for (text, wanted) in all {
        let said = refused(text);
        assert!(said.contains(wanted), "{text}: {said}");
    }
}

#[test]
fn a_key_that_does_not_fit_is_refused_with_what_would() {
    hold(&[
        ("interfaces: []", "at least one"),
        ("country: de\ninterfaces: [{ name: e0, mode: wired }]", "capital letters"),
        ("interfaces: [{ name: all, mode: wired }]", "no name of an interface"),
        ("interfaces: [{ name: -all, mode: wired }]", "no name of an interface"),
        ("interfaces: [{ name: e0, mode: wired }, { name: e0, mode: wired }]", "twice"),
        ("interfaces: [{ name: e0, mode: wired, ssid: x }]", "a wired interface has none"),
        ("interfaces: [{ name: e0, mode: wired, power_save: true }]", "a wired interface has none"),
        ("interfaces: [{ name: w0, mode: ibss, channel: 1 }]", "needs a name"),
        ("interfaces: [{ name: w0, mode: ibss, ssid: x }]", "needs a channel"),
        ("interfaces: [{ name: e0, mode: wired, addresses: [10.0.0.1/33] }]", "10.0.0.1/24"),
        ("interfaces: [{ name: e0, mode: wired, addresses: [224.0.0.1/24] }]", "of a host"),
        ("interfaces: [{ name: e0, mode: wired, addresses: [10.0.0.255/24] }]", "of a host"),
        ("interfaces: [{ name: e0, mode: wired, addresses: [10.0.0.1/24, 10.0.0.1/16] }]", "twice"),
        ("interfaces: [{ name: e0, mode: wired, mtu: 1000, addresses: [\"fd00::1/64\"] }]", "1280"),
        ("interfaces: [{ name: e0, mode: adhoc }]", "ibss"),
    ]);
}

#[test]
fn interfaces_and_addresses_are_bounded() {
    let addresses: Vec<_> = (0..256).map(|nth| format!("10.1.{nth}.1/24")).collect();
    let of = |addresses: &str| format!("interfaces: [{{ name: e0, mode: wired, addresses: [{addresses}] }}]");
    assert!(parse(&of(&addresses.join(", "))).is_ok());
    let one_more = of(&format!("{}, 10.2.0.1/24", addresses.join(", ")));
    let interfaces: Vec<_> = (0..257).map(|nth| format!("{{ name: e{nth}, mode: wired }}")).collect();
    let interfaces = format!("interfaces: [{}]", interfaces.join(", "));
    hold(&[(&one_more, "there are 257; at most 256"), (&interfaces, "there are 257; at most 256")]);
}

#[test]
fn a_key_of_a_radio_that_does_not_fit_is_refused_with_what_would() {
    for (mode, keys, wanted) in [
        ("ibss", "channel: 1, frequency: 2412", "twice"),
        ("ibss", "channel: 35", "36, 40"),
        ("ibss", "channel: 1, width: 80mhz", "ht20"),
        ("ibss", "channel: 1, bssid: \"01:00:00:00:00:01\"", "of a group"),
        ("ibss", "channel: 1, bssid: x", "02:ca:fe"),
        ("mesh", "channel: 1, bssid: \"02:00:00:00:00:01\"", "no BSSID"),
        ("ibss", "channel: 1, rates: [7mbit]", "5.5mbit"),
        ("ibss", "channel: 36, rates: [11mbit]", "6mbit, 9mbit"),
        ("ibss", "channel: 36, multicast_rate: 1mbit", "6mbit, 9mbit"),
        ("ibss", "channel: 1, rates: []", "at least one"),
        ("ibss", "channel: 1, mcs: [0]", "width: ht20"),
        ("ibss", "channel: 1, mesh_forwarding: true", "mode: mesh"),
        ("ibss", "channel: 1, tx_power: 31", "0 to 30"),
    ] {
        let text = format!("interfaces: [{{ name: w0, mode: {mode}, ssid: x, {keys} }}]");
        hold(&[(&text, wanted)]);
    }
}

#[test]
fn a_name_of_up_to_32_bytes_is_one() {
    let of = |ssid: &str| {
        parse(&format!("interfaces: [{{ name: w0, mode: ibss, channel: 1, ssid: \"{ssid}\" }}]"))
    };
    assert!(of(&"x".repeat(32)).is_ok() && of("ä b").is_ok());
    assert!(of(&"x".repeat(33)).is_err() && of("").is_err());
}

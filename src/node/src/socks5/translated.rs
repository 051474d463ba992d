//! IPv4 networks within IPv6: addresses that a translator or a tunnel maps to an IPv4 address.
//!
//! An operator's own networks for NAT64 (RFC 6052 §2.2) look like any others, and are treated like these.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopwise_core::ip::Prefix;

/// The place of an IPv4 address in the IPv6 addresses of a network.
#[derive(Clone, Copy)]
struct AddressForm {
    within: [u16; 8],
    bits: u8,
    /// First bit of the IPv4 address.
    at: u8,
    kind: FormKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FormKind {
    Plain,
    /// RFC 4380 §4: all bits are inverted.
    Inverted,
    /// One of several forms within one network: a valid address of another form may have zeros there.
    OneOfSeveral,
    /// The same, and bits 64 to 71 split the address (RFC 6052 §2.2).
    Parted,
}

const fn form(within: [u16; 8], bits: u8, at: u8, kind: FormKind) -> AddressForm {
    AddressForm { within, bits, at, kind }
}

/// RFC 8215 leaves open how long prefixes in this network are.
const LOCAL_NAT64: [u16; 8] = [0x64, 0xff9b, 1, 0, 0, 0, 0, 0];
const TEREDO: [u16; 8] = [0x2001, 0, 0, 0, 0, 0, 0, 0];

const FORMS: [AddressForm; 11] = [
    // RFC 4291 §2.5.5: compatible and mapped addresses.
    form([0; 8], 96, 96, FormKind::Plain),
    form([0, 0, 0, 0, 0, 0xffff, 0, 0], 96, 96, FormKind::Plain),
    // RFC 2765 §2.1: translated ones.
    form([0, 0, 0, 0, 0xffff, 0, 0, 0], 96, 96, FormKind::Plain),
    // RFC 6052 §2.1: NAT64.
    form([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96, 96, FormKind::Plain),
    form(LOCAL_NAT64, 48, 96, FormKind::OneOfSeveral),
    form(LOCAL_NAT64, 48, 48, FormKind::Parted),
    form(LOCAL_NAT64, 48, 56, FormKind::Parted),
    form(LOCAL_NAT64, 48, 64, FormKind::Parted),
    // RFC 3056 §2: 6to4.
    form([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, 16, FormKind::Plain),
    // RFC 4380 §4: a Teredo server and its client.
    form(TEREDO, 32, 32, FormKind::Plain),
    form(TEREDO, 32, 96, FormKind::Inverted),
];

/// The IPv4 networks that an IPv6 network leads to by a translator or a tunnel.
pub(super) fn inner(network: Prefix) -> impl Iterator<Item = Prefix> {
    FORMS.into_iter().filter_map(move |form| form.inner(network))
}

impl AddressForm {
    fn inner(self, network: Prefix) -> Option<Prefix> {
        let within = Prefix::new(IpAddr::V6(Ipv6Addr::from(self.within)), self.bits).ok()?;
        let IpAddr::V6(v6) = network.address() else { return None };
        if network.bits() < self.bits || !within.contains(network.address()) {
            return None;
        }
        let (bits, known) = match self.kind {
            FormKind::Parted => without_octet(v6.to_bits(), network.bits()),
            _ => (v6.to_bits(), network.bits()),
        };
        // It is 32 bits long, and stands within the 128.
        let address = (bits << self.at >> 96) as u32;
        let address = if self.kind == FormKind::Inverted { !address } else { address };
        let is_other_form =
            matches!(self.kind, FormKind::OneOfSeveral | FormKind::Parted) && address >> 24 == 0;
        if is_other_form {
            return None;
        }
        let known = known.saturating_sub(self.at).min(32);
        Prefix::new(IpAddr::V4(Ipv4Addr::from_bits(address)), known).ok()
    }
}

/// The bits without those from 64 to 71, and the remaining length of the network's prefix.
fn without_octet(bits: u128, length: u8) -> (u128, u8) {
    const HIGH: u128 = !(u64::MAX as u128);
    let length = if length > 64 { 64.max(length - 8) } else { length };
    // The octet is shifted out of the lower half.
    let lower = ((bits & !HIGH) as u64) << 8;
    (bits & HIGH | u128::from(lower), length)
}

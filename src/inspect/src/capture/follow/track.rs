//! The way of a segment: each time that its endpoint sends it, and each hop of that.
//!
//! An RTS does not name the packet for which it asks. It belongs to the next data frame to its station. A packet
//! without any data frame is found by turns: a queue lets packets out in the order in which they came.

use std::collections::{BTreeMap, BTreeSet};

use hopwise_air::dcf::FrameKind;
use hopwise_core::StationAddress;
use serde::Serialize;

use super::super::mac::Try;
use super::super::packets::AirFrame;
use super::overheard::Overheard;
use super::segment::{CapturedSegment, FollowedSegment};

pub(super) type Mac = [u8; 6];

/// An answer that a monitor hears later than this is one to another frame.
const ANSWERED_WITHIN_NS: i64 = 20_000_000;

/// A frame or packet of the capture, as far as it matters here.
#[derive(Debug)]
pub(super) struct CapturedPacket<'a> {
    pub(super) at: i64,
    pub interface: usize,
    pub(super) is_inbound: bool,
    /// A monitor heard it, which neither sends nor receives.
    pub(super) is_overheard: bool,
    /// The endpoint's comment, and the MAC's.
    pub(super) said: Option<String>,
    pub(super) mac: Option<String>,
    pub(super) air: Option<OnAir<'a>>,
    pub(super) segment: Option<CapturedSegment>,
}

/// The frame around it, in a radio's capture.
#[derive(Clone, Copy, Debug)]
pub(super) struct OnAir<'a> {
    pub kind: FrameKind,
    pub to: Mac,
    pub(super) frame: AirFrame<'a>,
    pub(super) airtime_ns: i64,
}

/// One time that the endpoint sent it.
#[derive(Debug, Default, Serialize)]
pub(super) struct SegmentSending {
    #[serde(skip)]
    name: u64,
    pub(super) steps: Vec<SendingStep>,
    /// Packets that the station gave up which has it at last, before a packet that came later left.
    pub(super) given_up_behind: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SendingStep {
    /// An IP packet left through this interface.
    Left(InterfacePassage),
    Hop(RadioHop),
    /// An IP packet came in.
    Came(InterfacePassage),
}

/// An IP packet at an interface.
#[derive(Debug, Serialize)]
pub(super) struct InterfacePassage {
    /// Nanoseconds since 1970.
    pub(super) at_ns: i64,
    #[serde(skip)]
    pub interface: usize,
    pub(super) place: String,
    pub(super) hop_limit: u8,
    pub(super) said: Option<String>,
}

/// A packet's way over one radio link.
#[derive(Debug, Default, Serialize)]
pub(super) struct RadioHop {
    #[serde(skip)]
    pub interface: usize,
    #[serde(skip)]
    to_mac: Mac,
    #[serde(skip)]
    number: Vec<u8>,
    pub(super) from: String,
    pub to: String,
    /// From its arrival at this station to its first try; None if its arrival is in no file.
    pub(super) waited_ns: Option<i64>,
    pub(super) first_try_ns: i64,
    #[serde(skip)]
    last_try_ns: i64,
    /// All is known by monitors.
    pub(super) is_overheard: bool,
    pub(super) rts: u32,
    pub(super) data: u32,
    /// The airtime of its tries and their answers.
    pub(super) airtime_ns: i64,
    /// The causes of its tries' losses, in their order.
    pub(super) lost: Vec<String>,
    pub(super) is_given_up: bool,
    pub(super) is_answered: bool,
    /// The end of the frame at the next station.
    pub(super) heard_ns: Option<i64>,
    #[serde(skip)]
    heard_at: Option<usize>,
    /// The endpoint's comment on it there.
    pub(super) taken: Option<String>,
    /// The endpoint's reason for sending it.
    pub(super) said: Option<String>,
}

/// The tries of a packet whose data frame has not left.
#[derive(Debug, Default)]
struct PacketTries {
    to: Mac,
    first: i64,
    count: u32,
    airtime_ns: i64,
    lost: Vec<String>,
}

#[derive(Debug, Default)]
struct RadioTrack {
    own: Option<Mac>,
    tries: PacketTries,
    /// The sending and step whose frame was the last one.
    current: Option<(usize, usize)>,
    /// A sending that came here and was not sent yet, with the packets that came behind it.
    holds: Option<(usize, BTreeSet<u64>)>,
}

pub(super) struct SegmentTrack {
    target: FollowedSegment,
    names: Vec<String>,
    radios: BTreeMap<usize, RadioTrack>,
    overheard: Overheard,
    /// The interface of the endpoint from which it leaves, and the radio that sends its packets.
    source: (Option<usize>, Option<usize>),
    pub(super) sendings: Vec<SegmentSending>,
}

impl SegmentTrack {
    /// `names` are the interfaces' names.
    pub(super) fn new(target: FollowedSegment, names: Vec<String>) -> SegmentTrack {
        let (radios, overheard) = Default::default();
        SegmentTrack { target, names, radios, overheard, source: (None, None), sendings: Vec::new() }
    }

    pub(super) fn hear(&mut self, seen: &CapturedPacket<'_>) {
        let segment = seen.segment.filter(|segment| self.target.is_in(segment));
        match (seen.air, segment) {
            (Some(air), segment) if seen.is_overheard => self.overhear(seen, air, segment),
            (Some(air), segment) if seen.is_inbound => self.hear_in(seen, air, segment),
            (Some(air), segment) => self.hear_out(seen, air, segment),
            (None, Some(segment)) => self.hear_packet(seen, &segment),
            (None, None) => self.hear_behind(seen),
        }
    }

    /// A frame that a monitor heard is one of its sender's, and an answer tells that the frame before it came.
    fn overhear(&mut self, seen: &CapturedPacket<'_>, air: OnAir<'_>, segment: Option<CapturedSegment>) {
        let is_answer = matches!(air.kind, FrameKind::Cts | FrameKind::Ack | FrameKind::BlockAck);
        let Some(station) = (if is_answer { Some(air.to) } else { air.frame.from() }) else { return };
        if self.overheard.is_again(seen.at, seen.interface, air.frame) {
            return;
        }
        let interface = self.overheard.station(station, &mut self.names);
        let seen = CapturedPacket { interface, said: None, mac: None, ..*seen };
        match air.kind {
            FrameKind::Cts => self.hear_in(&seen, air, segment),
            FrameKind::Ack | FrameKind::BlockAck => self.hear_answer(&seen, air),
            _ => self.hear_out(&seen, air, segment),
        }
    }

    /// The answer to a frame of this station, as a monitor heard it. An ACK is for the frame before it.
    fn hear_answer(&mut self, seen: &CapturedPacket<'_>, air: OnAir<'_>) {
        let current = self.radios.get_mut(&seen.interface).and_then(|radio| radio.current.take());
        let is_it = |step: &SendingStep| match step {
            SendingStep::Hop(hop) => {
                hop.interface == seen.interface
                    && air.frame.from() == Some(hop.to_mac)
                    && air.frame.acknowledges_in_block(&hop.number)
            }
            _ => false,
        };
        let mut sendings = self.sendings.iter().enumerate().rev();
        let place = match air.kind {
            FrameKind::Ack => current,
            _ => sendings.find_map(|(nth, it)| Some((nth, it.steps.iter().rposition(is_it)?))),
        };
        let step = place.and_then(|(nth, step)| self.sendings.get_mut(nth)?.steps.get_mut(step));
        if let Some(SendingStep::Hop(hop)) = step
            && seen.at - hop.last_try_ns < ANSWERED_WITHIN_NS
        {
            hop.is_answered = true;
            hop.airtime_ns += air.airtime_ns;
            hop.heard_ns = hop.heard_ns.or(Some(seen.at));
            hop.heard_at = Some(self.overheard.station(hop.to_mac, &mut self.names));
        }
    }

    /// Another packet that leaves the endpoint is behind it at the radio there.
    fn hear_behind(&mut self, seen: &CapturedPacket<'_>) {
        let (Some(endpoint), Some(radio)) = self.source else { return };
        let holds = self.radios.get_mut(&radio).and_then(|radio| radio.holds.as_mut());
        if let (Some((_, behind)), Some(segment)) = (holds, seen.segment)
            && !seen.is_inbound
            && seen.interface == endpoint
        {
            behind.insert(segment.name);
        }
    }

    fn name(&self, interface: usize) -> String {
        self.names.get(interface).cloned().unwrap_or_default()
    }

    fn hear_packet(&mut self, seen: &CapturedPacket<'_>, segment: &CapturedSegment) {
        let passage = InterfacePassage {
            at_ns: seen.at,
            interface: seen.interface,
            place: self.name(seen.interface),
            hop_limit: segment.hops,
            said: seen.said.clone(),
        };
        let was_here = |sending: &SegmentSending| {
            sending.steps.iter().any(|step| match step {
                SendingStep::Left(known) => !seen.is_inbound && known.interface == seen.interface,
                SendingStep::Came(known) => seen.is_inbound && known.interface == seen.interface,
                SendingStep::Hop(_) => false,
            })
        };
        let known = self.sendings.iter().rposition(|it| it.name == segment.name && !was_here(it));
        let nth = known.unwrap_or_else(|| self.begin(segment));
        let step = if seen.is_inbound { SendingStep::Came(passage) } else { SendingStep::Left(passage) };
        self.sendings[nth].steps.push(step);
        if !seen.is_inbound {
            self.source.0 = Some(seen.interface);
            if let Some(radio) = self.source.1 {
                self.radios.entry(radio).or_default().holds = Some((nth, BTreeSet::new()));
            }
        }
    }

    fn begin(&mut self, segment: &CapturedSegment) -> usize {
        self.sendings.push(SegmentSending { name: segment.name, ..SegmentSending::default() });
        self.sendings.len() - 1
    }

    fn hear_out(&mut self, seen: &CapturedPacket<'_>, air: OnAir<'_>, segment: Option<CapturedSegment>) {
        let radio = self.radios.entry(seen.interface).or_default();
        radio.own = air.frame.from().or(radio.own);
        let is_from_source =
            |segment: CapturedSegment| segment.flow.0.ip() == self.target.segment.flow.0.ip();
        // The first station that sends its host's packets is the one at the host.
        if air.kind == FrameKind::Data && self.source.1.is_none() && seen.segment.is_some_and(is_from_source)
        {
            self.source.1 = Some(seen.interface);
        }
        let it = seen.mac.as_deref().and_then(Try::read);
        let lost = it.and_then(|it| it.why_lost()).map(str::to_owned);
        let is_given_up = it.is_some_and(|it| it.is_given_up);
        match air.kind {
            FrameKind::Rts => {
                if radio.tries.to != air.to || radio.tries.count == 0 {
                    radio.tries = PacketTries { to: air.to, first: seen.at, ..PacketTries::default() };
                }
                radio.tries.count += 1;
                radio.tries.airtime_ns += air.airtime_ns;
                radio.tries.lost.extend(lost);
                if is_given_up {
                    self.give_up(seen.interface);
                }
            }
            FrameKind::Data => match segment {
                Some(segment) => {
                    let place = self.place_of_hop(seen, air, &segment);
                    let Some(hop) = self.hop(place) else { return };
                    if seen.is_overheard && hop.data > 0 {
                        hop.lost.push("no answer that its sender heard".to_owned());
                    }
                    hop.last_try_ns = seen.at;
                    hop.data += 1;
                    hop.airtime_ns += air.airtime_ns;
                    hop.lost.extend(lost);
                    hop.is_given_up |= is_given_up;
                }
                None => {
                    radio.tries = PacketTries::default();
                    radio.current = None;
                    let passes =
                        |behind: &BTreeSet<u64>| seen.segment.is_some_and(|it| behind.contains(&it.name));
                    if radio.holds.as_ref().is_some_and(|(_, behind)| passes(behind)) {
                        radio.holds = None;
                    }
                }
            },
            FrameKind::Cts | FrameKind::Ack | FrameKind::BlockAck | FrameKind::BlockAckReq => {}
        }
    }

    fn hop(&mut self, (sending, step): (usize, usize)) -> Option<&mut RadioHop> {
        match self.sendings.get_mut(sending)?.steps.get_mut(step)? {
            SendingStep::Hop(hop) => Some(hop),
            _ => None,
        }
    }

    /// The last RTS of a packet went unanswered. Its data frame may have left before.
    fn give_up(&mut self, interface: usize) {
        let Some(radio) = self.radios.get_mut(&interface) else { return };
        let tries = std::mem::take(&mut radio.tries);
        if let Some(place) = radio.current.take() {
            if let Some(hop) = self.hop(place) {
                add(hop, tries);
                hop.is_given_up = true;
            }
            return;
        }
        let Some((sending, _)) = radio.holds else { return };
        let why = tries.lost.last().map_or(String::new(), |lost| format!(", the last: {lost}"));
        let text = format!("{} RTS without a CTS{why}", tries.count);
        if let Some(sending) = self.sendings.get_mut(sending) {
            sending.given_up_behind.push(text);
        }
    }

    /// The hop of a data frame that leaves: its first try begins one.
    fn place_of_hop(
        &mut self,
        seen: &CapturedPacket<'_>,
        air: OnAir<'_>,
        segment: &CapturedSegment,
    ) -> (usize, usize) {
        let number = air.frame.number().unwrap_or_default();
        let is_it =
            |hop: &RadioHop| hop.interface == seen.interface && hop.to_mac == air.to && hop.number == number;
        let known = self.find(segment, |step| matches!(step, SendingStep::Hop(hop) if is_it(hop)));
        let place = known.unwrap_or_else(|| {
            let sending = self.waiting_at(seen.interface, segment).unwrap_or_else(|| self.begin(segment));
            let hop = self.new_hop(seen, air, sending);
            self.sendings[sending].given_up_behind.clear();
            self.sendings[sending].steps.push(SendingStep::Hop(hop));
            (sending, self.sendings[sending].steps.len() - 1)
        });
        let radio = self.radios.entry(seen.interface).or_default();
        let tries = std::mem::take(&mut radio.tries);
        radio.current = Some(place);
        radio.holds = None;
        if tries.to == air.to
            && let Some(hop) = self.hop(place)
        {
            add(hop, tries);
        }
        place
    }

    /// The step of the newest sending of that packet for which `is_it` holds.
    fn find(
        &self,
        segment: &CapturedSegment,
        is_it: impl Fn(&SendingStep) -> bool,
    ) -> Option<(usize, usize)> {
        let sendings = self.sendings.iter().enumerate().rev();
        sendings
            .filter(|(_, sending)| sending.name == segment.name)
            .find_map(|(nth, sending)| sending.steps.iter().rposition(&is_it).map(|step| (nth, step)))
    }

    /// The first sending of that packet that has come to this radio, or left an endpoint, and is on no further hop.
    fn waiting_at(&self, interface: usize, segment: &CapturedSegment) -> Option<usize> {
        self.sendings.iter().position(|sending| {
            sending.name == segment.name
                && match sending.steps.last() {
                    Some(SendingStep::Hop(hop)) => hop.heard_at == Some(interface),
                    Some(SendingStep::Left(_)) | None => true,
                    Some(SendingStep::Came(_)) => false,
                }
        })
    }

    fn new_hop(&self, seen: &CapturedPacket<'_>, air: OnAir<'_>, sending: usize) -> RadioHop {
        let tries = self.radios.get(&seen.interface).map(|radio| &radio.tries);
        let first = tries.filter(|tries| tries.to == air.to && tries.count > 0);
        let first_try_ns = first.map_or(seen.at, |tries| tries.first);
        let came = match self.sendings[sending].steps.last() {
            Some(SendingStep::Hop(hop)) => hop.heard_ns,
            Some(SendingStep::Left(passage)) => Some(passage.at_ns),
            _ => None,
        };
        let named = seen.mac.as_deref().and_then(Try::read);
        RadioHop {
            interface: seen.interface,
            to_mac: air.to,
            number: air.frame.number().unwrap_or_default().to_vec(),
            from: self.name(seen.interface),
            to: named.map_or_else(|| self.station(air.to), |it| it.to.to_owned()),
            waited_ns: came.map(|came| (first_try_ns - came).max(0)),
            first_try_ns,
            is_overheard: seen.is_overheard,
            said: seen.said.clone(),
            ..RadioHop::default()
        }
    }

    /// The name of a station's interface, or its address.
    fn station(&self, mac: Mac) -> String {
        let known = self.radios.iter().find(|(_, radio)| radio.own == Some(mac));
        known.map_or_else(|| StationAddress(mac).to_string(), |(interface, _)| self.name(*interface))
    }

    fn hear_in(&mut self, seen: &CapturedPacket<'_>, air: OnAir<'_>, segment: Option<CapturedSegment>) {
        let own = self.radios.entry(seen.interface).or_default().own;
        match (air.kind, segment) {
            (FrameKind::Data, Some(segment)) => self.hear_segment(seen, air, &segment),
            (FrameKind::Data, None) => {
                let radio = self.radios.entry(seen.interface).or_default();
                if let (Some((_, behind)), Some(segment)) = (&mut radio.holds, seen.segment)
                    && own == Some(air.to)
                {
                    behind.insert(segment.name);
                }
            }
            (FrameKind::Cts, _) if own == Some(air.to) => {
                let radio = self.radios.entry(seen.interface).or_default();
                radio.tries.airtime_ns += air.airtime_ns;
            }
            (FrameKind::Ack, _) if own == Some(air.to) => {
                let radio = self.radios.entry(seen.interface).or_default();
                if let Some(hop) = radio.current.take().and_then(|place| self.hop(place)) {
                    hop.is_answered = true;
                    hop.airtime_ns += air.airtime_ns;
                }
            }
            _ => {}
        }
    }

    /// A data frame with the segment, for this station or for any station.
    fn hear_segment(&mut self, seen: &CapturedPacket<'_>, air: OnAir<'_>, segment: &CapturedSegment) {
        let number = air.frame.number().unwrap_or_default();
        let is_it = |hop: &RadioHop| hop.to_mac == air.to && hop.number == number;
        let here = self.name(seen.interface);
        let own = self.radios.get(&seen.interface).and_then(|radio| radio.own);
        let Some(place) = self.find(segment, |step| matches!(step, SendingStep::Hop(hop) if is_it(hop)))
        else {
            return;
        };
        let Some(hop) = self.hop(place) else { return };
        if own != Some(air.to) && hop.to != here {
            return;
        }
        hop.taken = hop.taken.take().or_else(|| seen.said.clone());
        if hop.heard_at.is_none() {
            hop.heard_at = Some(seen.interface);
            hop.heard_ns = Some(seen.at + air.airtime_ns);
            self.radios.entry(seen.interface).or_default().holds = Some((place.0, BTreeSet::new()));
        }
    }
}

fn add(hop: &mut RadioHop, tries: PacketTries) {
    hop.rts += tries.count;
    hop.airtime_ns += tries.airtime_ns;
    hop.lost.extend(tries.lost);
}

//! The words that traces, metrics and captures print for the facts' values.

use super::{ChosenBy, Lacking, MtuHow, Scarce, SentWhat, StateName, UndoneBy};
use crate::agent::{By, HopSource};

impl StateName {
    pub const fn name(self) -> &'static str {
        match self {
            StateName::Closed => "closed",
            StateName::Listen => "listen",
            StateName::SynSent => "syn-sent",
            StateName::SynReceived => "syn-received",
            StateName::Established => "established",
            StateName::FinWait1 => "fin-wait-1",
            StateName::FinWait2 => "fin-wait-2",
            StateName::CloseWait => "close-wait",
            StateName::Closing => "closing",
            StateName::LastAck => "last-ack",
            StateName::TimeWait => "time-wait",
        }
    }
}

impl Scarce {
    pub const ALL: [Scarce; 5] =
        [Scarce::Orphans, Scarce::OrphanBytes, Scarce::TimeWaits, Scarce::BufferBytes, Scarce::Handshakes];

    pub const fn name(self) -> &'static str {
        match self {
            Scarce::Orphans => "orphans",
            Scarce::OrphanBytes => "orphan-memory",
            Scarce::TimeWaits => "time-waits",
            Scarce::BufferBytes => "memory",
            Scarce::Handshakes => "handshakes",
        }
    }
}

impl SentWhat {
    pub const fn name(self) -> &'static str {
        match self {
            SentWhat::New => "new",
            SentWhat::Resent => "resent",
            SentWhat::AfterTimeout => "after-timeout",
            SentWhat::Probe => "probe",
            SentWhat::TailProbe => "tail-probe",
            SentWhat::Control => "control",
        }
    }
}

impl ChosenBy {
    pub const fn name(self) -> &'static str {
        match self {
            ChosenBy::Program => "program",
            ChosenBy::Rule(_) => "rule",
            ChosenBy::Default => "default",
        }
    }
}

impl UndoneBy {
    pub const fn name(self) -> &'static str {
        match self {
            UndoneBy::Timestamps => "timestamps",
            UndoneBy::Dsack => "d-sack",
            UndoneBy::Frto => "f-rto",
        }
    }
}

impl MtuHow {
    pub const fn name(self) -> &'static str {
        match self {
            MtuHow::Icmp => "icmp",
            MtuHow::BlackHole => "black-hole",
            MtuHow::Probe => "probe",
            MtuHow::Undone => "undone",
        }
    }
}

impl Lacking {
    pub const fn name(self) -> &'static str {
        match self {
            Lacking::PeerCwnd => "peer-cwnd",
            Lacking::CwndInWindow => "cwnd-in-window",
            Lacking::DupCount => "dup-count",
            Lacking::Told => "told",
            Lacking::RateRequest => "rate-request",
            Lacking::Rtt => "rtt",
            Lacking::Hops => "hops",
            Lacking::OptionsUnderCookie => "options-under-cookie",
            Lacking::Timestamps => "timestamps",
            Lacking::Beginning => "beginning",
            Lacking::Memory => "memory",
        }
    }
}

impl HopSource {
    pub const fn name(self) -> &'static str {
        match self {
            HopSource::Routing => "routing",
            HopSource::Ttl => "ttl",
            HopSource::Config => "config",
        }
    }
}

impl By {
    pub const fn name(self) -> &'static str {
        match self {
            By::Agent => "agent",
            By::Repeat => "repeat",
            By::Forced => "forced",
            By::Piggyback => "piggyback",
        }
    }
}

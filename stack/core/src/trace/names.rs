//! The names of the facts' values in traces, metrics and captures.

use super::{ChosenBy, Lacking, LostBy, MtuHow, Scarce, SentWhat, StateName, UndoneBy};
use crate::agent::{Class, HopSource};

impl StateName {
    /// The name in traces, captures and status.
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
    /// All resources, in the order of their counters.
    pub const ALL: [Scarce; 6] = [
        Scarce::Orphans,
        Scarce::OrphanBytes,
        Scarce::TimeWaits,
        Scarce::BufferBytes,
        Scarce::Handshakes,
        Scarce::Connections,
    ];

    /// The name in traces and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Scarce::Orphans => "orphans",
            Scarce::OrphanBytes => "orphan-memory",
            Scarce::TimeWaits => "time-waits",
            Scarce::BufferBytes => "memory",
            Scarce::Handshakes => "handshakes",
            Scarce::Connections => "connections",
        }
    }
}

impl SentWhat {
    /// All reasons, in the order of [`Totals::sent`](super::Totals::sent).
    pub const ALL: [SentWhat; 6] = [
        SentWhat::New,
        SentWhat::Resent,
        SentWhat::AfterTimeout,
        SentWhat::Probe,
        SentWhat::TailProbe,
        SentWhat::Control,
    ];

    /// The name in traces and metrics.
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
    /// The name in traces; the number of a rule stands beside it.
    pub const fn name(self) -> &'static str {
        match self {
            ChosenBy::Program => "program",
            ChosenBy::Rule(_) => "rule",
            ChosenBy::Default => "default",
        }
    }
}

impl LostBy {
    /// All kinds of evidence, in the order of [`Totals::recoveries`](super::Totals::recoveries).
    pub const ALL: [LostBy; 5] =
        [LostBy::Rack, LostBy::Sack, LostBy::DupAcks, LostBy::PartialAck, LostBy::Agent];

    /// The name in traces and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            LostBy::Rack => "rack",
            LostBy::Sack => "sack",
            LostBy::DupAcks => "dup-acks",
            LostBy::PartialAck => "partial-ack",
            LostBy::Agent => "agent",
        }
    }

    /// The name with its clause, for use after "lost by".
    pub(super) const fn in_words(self) -> &'static str {
        match self {
            LostBy::Rack => "RACK (RFC 8985 §6.2)",
            LostBy::Sack => "SACK (RFC 6675 §4)",
            LostBy::DupAcks => "duplicate ACKs (RFC 5681 §3.2)",
            LostBy::PartialAck => "a partial ACK (RFC 6582 §3.2)",
            LostBy::Agent => "what a sender agent counted",
        }
    }
}

impl Class {
    /// The name in traces.
    pub const fn name(self) -> &'static str {
        match self {
            Class::InOrder => "in-order",
            Class::FillsHole => "fills-hole",
            Class::OutOfOrder => "out-of-order",
            Class::Duplicate => "duplicate",
        }
    }
}

impl UndoneBy {
    /// All kinds of evidence, in the order of [`Totals::undone`](super::Totals::undone).
    pub const ALL: [UndoneBy; 3] = [UndoneBy::Timestamps, UndoneBy::Dsack, UndoneBy::Frto];

    /// The name in traces and captures.
    pub const fn name(self) -> &'static str {
        match self {
            UndoneBy::Timestamps => "timestamps",
            UndoneBy::Dsack => "d-sack",
            UndoneBy::Frto => "f-rto",
        }
    }
}

impl MtuHow {
    /// The name in traces and captures.
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
    /// The name in traces, status and results.
    pub const fn name(self) -> &'static str {
        match self {
            Lacking::PeerCwnd => "peer-cwnd",
            Lacking::CwndInWindow => "cwnd-in-window",
            Lacking::DupCount => "dup-count",
            Lacking::AckAfter => "ack-after",
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
    /// The name in traces, status and results.
    pub const fn name(self) -> &'static str {
        match self {
            HopSource::Routing => "routing",
            HopSource::Ttl => "ttl",
            HopSource::Config => "config",
        }
    }
}

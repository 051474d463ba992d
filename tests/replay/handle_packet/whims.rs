//! Agents that do anything that their contract allows. They join the registered agents: the connection's promises must
//! not depend on an agent's good sense.

use std::sync::Arc;
use std::time::Duration;

use hopwise_agents::StandardAgents;
use hopwise_core::agent::{
    AckNote, AckRequest, AckRule, AckVerdict, AgentMaker, AgentSpecs, Allowance, Arrival, BadSpec, Class,
    DataNote, DupAck, EnsembleMember, FastEnd, FastRetransmit, MakeReceiver, MakeSenders, MakeShadows, Needs,
    Owner, PathEvent, PathReaction, ReceiverAgent, RecvView, SendView, SenderAgent, SenderAgents, Tunables,
    Why,
};
use hopwise_core::{Instant, Seq, ignores};

use crate::input::Bits;

/// Makes registered agents, and whimsical agents with or around them when the seed is not 0.
pub(super) struct Whims {
    seed: u8,
    standard: StandardAgents,
}

impl Whims {
    pub(super) fn new(seed: u8) -> Whims {
        Whims { seed, standard: StandardAgents::default() }
    }
}

impl AgentMaker for Whims {
    fn receiver(&self, spec: &str) -> Result<MakeReceiver, BadSpec> {
        let seed = self.seed;
        match Bits(seed).has(0) {
            true => {
                Ok(Arc::new(move || Box::new(WhimsicalReceiver { mood: Mood::new(seed), deadline: None })))
            }
            false => self.standard.receiver(spec),
        }
    }

    fn shadows(&self, list: &str) -> Result<MakeShadows, BadSpec> {
        self.standard.shadows(list)
    }

    fn senders(&self, list: &str) -> Result<MakeSenders, BadSpec> {
        let seed = self.seed;
        let whimsical = move || WhimsicalSender { mood: Mood::new(seed) };
        if Bits(seed).has(2) {
            return Ok(Arc::new(move |_| {
                let owner = match Bits(seed).has(7) {
                    true => Owner::Member(Box::new(whimsical())),
                    false => Owner::Alone(Box::new(whimsical())),
                };
                SenderAgents { owner, others: Box::default() }
            }));
        }
        let standard = self.standard.senders(list)?;
        if !Bits(seed).has(1) {
            return Ok(standard);
        }
        Ok(Arc::new(move |between| {
            let mut agents = standard(between);
            let mut others = agents.others.into_vec();
            others.push(Box::new(whimsical()));
            agents.others = others.into();
            agents
        }))
    }

    fn default_specs(&self) -> AgentSpecs {
        self.standard.default_specs()
    }
}

/// A state that changes with every event, in a fixed order.
#[derive(Debug)]
struct Mood(u64);

impl Mood {
    fn new(seed: u8) -> Mood {
        Mood(u64::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn turn(&mut self, by: u64) -> u64 {
        self.0 = (self.0 ^ by).wrapping_mul(0xd134_2543_de82_ef95).rotate_left(23) | 1;
        self.now()
    }

    fn now(&self) -> u64 {
        self.0 >> 20
    }
}

fn needs(mood: &Mood) -> Needs {
    let bits = Bits((mood.now() & 0xff) as u8);
    Needs {
        peer_cwnd: bits.has(0),
        cwnd_in_window: bits.has(6),
        dup_count: bits.has(1),
        ack_rate: bits.has(2),
        ack_after: bits.has(3),
        hops: bits.has(4),
        rtt: bits.has(5),
    }
}

#[derive(Debug)]
struct WhimsicalReceiver {
    mood: Mood,
    deadline: Option<Instant>,
}

impl ReceiverAgent for WhimsicalReceiver {
    ignores!(on_ack);

    fn needs(&self) -> Needs {
        needs(&self.mood)
    }

    fn on_arrival(&mut self, arrival: &Arrival, _: &RecvView<'_>) -> AckVerdict {
        let whim = self.mood.turn(u64::from(arrival.bytes));
        self.deadline = (whim & 1 == 0).then(|| arrival.now + Duration::from_micros(whim % 600_000 + 1));
        match (whim >> 1) % 4 {
            0 if arrival.class != Class::Duplicate => AckVerdict::Now(Why::plain(AckRule::Each)),
            1 => AckVerdict::Repeat(Why::plain(AckRule::LostAck)),
            _ => AckVerdict::Hold(Why::new(AckRule::Count, 1, 2)),
        }
    }

    fn on_deadline(&mut self, now: Instant, _: &RecvView<'_>) -> AckVerdict {
        let whim = self.mood.turn(now.0);
        self.deadline = (whim & 1 == 0).then(|| now + Duration::from_millis(whim % 900 + 1));
        match whim >> 1 & 3 {
            0 => AckVerdict::Hold(Why::plain(AckRule::Deadline)),
            1 => AckVerdict::Repeat(Why::plain(AckRule::LostAck)),
            _ => AckVerdict::Now(Why::plain(AckRule::Deadline)),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn note(&self) -> AckNote {
        let whim = self.mood.now();
        AckNote { dup_count: (whim & 1 == 0).then_some((whim >> 1 & 0xff) as u8) }
    }

    fn gauges(&self, _: &mut dyn FnMut(&'static str, u64)) {}
}

#[derive(Debug)]
struct WhimsicalSender {
    mood: Mood,
}

impl SenderAgent for WhimsicalSender {
    ignores!(on_sent, on_acked, on_loss, on_recovered);

    fn needs(&self) -> Needs {
        needs(&self.mood)
    }

    fn tune(&self, tunables: &mut Tunables) {
        let whim = self.mood.now();
        tunables.dup_threshold = (whim % 5) as u8 + 1;
        tunables.rto_factor = (whim % 3) as u8 + 1;
        tunables.rto_held = [0, 2, u8::MAX][(whim >> 3) as usize % 3];
        tunables.fast_end = [FastEnd::FullAck, FastEnd::NewAck][(whim >> 5) as usize % 2];
    }

    fn on_dup_ack(&mut self, dup: &DupAck, _: &SendView<'_>) -> Option<FastRetransmit> {
        let whim = self.mood.turn(u64::from(dup.seen));
        (whim & 3 == 0).then_some(FastRetransmit)
    }

    fn on_path(&mut self, event: &PathEvent, view: &SendView<'_>) -> PathReaction {
        let whim = self.mood.turn(u64::from(view.snd_una.0));
        match *event {
            PathEvent::AckSeq(seq) if whim & 4 == 0 => PathReaction::TakeAsAcknowledged(seq),
            PathEvent::AckSeq(seq) => PathReaction::RaiseHighestAck(seq),
            _ if whim & 3 == 0 => PathReaction::RaiseHighestAck(view.snd_una + (whim >> 2 & 0xffff) as u32),
            _ if whim & 3 == 1 => PathReaction::None,
            _ => PathReaction::Freeze { probe_every: Duration::from_millis(whim % 2000) },
        }
    }

    fn narrow(&self, now: Instant, _: &SendView<'_>, so_far: Allowance) -> Allowance {
        let whim = self.mood.now();
        let wait = Duration::from_millis(whim >> 8 & 0x3ff);
        Allowance {
            flight_bytes: so_far.flight_bytes.min(whim & 0xffff),
            new_from: if whim & 0x30 == 0 { so_far.new_from.max(now + wait) } else { so_far.new_from },
            resend_from: if whim & 0xc0 == 0 {
                so_far.resend_from.max(now + wait)
            } else {
                so_far.resend_from
            },
            burst_bytes: so_far.burst_bytes,
        }
    }

    fn note(&self, first: Seq, _: &SendView<'_>, _: &Allowance, note: &mut DataNote) {
        let whim = self.mood.now() ^ u64::from(first.0);
        note.cwnd = (whim & 1 == 0).then_some(whim as u16);
        note.ack_request = match whim >> 1 & 3 {
            0 => Some(AckRequest::Rate(whim as u8 & 0x7f)),
            1 => Some(AckRequest::After(whim as u8)),
            _ => None,
        };
    }

    fn gauges(&self, _: &mut dyn FnMut(&'static str, u64)) {}
}

impl EnsembleMember for WhimsicalSender {
    /// The answer changes with time alone, too: a waiting flow may not want its turn any more when it comes.
    fn wanted_turn(&self, now: Instant, view: &SendView<'_>) -> Option<Seq> {
        let whim = self.mood.now() ^ now.0 >> 26;
        (whim & 3 != 0).then(|| view.snd_una + (whim >> 2 & 1) as u32)
    }

    /// The agent knows nothing, and may still make the endpoint look at the holder.
    fn share(&mut self, _: &SendView<'_>) -> bool {
        self.mood.now() & 1 == 0
    }

    fn begin(&mut self) {}
}

//! A connection's list of sender agents, composed by intersection: the first owns cwnd and ssthresh, each of the
//! others narrows what those before it allow.

use crate::agent::{
    Acked, Allowance, Common, DataNote, DupAck, FastRetransmit, Loss, Needs, PathEvent, PathReaction,
    Recovered, Reduction, SendView, SenderAgent, Sent, Tunables,
};
use crate::{Instant, Seq};

#[derive(Debug)]
pub(crate) struct Senders(Vec<Box<dyn SenderAgent>>);

impl Senders {
    pub(crate) fn new(list: Vec<Box<dyn SenderAgent>>) -> Senders {
        assert!(!list.is_empty(), "a sender list begins with the owner of cwnd");
        Senders(list)
    }

    pub(crate) fn needs(&self) -> Needs {
        self.0.iter().fold(Needs::default(), |needs, agent| needs.union(agent.needs()))
    }

    pub(crate) fn tune(&self, tunables: &mut Tunables) {
        for agent in &self.0 {
            agent.tune(tunables);
        }
    }

    pub(crate) fn on_sent(&mut self, sent: &Sent, view: &SendView<'_>) {
        for agent in &mut self.0 {
            agent.on_sent(sent, view);
        }
    }

    pub(crate) fn on_acked(&mut self, acked: &Acked, view: &SendView<'_>) {
        for agent in &mut self.0 {
            agent.on_acked(acked, view);
        }
    }

    pub(crate) fn on_dup_ack(&mut self, dup: &DupAck, view: &SendView<'_>) -> Option<FastRetransmit> {
        let mut asked = None;
        for agent in &mut self.0 {
            asked = agent.on_dup_ack(dup, view).or(asked);
        }
        asked
    }

    /// The owner says what ssthresh becomes; anyone else who tries is a bug.
    pub(crate) fn on_loss(&mut self, loss: &Loss, view: &SendView<'_>) -> Reduction {
        let mut owner = None;
        for (nth, agent) in self.0.iter_mut().enumerate() {
            let answer = agent.on_loss(loss, view);
            if nth == 0 {
                owner = answer;
            } else {
                assert!(answer.is_none(), "only the owner of cwnd reduces it, not {agent:?}");
            }
        }
        // An owner that keeps its window says so by repeating the flight.
        owner.unwrap_or(Reduction { ssthresh: loss.flight_before.bytes.max(2 * u64::from(view.mss)) })
    }

    pub(crate) fn on_recovered(&mut self, end: Recovered, view: &SendView<'_>) {
        for agent in &mut self.0 {
            agent.on_recovered(end, view);
        }
    }

    pub(crate) fn on_path(&mut self, event: &PathEvent, view: &SendView<'_>) -> Vec<PathReaction> {
        self.0.iter_mut().map(|agent| agent.on_path(event, view)).collect()
    }

    pub(crate) fn narrow(&self, now: Instant, view: &SendView<'_>, from: Allowance) -> Allowance {
        let [owner, others @ ..] = &*self.0 else { return from };
        // A list of one is what most connections have: its answer is not copied.
        let mut so_far = narrowed_by(&**owner, now, view, from);
        for agent in others {
            so_far = narrowed_by(&**agent, now, view, so_far);
        }
        so_far
    }

    /// The owner's trains are the connection's.
    pub(crate) fn turn(&self, now: Instant, view: &SendView<'_>) -> Option<Seq> {
        self.0.first().and_then(|owner| owner.turn(now, view))
    }

    pub(crate) fn share(&mut self, common: &mut Common, view: &SendView<'_>) -> bool {
        self.0.first_mut().is_some_and(|owner| owner.share(common, view))
    }

    pub(crate) fn note(&self, first: Seq, view: &SendView<'_>, allowed: &Allowance) -> DataNote {
        let mut note = DataNote::default();
        for agent in &self.0 {
            agent.note(first, view, allowed, &mut note);
        }
        note
    }

    pub(crate) fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        for agent in &self.0 {
            agent.gauges(sink);
        }
    }
}

fn narrowed_by(agent: &dyn SenderAgent, now: Instant, view: &SendView<'_>, so_far: Allowance) -> Allowance {
    let narrowed = agent.narrow(now, view, so_far);
    assert!(narrowed.is_within(&so_far), "{agent:?} may only narrow {so_far:?}, not {narrowed:?}");
    narrowed
}

//! A connection's list of sender agents, composed by intersection: the first owns cwnd and ssthresh, each of the
//! others narrows what those before it allow.

use crate::agent::{
    Acked, Allowance, Common, DataNote, DupAck, FastRetransmit, Loss, Needs, PathEvent, PathReaction,
    Recovered, Reduction, SendView, SenderAgent, Sent, Tunables,
};
use crate::{Instant, Seq};

#[derive(Debug)]
pub(crate) struct Senders {
    owner: Box<dyn SenderAgent>,
    /// Most connections have none.
    others: Box<[Box<dyn SenderAgent>]>,
}

impl Senders {
    pub(crate) fn new(list: Vec<Box<dyn SenderAgent>>) -> Senders {
        let mut list = list.into_iter();
        let owner = list.next().expect("a sender list begins with the owner of cwnd");
        Senders { owner, others: list.collect() }
    }

    pub(crate) fn needs(&self) -> Needs {
        self.others.iter().fold(self.owner.needs(), |needs, agent| needs.union(agent.needs()))
    }

    pub(crate) fn tune(&self, tunables: &mut Tunables) {
        for agent in self.all() {
            agent.tune(tunables);
        }
    }

    pub(crate) fn on_sent(&mut self, sent: &Sent, view: &SendView<'_>) {
        self.owner.on_sent(sent, view);
        for agent in &mut self.others {
            agent.on_sent(sent, view);
        }
    }

    pub(crate) fn on_acked(&mut self, acked: &Acked, view: &SendView<'_>) {
        self.owner.on_acked(acked, view);
        for agent in &mut self.others {
            agent.on_acked(acked, view);
        }
    }

    pub(crate) fn on_dup_ack(&mut self, dup: &DupAck, view: &SendView<'_>) -> Option<FastRetransmit> {
        let mut asked = None;
        for agent in self.all_mut() {
            asked = agent.on_dup_ack(dup, view).or(asked);
        }
        asked
    }

    /// The owner says what ssthresh becomes; anyone else who tries is a bug.
    pub(crate) fn on_loss(&mut self, loss: &Loss, view: &SendView<'_>) -> Reduction {
        let reduction = self.owner.on_loss(loss, view);
        for agent in &mut self.others {
            let answer = agent.on_loss(loss, view);
            assert!(answer.is_none(), "only the owner of cwnd reduces it, not {agent:?}");
        }
        // An owner that keeps its window says so by repeating the flight.
        reduction.unwrap_or(Reduction { ssthresh: loss.flight_before.bytes.max(2 * u64::from(view.mss)) })
    }

    pub(crate) fn on_recovered(&mut self, end: Recovered, view: &SendView<'_>) {
        for agent in self.all_mut() {
            agent.on_recovered(end, view);
        }
    }

    pub(crate) fn on_path(&mut self, event: &PathEvent, view: &SendView<'_>) -> Vec<PathReaction> {
        self.all_mut().map(|agent| agent.on_path(event, view)).collect()
    }

    pub(crate) fn narrow(&self, now: Instant, view: &SendView<'_>, from: Allowance) -> Allowance {
        let mut so_far = narrowed_by(&*self.owner, now, view, from);
        for agent in &self.others {
            so_far = narrowed_by(&**agent, now, view, so_far);
        }
        so_far
    }

    /// The owner's trains are the connection's.
    pub(crate) fn turn(&self, now: Instant, view: &SendView<'_>) -> Option<Seq> {
        self.owner.turn(now, view)
    }

    pub(crate) fn share(&mut self, common: &mut Common, view: &SendView<'_>) -> bool {
        self.owner.share(common, view)
    }

    pub(crate) fn note(&self, first: Seq, view: &SendView<'_>, allowed: &Allowance) -> DataNote {
        let mut note = DataNote::default();
        self.owner.note(first, view, allowed, &mut note);
        for agent in &self.others {
            agent.note(first, view, allowed, &mut note);
        }
        note
    }

    pub(crate) fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        for agent in self.all() {
            agent.gauges(sink);
        }
    }

    /// In the order of the list.
    fn all(&self) -> impl Iterator<Item = &Box<dyn SenderAgent>> {
        std::iter::once(&self.owner).chain(&self.others)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Box<dyn SenderAgent>> {
        std::iter::once(&mut self.owner).chain(&mut self.others)
    }
}

fn narrowed_by(agent: &dyn SenderAgent, now: Instant, view: &SendView<'_>, so_far: Allowance) -> Allowance {
    let narrowed = agent.narrow(now, view, so_far);
    assert!(narrowed.is_within(&so_far), "{agent:?} may only narrow {so_far:?}, not {narrowed:?}");
    narrowed
}

//! Sender lists on a bulk transfer over five hops: each segment is allowed, noted, sent and acknowledged, one RTT
//! sample for each.

use std::collections::VecDeque;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use hopwise_agents::StandardAgents;
use hopwise_agents::param::{DefaultValue, Param};
use hopwise_agents::registry::{self, Kind};
use hopwise_core::agent::{
    AckRequestForm, Acked, AgentMaker, Allowance, Count, DataNote, HopSource, HostPair, Path, SendView,
    SenderAgents, Sent, SentKind,
};
use hopwise_core::{Instant, Seq};

use crate::clock::cost_ns;
use crate::row::Row;
use crate::{goal_ns, least_in_turn, more};

const SEGMENTS: u64 = 20_000;
const MSS: u32 = 1_000;
const FLIGHT: Count = Count { segments: 10, bytes: 10_000 };
const GAP: Duration = Duration::from_millis(4);
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const BETWEEN: HostPair = HostPair { link: 0, local: HERE, peer: HERE };

pub(crate) fn rows() -> Vec<Row> {
    let plainest = || cost("[newreno]");
    let mut rows = vec![Row::alone("[newreno]", "ns/segment", least_in_turn(plainest, plainest).0)];
    for agent in registry::all().filter(|agent| agent.kind() == Kind::Sender).skip(1) {
        let needed = if agent.params.iter().any(is_needed) { ":4" } else { "" };
        let list = if agent.owns_cwnd() {
            format!("[{}]", agent.name)
        } else {
            format!("[newreno, {}{needed}]", agent.name)
        };
        rows.push(
            Row::alone(&*list, "ns more", more(|| cost(&list), plainest)).meant_to_be(goal_ns(agent.name)),
        );
    }
    rows
}

fn cost(list: &str) -> f64 {
    let mut sending = Sending::new(list);
    cost_ns(SEGMENTS, || (0..SEGMENTS).for_each(|_| sending.segment()))
}

struct Sending {
    agents: SenderAgents,
    now: Instant,
    snd_una: Seq,
    /// The departures of the segments in flight.
    left: VecDeque<Instant>,
    path: Path,
}

impl Sending {
    fn new(list: &str) -> Sending {
        let hops = Some((5, HopSource::Routing));
        let mut path = Path { hops_to_peer: hops, hops_from_peer: hops, ..Path::default() };
        path.link_bps = std::num::NonZeroU64::new(2_000_000);
        path.rtt.min = Some(Duration::from_millis(40));
        path.rtt.smoothed = Some(Duration::from_millis(60));
        Sending {
            agents: StandardAgents::default().senders(list).expect("a list")(BETWEEN),
            now: Instant::ZERO,
            snd_una: Seq(0),
            left: VecDeque::new(),
            path,
        }
    }

    fn segment(&mut self) {
        self.now += GAP;
        let now = self.now;
        let mut view = SendView::new(MSS, self.snd_una, &self.path);
        view.snd_nxt = self.snd_una + MSS * FLIGHT.segments;
        (view.flight, view.unsent) = (FLIGHT, Count { segments: 100, bytes: 100_000 });
        (view.snd_wnd, view.ack_requests) = (1_000_000, Some(AckRequestForm::After));
        let one = Count { segments: 1, bytes: u64::from(MSS) };
        let rtt = Duration::from_micros(60_000 + u64::from(self.snd_una.0 % 7_919));
        let mut acked = Acked::new(now, one, FLIGHT);
        acked.rtt = Some(rtt);
        self.left.push_back(now);
        acked.newest_sent_at =
            (self.left.len() > FLIGHT.segments as usize).then(|| self.left.pop_front()).flatten();
        self.agents.all_mut().for_each(|agent| agent.on_acked(black_box(&acked), &view));
        let allowed = self
            .agents
            .all()
            .fold(Allowance::UNLIMITED, |allowed, agent| agent.narrow(now, black_box(&view), allowed));
        let mut note = DataNote::default();
        self.agents.all().for_each(|agent| agent.note(view.snd_nxt, &view, &allowed, &mut note));
        black_box((allowed, note));
        let sent = Sent::new(now, one, SentKind::New);
        self.agents.all_mut().for_each(|agent| agent.on_sent(black_box(&sent), &view));
        self.snd_una += MSS;
    }
}

fn is_needed(param: &Param) -> bool {
    param.default == DefaultValue::Required
}

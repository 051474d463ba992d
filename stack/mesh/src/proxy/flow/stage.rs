//! The stage of a flow: whether both ends have spoken, whether it has ended, and whether its ports are used again.

use hopwise_core::Instant;
use hopwise_core::agent::Side;
use hopwise_core::wire::{Flags, TcpView};

use super::Flow;
use crate::proxy::read::{Read, parse, without_data};

impl Flow {
    /// As far as can be known: one end may still send for as long as it likes after the other's FIN. Kept packets are
    /// still to be sent.
    pub(in crate::proxy) fn has_ended(&self) -> bool {
        (self.was_reset || self.has_finished == [true; 2]) && self.kept_packets() == 0
    }

    /// Returns whether both sides were seen and the agent can serve it.
    pub(in crate::proxy) fn earns_a_seat(&self) -> bool {
        self.has_spoken == [true; 2] && self.is_attended()
    }

    /// Returns whether both ends have spoken and the flow has not ended.
    pub(in crate::proxy) fn is_under_way(&self) -> bool {
        self.has_spoken == [true; 2] && !self.has_ended()
    }

    /// Notes a SYN that may begin another connection with the same ports. It may be forged: the flow continues until
    /// the other end answers the SYN (RFC 5961 §4).
    pub(in crate::proxy) fn may_reopen(&mut self, from: Side, syn: &[u8]) {
        self.reopening = without_data(syn).map(|syn| (from, syn.into()));
    }

    /// The SYN that this segment answers, if another connection begins with it.
    pub(in crate::proxy) fn reopens(&self, from: Side, tcp: &TcpView<'_>) -> Option<Box<[u8]>> {
        let (opener, packet) = self.reopening.as_ref()?;
        let (_, syn) = parse(packet)?;
        let is_answer = tcp.flags.contains(Flags::SYN | Flags::ACK) && tcp.ack == syn.seq + 1;
        (from == opener.other() && is_answer).then(|| packet.clone())
    }

    /// Notes the SYN that passed before the flow was in the table.
    pub(in crate::proxy) fn begin(&mut self, now: Instant, from: Side, syn: &Read<'_>) {
        self.has_spoken[from as usize] |= self.facts.see(now, from, syn).is_some();
    }
}

#[cfg(test)]
mod tests {
    use hopwise_agents::StandardAgents;
    use hopwise_core::Seq;
    use hopwise_core::agent::BaseStationMaker;
    use hopwise_core::wire::{Checksums, TcpOptions};

    use super::*;
    use crate::proxy::read;
    use crate::proxy::tests::packet;

    #[test]
    fn of_a_syn_that_may_open_a_flow_again_nothing_is_kept_beside_its_headers() {
        for ends in [["10.0.0.1:5001", "10.0.0.2:40000"], ["[fd00::1]:5001", "[fd00::2]:40000"]] {
            let [fixed, mobile] = ends.map(|end| end.parse().expect("an address and a port"));
            let agent = StandardAgents::default().base_station("none").expect("an agent that there is")();
            let mut flow = Flow::new(1, agent.agent(), 1_000, Instant::ZERO);
            let options = TcpOptions { mss: Some(1_460), ..TcpOptions::default() };
            let syn = packet(fixed, mobile, (77, 0), Flags::SYN, &options, &[1; 1_400]);
            flow.may_reopen(Side::Fixed, &syn);
            let kept = flow.reopening.as_ref().expect("it may").1.len();
            assert_eq!(kept, syn.len() - 1_400);
            let flags = Flags::SYN | Flags::ACK;
            let answer = packet(mobile, fixed, (5, 78), flags, &TcpOptions::default(), &[]);
            let answer = read::read(&answer, Side::Mobile, Checksums::Verify).expect("a segment");
            let kept = flow.reopens(Side::Mobile, &answer.tcp).expect("it answers the SYN");
            let again = read::read(&kept, Side::Fixed, Checksums::Verify).expect("a segment");
            assert_eq!(
                (again.tcp.seq, again.tcp.options.mss, again.key.fixed),
                (Seq(77), Some(1_460), fixed)
            );
        }
    }
}

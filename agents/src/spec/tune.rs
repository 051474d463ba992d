//! Finds the recovery settings that an agent fixes, and disagreements between two agents.

use std::time::Duration;

use hopwise_core::agent::{FastEnd, SenderAgent, Tunables};

/// Two settings that differ in every field. A field that is equal after an agent has tuned both was set by the agent.
const PROBES: [Tunables; 2] = [probe(101, FastEnd::FullAck), probe(103, FastEnd::NewAck)];

const fn probe(number: u8, fast_end: FastEnd) -> Tunables {
    let rto_min = Duration::from_secs(number as u64);
    Tunables { dup_threshold: number, rto_min, rto_factor: number, rto_held: number, fast_end }
}

/// The name of the first setting that the two agents set differently.
pub(super) fn disagreement(one: &dyn SenderAgent, other: &dyn SenderAgent) -> Option<&'static str> {
    let (one, other) = (probed(one), probed(other));
    let differ = [
        ("duplicate-ACK threshold", differs(one, other, |it| it.dup_threshold)),
        ("least RTO", differs(one, other, |it| it.rto_min)),
        ("RTO factor", differs(one, other, |it| it.rto_factor)),
        ("timeouts that hold the RTO", differs(one, other, |it| it.rto_held)),
        ("end of fast recovery", differs(one, other, |it| it.fast_end)),
    ];
    differ.into_iter().find(|(_, differ)| *differ).map(|(name, _)| name)
}

fn probed(agent: &dyn SenderAgent) -> [Tunables; 2] {
    PROBES.map(|mut tunables| {
        agent.tune(&mut tunables);
        tunables
    })
}

fn differs<T: PartialEq>(one: [Tunables; 2], other: [Tunables; 2], field: fn(&Tunables) -> T) -> bool {
    let set = |probed: [Tunables; 2]| {
        let [first, second] = probed.map(|tunables| field(&tunables));
        (first == second).then_some(first)
    };
    matches!((set(one), set(other)), (Some(one), Some(other)) if one != other)
}

#[cfg(test)]
mod tests {
    use hopwise_core::Instant;
    use hopwise_core::agent::{Allowance, Needs, SendView};
    use hopwise_core::ignores;

    use super::*;

    #[derive(Debug)]
    struct Insists(fn(&mut Tunables));

    impl SenderAgent for Insists {
        ignores!(on_sent, on_acked, on_dup_ack, on_loss, on_recovered, on_path, note);

        fn needs(&self) -> Needs {
            Needs::default()
        }

        fn tune(&self, tunables: &mut Tunables) {
            self.0(tunables);
        }

        fn narrow(&self, _: Instant, _: &SendView<'_>, so_far: Allowance) -> Allowance {
            so_far
        }

        fn gauges(&self, _: &mut dyn FnMut(&'static str, u64)) {}
    }

    const NOTHING: Insists = Insists(|_| {});
    const TWO: Insists = Insists(|it| it.dup_threshold = 2);
    const HELD: Insists = Insists(|it| it.rto_held = u8::MAX);

    #[test]
    fn agents_that_set_the_same_or_different_things_agree() {
        for pair in [[NOTHING, TWO], [TWO, TWO], [TWO, HELD], [HELD, HELD]] {
            assert_eq!(disagreement(&pair[0], &pair[1]), None, "{pair:?}");
        }
    }

    #[test]
    fn each_setting_can_be_disagreed_on() {
        let pairs: [[fn(&mut Tunables); 2]; 5] = [
            [|it| it.dup_threshold = 2, |it| it.dup_threshold = 3],
            [|it| it.rto_min = Duration::ZERO, |it| it.rto_min = Duration::from_secs(1)],
            [|it| it.rto_factor = 5, |it| it.rto_factor = 1],
            [|it| it.rto_held = u8::MAX, |it| it.rto_held = 0],
            [|it| it.fast_end = FastEnd::NewAck, |it| it.fast_end = FastEnd::FullAck],
        ];
        let named: Vec<_> =
            pairs.iter().filter_map(|[one, other]| disagreement(&Insists(*one), &Insists(*other))).collect();
        let all = [
            "duplicate-ACK threshold",
            "least RTO",
            "RTO factor",
            "timeouts that hold the RTO",
            "end of fast recovery",
        ];
        assert_eq!(named, all);
    }
}

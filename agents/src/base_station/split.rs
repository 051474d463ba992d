//! `split`: splits the connection at the base station, and is a TCP to each end.
//!
//! Source: Bakre and Badrinath, I-TCP: Indirect TCP for Mobile Hosts.
//!
//! Rule: when an end opens a connection, the base station opens one to the other end in its name, and answers when that
//! is established. From then on it acknowledges what each end sends, and forwards it over its connection to the other
//! end. Each connection has its own window, timer and losses. The base station may hold `buffer` bytes that one end
//! counts as delivered and the other end has not got.
//!
//! Deviations: the original hands a connection over when the mobile moves to another base station; here there is only
//! one. **It acknowledges what the mobile has not got**, which no other agent does. A sender may therefore be wrong
//! about what has arrived, and a connection does not survive the proxy. Both halves are Hopwise's own TCP (`delayed`,
//! `cubic`), so every measurement of `split` is one of that TCP, too. A flow whose beginning was not seen passes
//! untouched. News of the link change nothing: each half finds out by itself.

use hopwise_core::agent::{AgentMaker, Requires, Serves, Split};

use super::none::Nothing;
use crate::StandardAgents;
use crate::descriptor::{Descriptor, Make};
use crate::param::{Form, params};

params! {
    /// bytes that each half may hold to receive, and as many to send
    buffer: u32 = Form::count("bytes", 4_096, 16 << 20).is(256 << 10),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "split",
    rule: "is a TCP to either end, and acknowledges what the other end has not got",
    source: "Bakre and Badrinath, I-TCP",
    params: Params::TABLE,
    shorthand: None,
    make: Make::BaseStation(|args| {
        let maker = || -> Box<dyn AgentMaker> { Box::new(StandardAgents::new(args.profile)) };
        Serves::Split(Split {
            buffer_bytes: Params::of(args).buffer,
            makers: [maker(), maker()],
            unsplit: Box::new(Nothing { requires: Requires { timestamps: false, beginning: true } }),
        })
    }),
};

#[cfg(test)]
mod tests {
    use hopwise_core::agent::{BaseStationMaker, Serves};

    use crate::StandardAgents;
    use crate::testkit::base_station::Desk;

    #[test]
    fn what_cannot_be_cut_any_more_passes_whatever_the_link_does() {
        let mut desk = Desk::new("split");
        assert_eq!(desk.data(0, 1), "forward");
        assert_eq!([desk.going_down(5, 1_000), desk.gone(20)], ["", ""]);
        assert_eq!([desk.ack(25, 2), desk.data(30, 2)], ["forward", "forward"]);
        assert_eq!(desk.up(40), "");
    }

    #[test]
    fn split_alone_cuts_and_says_how_much_it_may_hold() {
        let agents = StandardAgents::default();
        let buffer = |spec: &str| match agents.base_station(spec).expect("a spec")() {
            Serves::Split(split) => Some(split.buffer_bytes),
            Serves::Agent(_) => None,
        };
        assert_eq!([buffer("split"), buffer("split:buffer=5000")], [Some(262_144), Some(5_000)]);
        assert_eq!([buffer("none"), buffer("m-tcp")], [None, None]);
        assert!(agents.base_station("split:buffer=1").is_err());
    }
}

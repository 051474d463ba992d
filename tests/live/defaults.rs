//! The defaults of a program that sets nothing.

use hopwise_core::LinkId;
use hopwise_core::endpoint::EndpointConfig;
use hopwise_core::impairment::Impairment;
use hopwise_core::ip::Prefix;
use hopwise_core::tcp::AckMerge;
use hopwise_host::{Fault, Link, StackConfig, Tun, TunFast, describe};

use crate::bench_setup;
use crate::namespace::Namespace;
use crate::world::tun_config;

fn plain() -> Box<dyn Link> {
    Box::new(Tun::open(&tun_config()).expect("root may open a TUN device"))
}

fn fast() -> Box<dyn Link> {
    Box::new(TunFast::open(&tun_config()).expect("root may open a TUN device"))
}

fn faulty() -> Box<dyn Link> {
    let clean = Impairment::NONE;
    Box::new(Fault::wrap(plain(), clean, clean, 1).expect("the settings are sound"))
}

fn addresses() -> Vec<Prefix> {
    vec!["10.7.0.1/24".parse().expect("a prefix")]
}

/// Figures of a benchmark with other settings do not show what programs reach.
#[test]
fn the_benchmark_measures_the_endpoint_that_every_program_gets() {
    needs![];
    for open in [plain, fast] {
        // A child of another test may hold the last device for a moment, between its fork and its exec.
        let namespace = Namespace::new();
        let link = namespace.run(open);
        let measured = bench_setup::config(&*link, addresses());
        let key = measured.endpoint.key;
        let given = StackConfig::new(EndpointConfig::new(describe(&*link, LinkId(0), addresses()), key));
        assert_eq!(format!("{:?}", measured.endpoint), format!("{:?}", given.endpoint));
        assert_eq!(measured.busy_poll, given.busy_poll);
    }
}

/// The kernel takes the last ACK for all segments that it handed over in a row.
#[test]
fn acks_for_what_was_read_in_a_row_are_merged_on_every_kind_of_tun() {
    needs![];
    for open in [plain, fast, faulty] {
        let namespace = Namespace::new();
        let link = namespace.run(open);
        let config = EndpointConfig::new(describe(&*link, LinkId(0), addresses()), [1; 32]);
        assert_eq!(config.ack_merge(), AckMerge::Read, "{link:?}");
    }
}

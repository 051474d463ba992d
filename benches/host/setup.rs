//! The benchmark's configuration of a stack. A test in `tests/live` holds its endpoint to the defaults.

use hopwise_core::LinkId;
use hopwise_core::endpoint::EndpointConfig;
use hopwise_core::ip::Prefix;
use hopwise_host::{Capture, Drives, Link, Observer, StackConfig, describe};

/// Every program gets this endpoint. The runtime of tokio's streams drives it: one thread, as the peers have.
pub(crate) fn config(link: &dyn Link, addresses: Vec<Prefix>) -> StackConfig {
    let endpoint = EndpointConfig::new(describe(link, LinkId(0), addresses), [7; 32]);
    // A node has a capture, too, which is not started.
    let observers: Vec<Box<dyn Observer>> = vec![Box::new(Capture::default().tap(0))];
    StackConfig { drives: Drives::Runtime, observers, ..StackConfig::new(endpoint) }
}

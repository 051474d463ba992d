use std::sync::mpsc;
use std::thread;

use hopwise_agents::StandardAgents;
use hopwise_core::endpoint::{ConnectOptions, EndpointConfig, ListenOptions};
use hopwise_core::{LinkId, Machine, Rx};

use super::*;
use crate::testing::Loop;
use crate::{Stack, StackConfig, StackError, describe};

const LONG: Duration = Duration::from_secs(3600);
const PATIENCE: Duration = Duration::from_secs(20);

fn config(address: &str) -> EndpointConfig {
    let address = address.parse().expect("a prefix");
    EndpointConfig::new(describe(&Loop::default(), LinkId(0), vec![address]), [1; 32])
}

fn endpoint(address: &str) -> Endpoint {
    Endpoint::new(config(address), Box::new(StandardAgents::default())).expect("the agents are known")
}

fn carry(from: &mut Endpoint, to: &mut Endpoint) {
    let mut packet = Vec::new();
    while from.poll_transmit(Instant::ZERO, LinkId(0), &mut packet).is_some() {
        to.handle_packet(Instant::ZERO, &Rx::new(LinkId(0), &packet));
        packet.clear();
    }
}

/// With a connection that stands.
fn connected() -> Endpoint {
    let (mut ours, mut peer) = (endpoint("10.7.0.1/24"), endpoint("10.7.0.2/24"));
    peer.listen(None, 80, ListenOptions::default()).expect("the port is free");
    let to = "10.7.0.2:80".parse().expect("an address");
    ours.connect(Instant::ZERO, to, &ConnectOptions::default()).expect("there is a way");
    carry(&mut ours, &mut peer);
    carry(&mut peer, &mut ours);
    ours
}

/// Another thread of the runtime may do what a stop waits for: no packet is left then to wake the one that stops.
#[test]
fn who_stops_learns_what_another_thread_has_ended() {
    let driver = Driver::new(connected(), vec![Box::new(Loop::default())], Vec::new());
    let shared = Arc::new(Shared::new(driver.expect("the kernel gives descriptors")));
    let (tell, told) = mpsc::channel();
    let stopping = Arc::clone(&shared);
    thread::spawn(move || tell.send(stopping.finish(LONG, Drives::Runtime)));
    while !shared.inner.lock().is_finishing {
        thread::yield_now();
    }
    // Nothing else is to wake it.
    shared.poller.set_alarm(LONG);
    shared.act(|now, endpoint, _| endpoint.abort_all(now));
    assert_eq!(told.recv_timeout(PATIENCE), Ok(0));
}

#[test]
fn a_stack_is_not_driven_by_a_runtime_without_io() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts");
    let _inside = runtime.enter();
    let config = StackConfig { drives: Drives::Runtime, ..StackConfig::new(config("10.7.0.1/24")) };
    let started = Stack::start(config, vec![Box::new(Loop::default())], Box::new(StandardAgents::default()));
    assert!(matches!(started, Err(StackError::NoRuntime)));
}

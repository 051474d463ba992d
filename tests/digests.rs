//! A seed gives the bytes that it gave before, on every run and on every machine: the digest of all frames on the air
//! is pinned. A commit that changes stations or connections changes the digests, and its message must mention that.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use hopwise_lab::hex;
use hopwise_lab::scenario::Scenario;
use hopwise_lab::sim::Simulation;
use sha2::{Digest, Sha256};

/// The digest over every station's view of every frame, to the nanosecond, and over the packets within.
fn digest(scenario: &str, arm: &str, changes: &[&str]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs").join(scenario);
    let changes: Vec<_> = changes.iter().map(|change| (*change).to_owned()).collect();
    let scenario = Scenario::load(&path, &changes).expect("a scenario");
    let prepared = scenario.plan(Some(arm), 1).expect("an arm of it");
    let mut simulation = Simulation::new(&prepared.plan).expect("a plan that can be built");
    let hash = Rc::new(RefCell::new((Sha256::new(), 0)));
    let sink = Rc::clone(&hash);
    simulation.world().set_frames(Box::new(move |event, packet| {
        let (hash, count) = &mut *sink.borrow_mut();
        hash.update(event.to_string());
        hash.update(packet);
        *count += 1;
    }));
    simulation.run_until(prepared.plan.end());
    let (hash, count) = hash.replace((Sha256::new(), 0));
    assert!(count > 10_000, "{count} frames");
    hex(&hash.finalize()[..8])
}

#[track_caller]
fn assert_pinned(found: &str, pinned: &str) {
    println!("{found}");
    assert_eq!(found, pinned, "what happens on the air has changed");
}

#[test]
fn a_chain_under_ns2s_rules() {
    let changes = ["run.duration=20s", "run.warmup=5s", "topology.hops=5"];
    assert_pinned(&digest("calibration/ns2-chain.yaml", "x", &changes), "eca3396fbc9c391b");
}

#[test]
fn a_chain_under_the_standards_rules() {
    let changes = ["run.duration=20s", "run.warmup=5s"];
    assert_pinned(&digest("chain.yaml", "delayed", &changes), "601362e0b5bab09d");
}

#[test]
fn walkers_over_fading_links() {
    let changes = ["run.duration=10s", "run.warmup=2s"];
    assert_pinned(&digest("moving.yaml", "delayed", &changes), "8a2c436aa52e454e");
}

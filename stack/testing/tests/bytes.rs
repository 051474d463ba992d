//! A seed of the swarm gives equal packets in every build. Builds for debugging check what builds for releases leave
//! out, so that `scripts/test` runs this in a build for releases too. A commit that changes what connections send
//! changes the digest, and its message must mention that.

use std::cell::Cell;
use std::rc::Rc;

use hopwise_core::Instant;
use hopwise_testing::swarm;

const SEEDS: u64 = 300;

/// FNV-1a.
fn digest(so_far: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(so_far, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

#[test]
fn each_packet_is_the_same_to_the_byte_and_the_nanosecond() {
    let found = Rc::new(Cell::new((0xcbf2_9ce4_8422_2325, 0)));
    for seed in 0..SEEDS {
        let so_far = Rc::clone(&found);
        let tap = move |at: Instant, from, packet: &[u8], _| {
            let (hash, packets) = so_far.get();
            let hash = digest(digest(hash, &at.0.to_be_bytes()), &[from as u8]);
            so_far.set((digest(hash, packet), packets + 1));
        };
        swarm::run_tapped(seed, Box::new(tap)).expect("the seed runs");
    }
    assert_eq!(found.get(), (16_946_037_671_835_554_053, 190_297), "what connections send has changed");
}

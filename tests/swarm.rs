//! A part of the swarm, small enough for every test run. `cargo run --release -p hopwise --example swarm -- --help`
//! runs the rest.

use hopwise_testing::swarm;

const FIRST: u64 = 0;
const SEEDS: u64 = 250;

#[test]
fn bytes_are_exact_and_transfers_end_once_their_path_has_healed() {
    let failed: Vec<String> = (FIRST..FIRST + SEEDS)
        .filter_map(|seed| {
            let failure = swarm::run_seed(seed).err()?;
            Some(format!("seed {seed}: {failure}\n  replay: {}", swarm::replay_command(seed)))
        })
        .collect();
    assert!(failed.is_empty(), "\n{}\n", failed.join("\n"));
}

#[test]
fn a_seed_replays_to_the_same_end_and_tells_what_happens() {
    for seed in [3, 8, 21] {
        let mut told = String::new();
        let replayed = swarm::replay(seed, &mut |text| told.push_str(text));
        let (first, again) = (swarm::run_seed(seed), replayed);
        assert_eq!(first.expect("the seed runs"), again.expect("the seed runs"));
        for part in [&format!("seed {seed}, "), "host A: ", "connection 0: ", "\tstate=established"] {
            assert!(told.contains(part), "{part} is not told of seed {seed}");
        }
    }
}

#[test]
fn the_swarm_is_varied() {
    let scenarios: Vec<_> = (FIRST..FIRST + SEEDS).map(swarm::Scenario::draw).collect();
    let patient = scenarios.iter().filter(|scenario| scenario.is_patient()).count();
    assert!((100..240).contains(&patient), "{patient} of {SEEDS} must deliver everything");
    let told: Vec<String> = scenarios.iter().map(ToString::to_string).collect();
    for part in ["V6", "Simultaneous", "AfterTheEndOf", "Always", "Down", "Mtu(", "Abort", "sack: false"] {
        assert!(told.iter().any(|text| text.contains(part)), "no scenario has {part}");
    }
}

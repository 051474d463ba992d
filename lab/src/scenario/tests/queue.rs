//! The queue between a node and its radio.

use super::refused;

#[test]
fn queues_that_cannot_be_are_refused_with_what_would_be_accepted() {
    for (set, wanted) in [
        (
            "radio.queue.target=5ms",
            "`target` changes nothing under kind: drop-tail; kind: fq-codel beside it",
        ),
        ("radio.queue={ kind: fq-codel, quantum: 0 }", "quantum: 0 is out of range; 1 to 65536 bytes"),
        (
            "radio.queue={ kind: fq-codel, aql: false, aql_low: 1ms }",
            "`aql_low` changes nothing under aql: false",
        ),
        ("radio.queue={ kind: fq-codel, aql_low: 13ms }", "`aql_low` is above `aql_high`"),
        ("radio.queue.kind=red", "`red` does not fit here"),
    ] {
        let said = refused(&[set]);
        assert!(said.contains(wanted), "{set}: {said}");
    }
}

#[test]
fn kernels_of_simulated_radios_have_their_own_queue() {
    let sets = ["world=hwsim", "mac.rules=standard", "radio.queue.kind=fq-codel"];
    let said = refused(&sets);
    assert!(said.contains("kernels have this queue above their simulated radios"), "{said}");
}

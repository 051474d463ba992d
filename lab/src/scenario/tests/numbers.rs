//! Values of another kind where a number stands: the refusal tells the key's own range and unit.

use super::are_refused;

/// A setting, and its problem.
const REFUSED: &[(&str, &str)] = &[
    ("run.seeds=five", "--set:1:11: `five` does not fit here; expected a whole number of seeds, 1 to 100000"),
    ("run.seeds=2.5", "`2.5` does not fit here; expected a whole number of seeds, 1 to 100000"),
    (
        "radio.queue_packets=10ms",
        "`10ms` does not fit here; expected a whole number of packets without unit, 2 or",
    ),
    ("radio.rts_threshold=2kB", "expected a whole number of bytes without unit, 0 to 65536, or off"),
    (
        "radio.rts_threshold=[1]",
        "a list does not fit here; expected a whole number of bytes, 0 to 65536, or off",
    ),
    (
        "radio.rts_threshold=null",
        "nothing is given here; expected a whole number of bytes, 0 to 65536, or off",
    ),
    ("topology.spacing_m=200km", "`200km` does not fit here; expected a number of metres without unit"),
];

#[test]
fn what_is_no_number_of_its_key_is_refused_with_range_and_unit() {
    are_refused(REFUSED);
}

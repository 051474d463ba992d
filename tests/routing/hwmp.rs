//! HWMP in the radio world.

use super::*;

const HWMP: &str = "routing={ protocol: hwmp }";

#[test]
fn nodes_peer_find_a_path_and_renew_it_while_it_carries() {
    let sets = [HWMP, "traffic=[{ from: first, to: last, kind: bulk, start: 3s }]"];
    let plan = plan(CHAIN, &sets, 1);
    let results = run(&plan);
    assert_eq!(results.flows[0].hops.as_ref().map(|hops| hops.count), Some(4));
    assert!(results.total_kbps() > 100.0, "{}", results.total_kbps());
    assert_eq!(results.discoveries, 1, "the request told the other end, and refreshes are no searches");
    assert_eq!(results, run(&plan));
}

#[test]
fn no_way_leads_in_a_circle_for_long_while_nodes_move() {
    let sets = [
        HWMP,
        "topology={ kind: random, nodes: 20, width_m: 700, height_m: 700 }",
        "mobility={ speed_mps: [1, 10] }",
        "run.duration=120s",
    ];
    let results = run(&plan(CHAIN, &sets, 3));
    assert!(results.total_kbps() > 50.0, "{}", results.total_kbps());
}

/// The frames that a next hop does not acknowledge give its paths up, and another one is found at once.
#[test]
fn a_cut_is_found_by_lost_frames_and_a_way_around_it_is_taken() {
    let text = "
topology: { kind: grid, rows: 2, columns: 2, spacing_m: 200 }
routing: { protocol: hwmp }
traffic: [{ from: n0, to: n3, kind: bulk, start: 5s }]
arms: { x: { receiver: delayed, sender: [newreno] } }
run: { duration: 60s }
";
    let whole = run(&plan(text, &[], 1)).total_kbps();
    for broken in ["n1-n3", "n2-n3"] {
        let cut = format!("channel={{ links: [link {broken} down from 30 s to 60 s] }}");
        let carried = run(&plan(text, &[&cut], 1)).total_kbps();
        assert!(carried > 0.7 * whole, "without {broken}: {carried:.0} of {whole:.0} kbit/s");
    }
}

//! B.A.T.M.A.N. IV and HWMP, which find routes below IP, in the radio world.

use super::*;

const BATMAN: &str = "routing={ protocol: batman }";
const HWMP: &str = "routing={ protocol: hwmp }";

/// A run whose only flow starts at this second, over four hops.
fn carried(routing: &str, start: &str) -> Results {
    let flow = format!("traffic=[{{ from: first, to: last, kind: bulk, start: {start} }}]");
    let plan = plan(CHAIN, &[routing, &flow], 1);
    let results = run(&plan);
    assert_eq!(results.flows[0].hops.as_ref().map(|hops| hops.count), Some(4));
    assert!(results.total_kbps() > 100.0, "half of the time or more: {}", results.total_kbps());
    assert_eq!(results, run(&plan));
    results
}

#[test]
fn routes_of_batman_are_there_before_a_flow_asks_for_them_and_carry_it() {
    let results = carried(BATMAN, "10s");
    assert_eq!((results.discoveries, results.route_failures), (0, 0));
}

#[test]
fn nodes_of_hwmp_peer_find_a_path_and_renew_it_while_it_carries() {
    let searches = carried(HWMP, "3s").discoveries;
    assert_eq!(searches, 1, "the request told the other end, and refreshes are no searches");
}

#[test]
fn no_way_leads_in_a_circle_for_long_while_nodes_move() {
    for routing in [BATMAN, HWMP] {
        let sets = [
            routing,
            "topology={ kind: random, nodes: 20, width_m: 700, height_m: 700 }",
            "mobility={ speed_mps: [1, 10] }",
            "run.duration=120s",
        ];
        let results = run(&plan(CHAIN, &sets, 3));
        assert!(results.total_kbps() > 50.0, "{routing}: {}", results.total_kbps());
    }
}

/// B.A.T.M.A.N. counts messages for some seconds. With HWMP the frames that a next hop does not acknowledge give its
/// paths up, and another path is found at once.
#[test]
fn a_cut_is_found_and_a_way_around_it_is_taken() {
    for (routing, start) in [(BATMAN, "10s"), (HWMP, "5s")] {
        let text = format!(
            "
topology: {{ kind: grid, rows: 2, columns: 2, spacing_m: 200 }}
traffic: [{{ from: n0, to: n3, kind: bulk, start: {start} }}]
arms: {{ x: {{ receiver: delayed, sender: [newreno] }} }}
run: {{ duration: 60s }}
"
        );
        let whole = run(&plan(&text, &[routing], 1)).total_kbps();
        for broken in ["n1-n3", "n2-n3"] {
            let cut = format!("channel={{ links: [link {broken} down from 30 s to 60 s] }}");
            let carried = run(&plan(&text, &[routing, &cut], 1)).total_kbps();
            assert!(carried > 0.7 * whole, "{routing} without {broken}: {carried:.0} of {whole:.0} kbit/s");
        }
    }
}

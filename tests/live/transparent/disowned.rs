//! SYNs in the name of a host whose kernel resets the answers.

use super::clashes::{held, send};
use super::contested::{ends_of, is_half_open};
use super::{Chain, PORT, TOOLS, V4, V6};
use crate::flood::SYN;
use crate::world::{until, within_patience};

/// Nobody has the addresses of the silent hosts. Their SYNs come first, so that time alone would free their ways first.
#[test]
fn a_way_leaves_its_place_once_its_host_resets_the_answer_and_ways_of_silent_hosts_stay() {
    needs!(&[TOOLS[0], "ss"]);
    let chain = Chain::new("disowned");
    chain.serve(PORT);
    let (_last, _first) = (chain.last(), chain.first());
    for [_, server] in [V4, V6] {
        chain.exchange(server, 1000);
    }
    let silent = [["10.1.0.9", V4[1]], ["fd01::9", V6[1]]].map(|both| ends_of(both, 40_000));
    for ends in silent {
        send(&chain.host, ends, 7, (SYN, 64));
        within_patience(until(|| is_half_open(&chain, ends)));
    }
    for port in 40_001..40_005 {
        for both in [V4, V6] {
            send(&chain.host, ends_of(both, port), 7, (SYN, 64));
        }
    }
    within_patience(until(|| chain.at_first("caught") == 12));
    within_patience(until(|| held(&chain) <= 2));
    assert_eq!(silent.map(|ends| is_half_open(&chain, ends)), [true; 2], "{}", chain.log(1));
    assert_eq!(held(&chain), 2);
    assert_eq!(
        ["straight", "lost", "not-let-in"].map(|what| chain.at_first(what)),
        [0; 3],
        "{}",
        chain.log(1)
    );
}

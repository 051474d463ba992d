//! The explanation of a key, and the answer where there is none.

use super::{FileKind, find, text};

fn said(asked: &str) -> Vec<String> {
    find(asked).expect("a key").iter().map(text).collect()
}

#[test]
fn a_key_is_explained_with_unit_range_default_effect_and_example() {
    let said = said("radio.rts_threshold");
    let lines: Vec<_> = said[0].lines().map(str::trim).collect();
    assert_eq!(said.len(), 1);
    for line in ["unit     bytes", "default  0", "example  radio: { rts_threshold: 0 }"] {
        assert!(lines.contains(&line), "{line}: {lines:#?}");
    }
    assert!(lines[1].starts_with("RTS/CTS precedes each unicast IP packet"), "{lines:#?}");
}

/// Names and units stay whole, and no line is wider than a page.
#[test]
fn long_texts_are_broken_at_spaces_alone() {
    let said = said("radio.profile");
    assert!(said[0].lines().all(|line| line.chars().count() <= 100), "{}", said[0]);
    assert!(said[0].contains(" vht80-2ss\n") && said[0].contains(" Mbit/s"), "{}", said[0]);
    let is_cut = |line: &str| line.ends_with(['/', '-']);
    assert!(!said[0].lines().any(is_cut), "{}", said[0]);
}

#[test]
fn a_key_of_several_files_is_explained_for_each() {
    let files: Vec<_> = find("tcp.rto_min").expect("a key").iter().map(|found| found.file).collect();
    assert_eq!(files, ["scenario", "node"]);
    let routing = find("routing.active_route_timeout").expect("a key");
    assert_eq!(routing.iter().map(|found| found.file).collect::<Vec<_>>(), ["scenario", "route"]);
    assert!(said("confine").len() == 3, "{:?}", said("confine"));
}

#[test]
fn a_path_may_have_places_in_lists_and_names_or_be_the_end_of_one() {
    for (asked, path) in [
        ("links.0.queues", "links[].queues"),
        ("links[2].queues", "links[].queues"),
        ("arms.train.receiver", "arms.NAME.receiver"),
        ("per_source", "forwards[].per_source"),
    ] {
        assert_eq!(find(asked).expect("a key")[0].key.path, path, "{asked}");
    }
}

#[test]
fn the_mean_and_the_bounds_of_a_value_by_chance_are_explained() {
    let mean = said("think.mean");
    assert_eq!(mean.len(), 1, "{mean:?}");
    assert!(mean[0].starts_with("traffic[].think.mean (file of kind scenario)\n  Mean of the exponential"));
    assert!(mean[0].contains("unit     ns, us, ms") && mean[0].contains("think: { mean: 2s }"), "{mean:?}");
    let range = &find("response.to").expect("a key")[0].key.range;
    assert_eq!(range.as_deref(), Some("1B to 1GiB"), "that of the value");
    for (asked, count) in [("mean", 6), ("start.from", 1), ("every.to", 1)] {
        assert_eq!(find(asked).expect("a key").len(), count, "{asked}");
    }
    let nodes = find("from").expect("a key");
    assert!(nodes.iter().all(|found| !found.key.is_by_chance), "a node comes first: {nodes:?}");
}

/// Editors show the schema's words, and there each key has some.
#[test]
fn no_key_of_a_schema_is_without_words() {
    for &kind in FileKind::ALL {
        let bare: Vec<_> = kind.keys_by_chance().into_iter().filter(|key| key.meaning.is_empty()).collect();
        assert!(bare.is_empty(), "{bare:?}");
    }
}

#[test]
fn a_key_that_does_not_exist_names_the_nearest_one() {
    let near = |asked| find(asked).expect_err("no key");
    assert_eq!(near("radio.rts_treshold"), "did you mean `radio.rts_threshold`?");
    assert_eq!(near("node.queue_packets"), "did you mean `radio.queue_packets`?");
    assert_eq!(near("a.b.stop_wihtin"), "did you mean `stop_within`?");
    assert_eq!(near("radio.rts"), "did you mean `radio.rts_threshold`?");
    assert_eq!(near("cts_to"), "did you mean `radio.cts_to_self`?");
    for of_none in ["zzzzzzzzzzzz", "hops.max"] {
        assert!(near(of_none).contains("hopwise keys schema"), "{}", near(of_none));
    }
}

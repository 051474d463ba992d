//! Ranges in words, and keys from a schema.

use serde_json::json;

use super::{Range, accepted, check, for_editors, keys};
use crate::located::Document;

#[test]
fn a_range_in_words_refuses_what_lies_outside_and_nothing_of_another_kind() {
    for (range, inside, outside) in [
        ("1 to 9999", ["1", "9999", "off"], ["0", "10000", "-1"]),
        ("above 0s to 72h", ["1ns", "72h", "5"], ["0s", "73h", "0ms"]),
        ("100ms or more", ["100ms", "1h", "99"], ["99ms", "0s", "1us"]),
        ("less than 100%", ["0%", "99.9%", "1"], ["100%", "1000000ppm", "100.0%"]),
        ("at most 1h", ["0s", "60min", "9"], ["61min", "2h", "3601s"]),
        ("-150 to 0", ["-150", "0", "1s"], ["-151", "1", "NaN"]),
        ("64KiB or more", ["64KiB", "1GB", "0"], ["63KiB", "1B", "65kB"]),
    ] {
        let range = Range::of(range);
        inside.iter().for_each(|value| assert!(!range.refuses(value), "{range}: {value}"));
        outside.iter().for_each(|value| assert!(range.refuses(value), "{range}: {value}"));
    }
}

#[test]
fn editors_get_the_ranges_of_plain_numbers_as_bounds() {
    let schema = json!({ "properties": {
        "hops": { "type": ["integer", "null"], "x-range": "1 to 9" },
        "factor": { "type": "number", "x-range": "above 0" },
        "time": { "type": "string", "x-range": "1ms or more" },
        "all": { "items": { "type": "integer", "x-range": "at most 7", "minimum": 0 } },
    } });
    let with = for_editors(&schema);
    let of = |pointer: &str| with.pointer(pointer).cloned();
    assert_eq!(
        of("/properties/hops/minimum").zip(of("/properties/hops/maximum")),
        Some((json!(1), json!(9)))
    );
    assert_eq!(
        of("/properties/factor"),
        Some(json!({ "type": "number", "x-range": "above 0", "exclusiveMinimum": 0 }))
    );
    assert_eq!(of("/properties/time"), schema.pointer("/properties/time").cloned());
    assert_eq!(
        of("/properties/all/items/maximum").zip(of("/properties/all/items/minimum")),
        Some((json!(7), json!(0)))
    );
}

#[test]
fn keys_have_what_their_schema_says_and_words_give_up_their_default() {
    let schema = json!({
        "properties": {
            "hops": {
                "type": "integer", "x-range": "1 to 9", "x-unit": "hops", "description": "Hops (kind: a; default 3).",
            },
            "list": { "items": { "properties": { "mtu": { "type": "integer", "description": "MTU." } } } },
        },
    });
    let list = keys(&schema);
    let paths: Vec<_> = list.iter().map(|key| key.path.as_str()).collect();
    assert_eq!(paths, ["hops", "list", "list[].mtu"]);
    let hops = &list[0];
    assert_eq!((hops.default.as_deref(), hops.limits().as_deref()), (Some("3"), Some("1 to 9 hops")));
    assert_eq!(
        (hops.meaning.as_str(), accepted(&schema, &["hops"])),
        ("Hops (kind: a).", "1 to 9 hops".to_owned())
    );
    let wrong = Document::parse("a.yaml", "hops: 12\n").expect("YAML");
    assert_eq!(
        check(&wrong, &schema).expect_err("too many").to_string(),
        "a.yaml:1:7: hops: 12 is out of range"
    );
}

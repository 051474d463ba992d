use proptest::prelude::*;

use super::*;
use crate::Profile;
use crate::registry::{self, Descriptor, Kind};

fn refused(parsed: Result<String, SpecError>) -> String {
    parsed.expect_err("a refusal").to_string()
}

#[test]
fn canonical_form_leaves_out_defaults_and_uses_the_shorthand() {
    for (written, canonical) in [
        ("delayed", "delayed"),
        ("delayed:d=2", "delayed"),
        ("delayed:hold=0.1s", "delayed"),
        ("delayed:3", "delayed:3"),
        (" delayed : d = 3 ", "delayed:3"),
        ("delayed:hold=200ms,d=3", "delayed:d=3,hold=200ms"),
        ("delayed:3,hold=200ms", "delayed:d=3,hold=200ms"),
        ("delayed:hold=1500us", "delayed:hold=1500us"),
        ("dup-count(delayed:d=4,hold=100ms)", "dup-count(delayed:4)"),
        ("dup-count( immediate )", "dup-count(immediate)"),
    ] {
        assert_eq!(validate_receiver(written).unwrap(), canonical);
        assert_eq!(validate_receiver(canonical).unwrap(), canonical);
    }
}

#[test]
fn as_printed_means_the_parameters_of_the_agents_paper() {
    let of_paper = "ack-hold:mode=paper,margin=1,over=1,guard=off,duplicates=2";
    assert_eq!(validate_base_station("ack-hold:as-printed").unwrap(), of_paper);
    assert_eq!(validate_receiver("dup-count(dca:as-printed)").unwrap(), "dup-count(dca)");
    assert_eq!(validate_senders("[newreno, \"pgy:as-printed\"]").unwrap(), "[newreno, pgy]");
    for agent in registry::all().filter(|agent| agent.as_printed().is_some()) {
        let inner = if agent.wraps() { "(delayed)" } else { "" };
        let spec = format!("{}{inner}:as-printed", agent.name);
        let read = match agent.kind() {
            Kind::Receiver => validate_receiver(&spec),
            Kind::Sender => validate_senders(&format!("[newreno, \"{spec}\"]")),
            Kind::BaseStation => validate_base_station(&spec),
        };
        assert!(read.is_ok(), "{spec}: {read:?}");
    }
    let none = refused(validate_receiver("daa:as-printed"));
    assert!(
        none.contains("`daa` has no parameter `as-printed`") && none.contains("accepted: start"),
        "{none}"
    );
    let more = refused(validate_base_station("ack-hold:as-printed,mode=kick"));
    assert!(more.contains("`,mode=kick` does not belong here"), "{more}");
    let last = refused(validate_base_station("ack-hold:mode=kick,as-printed"));
    assert!(last.contains("has no parameter `as-printed`"), "{last}");
}

#[test]
fn lists_are_printed_with_quotes_where_an_item_has_a_comma() {
    for (written, canonical) in [
        ("newreno", "[newreno]"),
        ("[newreno,limit:4]", "[newreno, limit:4]"),
        ("[ newreno , \"limit:4\" ]", "[newreno, limit:4]"),
        ("['newreno:abc=1,half=window', 'limit:n=4']", "[\"newreno:abc=on,half=window\", limit:4]"),
        ("newreno:abc,half=window", "[\"newreno:abc=on,half=window\"]"),
    ] {
        assert_eq!(validate_senders(written).unwrap(), canonical);
        assert_eq!(validate_senders(canonical).unwrap(), canonical);
    }
    assert_eq!(validate_shadows("").unwrap(), "[]");
    assert_eq!(validate_shadows("[]").unwrap(), "[]");
    assert_eq!(validate_shadows("[immediate, immediate]").unwrap(), "[immediate, immediate]");
}

#[test]
fn a_default_that_depends_on_the_profile_is_kept_when_it_was_given() {
    assert_eq!(validate_senders("[newreno:iw=10]").unwrap(), "[newreno:iw=10]");
    assert_eq!(validate_senders("[newreno:iw=2]").unwrap(), "[newreno:iw=2]");
}

fn all_receivers() -> String {
    let receivers = registry::all().filter(|agent| agent.kind() == Kind::Receiver);
    let written = |agent: &Descriptor| format!("{}{}", agent.name, if agent.wraps() { "(…)" } else { "" });
    receivers.map(written).collect::<Vec<_>>().join(", ")
}

#[test]
fn an_unknown_name_is_shown_with_the_nearest_one() {
    assert_eq!(
        refused(validate_receiver("delyed:d=3")),
        "no receiver agent is called `delyed`\n  \
           delyed:d=3\n  \
           ^^^^^^\n\
         did you mean `delayed`? accepted: NAMES"
            .replace("NAMES", &all_receivers())
    );
    assert_eq!(
        refused(validate_receiver("dup-count(Immediate)")),
        "no receiver agent is called `Immediate`\n  \
           dup-count(Immediate)\n  \
           ··········^^^^^^^^^\n\
         did you mean `immediate`? accepted: NAMES"
            .replace('·', " ")
            .replace("NAMES", &all_receivers())
    );
}

#[test]
fn a_stray_key_comes_with_the_advice_to_quote() {
    assert_eq!(
        refused(validate_shadows("[delayed:d=3,hold=200ms]")),
        "`hold=200ms` is a parameter without its agent\n  \
           [delayed:d=3,hold=200ms]\n  \
           ·············^^^^^^^^^^\n\
         in a list a comma ends an item: quote an item that has one, as in [\"delayed:d=3,hold=200ms\"]"
            .replace('·', " ")
    );
}

/// A spec, its error message, the wrong part, and a piece of what is accepted.
type Refusal = (&'static str, &'static str, &'static str, &'static str);

const REFUSED_RECEIVERS: &[Refusal] = &[
    ("", "expected the name of a receiver agent", "", "immediate"),
    ("  :d=2", "expected the name of a receiver agent", ":", "immediate"),
    ("newreno", "`newreno` is a sender agent, and a receiver agent is wanted", "newreno", "immediate"),
    ("d=3", "`d=3` is a parameter without its agent", "d=3", "quote"),
    ("dup-count", "`dup-count` needs an agent to wrap", "dup-count", "`dup-count(delayed)`"),
    ("dup-count()", "expected the name of a receiver agent", ")", "immediate"),
    ("immediate(delayed)", "`immediate` wraps no other agent", "(", "alone"),
    ("dup-count(dup-count(delayed))", "`dup-count` is already around this", "dup-count", "once"),
    ("dup-count(delayed", "this `(` is never closed", "(", "a matching `)`; in a list"),
    ("dup-count(delayed]", "`]` does not belong here", "]", "name:key=value"),
    ("dup-count(delayed) x", "`x` does not belong here", "x", "name:key=value"),
    ("delayed d=3", "`d=3` does not belong here", "d=3", "name:value"),
    ("delayed:", "expected a parameter of `delayed`", "", "d, hold"),
    ("delayed:d=3,", "expected a parameter of `delayed`", "", "d, hold"),
    ("delayed:=3", "expected a parameter of `delayed`", "=", "d, hold"),
    (
        "delayed:holt=1s",
        "`delayed` has no parameter `holt`",
        "holt",
        "did you mean `hold`? accepted: d, hold",
    ),
    (
        "delayed:hold",
        "`hold` has no value",
        "hold",
        "a time with its unit from 1ms to 490ms, as in `hold=100ms`",
    ),
    ("delayed:d=", "`d` has no value", "d", "a whole number of segments from 2 to 65535, as in `d=2`"),
    ("delayed:d=1", "`d` cannot be `1`", "1", "from 2 to 65535"),
    ("delayed:hold=100", "`hold` cannot be `100`", "100", "a time with its unit"),
    ("delayed:hold=500ms", "`hold` cannot be `500ms`", "500ms", "from 1ms to 490ms"),
    ("delayed:3,d=4", "`d` is set twice", "d", "once"),
    ("immediate:4", "`immediate` has no parameter `4`", "4", "no parameters"),
    ("delayed:d=3,d\u{e9}=4", "`delayed` has no parameter `d\u{e9}`", "d\u{e9}", "did you mean `d`?"),
];
const REFUSED_LISTS: &[Refusal] = &[
    ("", "expected the name of a sender agent", "", "newreno, reno, cubic"),
    ("[]", "the first sender has to own the congestion window", "[]", "newreno, reno, cubic"),
    ("[limit:4]", "the first sender has to own the congestion window", "limit:4", "newreno, reno, cubic"),
    (
        "[limit:4, cubic]",
        "the first sender has to own the congestion window",
        "limit:4",
        "newreno, reno, cubic",
    ),
    ("[cubic, newreno]", "`newreno` and `cubic` both own the congestion window", "newreno", "exactly one"),
    ("[cubic, limit:4, limit:5]", "`limit:5` stands in this list twice", "limit:5", "once"),
    ("[cubic, limit]", "`limit` needs `n`", "limit", "`limit:n=…` with a whole number of segments"),
    ("[cubic, delayed]", "`delayed` is a receiver agent, and a sender agent is wanted", "delayed", "newreno"),
    ("[cubic, ]", "an item of the list is empty", "]", "between two commas"),
    ("[,cubic]", "an item of the list is empty", ",", "between two commas"),
    ("[cubic", "this `[` is never closed", "[", "a matching `]`"),
    ("[\"cubic]", "this `\"` is never closed", "\"", "a matching `\"`"),
    ("[\"cubic\" x]", "` x` does not belong here", " x", "name"),
    ("[cubic] x", "`x` does not belong here", "x", "name"),
    ("[newreno:half=all]", "`half` cannot be `all`", "all", "accepted: one of `flight`, `window`"),
    ("[newreno:abc=yes]", "`abc` cannot be `yes`", "yes", "accepted: `on` or `off`"),
    ("[cubic:beta=1]", "`beta` cannot be `1`", "1", "a number from 0.1 to 0.95, as in `beta=0.7`"),
];

#[test]
fn every_refusal_names_the_place_and_what_is_accepted() {
    let receivers = REFUSED_RECEIVERS.iter().map(|case| (case, validate_receiver(case.0)));
    let lists = REFUSED_LISTS.iter().map(|case| (case, validate_senders(case.0)));
    for ((spec, wrong, place, accepted), parsed) in receivers.chain(lists) {
        let error = parsed.expect_err(spec);
        let text = error.to_string();
        let (first, last) = (text.lines().next().unwrap(), text.lines().last().unwrap());
        assert_eq!(first, *wrong, "{spec}");
        assert_eq!(&error.spec[error.place.clone()], *place, "{spec}");
        assert!(last.contains(accepted), "{spec}: {last}");
    }
}

#[test]
fn lists_that_are_too_long_are_refused() {
    let nine = join(&["immediate"; 9]);
    assert!(refused(validate_shadows(&nine)).starts_with("the list has more than 8 items"));
    assert!(validate_shadows(&join(&["immediate"; 8])).is_ok());
}

#[test]
fn the_caret_stands_under_the_place_whatever_precedes_it() {
    let text = refused(validate_receiver("\u{1f980}\t:d=3"));
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[1], "  \u{1f980}\u{fffd}:d=3");
    assert_eq!(lines[2], "  ^");
    let text = refused(validate_receiver("dup-count(\u{e9}\u{e9})"));
    assert_eq!(text.lines().nth(2), Some("            ^^"));
}

#[test]
fn parameters_are_all_in_force_whatever_was_given() {
    let listed = |all: Vec<InForce>| {
        all.into_iter().map(|it| format!("{} {}={}", it.agent, it.name, it.value)).collect::<Vec<_>>()
    };
    let receiver = parse_receiver("dup-count(delayed:3)").unwrap();
    assert_eq!(listed(receiver.parameters(Profile::Modern)), ["delayed d=3", "delayed hold=100ms"]);
    let senders = parse_senders("[newreno:abc, limit:4]").unwrap();
    assert_eq!(
        listed(senders.parameters(Profile::Modern)),
        [
            "newreno abc=on",
            "newreno iw=10",
            "newreno ssthresh=unlimited",
            "newreno half=flight",
            "newreno validate=on",
            "newreno hystart=off",
            "limit n=4",
            "limit burst=unlimited"
        ]
    );
    assert_eq!(
        listed(senders.parameters(Profile::Ns2)),
        [
            "newreno abc=on",
            "newreno iw=2",
            "newreno ssthresh=2000",
            "newreno half=window",
            "newreno validate=off",
            "newreno hystart=off",
            "limit n=4",
            "limit burst=unlimited"
        ]
    );
}

/// Text from the language's own pieces, which gets further than random characters.
fn any_text() -> impl Strategy<Value = String> {
    let pieces = vec![
        "delayed",
        "immediate",
        "dup-count",
        "newreno",
        "cubic",
        "limit",
        "paced",
        "(",
        ")",
        "[",
        "]",
        "{",
        ",",
        ":",
        "=",
        "\"",
        "'",
        " ",
        "d",
        "hold",
        "n",
        "iw",
        "abc",
        "half",
        "3",
        "200ms",
        "on",
        "flight",
        "\u{e9}",
        "\u{1f980}",
        "\n",
    ];
    prop_oneof![
        ".*",
        prop::collection::vec(prop::sample::select(pieces), 0..24).prop_map(|words| words.concat()),
    ]
}

/// Padding ends at 65,535 columns, and a message of that length is unreadable.
#[test]
fn an_error_in_a_long_text_shows_a_part_of_it() {
    let long = "x".repeat(100_000);
    for spec in [
        format!("delayed:{long}"),
        format!("delayed:d={long}"),
        format!("dup-count({long})"),
        long.clone(),
        format!("{}{long}", "dup-count(".repeat(9)),
    ] {
        let error = validate_receiver(&spec).expect_err("it names nothing").to_string();
        assert!(error.lines().all(|line| line.chars().count() < 400), "{} bytes", error.len());
        assert!(error.contains('…') && error.contains('^'), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_048, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_a_parser_panic(text in any_text()) {
        for parsed in [validate_receiver(&text), validate_senders(&text), validate_shadows(&text)] {
            match parsed {
                Ok(canonical) => prop_assert!(canonical.len() <= 2 * text.len() + 40),
                Err(error) => {
                    prop_assert!(text.get(error.place.clone()).is_some(), "{:?}", error.place.clone());
                    prop_assert!(error.to_string().lines().count() == 4);
                }
            }
        }
    }
}

#[test]
fn a_limit_above_the_one_that_it_has_to_stay_below_is_refused_where_it_stands() {
    for (written, caret, problem) in [
        ("dca:near=12,far=3", "    ^^^^", "`near` cannot be 12 where `far` is 3"),
        ("dca:far=3,near=3", "          ^^^^", "`near` cannot be 3 where `far` is 3"),
        ("dca:near=12", "    ^^^^", "`near` cannot be 12 where `far` is 10"),
        ("dca:far=2", "    ^^^", "`near` cannot be 3 where `far` is 2"),
        ("dup-count(dca:far=2)", "              ^^^", "`near` cannot be 3 where `far` is 2"),
    ] {
        let accepted = "accepted: `near` below `far`, as in `near=3,far=10`";
        assert_eq!(
            refused(validate_receiver(written)),
            format!("{problem}\n  {written}\n  {caret}\n{accepted}")
        );
    }
    assert_eq!(validate_receiver("dca:near=11,far=12").unwrap(), "dca:near=11,far=12");
}

#[test]
fn what_is_wrong_in_a_list_says_which_item_it_stands_in() {
    for (list, item) in [
        ("[newreno, \"limitt:4\"]", Some(1)),
        ("[delayd, newreno]", Some(0)),
        ("[newreno, cubic]", Some(1)),
        ("[newreno, limit:4, \"paced:x=1,y\"]", Some(2)),
        ("[]", None),
        ("[newreno", None),
    ] {
        assert_eq!(parse_senders(list).expect_err(list).item(), item, "{list}");
    }
}

use super::*;

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

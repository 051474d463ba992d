use proptest::prelude::*;

use super::*;

#[test]
fn values_are_read_with_their_units() {
    assert_eq!("100ms".parse(), Ok(Time(Duration::from_millis(100))));
    assert_eq!("1.5s".parse(), Ok(Time(Duration::from_millis(1500))));
    assert_eq!("2min".parse(), Ok(Time(Duration::from_secs(120))));
    assert_eq!("64KiB".parse(), Ok(Size(65_536)));
    assert_eq!("64 KiB".parse(), Ok(Size(65_536)));
    assert_eq!("1.5MB".parse(), Ok(Size(1_500_000)));
    assert_eq!("1500B".parse(), Ok(Size(1500)));
    assert_eq!("11mbit".parse(), Ok(Rate(11_000_000)));
    assert_eq!("0.05%".parse(), Ok(Share(500)));
    assert_eq!("20ppm".parse(), Ok(Share(20)));
}

#[test]
fn a_value_without_its_unit_is_refused_with_the_units() {
    let error = "100".parse::<Time>().expect_err("no unit");
    assert_eq!(
        error.to_string(),
        "`100` has no unit, expected a time with its unit, such as 100ms, 1.5s, 300us or 2min"
    );
    for text in ["", "ms", "-1ms", "1,5s", "1.s", ".5s", "1e3s", "99999999999h", "5 m s"] {
        assert!(text.parse::<Time>().is_err(), "{text}");
    }
    let error = "-1s".parse::<Time>().expect_err("a sign");
    assert!(error.to_string().ends_with("2min; nothing below 0"), "{error}");
    assert!("101%".parse::<Share>().is_err());
    assert!("10Mbit".parse::<Rate>().is_err());
    assert!("10mb".parse::<Size>().is_err());
}

#[test]
fn yaml_numbers_without_a_unit_are_refused_like_texts() {
    let error = serde_yaml::from_str::<Time>("100").expect_err("no unit");
    assert!(error.to_string().contains("expected a time with its unit"), "{error}");
    assert_eq!(serde_yaml::from_str::<Time>("100ms").ok(), Some(Time(Duration::from_millis(100))));
}

#[test]
fn sizes_are_printed_in_their_largest_unit() {
    assert_eq!(Size(999).to_string(), "999 B");
    assert_eq!(Size(1536).to_string(), "1.5 KiB");
    assert_eq!(Size(3 << 30).to_string(), "3.0 GiB");
}

#[test]
fn values_are_written_in_their_largest_unit_that_leaves_nothing_over() {
    let time =
        |text: &str| serde_json::to_string(&text.parse::<Time>().expect("a time")).expect("it is written");
    assert_eq!(
        [time("300s"), time("1.5s"), time("7ns"), time("0s")].join(" "),
        r#""300s" "1500ms" "7ns" "0s""#
    );
    assert_eq!(serde_json::to_string(&Share(10_000)).ok().as_deref(), Some("\"1%\""));
    assert_eq!(serde_json::to_string(&Share(500)).ok().as_deref(), Some("\"500ppm\""));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn what_is_written_is_read_as_what_it_was(amount in any::<u64>(), ppm in 0..=1_000_000_u32) {
        let time = Time(Duration::from_nanos(amount));
        let written = |value: serde_json::Result<serde_json::Value>| {
            value.expect("it is written").as_str().expect("a text").to_owned()
        };
        prop_assert_eq!(written(serde_json::to_value(time)).parse(), Ok(time));
        prop_assert_eq!(written(serde_json::to_value(Size(amount))).parse(), Ok(Size(amount)));
        prop_assert_eq!(written(serde_json::to_value(Rate(amount))).parse(), Ok(Rate(amount)));
        prop_assert_eq!(written(serde_json::to_value(Share(ppm))).parse(), Ok(Share(ppm)));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[0-9. ]{0,24}(ns|us|ms|s|h|B|KiB|%|ppm|mbit)?") {
        let _ = (text.parse::<Time>(), text.parse::<Size>(), text.parse::<Rate>(), text.parse::<Share>());
    }
}

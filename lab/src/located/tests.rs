use proptest::prelude::*;
use serde::Deserialize;

use super::*;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "read by serde alone")]
struct Plan {
    name: String,
    links: Vec<Link>,
    #[serde(default)]
    waits: Option<Waits>,
}

#[derive(Debug, Deserialize)]
#[allow(dead_code, reason = "read by serde alone")]
struct Waits {
    first: crate::units::Time,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "read by serde alone")]
struct Link {
    kind: Kind,
    #[serde(default)]
    mtu: u16,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Tun,
    TunFast,
}

fn refused(text: &str) -> Refusal {
    let document = match Document::parse("plan.yaml", text) {
        Ok(document) => document,
        Err(refusal) => return *refusal,
    };
    *document.read::<Plan>().expect_err("the plan is refused")
}

#[test]
fn a_wrong_value_is_refused_at_its_line_and_column() {
    for (text, place, problem) in [
        ("name: a\nlinks:\n  - kind: tin\n", "plan.yaml:3:11", "`tin` does not fit here"),
        ("name: a\nlinks:\n  - { kind: tun, mtu: big }\n", "plan.yaml:3:23", "`big` does not fit here"),
        ("name: µµ\nlinks: [{ kind: tun, mtu: 70000 }]\n", "plan.yaml:2:27", "`70000` does not fit here"),
        ("name: a\nlinks:\n  - mtu: 5\n", "plan.yaml:3:5", "missing field `kind`"),
        ("links: []\n", "plan.yaml:1:1", "missing field `name`"),
        ("", "plan.yaml:1:1", "missing field `name`"),
    ] {
        let text = refused(text).to_string();
        assert!(text.starts_with(&format!("{place}: {problem}")), "{text}");
    }
}

#[test]
fn an_unknown_key_is_refused_at_the_key_with_what_is_accepted() {
    let refusal = refused("name: a\nlinks:\n  - kind: tun-fast\n    mut: 1500\n");
    assert_eq!(refusal.to_string(), "plan.yaml:4:5: unknown field `mut`");
    assert_eq!(
        refusal.help().map(|help| help.to_string()).as_deref(),
        Some("did you mean `mtu`? expected `kind` or `mtu`")
    );
}

#[test]
fn what_would_be_accepted_is_said_in_the_words_of_who_writes_yaml() {
    for (text, accepted) in [
        ("name: a\nlinks: [{ kind: tun, mtu: big }]\n", "a whole number from 0 to 65535"),
        ("name: a\nlinks: [{ kind: tun, mtu: 70000 }]\n", "a whole number from 0 to 65535"),
        ("name: a\nlinks: [{ kind: tun, mtu: [1] }]\n", "a whole number from 0 to 65535"),
        ("name: [a]\nlinks: []\n", "a text"),
        ("name: a\nlinks: 3\n", "a list, such as [a, b]"),
        ("name: a\nlinks: [3]\n", "keys with values, such as { key: value }"),
        ("name: a\nlinks: [{ mtu: 3 }]\n", "the key `kind` with its value, here"),
        ("name: a\nlinks: []\nwaits: {}\n", "the key `first` with its value, here"),
        ("name: a\nlinks: []\nwaits: { first: [1] }\n", "a text such as 100ms or 1%"),
        ("name: [a\nlinks: ]]\n", "a bracket for each bracket"),
    ] {
        let refusal = refused(text);
        let help = refusal.help().map(|help| help.to_string()).unwrap_or_default();
        assert!(help.contains(accepted), "{text}: {refusal}: {help}");
        let said = format!("{refusal} {help}");
        for jargon in ["u16", "u32", "invalid type", "sequence", "struct", "unit value"] {
            assert!(!said.contains(jargon), "{text}: {said}");
        }
    }
}

#[test]
fn what_an_unquoted_comma_makes_a_key_is_refused_with_that_advice() {
    let refusal = refused("name: a\nlinks: [{ kind: tun,hold=50ms }]\n");
    assert!(refusal.to_string().contains("unknown field `hold=50ms`"), "{refusal}");
    let help = refusal.help().map(|help| help.to_string()).unwrap_or_default();
    assert!(help.contains("quote a spec that has one"), "{help}");
}

#[test]
fn what_is_no_yaml_is_refused_where_it_breaks() {
    let refusal = refused("name: [a\nlinks: ]]\n");
    assert!(refusal.line >= 2, "{refusal}");
    let refusal = refused("name: a\nlinks: [{ kind: tun,\n  kind: tun }]\n");
    assert_eq!(refusal.to_string(), "plan.yaml:3:3: `kind` is there already");
}

#[test]
fn a_place_that_is_not_there_is_shown_by_what_is() {
    let document = Document::parse("plan.yaml", "a:\n  b: [1, 2]\n").expect("it is YAML");
    let path = YamlPath::root().key("a").key("b").index(1);
    assert_eq!(document.refuse(&path, "no", "").to_string(), "plan.yaml:2:10: no");
    let missing = YamlPath::root().key("a").key("c").key("d");
    assert_eq!(document.refuse(&missing, "no", "").to_string(), "plan.yaml:2:3: no");
    assert_eq!(path.to_string(), "a.b.1");
}

#[test]
fn a_list_in_brackets_is_shown_as_far_as_its_bracket() {
    let text = "a: [1, 2]  # two\nb: { c: 3 }  # one\nd:\n  - 4\ne: [5,\n  6]\nf: [] # [7]\n";
    let document = Document::parse("plan.yaml", text).expect("it is YAML");
    for (key, shown) in [("a", "[1, 2]"), ("b", "{ c: 3 }"), ("d", "- 4"), ("e", "[5,"), ("f", "[]")] {
        let refusal = document.refuse(&YamlPath::root().key(key), "no", "");
        assert_eq!(&text[refusal.span.clone()], shown);
    }
}

#[test]
fn a_file_that_may_not_be_read_says_by_whom() {
    let said =
        words::unreadable(&std::io::ErrorKind::PermissionDenied.into(), Path::new("no-such-folder/a.yaml"));
    let uid = nix::unistd::geteuid();
    let who = nix::unistd::User::from_uid(uid).expect("users are known");
    let who = who.map_or(uid.to_string(), |user| user.name);
    assert!(said.starts_with(&format!("permission denied; this runs as user `{who}`, ")), "{said}");
    let said = words::unreadable(&std::io::ErrorKind::NotFound.into(), Path::new("no-such-folder/a.yaml"));
    assert!(said.ends_with("; expected a YAML file"), "{said}");
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    for levels in [100, 100_000] {
        let deep = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let refusal = refused(&deep).to_string();
        assert!(refusal.contains("levels deep") || refusal.contains("recursion"), "{refusal}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn any_text_is_read_or_refused(text in "[-a-c:{}\\[\\],&*!|>#'\"% \nµ]{0,60}") {
        if let Ok(document) = Document::parse("any", &text) {
            let _ = document.read::<Plan>();
        }
    }
}

#[derive(Debug, Deserialize)]
#[allow(dead_code, reason = "read by serde alone")]
struct Service {
    listen: u16,
    #[serde(default)]
    users: std::collections::BTreeMap<String, String>,
}

/// YAML takes a password of digits for a number, and logs keep what errors quote.
#[test]
fn no_error_shows_a_secret() {
    for (text, place) in [
        ("listen: 1\nusers: { ada: 99887766 }\n", "plan.yaml:2:15: "),
        ("listen: 1\nusers:\n  ada: 99887766\n", "plan.yaml:3:8: "),
        ("listen: 1\nusers: ada 99887766\n", "plan.yaml:2:8: "),
        ("listen: 1\nusers: { ada: [99887766] }\n", "plan.yaml:2:15: "),
        ("{ users: { \u{e4}: '99887766' }, listen: x }\n", "plan.yaml:1:37: `x` does not fit here"),
        ("users: { ada: \"99887766\" }\nlisten: x\n", "plan.yaml:2:9: `x` does not fit here"),
        ("listen: x\nusers: { ada: \"99887766\" }\n", "plan.yaml:1:9: `x` does not fit here"),
        ("listen: [1\nusers: { ada: 99887766 }\n", "plan.yaml:"),
        ("'users' : { ada: \"99887766 }\nlisten: 1\n", "plan.yaml:"),
        ("users: { ada: a, ada: 99887766 }\n", "plan.yaml:1:18: `ada` is there already"),
        ("listen: x\nUsers: { ada: 99887766 }\n", "plan.yaml:1:9: `x` does not fit here"),
        ("listen: x\nrouting: { Key: 99887766, wpa_psk: 99887766 }\n", "plan.yaml:1:9: "),
        ("passphrase: 99887766\nlisten: x\n", "plan.yaml:2:9: `x` does not fit here"),
        ("listen: [1\nPassword: 99887766 }\n", "plan.yaml:"),
        // A file of keys in place of the configuration.
        ("# chmod 600\n1 99887766998877669988776699887766\n", "plan.yaml:2:1: "),
        ("1 99887766\n", "plan.yaml:1:1: "),
        ("listen: 9988776699887766998877669988776f\n", "plan.yaml:1:9: `****"),
        ("listen: [1\n1 9988776699887766998877669988776f\n", "plan.yaml:"),
    ] {
        let refusal = match Document::parse("plan.yaml", text) {
            Ok(document) => *document.read::<Service>().expect_err("it is refused"),
            Err(refusal) => *refusal,
        };
        let line = refusal.to_string();
        assert!(line.starts_with(place), "{text}: {line}");
        let said = format!("{line} {:?}", miette::Report::new(refusal));
        assert!(said.contains("plan.yaml") && !said.contains("99887766"), "{text}: {said}");
    }
}

#[test]
fn a_file_that_is_not_there_is_compared_with_those_beside_it() {
    let folder = std::env::temp_dir().join(format!("hopwise-near-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("chain.yaml"), "a: 1\n").expect("a file");
    std::fs::write(folder.join("chian.svg"), "").expect("a file");
    let said = |name: &str| match Document::load(&folder.join(name)) {
        Err(LoadError::Unreadable { problem, .. }) => problem,
        other => panic!("{other:?}"),
    };
    let (near, far) = (said("chian.yaml"), said("moving.yaml"));
    let _ = std::fs::remove_dir_all(&folder);
    assert!(near.ends_with(&format!("did you mean `{}`?", folder.join("chain.yaml").display())), "{near}");
    assert!(far.ends_with("expected a YAML file"), "{far}");
}

#[test]
fn of_very_many_names_those_are_told_that_begin_alike() {
    let all: Vec<String> = (0..40).map(|nth| format!("{}-{nth}", ["ht", "vht"][nth % 2])).collect();
    let names: Vec<_> = all.iter().map(String::as_str).collect();
    let told = one_of("vht-40", &names);
    assert!(told.starts_with("did you mean `vht-") && told.ends_with("vht-39, and 20 more"), "{told}");
    assert!(!told.contains(" ht-"), "{told}");
    assert!(one_of("x", &names).ends_with("vht-23, and 16 more"), "{}", one_of("x", &names));
    assert_eq!(one_of("x", &names[..3]), "expected one of ht-0, vht-1, ht-2");
    assert!(one_of("17", &names).starts_with("did you mean `vht-17`?"), "{}", one_of("17", &names));
}

#[test]
fn a_tab_is_answered_with_spaces() {
    for (text, place) in [
        ("title: x\n\ttopology: 3\n", "a.yaml:2:1: "),
        ("topology:\n\tkind: chain\n", "a.yaml:2:1: "),
        ("topology:\n  kind: chain\n  \thops: 3\n", "a.yaml:3:3: "),
    ] {
        let refusal = Document::parse("a.yaml", text).expect_err("a tab");
        let help = Diagnostic::help(&*refusal).expect("a help").to_string();
        assert!(help.starts_with("spaces in place of the tab"), "{help}");
        assert!(refusal.to_string().starts_with(place), "{refusal}");
    }
}

#[test]
fn letters_that_no_name_has_are_refused_at_their_place() {
    for (text, place) in [
        ("arms:\n  \"a\\nb\": {}\n", "a.yaml:2:3: there is U+000A in it, a control character"),
        ("arms:\n  a\u{202e}b: {}\n", "a.yaml:2:3: there is U+202E in it, which parts lines or turns text"),
        ("title: \"\\e[2J\"\n", "a.yaml:1:8: there is U+001B in it, a control character"),
        ("list:\n- \u{2066}x\n", "a.yaml:2:3: there is U+2066 in it, which parts lines or turns text"),
    ] {
        let refusal = Document::parse("a.yaml", text).expect_err("a letter of no name");
        let help = Diagnostic::help(&*refusal).expect("a help").to_string();
        assert_eq!((refusal.to_string().as_str(), help.as_str()), (place, plain::NAME), "{text:?}");
    }
    let lines = "note: >\n  of two\n\n  lines\nmore: |\n  x\ty\n  z\n";
    Document::parse("a.yaml", lines).expect("a value may have several lines");
}

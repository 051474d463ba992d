use super::*;

fn printed(print: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    print(&mut out).expect("memory is written to");
    String::from_utf8(out).expect("text")
}

#[test]
fn the_list_has_every_agent_once_under_its_kind() {
    let text = printed(|out| printing::list(&registry::all().collect::<Vec<_>>(), out));
    let (receivers, rest) = text.split_once("Sender agents").expect("all kinds");
    let (senders, base_stations) = rest.split_once("Base-station agents").expect("all kinds");
    for agent in registry::all() {
        let part = match agent.kind() {
            Kind::Receiver => receivers,
            Kind::Sender => senders,
            Kind::BaseStation => base_stations,
        };
        let begins = |line: &&str| {
            line.strip_prefix("  ").and_then(|line| line.split([' ', '(']).next()) == Some(agent.name)
        };
        assert_eq!(part.lines().filter(begins).count(), 1, "{}", agent.name);
    }
    assert!(text.contains("The default is delayed with [cubic:hystart=on]."));
}

#[test]
fn what_is_shown_has_the_rule_every_parameter_the_paper_and_the_deviations() {
    for agent in registry::all() {
        let text = printed(|out| printing::one(agent, out));
        for title in ["\nRule\n", "\nSource\n", "\nParameters\n", "\nDeviations\n"] {
            assert!(text.contains(title), "{}: {title}", agent.name);
        }
        let bibliography = include_str!("../../../../docs/bibliography.md");
        assert!(text.contains("\n  Year, venue and DOI: see docs/bibliography.md\n"), "{}", agent.name);
        assert!(bibliography.contains(&format!("`{}`", agent.name)), "{} is in it", agent.name);
        for param in agent.params {
            assert!(text.contains(&format!("\n  {} ", param.name)), "{}: {}", agent.name, param.name);
        }
        assert!(text.lines().all(|line| line.chars().count() <= 110), "{}", agent.name);
    }
}

#[test]
fn defaults_and_what_is_accepted_are_told_with_their_units() {
    let text = printed(|out| printing::each(&find("delayed").expect("an agent"), out));
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("a whole number of segments from 2 to 65535 (default 2; its name may be left out)"),
        "{text}"
    );
    assert!(flat.contains("a time with its unit from 1ms to 490ms (default 100ms)"), "{text}");
    let text = printed(|out| printing::each(&find("newreno").expect("an agent"), out));
    assert!(text.contains("that owns the congestion window"), "{text}");
    assert!(text.contains("under profile ns2 2"), "{text}");
}

#[test]
fn a_program_gets_the_same_as_objects() {
    let text = printed(|out| printing::array(&registry::all().collect::<Vec<_>>(), out));
    let all: Vec<serde_json::Value> = serde_json::from_str(&text).expect("an array");
    assert_eq!(all.len(), registry::all().count());
    let limit = all.iter().find(|agent| agent["name"] == "limit").expect("an agent");
    assert_eq!(limit["kind"], "sender");
    assert_eq!(limit["parameters"][0]["needed"], true);
    assert!(limit["deviations"].as_str().is_some_and(|text| text.contains("RFC 8985")), "{limit}");
}

#[test]
fn an_unknown_name_is_refused_with_those_that_there_are() {
    let Err(failure) = find("dcaa") else { panic!("no agent is called so") };
    let text = failure.to_string();
    let wanted = "dcaa: no agent is called that; did you mean `dca`? accepted: immediate, delayed,";
    assert!(text.starts_with(wanted), "{text}");
}

#[test]
fn a_spec_in_place_of_a_name_is_answered_with_the_name() {
    for (given, wanted) in [
        ("dca:hybrid", "a name alone is wanted: `dca`; accepted:"),
        ("[newreno, limit:4]", "a name alone is wanted: `newreno`; accepted:"),
        ("dup-count(delayed)", "a name alone is wanted: `dup-count`; accepted:"),
        ("delaid:d=3", "did you mean `delayed`? accepted:"),
        ("", "no agent is called that; accepted:"),
        ("nobody", "no agent is called that; accepted:"),
    ] {
        let Err(failure) = find(given) else { panic!("no agent is called `{given}`") };
        assert!(failure.to_string().contains(wanted), "{given}: {failure}");
    }
}

#[test]
fn a_name_that_both_kinds_have_shows_both() {
    let text = printed(|out| printing::each(&find("train").expect("two agents"), out));
    assert!(
        text.contains("train: a receiver agent\n") && text.contains("train: a sender agent that owns"),
        "{text}"
    );
    let text = printed(|out| printing::objects(&find("train").expect("two agents"), out));
    let kinds: Vec<_> = serde_json::Deserializer::from_str(&text)
        .into_iter::<serde_json::Value>()
        .map(|agent| agent.expect("an object")["kind"].clone())
        .collect();
    assert_eq!(kinds, ["receiver", "sender"]);
}

//! The schemas say everything about every key, and errors name the ranges that stand there.

use hopwise_lab::keys::{Key, Range};
use hopwise_lab::located::{Document, Refusal};
use hopwise_lab::scenario::Scenario;
use hopwise_lab::units::Time;
use miette::Diagnostic;

use super::shared::described_elsewhere;
use super::{FileKind, page};
use hopwise_node::fleet;
use hopwise_router::proxy;
use hopwise_testing::book;

impl FileKind {
    /// Reads a file as its command does, without its machine.
    fn checks(self, name: &str, text: &str, sets: &[String]) -> Result<(), Box<Refusal>> {
        let document = || {
            let mut document = Document::parse(name, text)?;
            sets.iter().try_for_each(|set| document.set("--set", set))?;
            Ok::<_, Box<Refusal>>(document)
        };
        match self {
            FileKind::Scenario => {
                let scenario = Scenario::parse(name, text, sets)?;
                let asked = scenario.asked()?;
                scenario.claims()?;
                asked.arms.iter().try_for_each(|arm| scenario.under(arm).map(drop))
            }
            FileKind::Node => hopwise_node::config::checked(&document()?),
            FileKind::Route => hopwise_router::route::config::checked(&document()?),
            FileKind::Proxy => proxy::config::checked(&document()?),
            FileKind::Inventory => fleet::inventory::is_accepted(&document()?),
            FileKind::Mesh => hopwise_router::bringup::config::checked(&document()?),
            FileKind::Thin => hopwise_router::thin::config::checked(&document()?),
        }
    }

    /// Files with examples that this build can read.
    fn readable(self) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
        self.files().iter().filter(|(name, _)| cfg!(feature = "pcap") || !name.ends_with("pcap.yaml"))
    }
}

#[test]
fn the_book_has_the_keys_of_every_file() {
    for &kind in FileKind::ALL {
        book::holds(&format!("docs/{}.md", kind.page()), &page::of(kind));
    }
}

/// Its rows stand where it comes first, and other places lead there.
#[test]
fn a_section_of_several_files_is_described_once() {
    for (kind, described, pointer) in [
        (
            FileKind::Route,
            "| `active_route_timeout` |",
            "[`routing` of a scenario](scenario.md#routing), without `batman`",
        ),
        (FileKind::Node, "| `rto_min` |", "[`tcp` of a scenario](scenario.md#tcp)."),
        (FileKind::Proxy, "| `reorder_by` |", "[`links[].fault` of a node](keys-node.md#linksfault)."),
        (FileKind::Proxy, "## `mobile.fault`", "[`fixed`](#fixed)."),
        (FileKind::Scenario, "## `sweep`\n\n|", "[`matrix`](#matrix)."),
    ] {
        let page = page::of(kind);
        assert!(!page.contains(described), "{described}");
        assert!(page.contains(&format!("The keys are those of {pointer}")), "{pointer}: {page}");
    }
    let described: Vec<_> = FileKind::ALL.iter().copied().flat_map(described_elsewhere).collect();
    assert!(described.len() > 5, "{described:?}");
    for (section, first) in described {
        let heading = format!("\n## `{}`\n", first.block);
        let with_rows = page::of(first.kind).split_once(&heading).is_some_and(|(_, behind)| {
            let own = behind.split_once("\n## ").map_or(behind, |(own, _)| own);
            own.contains("\n| key |") && own.contains(&format!("`{}`", section.block))
        });
        assert!(with_rows, "{section:?} is described by {first:?}");
    }
}

#[test]
fn every_file_with_examples_is_accepted() {
    for &kind in FileKind::ALL {
        for (name, text) in kind.readable() {
            kind.checks(name, text, &[]).unwrap_or_else(|refusal| panic!("{refusal}"));
        }
    }
}

#[test]
fn a_file_of_another_command_is_told_to_be_one() {
    let kinds = [
        (FileKind::Scenario, "scenario", include_str!("../../../../configs/chain.yaml")),
        (FileKind::Node, "file of `hopwise node`", include_str!("../../../../configs/node.yaml")),
        (FileKind::Route, "file of `hopwise route`", include_str!("../../../../configs/route.yaml")),
        (FileKind::Proxy, "file of `hopwise proxy`", include_str!("../../../../configs/proxy.yaml")),
        (FileKind::Mesh, "file of `hopwise mesh up`", include_str!("../../../../configs/mesh.yaml")),
        (
            FileKind::Thin,
            "file of `hopwise thin --config`",
            include_str!("../../../../configs/keys/thin.yaml"),
        ),
    ];
    for (kind, words, text) in kinds {
        for (wanted, wanted_words, _) in kinds {
            let checked = wanted.checks("a", text, &[]).map_err(|refusal| refusal.to_string());
            let said = format!("this is no {wanted_words} but a {words}");
            match checked {
                Ok(()) => assert_eq!(wanted, kind),
                Err(refused) => assert!(wanted != kind && refused.contains(&said), "{refused}"),
            }
        }
    }
}

fn lacks(kind: FileKind, key: &Key) -> Option<&'static str> {
    let Key { value, unit, range, default, meaning, .. } = key;
    let is_quantity = ["time", "size", "rate", "share"].iter().any(|one| value.starts_with(one));
    let is_number = key.is_number || is_quantity;
    // A key that only some kinds have is required there, or has no default; its meaning says which.
    let is_of_kind = meaning.contains("(kind") || meaning.contains("(required by");
    let example = kind.example(&key.path);
    [
        (meaning.is_empty(), "a meaning"),
        (value.is_empty(), "a value"),
        (is_number && unit.is_none(), "a unit"),
        (is_number && range.is_none(), "a range"),
        (!key.required && !key.is_block && !is_of_kind && default.is_none(), "a default"),
        (example.is_none(), "an example"),
    ]
    .into_iter()
    .find_map(|(is_lacking, what)| is_lacking.then_some(what))
}

#[test]
fn every_key_has_a_meaning_a_unit_a_range_a_default_and_an_example() {
    let mut lacking = Vec::new();
    for &kind in FileKind::ALL {
        let keys = kind.keys();
        let least = match kind {
            FileKind::Thin => 7,
            FileKind::Inventory => 9,
            _ => 20,
        };
        assert!(keys.len() > least, "{kind:?}");
        let of =
            |key: &Key| lacks(kind, key).map(|what| format!("{} {} lacks {what}", kind.name(), key.path));
        lacking.extend(keys.iter().filter_map(of));
    }
    assert!(lacking.is_empty(), "{lacking:#?}");
}

/// Each key with a range of its own, with a value below it and one above it.
fn outside(kind: FileKind) -> Vec<(Key, String)> {
    let mut all = Vec::new();
    for key in kind.keys() {
        let own = key.range.clone().unwrap_or_default();
        let range = Range::of(&own);
        let is_plain = key.is_number && !key.value.contains("list");
        let (least, most) = (range.least.filter(|_| is_plain), range.most.filter(|_| is_plain));
        all.extend(least.map(|least| (key.clone(), format!("{}", least - 1.0))));
        all.extend(most.map(|most| (key.clone(), format!("{}", most + 1.0))));
        if key.value == "time" && !own.starts_with('0') && range.least.is_some() {
            all.push((key.clone(), "0s".to_owned()));
        }
        if key.value == "size" && !own.starts_with('0') {
            all.push((key, "0B".to_owned()));
        }
    }
    all
}

#[test]
fn a_value_out_of_the_range_of_its_key_is_refused_with_that_range() {
    let mut tried = 0;
    for &kind in FileKind::ALL {
        for (key, value) in outside(kind) {
            let Some((name, text)) = kind.readable().find(|(_, text)| place(text, &key.path).is_some())
            else {
                continue;
            };
            let set = format!("{}={value}", place(text, &key.path).expect("it was found"));
            let refusal = kind.checks(name, text, std::slice::from_ref(&set));
            let refusal = refusal.expect_err(&format!("{name}: {set}"));
            let help = refusal.help().map(|help| help.to_string()).unwrap_or_default();
            let range = key.range.as_deref().unwrap_or_default();
            // The numbers of a type are refused by its reader, and constants by their protocol, in words of their own.
            let is_own = key.limits().is_some_and(|limits| help.contains(&limits) || help.contains(range));
            let ends = range.split(" to ").all(|end| help.contains(end.trim_end_matches(" or more")));
            let by_type = range.starts_with("0 ") || key.path.contains("routing.");
            assert!(is_own || ends || by_type, "{name}: {set}: {refusal} ({help}), and not {range}");
            tried += 1;
        }
    }
    assert!(tried > 100, "{tried}");
}

/// The path of the example in its file, with numbers of entries.
fn place(text: &str, path: &str) -> Option<String> {
    let mut value: serde_yaml::Value = serde_yaml::from_str(text).expect("YAML");
    let mut place = Vec::new();
    for step in path.split('.') {
        let (key, is_list) = step.strip_suffix("[]").map_or((step, false), |key| (key, true));
        let key = if key == "NAME" {
            value.as_mapping()?.keys().next()?.as_str()?.to_owned()
        } else {
            key.to_owned()
        };
        value = value.get(key.as_str())?.clone();
        place.push(key);
        if is_list {
            value = value.get(0)?.clone();
            place.push("0".to_owned());
        }
    }
    Some(place.join("."))
}

/// True if the words begin with this value as a whole: `50, or 100 with …` does with `50`, but not with `5`.
fn begins(words: &str, code: &str) -> bool {
    let goes_on = |rest: &str| rest.starts_with(|c: char| c.is_alphanumeric() || ".%".contains(c));
    words.strip_prefix(code).is_some_and(|rest| !goes_on(rest))
}

#[test]
fn a_default_in_words_is_that_of_the_code() {
    for &kind in FileKind::ALL {
        for key in kind.keys() {
            let Some((words, code)) = key.default.as_ref().zip(key.default_of_code.as_ref()) else {
                continue;
            };
            // Words say what nothing means.
            let is_none = ["[]", "{}"].contains(&code.as_str());
            let time = |text: &str| text.parse::<Time>().ok();
            let is_time = time(code).is_some() && time(code) == time(words);
            let is_off = code == "false" && words.starts_with("off");
            let is_same = begins(words, code) || is_none || is_off || is_time;
            assert!(is_same, "{} {}: {words} is not {code}", kind.name(), key.path);
        }
    }
}

/// Otherwise the comparison above would pass them over. The gateway's name is compared where its plan is made, the
/// settings of 802.11n in a test of the scenario, since profiles of other radios have none.
#[test]
fn every_default_of_the_radio_and_of_the_gateway_is_compared_with_the_code() {
    let keys = FileKind::Scenario.keys();
    let elsewhere = [
        "gateway.node",
        "radio.guard_interval",
        "radio.band",
        "radio.ampdu",
        "radio.amsdu",
        "radio.lifetime",
        "radio.reorder_timeout",
        "radio.rates",
        "radio.mcs",
        "radio.queue",
    ];
    for block in ["radio.", "gateway."] {
        let is_here = |key: &&Key| key.path.starts_with(block) && !elsewhere.contains(&key.path.as_str());
        let of_block = keys.iter().filter(is_here);
        let bare: Vec<_> = of_block.clone().filter(|key| key.default_of_code.is_none()).collect();
        assert!(of_block.count() >= 6 && bare.is_empty(), "{block}: {bare:?}");
    }
}

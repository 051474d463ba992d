//! Recipes over files: whose arms, figures, probes and flows a trial has then.

use std::fs;

use super::*;
use crate::campaign::Campaign;

const RECIPE: (&str, &str) = ("advise", include_str!("../../../../configs/recipes/advise.yaml"));

/// The recipe over a file of this text.
fn over(test: &str, text: &str, sets: &[&str]) -> Result<Scenario, String> {
    let path = std::env::temp_dir().join(format!("hopwise-recipe-{test}-{}.yaml", std::process::id()));
    fs::write(&path, text).expect("a file");
    let read = Scenario::of_recipe(RECIPE, Some(&path), &owned(sets));
    let _ = fs::remove_file(&path);
    read.map_err(|error| format!("{error:?}"))
}

const FILE: &str = "topology: { kind: chain, hops: 3 }\n\
    traffic: [{ from: n1, to: n3, kind: bulk, segment_bytes: 700 }]\n\
    arms: { own: { receiver: immediate } }\nrun: { duration: 9s, seeds: 2, baseline: own }\n\
    claims: [{ arm: own, metric: goodput-kbps, value: 3 }]\n";

#[test]
fn a_recipe_over_a_file_has_its_own_arms_figures_and_probes_and_the_file_s_flows() {
    let scenario = over("file", FILE, &[]).expect("it is read");
    assert!(scenario.name.ends_with("-advise"), "its folder is not that of the file's own trial");
    let campaign = Campaign::new(&scenario, None, None).expect("it is planned");
    let trial = &campaign.trial;
    assert_eq!((trial.arms[0].as_str(), trial.seeds.len()), ("linux", 2));
    assert_eq!(trial.figures, ["goodput_kbps", "probe_p95_ms"]);
    let settings = scenario.only(Some("pair-dca")).expect("an arm").settings();
    let flows = settings["traffic"].as_array().expect("flows");
    let ends: Vec<_> = flows.iter().map(|flow| [&flow["kind"], &flow["from"], &flow["to"]]).collect();
    assert_eq!(ends, [["bulk", "n1", "n3"], ["probe", "n1", "n3"]]);
    assert_eq!((&flows[0]["segment_bytes"], &settings["run"]["duration"]), (&700.into(), &"9s".into()));
    let probed = FILE.replace("700 }", "700 }, { from: n0, to: n1, kind: probe, every: 3s }");
    let own =
        over("probed", &probed, &[]).expect("it is read").only(Some("linux")).expect("an arm").settings();
    assert_eq!(own["traffic"].as_array().map(Vec::len), Some(2), "a probe of the file's own is enough");
    let with = over("set", FILE, &["arms.pair-tda={ receiver: tda }"]).expect("it is read");
    assert!(with.only(Some("pair-tda")).is_ok(), "what is set comes after the recipe");
}

#[test]
fn the_simulation_has_linux_s_rules_in_place_of_its_kernel() {
    let agents = |world: &[&str], arm: &str| {
        let scenario = over(arm, FILE, world).expect("it is read");
        let arm =
            scenario.only(Some(arm)).unwrap_or_else(|error| panic!("{error:?}")).settings()["arm"].clone();
        format!("{} {} {}", arm["receiver"], arm["sender"], arm["thin"])
    };
    assert_eq!(agents(&[], "linux"), r#""linux" ["cubic:hystart=on"] null"#);
    assert_eq!(agents(&[], "linux-bbr"), r#""linux" ["bbr"] null"#);
    assert_eq!(agents(&[], "thin-d8-bbr"), r#""delayed:8" ["bbr"] null"#);
    assert_eq!(agents(&[], "pair-train"), r#""train" ["train"] null"#);
    assert_eq!(agents(&["world=netns"], "linux"), r#""kernel" ["kernel:cubic"] null"#);
    assert_eq!(agents(&["world=netns"], "thin-d8"), r#""kernel" ["kernel:cubic"] "delayed:8""#);
    let alone = Scenario::of_recipe(RECIPE, None, &owned(&["world=sim"])).expect("it is read");
    assert_eq!(alone.name, "advise");
    assert!(Campaign::new(&alone, None, None).is_ok());
}

#[test]
fn a_file_that_makes_no_sense_under_a_recipe_is_refused() {
    let refused = |text: &str, sets: &[&str]| over("refused", text, sets).expect_err("it makes no sense");
    assert!(refused("traffic: [", &[]).contains("Refused"));
    assert!(refused(&FILE.replace("traffic", "trafic"), &[]).contains("trafic"));
    assert!(refused(FILE, &["no assignment"]).contains("the `=` is missing"));
    let nowhere = Scenario::of_recipe(RECIPE, Some(Path::new("/no/such.yaml")), &[]);
    assert!(matches!(nowhere, Err(LoadError::Unreadable { .. })), "{nowhere:?}");
}

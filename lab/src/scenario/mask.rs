//! The rates that a rate control may choose: `radio.rates` and `radio.mcs`.

use std::collections::BTreeMap;

use hopwise_air::dcf::RateControl;
use hopwise_air::phy::{Phy, Rate, RateMask};

use super::check;
use super::schema::ScenarioFile;
use crate::located::{Checked, Document, YamlPath};

/// The same profile with the rates that the file allows.
pub(super) fn read(document: &Document, file: &ScenarioFile, phy: Phy) -> Checked<Phy> {
    let radio = &file.radio;
    let legacy = radio.rates.as_ref().map(|rates| rates.iter().map(|rate| rate.0).collect::<Vec<_>>());
    let mcs = radio.mcs.as_ref().map(|mcs| mcs.iter().map(|mcs| u64::from(*mcs)).collect::<Vec<_>>());
    let mut masked = phy;
    for (key, given) in [("rates", legacy), ("mcs", mcs)] {
        let Some(given) = given else { continue };
        refuse_what_changes_nothing(document, file, &phy, key)?;
        if phy.is_ht() == (key == "mcs") && radio.rate.0 != RateControl::Fixed {
            masked.mask = mask(document, file, &phy, (key, &given))?;
        }
    }
    Ok(masked)
}

fn refuse_what_changes_nothing(document: &Document, file: &ScenarioFile, phy: &Phy, key: &str) -> Checked {
    let at = YamlPath::root().key("radio");
    if phy.is_ht() != (key == "mcs") && !check::varies(file, "radio.profile") {
        let other = if phy.is_ht() { "mcs" } else { "rates" };
        let problem = format!("`{key}` changes nothing under `{}`", phy.name);
        let paths = [at.key(key), at.key("profile")];
        return Err(document.refuse_key_among(&paths, problem, &format!("`{other}`, or another profile")));
    }
    if file.radio.rate.0 == RateControl::Fixed && !check::varies(file, "radio.rate") {
        let paths = [at.key(key), at.key("rate")];
        let problem = format!("`{key}` changes nothing at a fixed rate");
        return Err(document.refuse_key_among(&paths, problem, "rate: arf or rate: minstrel beside it"));
    }
    Ok(())
}

fn mask(
    document: &Document,
    file: &ScenarioFile,
    phy: &Phy,
    (key, given): (&str, &[u64]),
) -> Checked<RateMask> {
    let at = YamlPath::root().key("radio").key(key);
    let all = file.radio.rate.0.rates(phy);
    let names: BTreeMap<u64, String> = all.iter().map(|rate| (number(rate), name(rate))).collect();
    let accepted = names.into_values().collect::<Vec<_>>().join(", ");
    if given.is_empty() {
        return Err(document.refuse(&at, "there is no rate", &accepted));
    }
    for (nth, wanted) in given.iter().enumerate() {
        if !all.iter().any(|rate| number(rate) == *wanted) {
            let problem = format!("no such rate is chosen under `{}`", phy.name);
            return Err(document.refuse(&at.index(nth), problem, &accepted));
        }
    }
    Ok(RateMask::of(all.into_iter().filter(|rate| given.contains(&number(rate)))))
}

/// The MCS, or bits a second.
fn number(rate: &Rate) -> u64 {
    rate.mcs().map_or(rate.bits_per_second, u64::from)
}

fn name(rate: &Rate) -> String {
    match rate.mcs() {
        Some(mcs) => mcs.to_string(),
        None if rate.kbps().is_multiple_of(1_000) => format!("{}mbit", rate.kbps() / 1_000),
        None => format!("{}.{}mbit", rate.kbps() / 1_000, rate.kbps() % 1_000 / 100),
    }
}

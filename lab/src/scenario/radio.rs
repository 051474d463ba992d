//! Radios: `radio:`.

use hopwise_air::dcf::{MacConfig, MacRules};
use hopwise_air::phy::{Band, Phy};

use super::schema::ScenarioFile;
use super::{check, mask};
use crate::located::{Checked, Document, YamlPath, one_of};
use crate::units::Time;
use crate::words::OrOff;

/// A block ACK tells of at most this number of packets.
const MOST_MPDUS: u8 = 64;

/// The physical layer of all radios.
pub(super) fn read(document: &Document, file: &ScenarioFile) -> Checked<Phy> {
    let at = YamlPath::root().key("radio");
    let radio = &file.radio;
    let phy = Phy::named(&radio.profile).ok_or_else(|| {
        let (wrong, names) = (&radio.profile, Phy::names().collect::<Vec<_>>());
        document.refuse(&at.key("profile"), Phy::why_unnamed(wrong), &one_of(wrong, &names))
    })?;
    of_cts_to_self(document, file)?;
    if phy.is_ht() {
        of_ht(document, file, &phy)?;
        let guard = radio.guard_interval.unwrap_or_default().0;
        let phy = phy.with_guard(guard).in_band(radio.band.unwrap_or_default().0);
        return mask::read(document, file, phy);
    }
    for (key, is_given) in [
        ("guard_interval", radio.guard_interval.is_some()),
        ("band", radio.band.is_some()),
        ("ampdu", radio.ampdu.is_some()),
        ("amsdu", radio.amsdu.is_some()),
        ("amsdu_in_ampdu", radio.amsdu_in_ampdu),
        ("lifetime", radio.lifetime.is_some()),
        ("reorder_timeout", radio.reorder_timeout.is_some()),
    ] {
        if is_given && !check::varies(file, "radio.profile") {
            let problem = format!("`{key}` changes nothing under `{}`", phy.name);
            let paths = [key, "profile"].map(|key| at.key(key));
            return Err(document.refuse_key_among(
                &paths,
                problem,
                "a profile of 802.11n beside it, such as ht20-mcs7",
            ));
        }
    }
    mask::read(document, file, phy)
}

/// The MAC's settings of all radios.
pub(super) fn mac(phy: &Phy, file: &ScenarioFile) -> MacConfig {
    let radio = &file.radio;
    let ampdu = match radio.ampdu {
        _ if !phy.is_ht() => None,
        given => given.map_or(Some(MOST_MPDUS), OrOff::on),
    };
    // Radios with aggregates have A-MSDUs nowhere else.
    let has_amsdu = phy.is_ht() && (ampdu.is_none() || radio.amsdu_in_ampdu);
    let amsdu = radio.amsdu.and_then(OrOff::on).filter(|_| has_amsdu).map(u32::from);
    let standard = MacConfig::default();
    MacConfig {
        rules: file.mac.rules.0,
        rts_threshold: radio.rts_threshold.on(),
        cts_to_self: radio.cts_to_self && file.mac.rules.0 == MacRules::Standard,
        rate: radio.rate.0,
        ampdu,
        amsdu,
        lifetime_ns: radio.lifetime.map_or(standard.lifetime_ns, nanos),
        reorder_ns: radio.reorder_timeout.map_or(standard.reorder_ns, nanos),
        ..standard
    }
}

fn nanos(key: OrOff<Time>) -> Option<u64> {
    key.on().map(|time| u64::try_from(time.0.as_nanos()).unwrap_or(u64::MAX / 2))
}

/// Refuses what stations of 802.11n and 802.11ac cannot do.
fn of_ht(document: &Document, file: &ScenarioFile, phy: &Phy) -> Checked {
    let root = YamlPath::root();
    let profile = root.key("radio").key("profile");
    let is_low = file.radio.band.is_some_and(|band| band.0 == Band::Ghz2);
    if phy.is_vht() && is_low && !check::varies(file, "radio.profile") {
        let paths = [root.key("radio").key("band"), profile];
        let problem = format!("802.11ac has no channels at 2.4 GHz, and `{}` is a profile of it", phy.name);
        return Err(document.refuse_among(&paths, problem, "band: 5ghz, or a profile of 802.11n"));
    }
    if file.mac.rules.0 == MacRules::Ns2 {
        let paths = [root.key("mac").key("rules"), profile];
        let problem = format!("ns-2 has no 802.11n, and `{}` is a profile of it", file.radio.profile);
        return Err(document.refuse_among(&paths, problem, "rules: standard, or a profile of DSSS or OFDM"));
    }
    of_amsdu(document, file)?;
    let is_single = file.radio.ampdu == Some(OrOff::Off) && !check::varies(file, "radio.ampdu");
    for (key, value, why) in [
        ("lifetime", file.radio.lifetime, "whose packets have no limit of tries"),
        ("reorder_timeout", file.radio.reorder_timeout, "in which packets overtake others"),
    ] {
        if is_single && matches!(value, Some(OrOff::On(_))) {
            let paths = [key, "ampdu"].map(|key| root.key("radio").key(key));
            let problem = format!("`{key}` changes nothing without aggregates, {why}");
            return Err(document.refuse_key_among(
                &paths,
                problem,
                "ampdu: 64, or another number of packets",
            ));
        }
    }
    Ok(())
}

/// Refuses a CTS to the sender itself where it changes nothing, and where there is none.
fn of_cts_to_self(document: &Document, file: &ScenarioFile) -> Checked {
    if !file.radio.cts_to_self {
        return Ok(());
    }
    let (root, at) = (YamlPath::root(), YamlPath::root().key("radio"));
    if file.mac.rules.0 == MacRules::Ns2 && !check::varies(file, "mac.rules") {
        let paths = [at.key("cts_to_self"), root.key("mac").key("rules")];
        let problem = "ns-2 has no CTS to the sender itself";
        return Err(document.refuse_key_among(&paths, problem, "rules: standard"));
    }
    if file.radio.rts_threshold == OrOff::On(0) && !check::varies(file, "radio.rts_threshold") {
        let paths = ["cts_to_self", "rts_threshold"].map(|key| at.key(key));
        let problem = "`cts_to_self` changes nothing where an RTS precedes each packet";
        return Err(document.refuse_key_among(&paths, problem, "rts_threshold: off, or a size in bytes"));
    }
    Ok(())
}

/// Refuses keys of A-MSDUs that change nothing.
fn of_amsdu(document: &Document, file: &ScenarioFile) -> Checked {
    let (radio, at) = (&file.radio, YamlPath::root().key("radio"));
    let varies = |key: &str| check::varies(file, &format!("radio.{key}"));
    let is_on = matches!(radio.amsdu, Some(OrOff::On(_))) || varies("amsdu");
    let has_ampdu = radio.ampdu != Some(OrOff::Off) || varies("ampdu");
    if radio.amsdu_in_ampdu && !(is_on && has_ampdu) {
        let paths = ["amsdu_in_ampdu", "amsdu", "ampdu"].map(|key| at.key(key));
        let problem = "`amsdu_in_ampdu` changes nothing without both kinds of aggregates";
        return Err(document.refuse_key_among(&paths, problem, "amsdu: 3839 beside it, and ampdu: 64"));
    }
    if is_on
        && radio.ampdu != Some(OrOff::Off)
        && !radio.amsdu_in_ampdu
        && !varies("ampdu")
        && !varies("amsdu_in_ampdu")
    {
        let paths = ["amsdu", "ampdu"].map(|key| at.key(key));
        let problem = "`amsdu` changes nothing beside aggregates that may not contain A-MSDUs";
        return Err(document.refuse_key_among(&paths, problem, "amsdu_in_ampdu: true, or ampdu: off"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::scenario::NoPlan;
    use crate::scenario::tests::{plan_of, read};

    /// A link of such radios.
    fn of(radio: &str) -> String {
        format!(
            "topology: {{ kind: chain, hops: 1 }}\nradio: {{ {radio} }}\n\
             traffic: [{{ from: first, to: last, kind: bulk }}]\narms: {{ x: {{}} }}\nrun: {{ duration: 1s }}\n"
        )
    }

    /// Profiles of other radios have none of these keys, so that the schema has no defaults of the code to compare.
    #[test]
    fn radios_of_802_11n_have_the_defaults_that_their_keys_tell() {
        let planned = |radio: &str| {
            let plan = plan_of(&of(&format!("profile: ht20-mcs7{radio}")), &[]);
            format!("{:?} {:?}", plan.phy, plan.mac)
        };
        let told = planned(
            ", guard_interval: long, band: 2.4ghz, ampdu: 64, lifetime: 512ms, reorder_timeout: 100ms",
        );
        assert_eq!(planned(""), told);
        assert_ne!(planned(", lifetime: 513ms"), told);
        assert_ne!(planned(", reorder_timeout: off"), told);
        assert_eq!(planned(", amsdu: off, amsdu_in_ampdu: false"), told);
        assert_ne!(planned(", amsdu: 3839, amsdu_in_ampdu: true"), told);
    }

    #[test]
    fn settings_that_no_radio_has_are_refused_with_the_reason() {
        for (radio, problem) in [
            (
                "profile: vht20-2ss-mcs9",
                "no profile can be `vht20-2ss-mcs9`: IEEE 802.11 has no MCS 9 with one or two",
            ),
            ("profile: vht80-3ss-mcs7", "no profile is called `vht80-3ss-mcs7`"),
            (
                "profile: vht80-2ss-mcs7, band: 2.4ghz",
                "802.11ac has no channels at 2.4 GHz, and `vht80-2ss-mcs7` is",
            ),
            (
                "profile: ht20-mcs7, amsdu: 3839",
                "`amsdu` changes nothing beside aggregates that may not contain",
            ),
            (
                "profile: ht20-mcs7, amsdu_in_ampdu: true",
                "`amsdu_in_ampdu` changes nothing without both kinds",
            ),
        ] {
            let Err(NoPlan::Refused(refusal)) = read(&of(radio), &[]).plan(None, 1) else {
                panic!("{radio} is accepted")
            };
            assert!(refusal.to_string().contains(problem), "{radio}: {refusal}");
        }
    }
}

//! Checks of `claims:`: a claim about nothing would count as not reproduced.

use std::collections::BTreeSet;

use crate::located::{Checked, Document, YamlPath, one_of};
use crate::scenario::point::MatrixPoint;
use crate::scenario::schema::{Claim, PointCombination};

/// Refuses a claim about an arm or a path that varies nowhere, and one that states no number, or two.
pub(in crate::scenario) fn claim(
    document: &Document,
    (at, claim): (&YamlPath, &Claim),
    arms: &[String],
    (varied, swept): (&BTreeSet<String>, &MatrixPoint),
) -> Checked {
    let premise = claim.premise.as_ref().map(|premise| &premise.arm);
    let named = [
        (at.key("arm"), Some(&claim.arm)),
        (at.key("against"), claim.against.as_ref()),
        (at.key("premise").key("arm"), premise),
    ];
    for (at, arm) in &named {
        if let Some(arm) = arm.filter(|arm| !arms.contains(arm)) {
            let problem = format!("no arm is called `{arm}`");
            return Err(document.refuse(at, problem, &arms.join(", ")));
        }
    }
    for (key, points) in [("at", &claim.at), ("against_at", &claim.against_at), ("per_at", &claim.per_at)] {
        let unknown = points.keys().find(|path| !varied.contains(*path) && !document.is_set(path));
        if let Some(path) = unknown {
            let problem = format!("`{path}` is the same at all points");
            let names: Vec<&str> = varied.iter().map(String::as_str).collect();
            let accepted = match names[..] {
                [] => "a path of `matrix` or `sweep`, of which the file has none".to_owned(),
                _ => one_of(path, &names),
            };
            return Err(document.refuse_key(&at.key(key).key(path), problem, &accepted));
        }
    }
    match (claim.ratio, claim.value) {
        (Some(_), Some(_)) => {
            let accepted = "`ratio` for two arms, or `value` for one";
            Err(document.refuse_key(&at.key("value"), "it states a ratio already", accepted))
        }
        (None, None) => {
            let accepted = "`ratio` for two arms, or `value` for one, as the paper prints it";
            Err(document.refuse(at, "it states no number", accepted))
        }
        (None, Some(_)) => beside_value(document, (at, claim)),
        (Some(_), None) => per(document, (at, claim), swept),
    }
}

/// Refuses what is about a ratio where a value is stated.
fn beside_value(document: &Document, (at, claim): (&YamlPath, &Claim)) -> Checked {
    let set = [
        ("premise", claim.premise.is_some()),
        ("against", claim.against.is_some()),
        ("against_at", !claim.against_at.is_empty()),
        ("per_at", !claim.per_at.is_empty()),
    ];
    let Some((key, _)) = set.into_iter().find(|(_, is_set)| *is_set) else { return Ok(()) };
    let problem = format!("`{key}` has no meaning beside `value`");
    Err(document.refuse_key(&at.key(key), problem, &format!("`ratio`, or no `{key}`")))
}

/// Refuses a second ratio that cannot be: of a value, of single points, or of another reading.
fn per(document: &Document, (at, claim): (&YamlPath, &Claim), swept: &MatrixPoint) -> Checked {
    if claim.per_at.is_empty() {
        return Ok(());
    }
    let key = at.key("per_at");
    if claim.over != PointCombination::Mean {
        let problem = "`per_at` has no meaning beside the ratio of a single point";
        return Err(document.refuse_key_among(
            &[key, at.key("over")],
            problem,
            "`over: mean`, or one of the two",
        ));
    }
    match claim.per_at.keys().find(|path| swept.contains_key(*path)) {
        Some(path) => {
            let problem = format!("the sweep varies `{path}`, and a reading has one value of it");
            Err(document.refuse_key(&key.key(path), problem, "paths of `matrix`"))
        }
        None => Ok(()),
    }
}

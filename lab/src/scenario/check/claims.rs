//! Checks of `claims:`: a claim about nothing would count as not reproduced.

use std::collections::BTreeSet;

use super::CheckResult;
use crate::located::{Document, YamlPath, one_of};
use crate::scenario::point::MatrixPoint;
use crate::scenario::schema::{Claim, PointCombination};

/// Refuses a claim about an arm or a path that varies nowhere, and one that states no number, or two.
pub(in crate::scenario) fn claim(
    document: &Document,
    (at, claim): (&YamlPath, &Claim),
    arms: &[String],
    (varied, swept): (&BTreeSet<String>, &MatrixPoint),
) -> CheckResult {
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
    if claim.premise.is_some() && claim.value.is_some() {
        let problem = "`premise` has no meaning beside `value`";
        return Err(document.refuse_key(&at.key("premise"), problem, "`ratio`, or no premise"));
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
    per(document, (at, claim), swept)?;
    match (claim.ratio, claim.value) {
        (Some(_), Some(_)) => {
            let accepted = "`ratio` for two arms, or `value` for one";
            Err(document.refuse_key(&at.key("value"), "it states a ratio already", accepted))
        }
        (None, None) => {
            let accepted = "`ratio` for two arms, or `value` for one, as the paper prints it";
            Err(document.refuse(at, "it states no number", accepted))
        }
        (None, Some(_)) if claim.against.is_some() || !claim.against_at.is_empty() => {
            let key = if claim.against.is_some() { "against" } else { "against_at" };
            let problem = format!("`{key}` has no meaning beside `value`");
            Err(document.refuse_key(&at.key(key), problem, "`ratio`, or no other arm"))
        }
        _ => Ok(()),
    }
}

/// Refuses a second ratio that cannot be: of a value, of single points, or of another reading.
fn per(document: &Document, (at, claim): (&YamlPath, &Claim), swept: &MatrixPoint) -> CheckResult {
    if claim.per_at.is_empty() {
        return Ok(());
    }
    let key = at.key("per_at");
    if claim.value.is_some() {
        let problem = "`per_at` has no meaning beside `value`";
        return Err(document.refuse_key(&key, problem, "`ratio`, or no points to divide by"));
    }
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

//! Runs that an earlier command has kept. Any build may have made them, if they are what the file asks for.

use std::path::Path;

use hopwise_lab::campaign::Campaign;
use hopwise_lab::record::{Record, Trial};
use hopwise_lab::report::Bundle;
use hopwise_lab::scenario::Scenario;
use serde_json::json;

use crate::failure::Failure;

/// All runs of a scenario, from their folder.
pub(super) fn read(
    scenario: &Scenario,
    seeds: Option<u32>,
    folder: &Path,
) -> Result<(Trial, Vec<Record>), Failure> {
    let campaign = Campaign::new(scenario, seeds, None).map_err(Failure::Located)?;
    let bundle = Bundle::read(&[folder.to_owned()])
        .map_err(|error| Failure::refused(error.place, format!("{}: {REMEDY}", error.problem)))?;
    let refused = |problem: String| Failure::refused(folder.display().to_string(), problem);
    let (wanted, there) = (&campaign.trial, &bundle.trial);
    let is_whole = wanted.points.iter().all(|point| there.points.contains(point))
        && wanted.arms.iter().all(|arm| there.arms.contains(arm))
        && wanted.seeds == there.seeds;
    let (planned, done) = bundle.runs();
    if !is_whole || done < planned {
        return Err(refused(format!("it has not all runs that the file asks for: {REMEDY}")));
    }
    for record in &bundle.records {
        let mut as_ours = record.clone();
        as_ours.settings["hopwise"] = json!({ "certificate": wanted.certificate, "version": wanted.version });
        if let Some(difference) = campaign.difference(&as_ours) {
            return Err(refused(format!("{difference}: {REMEDY}")));
        }
    }
    Ok((bundle.trial, bundle.records))
}

const REMEDY: &str = "without --kept the runs are made";

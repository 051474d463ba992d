//! `hopwise proxy plan`: prints and draws the times at which a base station would release its held ACKs.

use hopwise_agents::base_station::plan::{self, Plan, Stakes};

use crate::failure::{self, Failure};

mod arguments;
mod draw;
mod printing;

pub(crate) use arguments::Arguments;

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let plans = plans(arguments)?;
    if let Some(path) = &arguments.svg {
        hopwise_lab::named::write(path, draw::svg(&plans)).map_err(|error| {
            Failure::failed("write the drawing", format_args!("{}: {error}", path.display()))
        })?;
    }
    let text = if arguments.json {
        let (ask, sender) = (arguments.asked()?, arguments.sender()?);
        let tried = |plan: &Plan| plan::every_n(plan.mode, &ask, sender);
        let tried: Vec<_> = plans.iter().filter(|_| arguments.every_n).map(tried).collect();
        printing::json(&plans, &tried, arguments.mode.is_some())
    } else {
        printing::text(arguments, &plans)
    };
    failure::say(text.trim_end())
}

fn plans(arguments: &Arguments) -> Result<Vec<Plan>, Failure> {
    let (ask, model) = (arguments.asked()?, arguments.model()?);
    let window_segments = arguments.window.unwrap_or(ask.acks().saturating_mul(2));
    let stakes = Stakes { window_segments, cache_segments: window_segments };
    Ok(arguments.modes()?.into_iter().map(|mode| plan::plan(mode, &ask, model, &stakes)).collect())
}

#[cfg(test)]
mod tests;

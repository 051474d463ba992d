//! Channel between the radios: `channel:`.

use std::sync::Arc;
use std::time::Duration;

use hopwise_air::channel::{
    Channel, Fading, LinkSentence, Outage, PathLoss, RecordedField, UnheardPower, recording,
};
use hopwise_air::medium::watts;
use hopwise_air::phy::{Coding, Phy};
use hopwise_air::random::{NumberStream, Purpose};
use hopwise_core::narrow::as_u32;

use super::nodes::Nodes;
use super::schema::{ChannelConfig, FadingName, PathLossName, ScenarioFile, UnheardName};
use super::{check, motion};
use crate::located::{Checked, Document, YamlPath};

pub(super) fn read(
    document: &Document,
    file: &ScenarioFile,
    nodes: &Nodes,
    phy: &Phy,
    seed: u64,
) -> Checked<Channel> {
    let config = &file.channel;
    let number = |key: &str, given: Option<f64>| check::needed(document, ("channel", key), given);
    let path_loss = match config.path_loss {
        PathLossName::TwoRay => PathLoss::TwoRay,
        PathLossName::LogDistance => {
            PathLoss::LogDistance { exponent: number("exponent", config.exponent)?, reference_m: 1.0 }
        }
    };
    let doppler = || number("doppler_hz", config.doppler_hz);
    let fading = match config.fading {
        FadingName::None => Fading::None,
        FadingName::Rayleigh => Fading::Rayleigh { doppler_hz: doppler()? },
        FadingName::Rician => Fading::Rician { k: number("k", config.k)?, doppler_hz: doppler()? },
    };
    let models = Channel {
        path_loss,
        shadowing_db: config.shadowing_db,
        is_asymmetric: config.asymmetric,
        fading,
        ..Channel::default()
    };
    let field = field(document, config, nodes)?;
    let mut channel = Channel {
        loss_ppm: config.loss.0,
        outages: outages(document, config, nodes, seed)?,
        noise_w: noise_w(document, config, phy)?,
        // The recording has the powers of all models, but between nodes that did not hear each other.
        ..match (field, config.unheard) {
            (None, _) => models,
            (field, UnheardName::None) => Channel { field, ..Channel::default() },
            (field, UnheardName::PathLoss) => {
                Channel { field, unheard: UnheardPower::PathLoss, path_loss, ..Channel::default() }
            }
        }
    };
    say_of_links(document, config, nodes, &mut channel)?;
    Ok(channel)
}

fn field(document: &Document, config: &ChannelConfig, nodes: &Nodes) -> Checked<Option<Arc<RecordedField>>> {
    let Some(name) = &config.trace else { return Ok(None) };
    let accepted = "a recording such as configs/field.csv, with the names of the topology";
    let at = YamlPath::root().key("channel").key("trace");
    let text = motion::read_text(name).map_err(|error| document.refuse(&at, error, accepted))?;
    let radios: Vec<u32> =
        (0..).zip(&nodes.positions).filter(|(_, place)| place.is_some()).map(|(n, _)| n).collect();
    let named = |name: &str| nodes.find(name).filter(|node| radios.contains(node));
    // As for the hosts of an inventory: without a node's name they are nodes in their order.
    let order = recording::names(&text);
    let is_by_order = !order.is_empty() && order.iter().all(|name| nodes.find(name).is_none());
    let in_order = |name: &str| radios.get(order.iter().position(|known| *known == name)?).copied();
    let radio = |name: &str| if is_by_order { in_order(name) } else { named(name) };
    let field = RecordedField::parse(&text, &radio).map_err(|error| {
        let problem = format!("{name}:{}:{}: {error}", error.line, error.column);
        document.refuse(&at, problem, accepted)
    })?;
    Ok(Some(Arc::new(field)))
}

fn noise_w(document: &Document, config: &ChannelConfig, phy: &Phy) -> Checked<Option<f64>> {
    let Some(dbm) = config.noise_dbm else { return Ok(None) };
    let at = YamlPath::root().key("channel").key("noise_dbm");
    if matches!(phy.coding, Coding::Dsss { .. }) {
        let problem = format!("no curves for `{}`", phy.name);
        let paths = [at, YamlPath::root().key("radio").key("profile")];
        return Err(document.refuse_key_among(&paths, problem, "an OFDM profile, such as ofdm-24mbps"));
    }
    Ok(Some(watts(dbm)))
}

/// The limit on sentences; each frame of a changing link is compared with all of them.
const MOST_SENTENCES: usize = 1_000;

fn say_of_links(
    document: &Document,
    config: &ChannelConfig,
    nodes: &Nodes,
    channel: &mut Channel,
) -> Checked {
    let at = YamlPath::root().key("channel").key("links");
    if config.links.len() > MOST_SENTENCES {
        let problem = format!("{} sentences", config.links.len());
        return Err(document.refuse(&at, problem, &format!("at most {MOST_SENTENCES}")));
    }
    for (nth, text) in config.links.iter().enumerate() {
        let said = LinkSentence::parse(text, &|name| nodes.find(name));
        let paths = [at.index(nth), YamlPath::root().key("topology")];
        match said.map_err(|error| document.refuse_among(&paths, error, LinkSentence::FORMS))? {
            LinkSentence::Outage(outage) => channel.outages.push(outage),
            LinkSentence::Change(change) => channel.links.push(change),
        }
    }
    Ok(())
}

/// Times count from the run's beginning. Each outage has a stream of its own for its delay.
fn outages(document: &Document, config: &ChannelConfig, nodes: &Nodes, seed: u64) -> Checked<Vec<Outage>> {
    let mut outages = Vec::new();
    for (nth, outage) in config.outages.iter().enumerate() {
        let at = YamlPath::root().key("channel").key("outages").index(nth);
        let end = |key: &str, name: &str| nodes.named(document, &at.key(key), name);
        if outage.ends <= outage.begins {
            let paths = ["ends", "begins"].map(|key| at.key(key));
            return Err(document.refuse_among(&paths, "the end is before the beginning", "a later time"));
        }
        let mut stream = NumberStream::new(seed, as_u32(nth), Purpose::Outage);
        let delay_ns = Duration::from_nanos(outage.shift.nanos()).mul_f64(stream.unit()).as_nanos();
        let delay_ns = u64::try_from(delay_ns).unwrap_or(u64::MAX);
        outages.push(Outage {
            from: end("from", &outage.from)?,
            to: end("to", &outage.to)?,
            begins_ns: outage.begins.nanos().saturating_add(delay_ns),
            ends_ns: outage.ends.nanos().saturating_add(delay_ns),
            is_one_way: outage.one_way,
        });
    }
    Ok(outages)
}

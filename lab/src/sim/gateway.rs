//! A base station's news of its links. They are the outages of the channel as they are, as a forecast gives them, or as
//! a predictor finds them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use hopwise_air::channel::Outage;
use hopwise_air::random::{NumberStream, Purpose};
use hopwise_air::truncate;
use hopwise_core::Instant;
use hopwise_core::agent::LinkNews;
use hopwise_mesh::{Schedule, TimedEvent};

use super::Plan;
use crate::live;

mod predictor;

pub use predictor::{Calibration, Signal, SignalError, calibrate};

/// The node between the wire and the radio, and its knowledge of its links.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayPlan {
    /// The number of the node.
    pub node: u32,
    /// The forecast that it gets of its links' outages.
    pub forecast: ForecastErrors,
    /// The signal of a predictor that takes the place of `forecast`.
    pub predictor: Option<Signal>,
}

/// Forecast of fades.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForecastErrors {
    /// The time between a warning and its fade; zero gives no warnings.
    pub lead: Duration,
    /// The largest error of the forecast duration, up or down, in millionths.
    pub error_ppm: u32,
    /// Share of fades without a warning, in millionths.
    pub missing_ppm: u32,
    /// Number of warnings without a fade.
    pub false_alarms: u32,
    /// Delay until a link is seen to be down, or up again.
    pub late: Duration,
}

/// News of the link to a mobile, and their times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TimedNews {
    at: Instant,
    peer: u32,
    news: LinkNews,
}

/// The round trip before any flow has shown it: a radio hop's or two hops'.
const RTT: Duration = Duration::from_millis(20);
/// The duration of a fade that never comes.
const FALSE_OUTAGE: Duration = Duration::from_secs(2);

/// The future of the channel, as the forecast gives it. Nodes have their addresses by this function.
pub(super) fn source(plan: &Plan, address_of: impl Fn(u32) -> IpAddr) -> Schedule {
    let (outages, end) = (&plan.channel.outages, plan.end());
    let all = plan.gateway.as_ref().map(|gateway| match &gateway.predictor {
        Some(signal) => predicted(gateway.node, signal, outages, end, plan.seed),
        None => forecast_news(gateway, outages, end, plan.seed),
    });
    let timed = |news: TimedNews| TimedEvent { at: news.at, event: news.news.event(address_of(news.peer)) };
    Schedule::new(all.into_iter().flatten().map(timed))
}

/// The same for the proxy of a live world.
pub fn live_news(plan: &Plan) -> Schedule {
    source(plan, |node| live::address_of_tcp(&plan.arm, node))
}

/// The predictor's news, link by link.
fn predicted(node: u32, signal: &Signal, outages: &[Outage], end: Instant, seed: u64) -> Vec<TimedNews> {
    let mut stream = NumberStream::new(seed, node, Purpose::Forecast);
    let mut links: BTreeMap<u32, Vec<(Instant, Instant)>> = BTreeMap::new();
    for (peer, begins, ends) in fades(node, outages) {
        links.entry(peer).or_default().push((begins, ends));
    }
    let of_link = |(peer, fades): (u32, Vec<_>)| {
        let news = predictor::predict(signal, &fades, end, &mut stream).into_iter();
        news.map(|(at, news)| TimedNews { at, peer, news }).collect::<Vec<_>>()
    };
    links.into_iter().flat_map(of_link).collect()
}

/// The forecast's news in the order of time.
fn forecast_news(gateway: &GatewayPlan, outages: &[Outage], end: Instant, seed: u64) -> Vec<TimedNews> {
    let ForecastErrors { lead, error_ppm, missing_ppm, false_alarms, late } = gateway.forecast;
    let mut stream = NumberStream::new(seed, gateway.node, Purpose::Forecast);
    let mut all = Vec::new();
    let mut peers = Vec::new();
    for (peer, begins, ends) in fades(gateway.node, outages) {
        if !peers.contains(&peer) {
            peers.push(peer);
        }
        let is_foretold = stream.unit() * 1e6 >= f64::from(missing_ppm);
        let off = 1.0 + (2.0 * stream.unit() - 1.0) * f64::from(error_ppm) / 1e6;
        if is_foretold && !lead.is_zero() {
            let outage = ends.since(begins).mul_f64(off.max(0.0));
            all.push(TimedNews {
                at: begins - lead,
                peer,
                news: LinkNews::GoingDown { rtt: RTT, outage, within: lead },
            });
        }
        all.push(TimedNews { at: begins + late, peer, news: LinkNews::Gone });
        all.push(TimedNews { at: ends + late, peer, news: LinkNews::Up });
    }
    for nth in 0..false_alarms as usize {
        let Some(peer) = peers.get(nth % peers.len().max(1)).copied() else { break };
        let at = Instant(truncate::to_u64(end.0 as f64 * stream.unit()));
        let news = LinkNews::GoingDown { rtt: RTT, outage: FALSE_OUTAGE, within: lead };
        all.push(TimedNews { at, peer, news });
    }
    all.sort_by_key(|news| news.at);
    all
}

/// The outages of the gateway's own links; overlapping outages are one.
fn fades(node: u32, outages: &[Outage]) -> Vec<(u32, Instant, Instant)> {
    let mut fades: Vec<(u32, Instant, Instant)> = Vec::new();
    let mut own: Vec<_> = outages.iter().filter(|outage| outage.from == node || outage.to == node).collect();
    own.sort_by_key(|outage| outage.begins_ns);
    for outage in own {
        let peer = if outage.from == node { outage.to } else { outage.from };
        let (begins, ends) = (Instant(outage.begins_ns), Instant(outage.ends_ns));
        match fades.iter_mut().rev().find(|(other, ..)| *other == peer) {
            Some((_, _, until)) if *until >= begins => *until = (*until).max(ends),
            _ => fades.push((peer, begins, ends)),
        }
    }
    fades
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A forecast that knows each fade, a fifth of a second ahead.
    const EXACT: ForecastErrors = ForecastErrors {
        lead: Duration::from_millis(200),
        error_ppm: 0,
        missing_ppm: 0,
        false_alarms: 0,
        late: Duration::ZERO,
    };

    fn outage(from: u32, to: u32, begins_s: u64, ends_s: u64) -> Outage {
        let ns = |s: u64| s * 1_000_000_000;
        Outage { from, to, begins_ns: ns(begins_s), ends_ns: ns(ends_s), is_one_way: false }
    }

    fn of(forecast: ForecastErrors, outages: &[Outage], seed: u64) -> Vec<(u64, &'static str, Option<u64>)> {
        let gateway = GatewayPlan { node: 1, forecast, predictor: None };
        let shown = |timed: TimedNews| {
            let outage = match timed.news {
                LinkNews::GoingDown { outage, .. } => Some(outage.as_millis() as u64),
                _ => None,
            };
            (timed.at.as_millis(), timed.news.name(), outage)
        };
        forecast_news(&gateway, outages, Instant::from_secs(60), seed).into_iter().map(shown).collect()
    }

    #[test]
    fn a_forecast_that_knows_tells_each_fade_of_the_gateway_s_own_links_once() {
        let outages = [outage(1, 2, 10, 15), outage(2, 1, 14, 20), outage(2, 3, 1, 2)];
        let wanted = [(9_800, "going-down", Some(10_000)), (10_000, "gone", None), (20_000, "up", None)];
        assert_eq!(of(EXACT, &outages, 1), wanted);
    }

    #[test]
    fn a_forecast_that_errs_is_late_wrong_blind_and_nervous() {
        let outages = [outage(1, 2, 10, 20)];
        let late = ForecastErrors { late: Duration::from_millis(300), ..EXACT };
        assert_eq!(of(late, &outages, 1)[1..], [(10_300, "gone", None), (20_300, "up", None)]);
        let wrong = ForecastErrors { error_ppm: 500_000, ..EXACT };
        let said: Vec<_> = (0..50).filter_map(|seed| of(wrong, &outages, seed)[0].2).collect();
        assert!(said.iter().all(|ms| (5_000..=15_000).contains(ms)) && said.iter().any(|ms| *ms != 10_000));
        let blind = ForecastErrors { missing_ppm: 1_000_000, ..EXACT };
        assert_eq!(of(blind, &outages, 1).len(), 2);
        let nervous = ForecastErrors { false_alarms: 3, ..EXACT };
        assert_eq!(of(nervous, &outages, 1).len(), 6);
        assert!(of(nervous, &outages, 1).is_sorted_by_key(|(at, ..)| *at));
    }
}

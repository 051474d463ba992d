//! Entrances of a proxy for fuzz targets.

use hopwise_agents::StandardAgents;
use hopwise_agents::base_station::forecast::{ForecastSettings, Forecaster};
use hopwise_host::Driver;
use hopwise_lab::located::Checked;
use hopwise_mesh::{Proxy, ProxyConfig};

use super::config::{self, FIXED, Forecast, MOBILE};
use super::control::{ProxyRequest, ProxyResponse};
use super::serve::{Forecasts, obey};
use hopwise_daemon::fuzzing::each;

/// The clients of a proxy's control socket, a line each.
pub fn asked(lines: &[u8], has_forecast: bool) {
    let proxy = Proxy::new(ProxyConfig::new(FIXED, MOBILE, "ack-hold"), Box::new(StandardAgents::default()));
    let proxy = proxy.expect("an agent that there is");
    let mut driver = Driver::new(proxy, Vec::new(), Vec::new()).expect("a poller");
    let mut forecasts = has_forecast.then(|| Forecasts::new(ForecastSettings::default()));
    each(lines, false, |request: ProxyRequest| {
        obey(&mut driver, request.with_plain_address(), forecasts.as_mut())
    });
    forecasts.iter_mut().for_each(|forecasts| forecasts.tick(&mut driver));
}

/// A proxy's answer, as `hopwise proxy status` shows it.
pub fn answered(text: &str) {
    if let Ok(ProxyResponse::Status(status)) = serde_json::from_str(text) {
        drop(status.page());
    }
}

/// The file of a proxy. An accepted one makes a proxy, or the proxy refuses it.
pub fn file(text: &str) -> Checked {
    let config = config::parse(text)?;
    drop(Proxy::new(config.proxy(0), Box::new(StandardAgents::default())));
    let _ = config.forecast.as_ref().map(Forecast::settings).map(Forecaster::new);
    let _ = config.cuts();
    Ok(())
}

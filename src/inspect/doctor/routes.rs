//! Routes to hosts that a killed routing daemon left.

use hopwise_host::routing::{left_routes, remove_left_routes};

use super::faults;
use super::finding::Finding;

const CHECK: &str = "routes";

/// With `is_repair` they are removed.
pub(super) fn examine(is_repair: bool) -> Finding {
    match left_routes() {
        Ok(0) => Finding::ok(CHECK, "no killed daemon left any route to a host"),
        Ok(_) if is_repair => match remove_left_routes() {
            Ok(count) => Finding::ok(CHECK, format!("{} removed", named(count))),
            Err(error) => faults::ROUTES_STAY.found(format!("not removed: {error}")),
        },
        Ok(count) => {
            let found = format!("a killed `hopwise route` left {} (`ip route show proto 87`)", named(count));
            faults::ROUTES_LEFT.found(found)
        }
        Err(error) => Finding::skipped(CHECK, error.to_string()),
    }
}

fn named(count: usize) -> String {
    if count == 1 { "1 route to a host".to_owned() } else { format!("{count} routes to hosts") }
}

//! Rules of routing that a killed proxy left.

use hopwise_host::netlink::{left_rules, remove_left_rules};

use super::Finding;

const CHECK: &str = "rules";
const WHERE: &str = "run it as root, in the network namespace of that proxy";

/// With `is_repair` they are removed.
pub(super) fn examine(is_repair: bool) -> Finding {
    let named = |count: usize| if count == 1 { "1 rule".to_owned() } else { format!("{count} rules") };
    match left_rules() {
        Err(error) => Finding::skipped(CHECK, error.to_string()),
        Ok(0) => Finding::ok(CHECK, "no killed proxy left any rule of routing"),
        Ok(count) if !is_repair => {
            let found = format!("a killed `hopwise proxy` left {} of routing (`ip rule`)", named(count));
            Finding::warning(CHECK, found, "hopwise doctor --repair, or start a proxy there again")
        }
        Ok(_) => match remove_left_rules() {
            Ok(count) => Finding::ok(CHECK, format!("{} of routing removed", named(count))),
            Err(error) => Finding::failure(CHECK, format!("not removed: {error}"), WHERE),
        },
    }
}

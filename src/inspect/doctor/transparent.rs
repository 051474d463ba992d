//! Rules and routes that a killed transparent node left.

use hopwise_host::transparent::{Left, TransparentError, left, remove_left};

use super::faults;
use super::finding::Finding;

const CHECK: &str = "transparent";

/// With `is_repair` they are removed.
pub(super) fn examine(is_repair: bool) -> Finding {
    match left() {
        Ok(left) if left.is_empty() => {
            Finding::ok(CHECK, "no killed transparent node left any rule or route")
        }
        Ok(left) if is_repair => removed(&left, remove_left()),
        Ok(left) => {
            faults::TRANSPARENT_LEFT.found(format!("a killed transparent node left {}", listed(&left)))
        }
        Err(error) => Finding::skipped(CHECK, error.to_string()),
    }
}

pub(super) fn removed(left: &Left, rest: Result<Left, TransparentError>) -> Finding {
    match rest {
        Ok(rest) if rest.is_empty() => Finding::ok(CHECK, format!("{} removed", listed(left))),
        Ok(rest) => faults::TRANSPARENT_STAYS.found(format!("{} not removed", listed(&rest))),
        Err(error) => faults::TRANSPARENT_STAYS.found(format!("not removed: {error}")),
    }
}

fn listed(left: &Left) -> String {
    let tables = left.tables.iter().map(|table| format!("the rule and the route of table {table}"));
    let queues = left.queues.iter().map(|queue| format!("the rule of iptables into queue {queue}"));
    tables.chain(queues).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_table_and_each_queue_is_named() {
        let left = Left { tables: [7300, 7301].into(), queues: [7300].into() };
        assert_eq!(
            listed(&left),
            "the rule and the route of table 7300, the rule and the route of table 7301, the rule of iptables into \
             queue 7300"
        );
    }
}

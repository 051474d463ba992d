//! Changes to the machine that a repair cannot take back.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use hopwise_host::transparent::LeftRulesAndRoutes;

use super::injected::one;
use super::*;

/// A file that cannot be opened keeps its old values.
#[test]
fn old_values_that_cannot_be_put_back_are_named() {
    let nowhere = Path::new("/proc/no/such/file");
    one(&[switches::repaired(nowhere)], "switches-stay");
    one(&[lent::repaired(nowhere)], "lent-stays");
    one(&[bringup::repaired(nowhere)], "mesh-up-stays");
    let denied = || Err(io::ErrorKind::PermissionDenied.into());
    one(&[queues::removed(&BTreeSet::from([7100]), denied())], "queues-stay");
    one(&[queues::removed(&BTreeSet::from([7100]), Ok(BTreeSet::new()))], "queues-stay");
    let left = LeftRulesAndRoutes { tables: [7300].into(), queues: BTreeSet::new() };
    one(&[transparent::removed(&left, Ok(left.clone()))], "transparent-stays");
}

//! Changes to the machine that a repair cannot take back.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use hopwise_host::transparent::LeftRulesAndRoutes;

use super::super::left;
use super::injected::one;
use super::*;

/// A file that cannot be opened keeps its old values.
#[test]
fn old_values_that_cannot_be_put_back_are_named() {
    let nowhere = Path::new("/proc/no/such/file");
    one(&[left::switches_repaired(nowhere)], "switches-stay");
    one(&[left::loan_repaired(nowhere)], "lent-stays");
    one(&[left::bringup_repaired(nowhere)], "mesh-up-stays");
    let denied = || Err(io::ErrorKind::PermissionDenied.into());
    one(&[left::queues_removed(&BTreeSet::from([7100]), denied())], "queues-stay");
    one(&[left::queues_removed(&BTreeSet::from([7100]), Ok(BTreeSet::new()))], "queues-stay");
    let rest = LeftRulesAndRoutes { tables: [7300].into(), queues: BTreeSet::new() };
    one(&[left::transparent_removed(&rest, Ok(rest.clone()))], "transparent-stays");
}

#[test]
fn a_file_that_names_no_device_is_said_to_do_so() {
    let folder = std::env::temp_dir().join(format!("hopwise-lent-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("x.lent"), "no device\n").expect("it can be written");
    let said: Vec<_> = left::loans(&folder, true).iter().map(|finding| format!("{finding:?}")).collect();
    fs::remove_dir_all(&folder).expect("it is there");
    assert!(matches!(&said[..], [one] if one.contains("removed, since it names no device")), "{said:?}");
}

#[test]
fn each_table_and_each_queue_is_named() {
    let rest = LeftRulesAndRoutes { tables: [7300, 7301].into(), queues: [7300].into() };
    assert_eq!(
        left::rules_and_routes(&rest),
        "the rule and the route of table 7300, the rule and the route of table 7301, the rule of iptables into queue \
         7300"
    );
}

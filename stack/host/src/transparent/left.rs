//! Rules and routes that killed processes left here. Packets do not meet them: the table that marked them is gone.

use std::collections::BTreeSet;

use super::{TransparentError, chains, failed, iptables, ways};
use crate::nft;

/// Things that killed processes left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// The tables of routing that have a route and a rule.
    pub tables: BTreeSet<u32>,
    /// The netfilter queues into which a rule of iptables leads.
    pub queues: BTreeSet<u16>,
}

impl Left {
    /// Returns whether nothing was left.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty() && self.queues.is_empty()
    }
}

/// Looks for them. The table of a process that runs stands in nft, and its queue has a reader.
pub fn left() -> Result<Left, TransparentError> {
    let standing = nft::tables().map_err(failed("list the tables of nft"))?;
    let stands = |table: &u32| {
        let wanted = format!("table {}", chains::table(*table));
        standing.lines().any(|line| line == wanted)
    };
    let mut tables = ways::tables().map_err(TransparentError::Routing)?;
    tables.retain(|table| !stands(table));
    let queues = iptables::left().map_err(failed("list the rules of iptables"))?;
    Ok(Left { tables, queues })
}

/// Removes them, and returns what stays.
pub fn remove_left() -> Result<Left, TransparentError> {
    let Left { tables, queues } = left()?;
    queues.into_iter().for_each(iptables::remove);
    ways::remove(&tables).map_err(TransparentError::Routing)?;
    left()
}

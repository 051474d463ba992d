//! The decision log: all that the receiver agents of a machine's connections were asked, and all that they answered.
//!
//! An ACK decision depends on the agent, on earlier calls of the ledger, and on the state of the connection that the
//! call hands over. The log holds these calls with their state, in their order, and their outcomes. A [`Replay`] makes
//! the same ledger and agent again, hands them the same calls, and compares the outcomes. It may know nothing else.
//!
//! An entry is the number of its connection, a tag, and the differences from the last entry of that kind of the same
//! connection. A connection's entries thus need nothing of others. An entry without change takes three bytes, an
//! arrival with its outcomes about thirty. Times, packets and fields are wrapped differences. A difference is a number
//! in groups of seven bits, its lowest bit the sign. A mask names the fields that differ. `row` has their order, `log`
//! the tags. A change of either is another [`VERSION`].

mod block;
mod entry;
mod keeper;
mod log;
mod numbers;
mod reader;
mod replay;
mod row;

pub use block::{BLOCK_TYPE, BadBlock, Block, BlockWriter, LONGEST_BLOCK};
pub use entry::{Begun, Call, Entry, LeftAck, Outcome};
pub(crate) use entry::{Seen, What};
pub(crate) use keeper::Keeper;
pub(crate) use log::DecisionLog;
pub use reader::{Damaged, LogReader, News};
pub use replay::{Difference, Replay, Tally};

/// The version of the entries. A reader accepts its own version alone.
pub const VERSION: u8 = 2;

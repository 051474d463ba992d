//! The option `epb_packetid` of pcapng (section 4.3.1): the number by which the trace and the decision log name a
//! packet.

/// The code of the option and its length, in the order in which they are written.
const HEAD: [u16; 2] = [5, 8];
/// The end of the options, and the length of the block once more.
const TAIL: usize = 8;

/// Adds the option to the enhanced packet block that begins there, ends the blocks and has options already. The shard
/// is in the upper 16 bits.
pub fn add_packet_id(blocks: &mut Vec<u8>, begins: usize, shard: u16, id: u64) {
    let id = u64::from(shard) << 48 | id & (u64::MAX >> 16);
    let option = [&HEAD.map(u16::to_ne_bytes).concat()[..], &id.to_ne_bytes()].concat();
    let at = blocks.len() - TAIL;
    blocks.splice(at..at, option.iter().copied());
    let len = u32::try_from(blocks.len() - begins).unwrap_or(u32::MAX).to_ne_bytes();
    let end = blocks.len();
    blocks[begins + 4..begins + 8].copy_from_slice(&len);
    blocks[end - 4..].copy_from_slice(&len);
}

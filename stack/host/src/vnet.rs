//! The header (struct virtio_net_hdr) before each packet of a device that takes and gives bundles, and the work on
//! packets that follows from it.

mod header;
mod incoming;

pub(crate) use header::header_for;
pub(crate) use incoming::{Incoming, Whole, finish};

use tun_rs::{VIRTIO_NET_HDR_LEN, VirtioNetHdr};

pub(crate) fn read_header(bytes: &[u8]) -> Option<VirtioNetHdr> {
    VirtioNetHdr::decode(bytes.get(..VIRTIO_NET_HDR_LEN)?).ok()
}

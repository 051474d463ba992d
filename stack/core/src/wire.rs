//! Bytes to values and back. Packet views and address types are smoltcp's; TCP options, flags and checksums are
//! ours.

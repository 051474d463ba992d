//! The RST of a connection that its application gives up.

use super::*;

/// A peer that drops what is under way and closes its window ignores a RST with the number behind that data.
#[test]
fn the_number_of_a_rst_lies_within_a_window_that_shrank() {
    for (window, expected) in [(8_000, 2_000), (500, 500), (0, 0)] {
        let mut rig = Rig::established();
        let una = rig.conn.out.sending.una;
        rig.write(&[7; 2_000]);
        assert_eq!(rig.leaves().iter().map(|left| left.payload.len()).sum::<usize>(), 2_000);
        rig.window = window;
        rig.hear(Flags::default(), una, &[]);
        let mut cx = Cx { now: rig.now, conn: 1, packet: 0, memory: Memory::Plenty, ring: &mut rig.ring };
        rig.conn.abort(&mut cx);
        let [Left { seq, flags, .. }] = &rig.leaves()[..] else { panic!("a RST leaves") };
        assert!(flags.contains(Flags::RST));
        assert_eq!(*seq, una + expected, "{window}");
    }
}

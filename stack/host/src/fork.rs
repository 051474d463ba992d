//! Copies of this process by fork(2). A child has the memory and the descriptors of its parent, and none of the
//! parent's threads. Its copy of a stack has no driver, and the parent's threads may have held the locks. A packet that
//! the child sends there, or a drop, would end connections of the parent.
#![expect(unsafe_code, reason = "the C library takes the address of a function")]

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

static GENERATION: AtomicU32 = AtomicU32::new(0);
static IS_COUNTED: AtomicBool = AtomicBool::new(false);

extern "C" fn count() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// The generation of this process: another number in a child than in its parent. A value that keeps the number of the
/// process that made it belongs to a parent where they differ. It costs no system call.
pub fn generation() -> u32 {
    // No lock, which a child could find held for ever. Two threads that come here at once have each fork counted twice,
    // which still makes a new number.
    if !IS_COUNTED.load(Ordering::Acquire) {
        // SAFETY: the handler lives as long as the program or the library, and touches one number alone.
        let failed = unsafe { libc::pthread_atfork(None, None, Some(count)) };
        assert_eq!(failed, 0, "pthread_atfork fails for want of memory alone");
        IS_COUNTED.store(true, Ordering::Release);
    }
    GENERATION.load(Ordering::Relaxed)
}

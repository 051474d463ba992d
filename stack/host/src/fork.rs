//! Copies of this process by fork(2). A child has the memory and the descriptors of its parent, and none of the
//! parent's threads. Its copy of a stack has no driver, and the parent's threads may have held the locks. A packet that
//! the child sends there, or a drop, would end connections of the parent.
#![expect(unsafe_code, reason = "mmap and madvise have no types")]

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// A number of this process that none of its ancestors has. A value that keeps the number of the process that made it
/// belongs to a parent where the numbers differ.
///
/// It holds the process id, and a generation, which differs where a child in a new PID namespace has the id of its
/// parent. Linux before 4.14 has no generations.
pub fn process() -> u64 {
    u64::from(generation()) << u32::BITS | u64::from(std::process::id())
}

/// The last generation that this process or an ancestor took. A child inherits it.
static LAST: AtomicU32 = AtomicU32::new(0);

/// The generation of this process. A process that finds its stamp cleared takes the next generation.
fn generation() -> u32 {
    let stamp = stamp();
    match stamp.load(Ordering::Relaxed) {
        0 => {
            let next = LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            let taken = stamp.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed);
            taken.err().unwrap_or(next)
        }
        generation => generation,
    }
}

/// The generation's place, which the kernel clears in a child. It takes no lock: a fork at the time of its first use
/// would leave the lock held in the child.
fn stamp() -> &'static AtomicU32 {
    static STAMP: AtomicPtr<AtomicU32> = AtomicPtr::new(null_mut());
    /// The place where the kernel clears no page.
    static INHERITED: AtomicU32 = AtomicU32::new(0);
    let mut at = STAMP.load(Ordering::Acquire);
    if at.is_null() {
        let page = page_cleared_by_fork().unwrap_or((&raw const INHERITED).cast_mut());
        // A thread that loses the race leaves its page unused.
        let stored = STAMP.compare_exchange(null_mut(), page, Ordering::AcqRel, Ordering::Acquire);
        at = stored.err().unwrap_or(page);
    }
    // SAFETY: it leads to a static, or to a page of zeros that is never unmapped and is used as an atomic number alone.
    unsafe { &*at }
}

/// A page of memory that a child of fork(2) sees as zeros.
fn page_cleared_by_fork() -> Option<*mut AtomicU32> {
    // The kernel maps whole pages.
    let len = size_of::<AtomicU32>();
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping touches no memory that is in use, and nobody else knows the one that is unmapped again.
    unsafe {
        let page = libc::mmap(null_mut(), len, access, kind, -1, 0);
        if page == libc::MAP_FAILED {
            return None;
        }
        if libc::madvise(page, len, libc::MADV_WIPEONFORK) != 0 {
            libc::munmap(page, len);
            return None;
        }
        Some(page.cast())
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn all_threads_of_a_process_have_its_number() {
        let threads: Vec<_> = (0..8).map(|_| thread::spawn(process)).collect();
        let numbers = threads.into_iter().map(|thread| thread.join().expect("it ends"));
        assert!(numbers.into_iter().all(|number| number == process()));
        assert_eq!(process() as u32, std::process::id());
    }
}

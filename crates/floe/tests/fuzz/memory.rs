//! The allocator of this process: the system's, and a count of what is allocated.

// Only an allocator can count what is allocated.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

#[global_allocator]
static COUNTING: Counting = Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);
/// What is told of an allocation that may end the process.
static SEED: AtomicU64 = AtomicU64::new(0);
static ROUND: AtomicU64 = AtomicU64::new(0);

/// More than this at once may not be had, which ends the process without another word.
const HUGE: usize = 1 << 32;

struct Counting;

// SAFETY: every call is the system's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both are there while one is copied to the other.
        grow(size);
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

fn grow(bytes: usize) {
    if bytes > HUGE {
        tell(bytes);
    }
    let now = NOW.fetch_add(bytes, Ordering::Relaxed) + bytes;
    MOST.fetch_max(now, Ordering::Relaxed);
}

/// Says which round it was, without allocating anything.
fn tell(bytes: usize) {
    let mut text = [0u8; 128];
    let mut room = &mut text[..];
    let (seed, round) = (SEED.load(Ordering::Relaxed), ROUND.load(Ordering::Relaxed));
    let _ = writeln!(
        room,
        "FLOE_SEED={seed} round {round} asks for {bytes} bytes at once"
    );
    let left = room.len();
    let _ = std::io::stderr().write_all(&text[..text.len() - left]);
}

/// Begins to measure a round.
pub(super) fn begin(seed: u64, round: u64) -> usize {
    SEED.store(seed, Ordering::Relaxed);
    ROUND.store(round, Ordering::Relaxed);
    let now = NOW.load(Ordering::Relaxed);
    MOST.store(now, Ordering::Relaxed);
    now
}

/// Bytes that were allocated at once, at most, beyond those of the beginning.
pub(super) fn grown(since: usize) -> usize {
    MOST.load(Ordering::Relaxed).saturating_sub(since)
}

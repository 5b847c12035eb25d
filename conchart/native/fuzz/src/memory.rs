//! Counts what is allocated: a parser that believes a length field shows here first.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that are allocated, and the most there were since [`bounded`] began.
static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn add(bytes: usize) {
    let now = NOW.fetch_add(bytes, Relaxed) + bytes;
    MOST.fetch_max(now, Relaxed);
}

// SAFETY: every call is passed on as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size);
        NOW.fetch_sub(layout.size(), Relaxed);
        unsafe { System.realloc(memory, layout, size) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Runs something that must never have more than `most` bytes allocated.
///
/// # Panics
/// When it had.
pub fn bounded<T>(most: usize, run: impl FnOnce() -> T) -> T {
    let before = NOW.load(Relaxed);
    MOST.store(before, Relaxed);
    let result = run();
    let used = MOST.load(Relaxed) - before;
    assert!(used <= most, "{used} bytes were allocated at once, {most} allowed");
    result
}

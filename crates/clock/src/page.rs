//! The pages of a stand-in: its image, the addresses of the real functions, the shift. How they lie in the clock's file, and
//! the one writer of the shift.
//!
//! The shift is read under a sequence lock: the writer makes the sequence odd, writes, makes it even; a reader that saw an
//! odd one, or another one after than before, reads again (Documentation/locking/seqlock.rst). Readers are the code in
//! `code.rs`; there is one writer.

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

use crate::shift::Shift;

/// A page of x86-64.
pub(crate) const PAGE_BYTES: usize = 4096;
/// The pages of a clock's file: image, addresses, shift.
pub(crate) const PAGES: usize = 3;

/// A real function by its place in the page of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Real {
    ClockGettime,
    Gettimeofday,
    ClockGetres,
    Getcpu,
    Getrandom,
    Time,
}

impl Real {
    pub(crate) const ALL: [(Real, &str); 6] = [
        (Real::ClockGettime, "__vdso_clock_gettime"),
        (Real::Gettimeofday, "__vdso_gettimeofday"),
        (Real::ClockGetres, "__vdso_clock_getres"),
        (Real::Getcpu, "__vdso_getcpu"),
        (Real::Getrandom, "__vdso_getrandom"),
        (Real::Time, "__vdso_time"),
    ];
}

/// Where the fields of the shift are in its page.
pub(crate) struct ShiftPage {
    pub(crate) sequence: usize,
    pub(crate) offset: usize,
    pub(crate) reference: usize,
    pub(crate) rate: usize,
    /// The offset once more: whole seconds, rounded down, and the nanoseconds that are left.
    pub(crate) offset_seconds: usize,
    pub(crate) offset_rest: usize,
}

pub(crate) const SHIFT_PAGE: ShiftPage =
    ShiftPage { sequence: 0, offset: 8, reference: 16, rate: 24, offset_seconds: 32, offset_rest: 40 };

const SECOND_NS: i64 = 1_000_000_000;

/// The page of the shift, shared with every program that reads the clock.
#[derive(Debug)]
pub(crate) struct SharedShift {
    page: NonNull<libc::c_void>,
}

// SAFETY: the page is read and written through atomics only, and stays mapped until the value is dropped.
unsafe impl Send for SharedShift {}
// SAFETY: as above.
unsafe impl Sync for SharedShift {}

impl SharedShift {
    /// Maps the last page of a clock's file, which it fills first.
    pub(crate) fn in_file(file: &File, image: &[u8]) -> io::Result<SharedShift> {
        file.set_len((PAGES * PAGE_BYTES) as u64)?;
        file.write_all_at(image, 0)?;
        let length = NonZeroUsize::new(PAGE_BYTES).unwrap_or(NonZeroUsize::MIN);
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        let offset = ((PAGES - 1) * PAGE_BYTES) as libc::off_t;
        // SAFETY: a new mapping that nothing else in this program uses.
        let page = unsafe { mmap(None, length, protection, MapFlags::MAP_SHARED, file, offset)? };
        Ok(SharedShift { page })
    }

    fn field(&self, at: usize) -> &AtomicI64 {
        // SAFETY: within the mapped page, aligned to 8 bytes, and touched as an atomic by everybody here.
        unsafe { self.page.cast::<AtomicI64>().byte_add(at).as_ref() }
    }

    /// Lets every program see this shift from now on. To be called by one thread at a time.
    pub(crate) fn set(&self, shift: Shift) {
        // SAFETY: as in `field`; the sequence is the first half of the first field.
        let sequence: &AtomicU32 =
            unsafe { self.page.cast::<AtomicU32>().byte_add(SHIFT_PAGE.sequence).as_ref() };
        sequence.fetch_add(1, Ordering::SeqCst);
        self.field(SHIFT_PAGE.offset).store(shift.offset_ns, Ordering::SeqCst);
        self.field(SHIFT_PAGE.reference).store(shift.reference_ns, Ordering::SeqCst);
        self.field(SHIFT_PAGE.rate).store(shift.rate, Ordering::SeqCst);
        self.field(SHIFT_PAGE.offset_seconds).store(shift.offset_ns.div_euclid(SECOND_NS), Ordering::SeqCst);
        self.field(SHIFT_PAGE.offset_rest).store(shift.offset_ns.rem_euclid(SECOND_NS), Ordering::SeqCst);
        sequence.fetch_add(1, Ordering::SeqCst);
    }
}

impl Drop for SharedShift {
    fn drop(&mut self) {
        // SAFETY: mapped in `in_file`, and no reference to it is left.
        let _ = unsafe { munmap(self.page, PAGE_BYTES) };
    }
}

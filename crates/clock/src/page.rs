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
    /// A clock with a rate in whole seconds: what `Seconds` has, in its order.
    pub(crate) seconds: usize,
}

pub(crate) const SHIFT_PAGE: ShiftPage = ShiftPage {
    sequence: 0,
    offset: 8,
    reference: 16,
    rate: 24,
    offset_seconds: 32,
    offset_rest: 40,
    seconds: 48,
};

/// How a clock with a rate finds its seconds without its nanoseconds, for `time`: two multiplications of 64 bits, where the
/// nanoseconds take one of 128 and a division. The clock shows
/// `base + floor((fraction + (s - reference) * per_second + (ns * per_nanosecond >> 28)) / 2^32)`, less a nanosecond at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Seconds {
    /// How much the clock gains in a second, as a fraction of 2^32; zero where the nanoseconds must be computed.
    per_second: i64,
    /// How much in a nanosecond, as a fraction of 2^60.
    per_nanosecond: i64,
    /// The true second from which on both count.
    reference: i64,
    /// What the clock shows at its beginning: seconds, and the rest as a fraction of 2^32.
    base: i64,
    fraction: i64,
}

impl Seconds {
    /// Fields, in this order.
    pub(crate) const FIELDS: usize = 5;
    /// Faster clocks would overflow after 17 years, and those that run backwards are left to the other way.
    const MOST_PER_SECOND: i64 = 1 << 34;

    fn of(shift: Shift) -> Seconds {
        let per_second = shift.rate.saturating_add(1 << 32);
        if shift.rate == 0 || !(1..=Self::MOST_PER_SECOND).contains(&per_second) {
            return Seconds::default();
        }
        let reference = shift.reference_ns.div_euclid(SECOND_NS);
        let shown_ns = shift.shown_ns_at(reference * SECOND_NS);
        let fraction = (i128::from(shown_ns.rem_euclid(SECOND_NS)) << 32) / i128::from(SECOND_NS);
        let per_nanosecond = (i128::from(per_second) << 28) / i128::from(SECOND_NS);
        Seconds {
            per_second,
            per_nanosecond: per_nanosecond as i64,
            reference,
            base: shown_ns.div_euclid(SECOND_NS),
            fraction: fraction as i64,
        }
    }

    fn fields(self) -> [i64; Self::FIELDS] {
        [self.per_second, self.per_nanosecond, self.reference, self.base, self.fraction]
    }
}

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
        for (number, value) in Seconds::of(shift).fields().into_iter().enumerate() {
            self.field(SHIFT_PAGE.seconds + 8 * number).store(value, Ordering::SeqCst);
        }
        sequence.fetch_add(1, Ordering::SeqCst);
    }
}

impl Drop for SharedShift {
    fn drop(&mut self) {
        // SAFETY: mapped in `in_file`, and no reference to it is left.
        let _ = unsafe { munmap(self.page, PAGE_BYTES) };
    }
}

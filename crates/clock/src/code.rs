//! The stand-in's machine code, as bytes of this program: position independent, copied into the stand-in's first page.
//!
//! Owns the code and where its functions begin. What surrounds it is in `image.rs`; what it reads, in `page.rs`. It calls
//! the real functions by the addresses in the page after its own, and takes the shift from the page after that.
//!
//! Registers follow the System V ABI for x86-64: only those that a called function may change are changed.

use crate::page::{PAGE_BYTES, Real, SHIFT_PAGE};

/// Where the code begins in the stand-in's first page; what precedes it are tables.
pub(crate) const CODE_AT: usize = 0x800;

core::arch::global_asm!(
    r#"
    .pushsection .rodata.holdfast_clock_code, "a", @progbits
    .balign 64
    .globl holdfast_clock_code
holdfast_clock_code:
.Lcode:
    // int clock_gettime(clockid_t edi, struct timespec *rsi). Shifted: CLOCK_REALTIME (0), its COARSE (5), its ALARM (8),
    // and CLOCK_TAI (11), which is it plus leap seconds.
    .globl holdfast_clock_gettime
holdfast_clock_gettime:
    endbr64
    cmp     edi, 11
    ja      2f
    mov     eax, 0x921
    bt      eax, edi
    jnc     2f
    push    rsi
    call    [rip + .Lcode + {real_gettime}]
    pop     rsi
    test    eax, eax
    jnz     1f
    call    .Lshift
    mov     [rsi], rax
    mov     [rsi + 8], rdx
    xor     eax, eax
1:  ret
2:  jmp     [rip + .Lcode + {real_gettime}]

    // From the timespec at rsi, the seconds (rax) and nanoseconds (rdx) that the clock shows. Keeps rsi and rdi. A clock without a
    // rate is the frequent one: an addition, and no division.
    .balign 16
.Lshift:
    mov     r8d, [rip + .Lcode + {sequence}]
    test    r8d, 1
    jnz     4f
    mov     rcx, [rip + .Lcode + {rate}]
    test    rcx, rcx
    jnz     5f
    mov     rax, [rip + .Lcode + {offset_seconds}]
    mov     rdx, [rip + .Lcode + {offset_rest}]
    cmp     r8d, [rip + .Lcode + {sequence}]
    jne     .Lshift
    add     rax, [rsi]
    add     rdx, [rsi + 8]
    cmp     rdx, 1000000000
    jb      3f
    sub     rdx, 1000000000
    inc     rax
3:  ret
4:  pause
    jmp     .Lshift
5:  mov     r9, [rip + .Lcode + {reference}]
    mov     r10, [rip + .Lcode + {offset}]
    cmp     r8d, [rip + .Lcode + {sequence}]
    jne     .Lshift
    imul    r11, [rsi], 1000000000
    add     r11, [rsi + 8]
    add     r10, r11
    sub     r11, r9
    mov     rax, rcx
    imul    r11
    shrd    rax, rdx, 32
    add     rax, r10
    // By 1,000,000,000, as a multiplication: a division takes as long as all the rest (Granlund and Montgomery, "Division by
    // Invariant Integers using Multiplication").
    mov     r10, rax
    shr     rax, 9
    mov     rcx, 0x44b82fa09b5a53
    mul     rcx
    shr     rdx, 11
    mov     rax, rdx
    imul    rdx, rdx, 1000000000
    sub     r10, rdx
    mov     rdx, r10
    ret

    // int gettimeofday(struct timeval *rdi, struct timezone *rsi)
    .balign 16
    .globl holdfast_clock_gettimeofday
holdfast_clock_gettimeofday:
    endbr64
    push    rdi
    sub     rsp, 16
    test    rsi, rsi
    jz      6f
    xor     edi, edi
    call    [rip + .Lcode + {real_gettimeofday}]
6:  cmp     qword ptr [rsp + 16], 0
    je      7f
    xor     edi, edi
    mov     rsi, rsp
    call    [rip + .Lcode + {real_gettime}]
    test    eax, eax
    jnz     8f
    mov     rsi, rsp
    call    .Lshift
    mov     rdi, [rsp + 16]
    mov     [rdi], rax
    // By 1,000, for numbers of 32 bits.
    mov     eax, edx
    imul    rax, rax, 274877907
    shr     rax, 38
    mov     [rdi + 8], rax
7:  xor     eax, eax
8:  add     rsp, 24
    ret

    // time_t time(time_t *rdi). Shifted by whole seconds, which is the frequent case, the real one and an addition; else from the
    // coarse clock, as the real one, and with a rate by `page::Seconds`.
    .balign 16
    .globl holdfast_clock_time
holdfast_clock_time:
    endbr64
    // A clock with a rate has no use for what is read here, and is read under the lock further down.
    cmp     qword ptr [rip + .Lcode + {rate}], 0
    jne     .Ltime_coarse
    mov     rax, [rip + .Lcode + {real_time}]
    test    rax, rax
    jz      .Ltime_coarse
    mov     r8d, [rip + .Lcode + {sequence}]
    test    r8d, 1
    jnz     .Ltime_coarse
    mov     rcx, [rip + .Lcode + {rate}]
    or      rcx, [rip + .Lcode + {offset_rest}]
    mov     r10, [rip + .Lcode + {offset_seconds}]
    cmp     r8d, [rip + .Lcode + {sequence}]
    jne     .Ltime_coarse
    test    rcx, rcx
    jnz     .Ltime_coarse
    push    rdi
    push    r10
    sub     rsp, 8
    xor     edi, edi
    call    rax
    add     rsp, 8
    pop     r10
    pop     rdi
    add     rax, r10
    test    rdi, rdi
    jz      .Ltime_end
    mov     [rdi], rax
.Ltime_end:
    ret
.Ltime_coarse:
    push    rdi
    sub     rsp, 16
    mov     edi, 5
    mov     rsi, rsp
    call    [rip + .Lcode + {real_gettime}]
    mov     r8d, [rip + .Lcode + {sequence}]
    test    r8d, 1
    jnz     .Ltime_by_nanoseconds
    mov     rcx, [rip + .Lcode + {per_second}]
    test    rcx, rcx
    jz      .Ltime_by_nanoseconds
    mov     rax, [rsp]
    sub     rax, [rip + .Lcode + {seconds_reference}]
    imul    rax, rcx
    mov     rdx, [rsp + 8]
    imul    rdx, [rip + .Lcode + {per_nanosecond}]
    add     rax, [rip + .Lcode + {seconds_fraction}]
    mov     r10, [rip + .Lcode + {seconds_base}]
    cmp     r8d, [rip + .Lcode + {sequence}]
    jne     .Ltime_by_nanoseconds
    shr     rdx, 28
    add     rax, rdx
    sar     rax, 32
    add     rax, r10
.Ltime_found:
    mov     rdi, [rsp + 16]
    test    rdi, rdi
    jz      9f
    mov     [rdi], rax
9:  add     rsp, 24
    ret
.Ltime_by_nanoseconds:
    mov     rsi, rsp
    call    .Lshift
    jmp     .Ltime_found

    .balign 16
    .globl holdfast_clock_getres
holdfast_clock_getres:
    endbr64
    jmp     [rip + .Lcode + {real_getres}]
    .balign 16
    .globl holdfast_clock_getcpu
holdfast_clock_getcpu:
    endbr64
    jmp     [rip + .Lcode + {real_getcpu}]
    .balign 16
    .globl holdfast_clock_getrandom
holdfast_clock_getrandom:
    endbr64
    jmp     [rip + .Lcode + {real_getrandom}]
    .globl holdfast_clock_code_end
holdfast_clock_code_end:
    .popsection
    "#,
    real_gettime = const real(Real::ClockGettime),
    real_gettimeofday = const real(Real::Gettimeofday),
    real_getres = const real(Real::ClockGetres),
    real_getcpu = const real(Real::Getcpu),
    real_getrandom = const real(Real::Getrandom),
    real_time = const real(Real::Time),
    sequence = const shift(SHIFT_PAGE.sequence),
    offset = const shift(SHIFT_PAGE.offset),
    offset_seconds = const shift(SHIFT_PAGE.offset_seconds),
    offset_rest = const shift(SHIFT_PAGE.offset_rest),
    reference = const shift(SHIFT_PAGE.reference),
    rate = const shift(SHIFT_PAGE.rate),
    per_second = const shift(SHIFT_PAGE.seconds),
    per_nanosecond = const shift(SHIFT_PAGE.seconds + 8),
    seconds_reference = const shift(SHIFT_PAGE.seconds + 16),
    seconds_base = const shift(SHIFT_PAGE.seconds + 24),
    seconds_fraction = const shift(SHIFT_PAGE.seconds + 32),
);

/// From the code's beginning to the address of a real function.
const fn real(function: Real) -> usize {
    PAGE_BYTES - CODE_AT + function as usize * 8
}

/// From the code's beginning to a field of the page of the shift.
const fn shift(field: usize) -> usize {
    2 * PAGE_BYTES - CODE_AT + field
}

#[allow(non_upper_case_globals)]
unsafe extern "C" {
    static holdfast_clock_code: u8;
    static holdfast_clock_gettime: u8;
    static holdfast_clock_gettimeofday: u8;
    static holdfast_clock_time: u8;
    static holdfast_clock_getres: u8;
    static holdfast_clock_getcpu: u8;
    static holdfast_clock_getrandom: u8;
    static holdfast_clock_code_end: u8;
}

/// A function of the stand-in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Function {
    /// As programs look it up.
    pub(crate) name: &'static str,
    /// The real one that it calls: without it there is no such function.
    pub(crate) needs: Real,
    /// Where it begins in the code.
    pub(crate) at: usize,
}

pub(crate) fn code() -> &'static [u8] {
    let begin = &raw const holdfast_clock_code;
    // SAFETY: the two labels bound the bytes that are assembled above, in this program's read-only data.
    unsafe { std::slice::from_raw_parts(begin, (&raw const holdfast_clock_code_end).addr() - begin.addr()) }
}

pub(crate) fn functions() -> [Function; 6] {
    let begin = (&raw const holdfast_clock_code).addr();
    let function = |name, needs, label: *const u8| Function { name, needs, at: label.addr() - begin };
    [
        function("__vdso_clock_gettime", Real::ClockGettime, &raw const holdfast_clock_gettime),
        function("__vdso_gettimeofday", Real::Gettimeofday, &raw const holdfast_clock_gettimeofday),
        function("__vdso_time", Real::ClockGettime, &raw const holdfast_clock_time),
        function("__vdso_clock_getres", Real::ClockGetres, &raw const holdfast_clock_getres),
        function("__vdso_getcpu", Real::Getcpu, &raw const holdfast_clock_getcpu),
        function("__vdso_getrandom", Real::Getrandom, &raw const holdfast_clock_getrandom),
    ]
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs::File;
    use std::num::NonZeroUsize;
    use std::os::unix::fs::FileExt;

    use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
    use proptest::prelude::*;

    use super::*;
    use crate::page::{PAGES, SharedShift};
    use crate::shift::{Rate, Shift};

    const SECOND_NS: i64 = 1_000_000_000;
    const NOW_NS: i64 = 1_800_000_000_000_000_000;

    thread_local! {
        static TRUE_NS: Cell<i64> = const { Cell::new(0) };
    }

    /// In the place of the real one.
    extern "C" fn planted(_: libc::clockid_t, time: *mut libc::timespec) -> libc::c_int {
        let true_ns = TRUE_NS.get();
        // SAFETY: the code gives a place of its own or its caller's.
        unsafe {
            (*time).tv_sec = true_ns.div_euclid(SECOND_NS);
            (*time).tv_nsec = true_ns.rem_euclid(SECOND_NS);
        }
        0
    }

    /// The code with a page of addresses and one of a shift behind it.
    struct Assembled {
        _file: File,
        shift: SharedShift,
        at: std::ptr::NonNull<libc::c_void>,
    }

    impl Assembled {
        fn new() -> Assembled {
            let file = tempfile::tempfile().expect("a file");
            let mut image = vec![0; PAGE_BYTES];
            image[CODE_AT..CODE_AT + code().len()].copy_from_slice(code());
            let shift = SharedShift::in_file(&file, &image).expect("mapped");
            let address = (planted as extern "C" fn(_, _) -> _ as usize).to_le_bytes();
            let at = PAGE_BYTES + Real::ClockGettime as usize * 8;
            file.write_all_at(&address, at as u64).expect("written");
            let length = NonZeroUsize::new(PAGES * PAGE_BYTES).expect("pages");
            let protection = ProtFlags::PROT_READ | ProtFlags::PROT_EXEC;
            // SAFETY: a new mapping.
            let at = unsafe { mmap(None, length, protection, MapFlags::MAP_SHARED, &file, 0) };
            Assembled { _file: file, shift, at: at.expect("mapped") }
        }

        fn function(&self, name: &str) -> *const libc::c_void {
            let function = functions().into_iter().find(|function| function.name == name).expect("there");
            // SAFETY: within the mapping.
            unsafe { self.at.as_ptr().byte_add(CODE_AT + function.at) }
        }

        /// What `clock_gettime`, `gettimeofday` and `time` show, in nanoseconds, microseconds and seconds.
        fn shown(&self, shift: Shift, true_ns: i64) -> (i64, i64, i64) {
            type Gettime = extern "C" fn(libc::clockid_t, *mut libc::timespec) -> libc::c_int;
            type Gettimeofday = extern "C" fn(*mut libc::timeval, *mut libc::c_void) -> libc::c_int;
            type Time = extern "C" fn(*mut libc::time_t) -> libc::time_t;
            self.shift.set(shift);
            TRUE_NS.set(true_ns);
            let mut spec = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            let mut value = libc::timeval { tv_sec: 0, tv_usec: 0 };
            let mut seconds = 0;
            // SAFETY: functions of these types, assembled above.
            unsafe {
                let gettime: Gettime = std::mem::transmute(self.function("__vdso_clock_gettime"));
                let gettimeofday: Gettimeofday = std::mem::transmute(self.function("__vdso_gettimeofday"));
                let time: Time = std::mem::transmute(self.function("__vdso_time"));
                assert_eq!(gettime(libc::CLOCK_REALTIME, &mut spec), 0);
                assert_eq!(gettimeofday(&mut value, std::ptr::null_mut()), 0);
                assert_eq!(time(&mut seconds), time(std::ptr::null_mut()));
            }
            let nanoseconds = spec.tv_sec * SECOND_NS + spec.tv_nsec;
            (nanoseconds, value.tv_sec * 1_000_000 + value.tv_usec, seconds)
        }
    }

    impl Drop for Assembled {
        fn drop(&mut self) {
            // SAFETY: mapped when it was made.
            let _ = unsafe { munmap(self.at, PAGES * PAGE_BYTES) };
        }
    }

    fn check(assembled: &Assembled, shift: Shift, true_ns: i64) -> Result<(), TestCaseError> {
        let (nanoseconds, microseconds, seconds) = assembled.shown(shift, true_ns);
        let expected_ns = shift.shown_ns_at(true_ns);
        prop_assert_eq!(nanoseconds, expected_ns);
        prop_assert_eq!(microseconds, expected_ns / 1000);
        // Its way to the seconds rounds down once more.
        let least = (expected_ns - 2).div_euclid(SECOND_NS);
        prop_assert!(
            (least..=expected_ns.div_euclid(SECOND_NS)).contains(&seconds),
            "{seconds} {expected_ns}"
        );
        Ok(())
    }

    proptest! {
        #[test]
        fn the_code_shows_what_the_shift_says(
            jump in -1_000_000_000_000_000_000i64..1_000_000_000_000_000_000,
            is_whole in any::<bool>(),
            rate in prop_oneof![Just(0), -1_000_000_000i64..3_000_000_000, Just(-2_000_000_000), Just(50_000_000_000)],
            passed in 0i64..40_000_000_000_000_000,
            edge in -3i64..4,
        ) {
            let assembled = Assembled::new();
            let jump = if is_whole { jump / SECOND_NS * SECOND_NS } else { jump };
            let racing = Shift::running_away(Rate { parts_per_billion: rate }, NOW_NS);
            let shift = Shift::jump(jump).and(racing);
            // At any moment, and about the beginning of a second.
            for true_ns in [NOW_NS + passed, (NOW_NS + passed) / SECOND_NS * SECOND_NS + edge] {
                if shift.shown_ns_at(true_ns) >= 0 {
                    check(&assembled, shift, true_ns)?;
                }
            }
        }
    }
}

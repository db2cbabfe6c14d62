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
    xor     edx, edx
    mov     ecx, 1000000000
    div     rcx
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
    mov     eax, edx
    xor     edx, edx
    mov     ecx, 1000
    div     ecx
    mov     [rdi + 8], rax
7:  xor     eax, eax
8:  add     rsp, 24
    ret

    // time_t time(time_t *rdi). Shifted by whole seconds, which is the frequent case, the real one and an addition; else from the
    // coarse clock, as the real one.
    .balign 16
    .globl holdfast_clock_time
holdfast_clock_time:
    endbr64
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
    mov     rsi, rsp
    call    .Lshift
    mov     rdi, [rsp + 16]
    test    rdi, rdi
    jz      9f
    mov     [rdi], rax
9:  add     rsp, 24
    ret

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

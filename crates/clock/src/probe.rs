//! The probe: a program of its own, without a C library and without a dynamic linker, that says what a node's clock shows.
//!
//! It looks the clock up as static programs do (Go's, for instance): by the address of the vDSO among what the kernel passed
//! to it, and the table of symbols there. It takes the time between two plain system calls, which no stand-in reaches, so that
//! the offset lies between two bounds whatever the machine is busy with. Independent of `code.rs` on purpose: it shares
//! nothing with the stand-in but the assembler.

use crate::image::{ElfKind, Segment, headers};

core::arch::global_asm!(
    r#"
    .pushsection .rodata.holdfast_clock_probe, "a", @progbits
    .balign 16
    .globl holdfast_clock_probe
holdfast_clock_probe:
    // The words after the arguments and the environment: pairs of a kind and a value.
    mov     rax, [rsp]
    lea     rdi, [rsp + rax * 8 + 16]
1:  add     rdi, 8
    cmp     qword ptr [rdi - 8], 0
    jne     1b
2:  mov     rax, [rdi]
    mov     rbx, [rdi + 8]
    add     rdi, 16
    test    rax, rax
    jz      .Lno_clock
    cmp     rax, 33
    jne     2b
    // The dynamic segment among the program headers.
    mov     rcx, [rbx + 32]
    add     rcx, rbx
    movzx   edx, word ptr [rbx + 56]
3:  test    edx, edx
    jz      .Lno_clock
    dec     edx
    mov     rdi, [rcx + 16]
    cmp     dword ptr [rcx], 2
    lea     rcx, [rcx + 56]
    jne     3b
    add     rdi, rbx
    // Its tables: hash (r8), strings (r9), symbols (r10).
    xor     r8d, r8d
4:  mov     rax, [rdi]
    mov     rdx, [rdi + 8]
    add     rdx, rbx
    add     rdi, 16
    cmp     rax, 4
    cmove   r8, rdx
    cmp     rax, 5
    cmove   r9, rdx
    cmp     rax, 6
    cmove   r10, rdx
    test    rax, rax
    jnz     4b
    test    r8, r8
    jz      .Lno_clock
    // The symbol with the name.
    mov     edx, [r8 + 4]
5:  dec     edx
    jz      .Lno_clock
    add     r10, 24
    mov     edi, [r10]
    add     rdi, r9
    lea     rsi, [rip + .Lname]
    mov     ecx, 21
    repe cmpsb
    jne     5b
    mov     r13, [r10 + 8]
    add     r13, rbx

    // Below the stack pointer: 3 times, then the line.
    and     rsp, -16
    sub     rsp, 128
    mov     r14d, 5
6:  mov     rdi, rsp
    call    .Lplain
    xor     edi, edi
    lea     rsi, [rsp + 16]
    call    r13
    lea     rdi, [rsp + 32]
    call    .Lplain
    lea     rdi, [rsp + 48]
    mov     rsi, rsp
    mov     r15d, 3
7:  imul    rax, [rsi], 1000000000
    add     rax, [rsi + 8]
    add     rsi, 16
    mov     ecx, 16
8:  rol     rax, 4
    mov     edx, eax
    and     edx, 15
    lea     r8d, [rdx + 48]
    lea     r9d, [rdx + 87]
    cmp     edx, 10
    cmovae  r8d, r9d
    mov     [rdi], r8b
    inc     rdi
    dec     ecx
    jnz     8b
    mov     byte ptr [rdi], 32
    inc     rdi
    dec     r15d
    jnz     7b
    mov     byte ptr [rdi - 1], 10
    mov     eax, 1
    mov     edi, 1
    lea     rsi, [rsp + 48]
    mov     edx, 51
    syscall
    dec     r14d
    jnz     6b
    xor     edi, edi
    jmp     .Lexit
.Lno_clock:
    mov     edi, 3
.Lexit:
    mov     eax, 231
    syscall
    // clock_gettime(CLOCK_REALTIME) into the timespec at rdi, by the system call itself
.Lplain:
    mov     rsi, rdi
    xor     edi, edi
    mov     eax, 228
    syscall
    ret
.Lname:
    .asciz  "__vdso_clock_gettime"
    .globl holdfast_clock_probe_end
holdfast_clock_probe_end:
    .popsection
    "#
);

unsafe extern "C" {
    static holdfast_clock_probe: u8;
    static holdfast_clock_probe_end: u8;
}

const ADDRESS: u64 = 0x40_0000;
const PAGE_BYTES: u64 = 0x1000;

/// The probe as an executable file.
#[must_use]
pub fn program() -> Vec<u8> {
    let begin = &raw const holdfast_clock_probe;
    let length = (&raw const holdfast_clock_probe_end).addr() - begin.addr();
    // SAFETY: the two labels bound the bytes that are assembled above, in this program's read-only data.
    let code = unsafe { std::slice::from_raw_parts(begin, length) };
    let segment = |bytes, headers: u64| Segment {
        kind: 1,
        flags: 5,
        at: 0,
        bytes: bytes + headers,
        address: ADDRESS,
        align: PAGE_BYTES,
    };
    let of = |headers_bytes: u64| {
        let segments = [segment(code.len() as u64, headers_bytes)];
        headers(ElfKind::Program, ADDRESS + headers_bytes, &segments)
    };
    let headers_bytes = of(0).len() as u64;
    let mut file = of(headers_bytes);
    file.extend(code);
    file
}

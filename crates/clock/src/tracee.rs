//! One program at its start, held for a moment: the stand-in is mapped into it, and its auxiliary vector leads there.
//!
//! A tracer holds it from its exec until it is told nothing more, a fraction of a millisecond, by the thread that calls.
//! System calls that the program must make itself are made for it, through an instruction of its real vDSO, before its first
//! own instruction. Sources: ptrace(2), getauxval(3), vdso(7).

use std::io::{self, IoSlice, IoSliceMut};
use std::path::Path;

use libc::{c_int, user_regs_struct};
use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::unistd::Pid;

use crate::page::{PAGE_BYTES, PAGES};
use crate::real_vdso::{RealVdso, SYSTEM_CALL};

/// Added by the kernel to SIGTRAP where a system call begins or ends.
const CALL_STOP: c_int = libc::SIGTRAP | 0x80;
/// How far below a new program's stack pointer its stack surely reaches (the kernel adds 128 KiB).
const SCRATCH_BYTES: u64 = 1024;
/// More is not the beginning of a program: arguments and environment take at most this many bytes (execve(2)).
const VECTOR_BYTES_MAX: u64 = 8 << 20;
/// First bytes of a 64-bit little-endian ELF file, and the machine x86-64.
const ELF64: [u8; 6] = *b"\x7fELF\x02\x01";
const X86_64: [u8; 2] = [62, 0];

/// What a program is to be given.
#[derive(Debug)]
pub(crate) struct StandIn<'a> {
    /// Its file, as the program finds it.
    pub(crate) file: &'a Path,
    pub(crate) real: &'a RealVdso,
    /// A lie that tests plant: programs without a dynamic linker are not given it.
    pub(crate) leaves_out_static: bool,
}

/// Of the auxiliary vector.
#[derive(Debug, Default)]
struct Vector {
    /// Where the address of the vDSO stands, and that address.
    vdso: Option<(u64, u64)>,
    /// Where the dynamic linker is; 0 for a static program.
    linker: u64,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The program has the stand-in.
    Given,
    /// Another program than those that this machine's 64-bit vDSO is for.
    Foreign,
    /// Nothing was started: the exec failed or will be tried again, or the process is gone.
    NotStarted,
    /// Somebody traces the process already.
    Traced,
}

/// A step was refused.
#[derive(Debug, thiserror::Error)]
#[error("{step}: {source}")]
pub(crate) struct TraceError {
    step: &'static str,
    source: io::Error,
}

impl TraceError {
    /// Whether the process was killed meanwhile.
    pub(crate) fn is_end_of_process(&self) -> bool {
        self.source.raw_os_error() == Some(libc::ESRCH)
    }
}

fn step<T, E: Into<io::Error>>(step: &'static str, result: Result<T, E>) -> Result<T, TraceError> {
    result.map_err(|source| TraceError { step, source: source.into() })
}

/// A process that the calling thread traces. Dropping it lets it go.
#[derive(Debug)]
pub(crate) struct Tracee {
    pid: i32,
    is_held: bool,
}

enum Stop {
    Exec,
    Call,
    /// A signal is about to be delivered.
    Signal(c_int),
    /// Asked for by the tracer, or with all the process's threads.
    Other,
    Gone,
}

impl Tracee {
    /// Begins to trace a thread that waits in an exec; none when somebody else does.
    pub(crate) fn seize(pid: i32) -> Result<Option<Tracee>, TraceError> {
        let options = libc::PTRACE_O_TRACEEXEC | libc::PTRACE_O_TRACESYSGOOD;
        let tracee = Tracee { pid, is_held: true };
        match tracee.trace(libc::PTRACE_SEIZE, 0, options as u64) {
            Ok(()) => Ok(Some(tracee)),
            Err(error) => {
                std::mem::forget(tracee);
                if error.raw_os_error() == Some(libc::EPERM) { Ok(None) } else { step("trace", Err(error)) }
            }
        }
    }

    /// After the exec was let go on: waits for its end and gives the program the stand-in.
    pub(crate) fn give(mut self, stand_in: &StandIn<'_>) -> Result<Outcome, TraceError> {
        // An exec that fails stops nowhere else. Refused where the thread has been killed, or has its process's number already:
        // either is seen below.
        let _ = self.trace(libc::PTRACE_INTERRUPT, 0, 0);
        match self.wait()? {
            Stop::Exec => {}
            Stop::Gone => return Ok(Outcome::NotStarted),
            Stop::Signal(signal) => {
                self.let_go(signal);
                return Ok(Outcome::NotStarted);
            }
            Stop::Call | Stop::Other => return Ok(Outcome::NotStarted),
        }
        // Only where the call ends are the registers the new program's own.
        if !self.go_on_to_call()? {
            return Ok(Outcome::NotStarted);
        }
        let registers = step("read registers", self.registers())?;
        let begun = self.map_stand_in(registers, stand_in);
        step("restore registers", self.set_registers(&registers))?;
        begun
    }

    fn map_stand_in(
        &mut self,
        registers: user_regs_struct,
        StandIn { file, real, leaves_out_static }: &StandIn<'_>,
    ) -> Result<Outcome, TraceError> {
        let vector = self.vector(registers.rsp)?;
        let Some((slot, base)) = vector.vdso else { return Ok(Outcome::Foreign) };
        if *leaves_out_static && vector.linker == 0 {
            return Ok(Outcome::NotStarted);
        }
        let call = base + real.system_call;
        let instruction = self.read::<2>(call)?;
        let (magic, machine) = (self.read::<6>(base)?, self.read::<2>(base + 18)?);
        if magic != ELF64 || machine != X86_64 || instruction != SYSTEM_CALL {
            return Ok(Outcome::Foreign);
        }
        let path = registers.rsp - SCRATCH_BYTES;
        let mut name = file.as_os_str().as_encoded_bytes().to_vec();
        name.push(0);
        self.write(path, &name)?;
        let mut caller = Caller { tracee: self, registers, call };
        let (page, pages) = (PAGE_BYTES as u64, PAGES as u64);
        let (read, execute) = (libc::PROT_READ as u64, libc::PROT_EXEC as u64);
        let (private, shared) = (libc::MAP_PRIVATE as u64, (libc::MAP_SHARED | libc::MAP_FIXED) as u64);
        let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as u64;
        let open = [libc::AT_FDCWD as u64, path, flags, 0, 0, 0];
        let opened = caller.call("open the clock's file", libc::SYS_openat, open)?;
        let whole = [0, pages * page, read | execute, private, opened, 0];
        let at = caller.call("map the stand-in", libc::SYS_mmap, whole)?;
        let last = (pages - 1) * page;
        let shift = [at + last, page, read, shared, opened, last];
        caller.call("map the shift", libc::SYS_mmap, shift)?;
        caller.call("close the clock's file", libc::SYS_close, [opened, 0, 0, 0, 0, 0])?;
        for (number, address) in real.addresses(base).into_iter().enumerate() {
            let to = at + page + number as u64 * 8;
            step("write addresses", self.trace(libc::PTRACE_POKEDATA, to, address))?;
        }
        step("rewrite the auxiliary vector", self.trace(libc::PTRACE_POKEDATA, slot, at))?;
        Ok(Outcome::Given)
    }

    /// What the kernel passes to a new program. The stack begins with the number of arguments; they, the environment and the
    /// auxiliary vector follow, each ended by a zero.
    fn vector(&self, stack: u64) -> Result<Vector, TraceError> {
        let (mut vector, mut buffer) = (Vector::default(), Vec::new());
        let (mut at, mut zeros, mut key) = (stack, 0, None);
        let mut skip = 1 + u64::from_le_bytes(self.read::<8>(stack)?);
        while at - stack < VECTOR_BYTES_MAX {
            // Up to the end of a page at a time: where the stack ends is not known.
            let length = PAGE_BYTES - (at as usize % PAGE_BYTES);
            buffer.resize(length, 0);
            self.read_into(at, &mut buffer)?;
            for word in buffer.chunks_exact(8) {
                let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
                match (skip, zeros, key.take()) {
                    (1.., ..) => skip -= 1,
                    (0, 0 | 1, _) => zeros += u32::from(word == 0),
                    (0, _, None) if word == libc::AT_NULL => return Ok(vector),
                    (0, _, None) => key = Some(word),
                    (0, _, Some(libc::AT_SYSINFO_EHDR)) => vector.vdso = Some((at, word)),
                    (0, _, Some(libc::AT_BASE)) => vector.linker = word,
                    (0, _, Some(_)) => {}
                }
                at += 8;
            }
        }
        Ok(vector)
    }

    fn read<const N: usize>(&self, at: u64) -> Result<[u8; N], TraceError> {
        let mut bytes = [0; N];
        self.read_into(at, &mut bytes).map(|()| bytes)
    }

    fn read_into(&self, at: u64, bytes: &mut [u8]) -> Result<(), TraceError> {
        let remote = [RemoteIoVec { base: at as usize, len: bytes.len() }];
        let wanted = bytes.len();
        let read = process_vm_readv(Pid::from_raw(self.pid), &mut [IoSliceMut::new(bytes)], &remote);
        whole("read memory", read, wanted)
    }

    fn write(&self, at: u64, bytes: &[u8]) -> Result<(), TraceError> {
        let remote = [RemoteIoVec { base: at as usize, len: bytes.len() }];
        let written = process_vm_writev(Pid::from_raw(self.pid), &[IoSlice::new(bytes)], &remote);
        whole("write memory", written, bytes.len())
    }

    /// Lets it run to the beginning or the end of a system call; whether it got there. Signals that come meanwhile are passed
    /// on: a program that has just been started handles none.
    fn go_on_to_call(&mut self) -> Result<bool, TraceError> {
        let mut signal = 0;
        loop {
            // Refused only to one that has been killed, whose end is waited for all the same.
            let _ = self.trace(libc::PTRACE_SYSCALL, 0, signal as u64);
            match self.wait()? {
                Stop::Call => return Ok(true),
                Stop::Gone => return Ok(false),
                Stop::Signal(next) => signal = next,
                Stop::Exec | Stop::Other => signal = 0,
            }
        }
    }

    /// Waits for its next stop. It may have another number by then: a thread that starts a program takes its process's.
    fn wait(&mut self) -> Result<Stop, TraceError> {
        let mut status = 0;
        let waited = loop {
            // SAFETY: the status is a place of ours. Only what this thread traces is waited for.
            let waited = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::__WNOTHREAD) };
            if waited >= 0 || io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
                break waited;
            }
        };
        if waited < 0 || !libc::WIFSTOPPED(status) {
            self.is_held = false;
            return Ok(Stop::Gone);
        }
        self.pid = waited;
        Ok(match (status >> 16, libc::WSTOPSIG(status)) {
            (libc::PTRACE_EVENT_EXEC, _) => Stop::Exec,
            (0, CALL_STOP) => Stop::Call,
            (0, signal) => Stop::Signal(signal),
            _ => Stop::Other,
        })
    }

    fn trace(&self, request: libc::c_uint, address: u64, data: u64) -> io::Result<()> {
        // SAFETY: the kernel reads or writes memory of ours only through `data` of the two requests for registers, which
        // pass a whole struct.
        match unsafe { libc::ptrace(request, self.pid, address, data) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    fn registers(&self) -> io::Result<user_regs_struct> {
        // SAFETY: plain numbers.
        let mut registers: user_regs_struct = unsafe { std::mem::zeroed() };
        self.trace(libc::PTRACE_GETREGS, 0, (&raw mut registers).expose_provenance() as u64)?;
        Ok(registers)
    }

    fn set_registers(&self, registers: &user_regs_struct) -> io::Result<()> {
        self.trace(libc::PTRACE_SETREGS, 0, std::ptr::from_ref(registers).expose_provenance() as u64)
    }

    fn let_go(&mut self, signal: c_int) {
        if std::mem::take(&mut self.is_held) {
            // One that is gone, or is being killed, need not be let go: it is so when this thread ends.
            let _ = self.trace(libc::PTRACE_DETACH, 0, signal as u64);
        }
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        self.let_go(0);
    }
}

fn whole(name: &'static str, moved: nix::Result<usize>, wanted: usize) -> Result<(), TraceError> {
    match step(name, moved)? {
        moved if moved == wanted => Ok(()),
        _ => step(name, Err(io::Error::from(io::ErrorKind::UnexpectedEof))),
    }
}

/// Makes system calls in the place of a program that stands where one of its own ended.
struct Caller<'a> {
    tracee: &'a mut Tracee,
    registers: user_regs_struct,
    /// An instruction that makes one.
    call: u64,
}

impl Caller<'_> {
    fn call(
        &mut self,
        name: &'static str,
        number: libc::c_long,
        arguments: [u64; 6],
    ) -> Result<u64, TraceError> {
        let [rdi, rsi, rdx, r10, r8, r9] = arguments;
        // No call is being made: the kernel must not begin one again when a signal comes between.
        let (rip, rax, orig_rax) = (self.call, number as u64, u64::MAX);
        let registers = user_regs_struct { rip, rax, orig_rax, rdi, rsi, rdx, r10, r8, r9, ..self.registers };
        step(name, self.tracee.set_registers(&registers))?;
        for _ in ["begins", "ends"] {
            if !self.tracee.go_on_to_call()? {
                return step(name, Err(io::Error::from_raw_os_error(libc::ESRCH)));
            }
        }
        let result = step(name, self.tracee.registers())?.rax as i64;
        match i32::try_from(-result) {
            Ok(error @ 1..4096) => step(name, Err(io::Error::from_raw_os_error(error))),
            _ => Ok(result as u64),
        }
    }
}

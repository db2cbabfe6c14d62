//! The kernel's own vDSO: where its functions are, read from the one that this process has. Every 64-bit program of the
//! machine has the same at another address.

use crate::error::ClockError;
use crate::page::Real;

/// Offsets in the kernel's vDSO.
#[derive(Debug, Clone)]
pub(crate) struct RealVdso {
    offsets: [Option<u64>; Real::ALL.len()],
    /// Where an instruction `syscall` is.
    pub(crate) system_call: u64,
}

/// `syscall` as the processor knows it.
pub(crate) const SYSTEM_CALL: [u8; 2] = [0x0f, 0x05];

/// An ELF image as it lies in memory.
struct Image<'a>(&'a [u8]);

impl Image<'_> {
    fn bytes<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let at = usize::try_from(at).ok()?;
        self.0.get(at..at.checked_add(N)?)?.try_into().ok()
    }

    fn half(&self, at: u64) -> Option<u16> {
        self.bytes(at).map(u16::from_le_bytes)
    }

    fn word(&self, at: u64) -> Option<u32> {
        self.bytes(at).map(u32::from_le_bytes)
    }

    fn long(&self, at: u64) -> Option<u64> {
        self.bytes(at).map(u64::from_le_bytes)
    }

    fn text(&self, at: u64) -> Option<&[u8]> {
        let from = self.0.get(usize::try_from(at).ok()?..)?;
        from.split(|byte| *byte == 0).next()
    }

    /// Kind, address and size in memory of each segment.
    fn segments(&self) -> Option<Vec<(u32, u64, u64)>> {
        let (at, count) = (self.long(32)?, self.half(56)?);
        let headers = (0..u64::from(count)).map(|number| at + number * 56);
        headers.map(|at| Some((self.word(at)?, self.long(at + 16)?, self.long(at + 40)?))).collect()
    }

    fn dynamic(&self, tag: u64) -> Option<u64> {
        let (_, at, bytes) = self.segments()?.into_iter().find(|(kind, ..)| *kind == 2)?;
        let mut entries = (at..at + bytes).step_by(16);
        entries.find(|at| self.long(*at) == Some(tag)).and_then(|at| self.long(at + 8))
    }

    /// Where a function begins.
    fn function(&self, name: &str) -> Option<u64> {
        let (strings, symbols) = (self.dynamic(5)?, self.dynamic(6)?);
        // A table without DT_HASH is not counted anywhere; it ends where the names begin.
        let count = match self.dynamic(4) {
            Some(hash) => u64::from(self.word(hash + 4)?),
            None => strings.checked_sub(symbols)? / 24,
        };
        let mut table = (0..count).map(|number| symbols + number * 24);
        let is_it = |at: &u64| {
            let named = self.word(*at).and_then(|name_at| self.text(strings + u64::from(name_at)));
            named == Some(name.as_bytes()) && self.half(*at + 6) != Some(0)
        };
        table.find(is_it).and_then(|at| self.long(at + 8))
    }
}

impl RealVdso {
    /// Reads this process's.
    ///
    /// # Errors
    /// When there is none, or it lacks what a stand-in needs.
    pub(crate) fn of_this_machine() -> Result<RealVdso, ClockError> {
        // SAFETY: reads what the kernel passed to this process.
        let address = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) } as usize;
        if address == 0 {
            return Err(ClockError::NoVdso);
        }
        let at = |bytes: usize| {
            // SAFETY: the kernel maps its vDSO at this address for as long as the process lives. Its first page is there;
            // how much more there is, its headers say.
            Image(unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(address), bytes) })
        };
        let segments = at(crate::page::PAGE_BYTES).segments().ok_or(ClockError::VdsoWithout("headers"))?;
        let loaded =
            segments.iter().find(|(kind, ..)| *kind == 1).ok_or(ClockError::VdsoWithout("segment"))?;
        let image = at(loaded.2 as usize);
        let offsets = Real::ALL.map(|(_, name)| image.function(name));
        let call = image.0.windows(2).position(|bytes| bytes == SYSTEM_CALL);
        let system_call = call.ok_or(ClockError::VdsoWithout("system call"))? as u64;
        offsets[0].ok_or(ClockError::VdsoWithout("function clock_gettime"))?;
        Ok(RealVdso { offsets, system_call })
    }

    pub(crate) fn offset(&self, function: Real) -> Option<u64> {
        self.offsets[function as usize]
    }

    /// The page of addresses of a program whose vDSO begins at `base`.
    pub(crate) fn addresses(&self, base: u64) -> [u64; Real::ALL.len()] {
        self.offsets.map(|offset| offset.map_or(0, |offset| base + offset))
    }
}

//! The fuzzer's bytes as a source of choices. Owns no meaning of them: each target draws what it needs.

/// Reads the fuzzer's bytes; at their end there are zeroes.
pub(super) struct Bytes<'data>(&'data [u8]);

impl<'data> Bytes<'data> {
    pub(super) fn new(bytes: &'data [u8]) -> Bytes<'data> {
        Bytes(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    pub(super) fn number(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }
}

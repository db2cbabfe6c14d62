//! The target `fuse` of `xtask/src/fuzz/`, driven by libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| xtask::fuzz::one("fuse", bytes));

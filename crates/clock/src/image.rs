//! The stand-in's first page: an ELF image as the dynamic linkers of C libraries and Go's runtime expect a vDSO to be.
//!
//! Its symbols have the version `LINUX_2.6`, are found by DT_HASH, and lie in a single loadable segment at address 0.
//! Sources: vdso(7); System V ABI, "Symbol Versioning" and "Hash Table"; elf(5).

use crate::code::{CODE_AT, Function, code, functions};
use crate::error::ClockError;
use crate::page::PAGE_BYTES;
use crate::real_vdso::RealVdso;

const IDENTIFICATION_BYTES: usize = 16;
const HEADER_BYTES: usize = 64;
const PROGRAM_HEADER_BYTES: usize = 56;
const NAME: &str = "linux-vdso.so.1";
/// In the unused bytes of the ELF identification: by this the library of `waits` knows a stand-in.
const MARKER: &[u8; IDENTIFICATION_BYTES - MARKER_AT] = include_bytes!("../waits/marker");
const MARKER_AT: usize = 9;
const VERSION: &str = "LINUX_2.6";

/// The System V hash of a name.
fn hash(name: &str) -> u32 {
    name.bytes().fold(0u32, |hash, byte| {
        let hash = (hash << 4).wrapping_add(u32::from(byte));
        let high = hash & 0xf000_0000;
        (hash ^ (high >> 24)) & !high
    })
}

/// Names one after the other, each ended by a zero.
struct Strings(Vec<u8>);

impl Strings {
    fn add(&mut self, name: &str) -> u32 {
        let at = self.0.len() as u32;
        self.0.extend(name.bytes());
        self.0.push(0);
        at
    }
}

fn words(bytes: &mut Vec<u8>, words: &[u32]) {
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

fn halves(bytes: &mut Vec<u8>, halves: &[u16]) {
    bytes.extend(halves.iter().flat_map(|half| half.to_le_bytes()));
}

fn longs(bytes: &mut Vec<u8>, longs: &[u64]) {
    bytes.extend(longs.iter().flat_map(|long| long.to_le_bytes()));
}

/// The first page of the stand-in, with the functions that the real one has as well.
pub(crate) fn image(real: &RealVdso) -> Result<Vec<u8>, ClockError> {
    let mut functions = functions().to_vec();
    functions.retain(|function| real.offset(function.needs).is_some());
    let mut strings = Strings(vec![0]);
    let name = strings.add(NAME);
    let version = strings.add(VERSION);
    let symbols = symbols(&functions, &mut strings);

    let mut page = vec![0; HEADER_BYTES + 2 * PROGRAM_HEADER_BYTES];
    let symbols_at = append(&mut page, &symbols);
    let hash_at = append(&mut page, &hash_table(functions.len()));
    let versions_at = append(&mut page, &symbol_versions(functions.len()));
    let definitions_at = append(&mut page, &version_definitions(name, version));
    let strings_at = append(&mut page, &strings.0);
    let mut dynamic = Vec::new();
    let entries: [(u64, u64); 10] = [
        (14, u64::from(name)),         // DT_SONAME
        (4, hash_at),                  // DT_HASH
        (5, strings_at),               // DT_STRTAB
        (6, symbols_at),               // DT_SYMTAB
        (10, strings.0.len() as u64),  // DT_STRSZ
        (11, 24),                      // DT_SYMENT
        (0x6fff_fff0, versions_at),    // DT_VERSYM
        (0x6fff_fffc, definitions_at), // DT_VERDEF
        (0x6fff_fffd, 2),              // DT_VERDEFNUM
        (0, 0),                        // DT_NULL
    ];
    entries.iter().for_each(|(tag, value)| longs(&mut dynamic, &[*tag, *value]));
    let dynamic_at = append(&mut page, &dynamic);
    if page.len() > CODE_AT {
        return Err(ClockError::NoRoom { part: "tables", bytes: page.len(), room: CODE_AT });
    }
    page.resize(CODE_AT, 0);
    page.extend(code());
    if page.len() > PAGE_BYTES {
        return Err(ClockError::NoRoom {
            part: "code",
            bytes: page.len() - CODE_AT,
            room: PAGE_BYTES - CODE_AT,
        });
    }
    page.resize(PAGE_BYTES, 0);
    let load =
        Segment { kind: 1, flags: 5, at: 0, bytes: PAGE_BYTES as u64, address: 0, align: PAGE_BYTES as u64 };
    let dynamic = Segment {
        kind: 2,
        flags: 4,
        at: dynamic_at,
        bytes: dynamic.len() as u64,
        address: dynamic_at,
        align: 8,
    };
    let headers = headers(ElfKind::Shared, 0, &[load, dynamic]);
    page[..headers.len()].copy_from_slice(&headers);
    page[MARKER_AT..IDENTIFICATION_BYTES].copy_from_slice(MARKER);
    Ok(page)
}

/// Puts a table at the next place divisible by 8; where.
fn append(page: &mut Vec<u8>, table: &[u8]) -> u64 {
    page.resize(page.len().next_multiple_of(8), 0);
    let at = page.len();
    page.extend(table);
    at as u64
}

fn symbols(functions: &[Function], strings: &mut Strings) -> Vec<u8> {
    let mut symbols = vec![0; 24];
    for function in functions {
        words(&mut symbols, &[strings.add(function.name)]);
        symbols.extend([0x12, 0]); // STB_GLOBAL, STT_FUNC; default visibility
        halves(&mut symbols, &[1]); // defined: in some section
        longs(&mut symbols, &[(CODE_AT + function.at) as u64, 0]);
    }
    symbols
}

/// One bucket, which leads to the last symbol, each of which leads to the one before it.
fn hash_table(functions: usize) -> Vec<u8> {
    let count = functions as u32;
    let mut table = Vec::new();
    words(&mut table, &[1, count + 1, count, 0]);
    words(&mut table, &(0..count).collect::<Vec<u32>>());
    table
}

fn symbol_versions(functions: usize) -> Vec<u8> {
    let mut versions = Vec::new();
    halves(&mut versions, &[0]);
    halves(&mut versions, &vec![2; functions]);
    versions
}

/// The image's own name as version 1, and the symbols' version 2.
fn version_definitions(name: u32, version: u32) -> Vec<u8> {
    let mut table = Vec::new();
    for (flags, index, text, at, next) in [(1, 1, NAME, name, 28), (0, 2, VERSION, version, 0)] {
        halves(&mut table, &[1, flags, index, 1]);
        words(&mut table, &[hash(text), 20, next]);
        words(&mut table, &[at, 0]);
    }
    table
}

/// What an ELF file is.
pub(crate) enum ElfKind {
    /// A program at a fixed address.
    Program,
    /// A shared object.
    Shared,
}

/// A segment of an ELF file.
pub(crate) struct Segment {
    pub(crate) kind: u32,
    pub(crate) flags: u32,
    pub(crate) at: u64,
    pub(crate) bytes: u64,
    pub(crate) address: u64,
    pub(crate) align: u64,
}

/// The headers of an ELF file for x86-64.
pub(crate) fn headers(kind: ElfKind, entry: u64, segments: &[Segment]) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(IDENTIFICATION_BYTES, 0);
    halves(&mut bytes, &[if matches!(kind, ElfKind::Program) { 2 } else { 3 }, 62]);
    words(&mut bytes, &[1]);
    longs(&mut bytes, &[entry, HEADER_BYTES as u64, 0]);
    words(&mut bytes, &[0]);
    halves(&mut bytes, &[HEADER_BYTES as u16, PROGRAM_HEADER_BYTES as u16, segments.len() as u16, 0, 0, 0]);
    for segment in segments {
        let Segment { kind, flags, at, bytes: length, address, align } = *segment;
        words(&mut bytes, &[kind, flags]);
        longs(&mut bytes, &[at, address, address, length, length, align]);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_one_that_linkers_compute() {
        // As in the sources of C libraries and of Go's runtime.
        assert_eq!(hash(VERSION), 0x03ae_75f6);
        assert_eq!(hash("__vdso_clock_gettime"), 0x0d35_ec75);
    }

    #[test]
    fn the_image_fits_its_page() {
        let real = RealVdso::of_this_machine().expect("a vDSO");
        assert_eq!(image(&real).expect("an image").len(), PAGE_BYTES);
    }
}

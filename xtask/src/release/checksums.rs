//! SHA-256 of every file of a folder, in the form that `sha256sum --check` reads.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context;
use sha2::{Digest as _, Sha256};

/// The file with the sums. Not in itself.
pub const FILE: &str = "SHA256SUMS";

/// A line for each file, in order of path.
pub fn of_folder(folder: &Path) -> anyhow::Result<String> {
    let mut sums = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(inner) = open.pop() {
        for entry in fs::read_dir(&inner).with_context(|| inner.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let content = fs::read(&path).with_context(|| path.display().to_string())?;
            let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
            let sum: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
            sums.insert(name, sum);
        }
    }
    sums.remove(FILE);
    Ok(sums.into_iter().map(|(name, sum)| format!("{sum}  {name}\n")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_that_sha256sum_reads_and_leave_out_their_own_file() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("man")).expect("a folder");
        fs::write(folder.path().join("man/a.1"), "abc").expect("a file");
        fs::write(folder.path().join(FILE), "of before").expect("a file");
        // The example of FIPS 180-4.
        let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(of_folder(folder.path()).expect("sums"), format!("{sum}  man/a.1\n"));
    }
}

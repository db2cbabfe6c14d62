//! Facts about the machine a run stands on, read outside the lab, and the ways from it into a lab that is kept.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Facts for the report: kernel, processor, cores, memory, user.
#[must_use]
pub fn facts() -> BTreeMap<String, String> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let mut facts = BTreeMap::new();
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.insert(name.to_owned(), value);
        }
    };
    put("kernel", Some(read("/proc/sys/kernel/osrelease").trim().to_owned()));
    put("cpu", after_colon(&read("/proc/cpuinfo"), "model name"));
    put("cores", std::thread::available_parallelism().ok().map(|cores| cores.to_string()));
    put("memory_bytes", memory_bytes(&read("/proc/meminfo")).map(|bytes| bytes.to_string()));
    let release = read("/etc/os-release");
    let distribution = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    put("distribution", distribution.map(|name| name.trim_matches('"').to_owned()));
    let root = nix::unistd::geteuid().is_root();
    put("user", Some(if root { "root" } else { "ordinary user" }.to_owned()));
    facts
}

fn after_colon(text: &str, key: &str) -> Option<String> {
    let line = text.lines().find(|line| line.split(':').next().is_some_and(|name| name.trim() == key))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn memory_bytes(meminfo: &str) -> Option<u64> {
    let kibibytes = after_colon(meminfo, "MemTotal")?;
    Some(kibibytes.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// For each node of the lab whose supervisor is the child `supervisor`, a command that opens a shell inside it.
/// `inits` are the nodes' inits by their process numbers in the lab; the machine knows them by others.
#[must_use]
pub fn ways_into(supervisor: u32, inits: &BTreeMap<String, u32>) -> BTreeMap<String, String> {
    let Ok(lab) = fs::metadata(format!("/proc/{supervisor}/ns/user")).map(|file| file.ino()) else {
        return BTreeMap::new();
    };
    let outer: BTreeMap<u32, u32> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| outer_and_lab_number(&entry.ok()?.path(), lab))
        .map(|(outer, inner)| (inner, outer))
        .collect();
    inits
        .iter()
        .filter_map(|(node, init)| {
            let pid = outer.get(init)?;
            let command = format!(
                "nsenter --target {pid} --user --preserve-credentials --mount --net --pid --uts --ipc sh"
            );
            Some((node.clone(), command))
        })
        .collect()
}

/// A node init's number here and in the lab, where the process is one of the lab's.
fn outer_and_lab_number(process: &Path, lab: u64) -> Option<(u32, u32)> {
    let of_lab = fs::metadata(process.join("ns/user")).ok()?.ino() == lab;
    let status = fs::read_to_string(process.join("status")).ok()?;
    let numbers = after_colon(&status, "NSpid")?;
    let numbers: Vec<u32> = numbers.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    // Number here, number in the lab, number in the node: an init is 1 there.
    match numbers[..] {
        [outer, inner, 1] if of_lab => Some((outer, inner)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_whatever_stands_around_it() {
        assert_eq!(
            after_colon("a : 1\nmodel name\t: Some CPU @ 2\n", "model name"),
            Some("Some CPU @ 2".to_owned())
        );
        assert_eq!(after_colon("NSpid:\t7\t3\t1\n", "NSpid"), Some("7\t3\t1".to_owned()));
        assert_eq!(memory_bytes("MemTotal:       16 kB\n"), Some(16_384));
        assert_eq!(memory_bytes("nothing"), None);
    }
}

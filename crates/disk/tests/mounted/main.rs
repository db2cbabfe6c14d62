//! Volumes as the kernel mounts them: what programs may rely on, and what a power-off does to them.
//!
//! Everything that touches a mount is a process of its own, this program started again: a process that serves a mount
//! must not use it. All mounts are in a mount namespace of this program's and go with it.

mod content;
mod contract;
mod power;
mod test_mount;

use contract::Check;
use libtest_mimic::{Arguments, Trial};

/// All that programs may rely on.
fn checks() -> impl Iterator<Item = &'static Check> {
    contract::CHECKS.iter().chain(content::CHECKS)
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if let [_, first, name, folder] = words.as_slice()
        && first == test_mount::INSIDE
    {
        inside(name, folder.as_ref());
        return;
    }
    let mut trials = Vec::new();
    match test_mount::enter() {
        Ok(()) => {
            for (name, _) in checks() {
                trials.push(Trial::test(format!("on a plain folder {name}"), || contract::on_folder(name)));
                trials.push(Trial::test(format!("on a volume {name}"), || contract::on_volume(name)));
            }
            for (name, test) in power::TESTS {
                trials.push(Trial::test(*name, test));
            }
        }
        Err(why) => {
            for name in checks().map(|(name, _)| name).chain(power::TESTS.iter().map(|(name, _)| name)) {
                eprintln!("skipped: {name}: {why}");
            }
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn inside(name: &str, folder: &std::path::Path) {
    let Some((_, check)) = checks().chain(power::PARTS).find(|(known, _)| *known == name) else {
        panic!("no check is named `{name}`");
    };
    check(folder);
}

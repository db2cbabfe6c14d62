//! The processes of a node as its init sees them in `/proc`, and who descends from whom.
//!
//! Owns the scan. What it is looked through for, and how often, is others' business; the lab's own look from outside is
//! `process_table`.

use std::collections::BTreeMap;
use std::fs;

/// The number of a node's init.
pub(crate) const INIT: i32 = 1;

/// What `/proc/PID/stat` tells (proc_pid_stat(5)).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) program: String,
    pub(crate) is_stopped: bool,
    pub(crate) is_zombie: bool,
    pub(crate) parent: i32,
}

impl Stat {
    fn of(pid: i32) -> Option<Stat> {
        Stat::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// `12 (name) T 1 ...`. A name may hold spaces and brackets.
    fn parse(line: &str) -> Option<Stat> {
        let (before, after) = line.rsplit_once(") ")?;
        let (_, program) = before.split_once(" (")?;
        let mut fields = after.split(' ');
        let state = fields.next()?;
        let (is_stopped, is_zombie) = (state == "T", matches!(state, "Z" | "X"));
        Some(Stat {
            program: program.to_owned(),
            is_stopped,
            is_zombie,
            parent: fields.next()?.parse().ok()?,
        })
    }
}

/// All processes of the node by their numbers.
pub(crate) fn all_processes() -> BTreeMap<i32, Stat> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeMap::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    // A process that has ended meanwhile is none of them.
    pids.filter_map(|pid| Some((pid, Stat::of(pid)?))).collect()
}

/// A process, its parent and so on, as far as they are known. Numbers that were used again while they were read may form a
/// ring, which is left in time.
pub(crate) fn ancestors(all: &BTreeMap<i32, Stat>, pid: i32) -> impl Iterator<Item = i32> {
    std::iter::successors(Some(pid), move |pid| all.get(pid).map(|stat| stat.parent)).take(all.len() + 2)
}

/// Whether a process descends from one that came into the node from outside, whose parent the node does not see: a person's
/// shell, who may stop their own programs as they like. An orphan comes to the init, so one whose parent has just ended was no
/// visitor's.
pub(crate) fn is_of_a_visitor(all: &BTreeMap<i32, Stat>, pid: i32) -> bool {
    ancestors(all, pid).find(|ancestor| matches!(*ancestor, 0 | INIT)) == Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_hide_the_state() {
        let stopped = Stat { program: "a) S (b".to_owned(), is_stopped: true, is_zombie: false, parent: 1 };
        assert_eq!(Stat::parse("7 (a) S (b) T 1 7 7 0"), Some(stopped));
        assert_eq!(Stat::parse("7 (T) S 1 7 7 0").map(|stat| stat.is_stopped), Some(false));
        assert_eq!(Stat::parse("nonsense"), None);
    }

    #[test]
    fn a_visitors_programs_are_told_from_orphans_and_from_those_whose_parent_is_gone() {
        let stat =
            |parent: i32| Stat { program: "x".to_owned(), is_stopped: false, is_zombie: false, parent };
        let all = BTreeMap::from([
            (INIT, stat(0)),
            (5, stat(INIT)),
            (6, stat(0)),
            (7, stat(6)),
            (8, stat(99)),
            (10, stat(11)),
            (11, stat(10)),
        ]);
        let visitors: Vec<i32> = all.keys().copied().filter(|pid| is_of_a_visitor(&all, *pid)).collect();
        assert_eq!(visitors, [6, 7], "8 has lost its parent, 10 and 11 are a ring of numbers used again");
    }
}

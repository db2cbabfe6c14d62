//! Nodes whose processes are root of the lab, as what starts containers must be.

use std::collections::BTreeMap;
use std::fs;

use lab::NodeGroups;
use lab::protocol::WholeMachine;

use crate::test_lab::{TestLab, shell};

/// A setting of the whole machine, and another value than it ever has.
const SETTING: (&str, &str) = ("kernel/panic", "77");

/// What such a node is made of, for its next boot.
fn machine(test_lab: &TestLab, groups: &NodeGroups) -> WholeMachine {
    let disk = test_lab.folder.join("disk");
    fs::create_dir_all(&disk).expect("a folder");
    let own_settings = BTreeMap::from([(SETTING.0.to_owned(), SETTING.1.to_owned())]);
    WholeMachine { disk, hierarchies: groups.make_for("n1").expect("groups"), own_settings }
}

pub fn a_whole_machine_changes_what_is_its_own(test_lab: &TestLab) {
    let test = "a_node_that_is_a_whole_machine_changes_what_is_its_own_and_nothing_else";
    if !test_lab.users_mapped {
        return eprintln!("skipped: {test}: only in a lab made by root");
    }
    let groups = match NodeGroups::make(&format!("test-whole-machine-{}", std::process::id())) {
        Ok(groups) => groups,
        Err(error) => return eprintln!("skipped: {test}: {error}"),
    };
    let setting = format!("/proc/sys/{}", SETTING.0);
    let of_the_machine = fs::read_to_string(&setting).expect("a setting");

    let (node, _port) = test_lab.boot_whole("n1", 1, machine(test_lab, &groups));
    assert_eq!(shell(&node, "id -u").trim(), "0");
    assert_eq!(shell(&node, &format!("cat {setting}")).trim(), SETTING.1);
    assert_eq!(shell(&node, &format!("echo 78 > {setting}; cat {setting}")).trim(), "78");
    assert_eq!(fs::read_to_string(&setting).expect("a setting"), of_the_machine);
    let forward = "/proc/sys/net/ipv4/ip_forward";
    assert_eq!(shell(&node, &format!("echo 1 > {forward}; cat {forward}")).trim(), "1");
    let others = [
        "/proc/sys/kernel/panic_on_oops",
        "/proc/sysrq-trigger",
        "/sys/kernel/uevent_seqnum",
        "/etc/mark",
        "/usr/mark",
    ];
    for other in others {
        let refused = format!("(echo 1 > {other}) 2>/dev/null && echo written || echo refused");
        assert_eq!(shell(&node, &refused).trim(), "refused", "{other}");
    }
    let in_groups =
        "for file in $(find /sys/fs/cgroup -name cgroup.procs); do cat $file; done | sort -u | head -1";
    assert_eq!(shell(&node, in_groups).trim(), "1", "the node's own group is all that it sees");
    let make = "cd /sys/fs/cgroup; for folder in . */; do mkdir -p $folder/left/below 2>/dev/null; done; \
                find . -type d -name below | head -1 | wc -l; echo kept > /var/lib/kept";
    assert_eq!(shell(&node, make).trim(), "1");
    node.power_off();

    let (node, _port) = test_lab.boot_whole("n1", 1, machine(test_lab, &groups));
    assert_eq!(shell(&node, "find /sys/fs/cgroup -type d -name below | wc -l").trim(), "0");
    assert_eq!(shell(&node, "cat /var/lib/kept").trim(), "kept");
}

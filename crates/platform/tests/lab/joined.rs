//! Two places joined to each other, by the fabric, by the kernel's own path beside it or by a plain veth pair, each with an
//! address of either version of the internet protocol: what the contract is held against.

use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;

use fabric::Rule;
use lab::{Addresses, Attachment, Family, RoutingNamespace, attachment};

use crate::test_lab::{PastTheFabric, TestLab, addresses};

/// What joins them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The kernel, with nothing between.
    Veth,
    Fabric,
    /// The kernel's own path, the fabric having nothing to do with it.
    KernelPath,
}

/// All of them.
pub const ALL: [By; 3] = [By::Veth, By::Fabric, By::KernelPath];

impl By {
    /// Its name in the names of tests.
    pub fn name(self) -> &'static str {
        match self {
            By::Veth => "veth",
            By::Fabric => "fabric",
            By::KernelPath => "kernel_path",
        }
    }
}

/// One of the two places.
pub struct End {
    attachment: Attachment,
    /// Its addresses: IPv4, then IPv6.
    pub addresses: [IpAddr; 2],
    /// An address nobody has.
    pub nobody: [IpAddr; 2],
}

impl End {
    pub fn namespace(&self) -> &OwnedFd {
        &self.attachment.namespace
    }

    /// Does `work` on a thread inside it.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        attachment::on_own_thread(|| {
            attachment::enter(self.namespace()).expect("enter the place");
            work()
        })
        .expect("a thread")
    }
}

/// Two places; clients are at the first, servers at the second.
pub fn joined(test_lab: &TestLab, by: By) -> [End; 2] {
    let ends = [1, 2].map(|number| (number, Attachment::make(addresses(number)).expect("an attachment")));
    match by {
        By::Veth => {
            let there = format!("/proc/{}/fd/{}", std::process::id(), ends[1].1.namespace.as_raw_fd());
            attachment::on_own_thread(|| {
                attachment::enter(&ends[0].1.namespace).expect("enter the place");
                ip(&format!("link add veth0 type veth peer name veth0 netns {there}"));
            })
            .expect("a thread");
            ends.map(|(number, attachment)| {
                let end = End { attachment, addresses: on_veth(number), nobody: on_veth(NOBODY) };
                end.inside(|| {
                    ip(&format!("address add {}/24 dev veth0", end.addresses[0]));
                    ip(&format!("address add {}/64 dev veth0 nodad", end.addresses[1]));
                    ip("link set veth0 up");
                });
                end
            })
        }
        By::Fabric => ends.map(|(number, attachment)| on_fabric(test_lab, number, attachment, None)),
        By::KernelPath => {
            let routing = RoutingNamespace::make().expect("a routing namespace");
            ends.map(|(number, attachment)| on_fabric(test_lab, number, attachment, Some(&routing)))
        }
    }
}

/// A place on the fabric, with a way past it where there is a routing namespace.
fn on_fabric(test_lab: &TestLab, number: u8, attachment: Attachment, past: Option<&RoutingNamespace>) -> End {
    let tun = attachment.tun.try_clone().expect("a second descriptor");
    let in_order = |addresses: Addresses| [Family::V4, Family::V6].map(|family| addresses.in_family(family));
    let of_it = in_order(attachment.addresses);
    let place = vec![format!("h{number}")];
    let joined = match past {
        None => test_lab.fabric.attach(place, of_it.to_vec(), tun),
        Some(routing) => {
            let end = routing.join(&attachment.namespace, attachment.addresses);
            let end = end.expect("the kernel's own path");
            test_lab.fabric.attach_with_bypass(place, of_it.to_vec(), tun, Box::new(PastTheFabric(end)))
        }
    };
    joined.expect("a port");
    End { attachment, addresses: of_it, nobody: in_order(addresses(NOBODY)) }
}

/// The number of the place that is not there.
const NOBODY: u8 = 99;

/// Addresses in networks that the lab's own interface is not in.
fn on_veth(number: u8) -> [IpAddr; 2] {
    let ipv6 = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, number.into());
    [IpAddr::from([192, 168, 7, number]), ipv6.into()]
}

fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output().expect("ip");
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Whether places can be joined here; why not.
pub fn obstacle() -> Option<String> {
    if !lab::has_ipv6() {
        return Some("the kernel knows no IPv6".to_owned());
    }
    let found = Command::new("ip").arg("-V").output();
    found.err().map(|error| format!("ip, of the package iproute2: {error}"))
}

/// A rule for what goes from clients to servers.
pub fn outward(rule: Rule) -> Rule {
    Rule { from: vec!["h1".to_owned()], to: vec!["h2".to_owned()], ..rule }
}

//! The command files that are part of Holdfast.

use std::sync::LazyLock;

use crate::command_file::CommandFile;
use crate::read::read;

const FILES: &[(&str, &str)] = &[
    (
        "faults/external/aws-ec2-power-off.yaml",
        include_str!("../../../faults/external/aws-ec2-power-off.yaml"),
    ),
    (
        "faults/external/azure-vm-power-off.yaml",
        include_str!("../../../faults/external/azure-vm-power-off.yaml"),
    ),
    ("faults/external/gcloud-vm-stop.yaml", include_str!("../../../faults/external/gcloud-vm-stop.yaml")),
    (
        "faults/external/kubernetes-chaos-partition.yaml",
        include_str!("../../../faults/external/kubernetes-chaos-partition.yaml"),
    ),
    (
        "faults/external/kubernetes-chaos-pod-kill.yaml",
        include_str!("../../../faults/external/kubernetes-chaos-pod-kill.yaml"),
    ),
    (
        "faults/external/kubernetes-container-kill.yaml",
        include_str!("../../../faults/external/kubernetes-container-kill.yaml"),
    ),
    ("faults/external/kubernetes-evict.yaml", include_str!("../../../faults/external/kubernetes-evict.yaml")),
    (
        "faults/external/kubernetes-network-policy.yaml",
        include_str!("../../../faults/external/kubernetes-network-policy.yaml"),
    ),
    (
        "faults/external/kubernetes-out-of-service.yaml",
        include_str!("../../../faults/external/kubernetes-out-of-service.yaml"),
    ),
    (
        "faults/external/kubernetes-pod-delete.yaml",
        include_str!("../../../faults/external/kubernetes-pod-delete.yaml"),
    ),
    (
        "faults/external/libvirt-power-off.yaml",
        include_str!("../../../faults/external/libvirt-power-off.yaml"),
    ),
    ("faults/external/netem.yaml", include_str!("../../../faults/external/netem.yaml")),
    (
        "faults/external/nftables-partition.yaml",
        include_str!("../../../faults/external/nftables-partition.yaml"),
    ),
    (
        "faults/external/nftables-partition-in.yaml",
        include_str!("../../../faults/external/nftables-partition-in.yaml"),
    ),
    (
        "faults/external/nftables-partition-out.yaml",
        include_str!("../../../faults/external/nftables-partition-out.yaml"),
    ),
    ("faults/external/pid-file-kill.yaml", include_str!("../../../faults/external/pid-file-kill.yaml")),
    ("faults/external/pid-file-stop.yaml", include_str!("../../../faults/external/pid-file-stop.yaml")),
    ("faults/external/systemd-kill.yaml", include_str!("../../../faults/external/systemd-kill.yaml")),
    ("faults/external/systemd-stop.yaml", include_str!("../../../faults/external/systemd-stop.yaml")),
    (
        "faults/external/vsphere-power-off.yaml",
        include_str!("../../../faults/external/vsphere-power-off.yaml"),
    ),
];

/// A file that is shipped is sound, or the program does not start; a test reads each.
static SHIPPED: LazyLock<Vec<CommandFile>> = LazyLock::new(|| {
    let read = |(name, text): &(&str, &str)| {
        read(name, text).unwrap_or_else(|rejection| panic!("{name}: {:?}", rejection.problems()))
    };
    FILES.iter().map(read).collect()
});

/// All of them, by name.
#[must_use]
pub fn shipped() -> &'static [CommandFile] {
    &SHIPPED
}

/// The one of that name.
#[must_use]
pub fn named(name: &str) -> Option<&'static CommandFile> {
    shipped().iter().find(|file| file.name == name)
}

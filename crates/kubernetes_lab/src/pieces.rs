//! What a cluster is made of: each program, where it comes from, and where it lies in what is installed. Versions stand here and
//! nowhere else.
//!
//! Owns no download and no build.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The version of Kubernetes. 1.35 is the last minor version that works with the containerd of Debian 12.
pub const KUBERNETES: &str = "1.35.4";
/// Its Go module.
pub const MODULE: &str = "k8s.io/kubernetes";
/// The least version of Go that builds it.
pub const GO: (u32, u32) = (1, 25);
/// The address of the image of a pod's first container, which holds the pod's namespaces and sleeps.
pub const PAUSE_IMAGE: &str = "docker.io/lab/pause:1";
/// The address of the image that pods run in, with the machine's programs mounted into it.
pub const SHELL_IMAGE: &str = "docker.io/lab/shell:1";

/// Folder of what was built from the Go module.
const BUILT: &str = "kubernetes";
/// Folder of what was unpacked from Debian's packages.
pub(crate) const UNPACKED: &str = "debian";
/// The images, in one archive.
pub(crate) const IMAGES: &str = "images.tar";

/// Where a program comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A command of the Go module.
    GoModule,
    /// A package of Debian; which of its versions is installed, the machine's archive says.
    Debian {
        package: &'static str,
        /// The program's path in it.
        path: &'static str,
        /// The version that was tried.
        tried: &'static str,
    },
}

/// A program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    pub name: &'static str,
    /// Where it comes from.
    pub source: Source,
}

const fn built(name: &'static str) -> Piece {
    Piece { name, source: Source::GoModule }
}

const fn unpacked(
    name: &'static str,
    package: &'static str,
    path: &'static str,
    tried: &'static str,
) -> Piece {
    Piece { name, source: Source::Debian { package, path, tried } }
}

/// Answers all others, and keeps what they say in the store.
pub const API_SERVER: Piece = built("kube-apiserver");
/// Makes pods of StatefulSets, takes nodes for lost, binds volumes.
pub const CONTROLLERS: Piece = built("kube-controller-manager");
/// Gives each pod a node.
pub const SCHEDULER: Piece = built("kube-scheduler");
/// Runs the pods of a node.
pub const NODE_AGENT: Piece = built("kubelet");
/// Leads addresses of services to pods.
pub const NODE_PROXY: Piece = built("kube-proxy");
/// Asks the cluster.
pub const CLIENT: Piece = built("kubectl");
/// The store of the control plane.
pub const STORE: Piece = unpacked("etcd", "etcd-server", "usr/bin/etcd", "3.4.23");
/// Runs containers.
pub const RUNTIME: Piece = unpacked("containerd", "containerd", "usr/bin/containerd", "1.6.20");
/// Stands between it and each pod.
pub const RUNTIME_SHIM: Piece =
    unpacked("containerd-shim-runc-v2", "containerd", "usr/bin/containerd-shim-runc-v2", "1.6.20");
/// Asks it.
pub const RUNTIME_CLIENT: Piece = unpacked("ctr", "containerd", "usr/bin/ctr", "1.6.20");
/// Makes one container.
pub const CONTAINER_MAKER: Piece = unpacked("runc", "runc", "usr/sbin/runc", "1.1.5");
/// Joins pods to a bridge.
pub const BRIDGE: Piece = unpacked("bridge", "containernetworking-plugins", "usr/lib/cni/bridge", "1.1.1");
/// Gives them addresses.
pub const ADDRESSES: Piece =
    unpacked("host-local", "containernetworking-plugins", "usr/lib/cni/host-local", "1.1.1");
/// Brings their loopback up.
pub const LOOPBACK: Piece =
    unpacked("loopback", "containernetworking-plugins", "usr/lib/cni/loopback", "1.1.1");
/// Sets the rules that lead to services.
pub const PACKET_RULES: Piece = unpacked("nft", "nftables", "usr/sbin/nft", "1.0.6");
/// What images are made of.
pub const SHELL: Piece = unpacked("busybox", "busybox-static", "bin/busybox", "1.35.0");

/// All of them.
pub const ALL: &[Piece] = &[
    API_SERVER,
    CONTROLLERS,
    SCHEDULER,
    NODE_AGENT,
    NODE_PROXY,
    CLIENT,
    STORE,
    RUNTIME,
    RUNTIME_SHIM,
    RUNTIME_CLIENT,
    CONTAINER_MAKER,
    BRIDGE,
    ADDRESSES,
    LOOPBACK,
    PACKET_RULES,
    SHELL,
];

/// The Debian packages, each once.
#[must_use]
pub fn packages() -> Vec<&'static str> {
    let mut packages: Vec<&'static str> = ALL
        .iter()
        .filter_map(|piece| match piece.source {
            Source::Debian { package, .. } => Some(package),
            Source::GoModule => None,
        })
        .collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

/// What is built from the Go module.
pub fn commands() -> impl Iterator<Item = &'static str> {
    ALL.iter().filter(|piece| piece.source == Source::GoModule).map(|piece| piece.name)
}

/// All programs, below one folder: as installed, or as nodes see that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    root: PathBuf,
}

impl Programs {
    /// Those in this folder.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Programs {
        Programs { root: root.into() }
    }

    /// The folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where a program lies.
    #[must_use]
    pub fn of(&self, piece: &Piece) -> PathBuf {
        match piece.source {
            Source::GoModule => self.built().join(piece.name),
            Source::Debian { path, .. } => self.root.join(UNPACKED).join(path),
        }
    }

    /// The folder of those built from the Go module.
    #[must_use]
    pub fn built(&self) -> PathBuf {
        self.root.join(BUILT)
    }

    /// The folder of those that join pods to the network.
    #[must_use]
    pub fn network_plugins(&self) -> PathBuf {
        self.root.join(UNPACKED).join("usr/lib/cni")
    }

    /// The archive of images.
    #[must_use]
    pub fn images(&self) -> PathBuf {
        self.root.join(IMAGES)
    }

    /// The environment of every program: each finds the others by name, before the machine's own.
    #[must_use]
    pub fn environment(&self) -> BTreeMap<String, String> {
        let unpacked = self.root.join(UNPACKED);
        let own = [self.built(), unpacked.join("usr/bin"), unpacked.join("usr/sbin"), unpacked.join("bin")];
        let mut folders: Vec<String> = own.iter().map(|folder| folder.display().to_string()).collect();
        folders.extend(["/usr/sbin", "/usr/bin", "/sbin", "/bin"].map(str::to_owned));
        let libraries = unpacked.join(format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH));
        BTreeMap::from([
            ("PATH".to_owned(), folders.join(":")),
            ("LD_LIBRARY_PATH".to_owned(), libraries.display().to_string()),
            ("HOME".to_owned(), "/tmp".to_owned()),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_piece_has_a_name_and_a_place_of_its_own() {
        let programs = Programs::at("/p");
        let mut names: Vec<&str> = ALL.iter().map(|piece| piece.name).collect();
        let mut places: Vec<PathBuf> = ALL.iter().map(|piece| programs.of(piece)).collect();
        names.sort_unstable();
        names.dedup();
        places.sort_unstable();
        places.dedup();
        assert_eq!((names.len(), places.len()), (ALL.len(), ALL.len()));
        assert!(places.iter().all(|place| place.starts_with("/p")));
    }

    #[test]
    fn each_package_is_fetched_once_and_each_command_built() {
        let expected = [
            "busybox-static",
            "containerd",
            "containernetworking-plugins",
            "etcd-server",
            "nftables",
            "runc",
        ];
        assert_eq!(packages(), expected);
        assert_eq!(commands().count(), 6);
    }

    #[test]
    fn what_was_installed_is_found_before_what_the_machine_has() {
        let path = Programs::at("/p").environment().remove("PATH").expect("a path");
        assert_eq!(
            path,
            "/p/kubernetes:/p/debian/usr/bin:/p/debian/usr/sbin:/p/debian/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        );
    }

    #[test]
    fn plugins_lie_where_they_are_looked_for() {
        let programs = Programs::at("/p");
        for plugin in [BRIDGE, ADDRESSES, LOOPBACK] {
            assert_eq!(programs.of(&plugin), programs.network_plugins().join(plugin.name));
        }
    }
}

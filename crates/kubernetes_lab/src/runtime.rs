//! The settings of containerd 1.6, which runs the containers of a node.
//!
//! Owns its file, in the language that it reads (TOML), of which four kinds of values are used.

use std::fmt::Write as _;
use std::path::Path;

use crate::file_names::on_worker;
use crate::pieces::{PAUSE_IMAGE, Programs};

/// Where it is spoken to.
pub const SOCKET: &str = "/run/containerd/containerd.sock";
/// Plugins that ask the machine for what it may not have, and that nobody uses here.
const LEFT_OUT: &[&str] = &[
    "io.containerd.snapshotter.v1.aufs",
    "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper",
    "io.containerd.snapshotter.v1.zfs",
    "io.containerd.internal.v1.opt",
    "io.containerd.internal.v1.tracing",
    "io.containerd.tracing.processor.v1.otlp",
];

/// How the files of an image become those of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Snapshots {
    /// They are copied: works on every file system. The images of a lab are small.
    #[default]
    Copied,
    /// A layer over them. In a user namespace it needs Linux 5.11.
    Overlay,
}

impl Snapshots {
    /// What containerd calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Snapshots::Copied => "native",
            Snapshots::Overlay => "overlayfs",
        }
    }
}

/// A part of the file: its name, empty for what comes first, and its keys with their values.
type Table<'a> = (String, Vec<(&'a str, Value)>);

/// A value of the file.
enum Value {
    Text(String),
    Flag(bool),
    Number(i64),
    List(&'static [&'static str]),
}

/// The file of a node with these programs, and with the plugins' file in `volume`.
#[must_use]
pub fn settings(programs: &Programs, volume: &Path, snapshots: Snapshots) -> String {
    let text = |text: &str| Value::Text(text.to_owned());
    let (plugins, network) = (programs.network_plugins(), volume.join(on_worker::NETWORK));
    let requests = r#"plugins."io.containerd.grpc.v1.cri""#;
    let tables: Vec<Table<'_>> = vec![
        (
            String::new(),
            vec![
                ("version", Value::Number(2)),
                ("root", text("/var/lib/containerd")),
                ("state", text("/run/containerd")),
                ("oom_score", Value::Number(0)),
                ("disabled_plugins", Value::List(LEFT_OUT)),
            ],
        ),
        ("grpc".to_owned(), vec![("address", text(SOCKET))]),
        (
            requests.to_owned(),
            vec![
                ("sandbox_image", text(PAUSE_IMAGE)),
                // Lower values than one's own are for the root of the whole machine.
                ("restrict_oom_score_adj", Value::Flag(true)),
                ("disable_apparmor", Value::Flag(true)),
                ("disable_hugetlb_controller", Value::Flag(true)),
                ("tolerate_missing_hugetlb_controller", Value::Flag(true)),
            ],
        ),
        (format!("{requests}.containerd"), vec![("snapshotter", text(snapshots.name()))]),
        (
            format!("{requests}.containerd.runtimes.runc"),
            vec![("runtime_type", text("io.containerd.runc.v2"))],
        ),
        (format!("{requests}.containerd.runtimes.runc.options"), vec![("SystemdCgroup", Value::Flag(false))]),
        (
            format!("{requests}.cni"),
            vec![
                ("bin_dir", Value::Text(plugins.display().to_string())),
                ("conf_dir", Value::Text(network.display().to_string())),
            ],
        ),
    ];
    rendered(&tables)
}

fn rendered(tables: &[Table<'_>]) -> String {
    let mut file = String::new();
    for (name, values) in tables {
        if !name.is_empty() {
            let _ = writeln!(file, "\n[{name}]");
        }
        for (key, value) in values {
            let _ = match value {
                Value::Text(text) => writeln!(file, "{key} = {}", quoted(text)),
                Value::Flag(flag) => writeln!(file, "{key} = {flag}"),
                Value::Number(number) => writeln!(file, "{key} = {number}"),
                Value::List(list) => {
                    let items: Vec<String> = list.iter().map(|item| quoted(item)).collect();
                    writeln!(file, "{key} = [{}]", items.join(", "))
                }
            };
        }
    }
    file
}

/// A text between quotes, in which TOML knows the same escapes as JSON does.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPECTED: &str = r#"version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.opt", "io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp"]

[grpc]
address = "/run/containerd/containerd.sock"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "docker.io/lab/pause:1"
restrict_oom_score_adj = true
disable_apparmor = true
disable_hugetlb_controller = true
tolerate_missing_hugetlb_controller = true

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/p/debian/usr/lib/cni"
conf_dir = "/v/network"
"#;

    #[test]
    fn the_file_asks_for_nothing_that_only_the_machines_root_may_do() {
        assert_eq!(settings(&Programs::at("/p"), Path::new("/v"), Snapshots::Copied), EXPECTED);
    }

    #[test]
    fn a_text_with_a_quote_stays_one_text() {
        assert_eq!(quoted(r#"/a "b"\c"#), r#""/a \"b\"\\c""#);
    }
}

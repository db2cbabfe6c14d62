//! A database out of an image, without a container engine: etcd in what `docker save` writes, through the loss of its leader's
//! host. The image is made here, of this machine's etcd and its libraries; the program has another name in it, so that nothing
//! but the image can have it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::engines::{NOTHING_LOST, check, ended_on, leader_off_briefly};
use crate::holdfast::Desk;
use crate::turns::beside_others;

/// The program's name in the image.
const PROGRAM: &str = "etcd-of-an-image";
const ENGINE: &str = include_str!("../../../../engines/etcd.yaml");
const SCENARIO: &str = include_str!("../../../../scenarios/etcd.yaml");

/// What a shell command prints.
fn shell(folder: &Path, command: &str) -> String {
    let output = Command::new("sh").args(["-ec", command]).current_dir(folder).output().expect("a shell");
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

/// Writes `image.tar` into the folder: one layer, with the program and the libraries that its loader names.
fn save_image(folder: &Path, program: &Path) {
    let libraries =
        "ldd \"$1\" 2>/dev/null | grep -o '/[^ ]*' || true".replace("$1", &program.display().to_string());
    let mut copies = format!("mkdir -p root/usr/bin; cp '{}' root/usr/bin/{PROGRAM}\n", program.display());
    for library in shell(folder, &libraries).lines() {
        copies.push_str(&format!("mkdir -p \"root$(dirname {library})\"; cp -L {library} root{library}\n"));
    }
    copies.push_str("chmod -R a+rX root; tar -C root --owner=0 --group=0 -cf layer.tar .; sha256sum layer.tar | cut -c1-64");
    let checksum = shell(folder, &copies);
    let architecture = if cfg!(target_arch = "x86_64") { "amd64" } else { "arm64" };
    let config = format!(
        "{{\"architecture\":\"{architecture}\",\"os\":\"linux\",\"config\":{{\"Env\":[\"PATH=/usr/bin\"]}},\
         \"rootfs\":{{\"type\":\"layers\",\"diff_ids\":[\"sha256:{checksum}\"]}}}}"
    );
    let manifest = r#"[{"Config":"config.json","RepoTags":["etcd:saved"],"Layers":["layer.tar"]}]"#;
    fs::write(folder.join("config.json"), config).expect("written");
    fs::write(folder.join("manifest.json"), manifest).expect("written");
    shell(folder, "tar -cf image.tar manifest.json config.json layer.tar");
}

/// The shipped engine file with the program of the image as its own, found nowhere else.
fn engine_file() -> String {
    let (before, rest) = ENGINE.split_once("install:\n").expect("how it is installed");
    let (_, after) = rest.split_once("\nports:").expect("its ports");
    let text = format!("{before}install: [{{ image: ./image.tar }}]\nports:{after}");
    let named =
        text.replacen("engine: etcd\n", "engine: imaged\n", 1).replace("[etcd]", &format!("[{PROGRAM}]"));
    named
        .replace("[etcd, --version]", &format!("[{PROGRAM}, --version]"))
        .replace("      - etcd\n", &format!("      - {PROGRAM}\n"))
}

#[test]
fn a_database_out_of_an_image_keeps_what_it_acknowledged_when_its_leaders_host_dies() {
    let test = "a_database_out_of_an_image_keeps_what_it_acknowledged";
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab(test) else { return };
    let etcd = engine::registry::named("etcd").expect("an engine that ships");
    let Ok(installation) = etcd.find(None).or_else(|_| etcd.install(&mut |_| ())) else {
        eprintln!("skipped: {test}: no etcd is here, and none can be fetched");
        return;
    };
    // Beside the desk, on which nothing is left; readable by the nodes' user.
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
    let desk = desk.installing_into(folder.path().join("cache"));
    save_image(folder.path(), &installation.bin.join("etcd"));
    fs::write(folder.path().join("imaged.yaml"), engine_file()).expect("written");
    let scenario = SCENARIO.replace("engine: etcd", "engine: ./imaged.yaml");
    fs::write(folder.path().join("scenario.yaml"), scenario).expect("written");
    let path = folder.path().join("scenario.yaml").display().to_string();
    let brief = leader_off_briefly(6, 3);
    let Some(result) = ended_on(&desk, test, &[], 0, &[&path, "--set", &brief, "--set", NOTHING_LOST]) else {
        return;
    };
    assert!(check(&result, "ledger")["acknowledged"].as_u64() > Some(100), "{result:#}");
    for name in ["ledger", "register", "list-append"] {
        assert_eq!(check(&result, name)["verdict"], "pass", "{result:#}");
    }
    let image = result["facts"]["engine_settings"]["image"].as_str().unwrap_or_default();
    assert!(image.contains("image.tar"), "{result:#}");
}

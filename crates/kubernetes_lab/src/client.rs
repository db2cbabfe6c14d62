//! The cluster's own kubectl, outside of its nodes: its login and its caches are in a folder that goes with the lab, not in that of
//! whoever started it.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use kubernetes::Kubectl;

use crate::pieces::{CLIENT, Programs};

/// The file of its login in that folder.
pub const LOGIN: &str = "administrator.kubeconfig";

/// Makes it, with a login. `programs` is where they lie outside of nodes.
///
/// # Errors
/// When the folder cannot be written to.
pub fn kubectl_in(folder: &Path, programs: &Programs, login: &str, namespace: &str) -> io::Result<Kubectl> {
    let (kubeconfig, program) = (folder.join(LOGIN), folder.join("kubectl"));
    fs::write(&kubeconfig, login)?;
    fs::set_permissions(&kubeconfig, Permissions::from_mode(0o600))?;
    let (real, cache) = (programs.of(&CLIENT), folder.join("cache"));
    let script = format!("#!/bin/sh\nexec '{}' --cache-dir='{}' \"$@\"\n", real.display(), cache.display());
    fs::write(&program, script)?;
    fs::set_permissions(&program, Permissions::from_mode(0o700))?;
    Ok(Kubectl { program, kubeconfig: Some(kubeconfig), context: None, namespace: namespace.to_owned() })
}

//! Ways to a pod's port: kept open on one port of this machine while kubectl comes and goes, and closed with their guard.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use kubernetes::{Forward, ForwardError, Kubectl, KubectlError};

use crate::stub::{Stub, is_alive, stub, wait_until};

/// Longer than a busy machine takes; nothing waits for so long where all is well.
const WITHIN: Duration = Duration::from_secs(60);

/// Says that it listens, as kubectl does, and goes on. Its number is there as a whole or not at all.
const LISTENS: &str = "echo \"$*\" >> $folder/asked\necho $$ > $folder/new\nmv $folder/new $folder/number\n\
                       echo 'Unable to use a TTY' >&2\nport=${3%%:*}\nprintf 'Forwarding from 127.0.0.1:%s' \"${port:-40123}\"\n\
                       printf ' -> %s\\n' \"${3##*:}\"\nexec sleep 1000\n";

fn asked(stub: &Stub) -> Vec<String> {
    stub.read("asked").lines().map(str::to_owned).collect()
}

/// Another kubectl than this one, once there is one.
fn successor(stub: &Stub, before: i32) -> i32 {
    wait_until("another kubectl", || stub.number("number") != before);
    stub.number("number")
}

#[test]
fn a_way_is_kept_on_one_port_when_kubectl_ends() {
    let stub = stub(LISTENS);
    let forward = Forward::open(&stub.kubectl, "pg-0", 5432, WITHIN).expect("a way");
    let (address, first) = (forward.address(), stub.number("number"));
    assert!(address.ip().is_loopback());
    let killed = Command::new("kill").args(["-KILL", &first.to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    successor(&stub, first);
    assert_eq!((forward.address(), forward.restarts()), (address, 1));
    let again = format!("port-forward pod/pg-0 {}:5432 --address 127.0.0.1", address.port());
    assert_eq!(asked(&stub)[1], again);
    wait_until("the reason", || forward.last_words().contains("137"));
}

#[test]
fn a_way_that_is_renewed_leads_to_the_pod_of_that_name_anew() {
    let stub = stub(LISTENS);
    let forward = Forward::open(&stub.kubectl, "pg-0", 5432, WITHIN).expect("a way");
    let first = stub.number("number");
    forward.renew();
    let second = successor(&stub, first);
    assert!(!is_alive(first) && is_alive(second));
}

#[test]
fn a_kubectl_that_takes_no_more_connections_and_goes_on_is_ended() {
    let stuck = "while [ ! -e $folder/stuck ]; do sleep 0.05; done\nrm $folder/stuck\n\
                 echo 'error creating error stream for port 1 -> 5432: Timeout occurred' >&2\n\
                 exec sleep 1000\n";
    let stub = stub(&LISTENS.replace("exec sleep 1000\n", stuck));
    let forward = Forward::open(&stub.kubectl, "pg-0", 5432, WITHIN).expect("a way");
    let (address, first) = (forward.address(), stub.number("number"));
    stub.write("stuck", "");
    let second = successor(&stub, first);
    assert!(!is_alive(first) && is_alive(second));
    assert_eq!(forward.address(), address);
    wait_until("the reason", || forward.last_words().contains("took no more connections"));
}

#[test]
fn kubectl_ends_with_its_way() {
    let stub = stub(LISTENS);
    let forward = Forward::open(&stub.kubectl, "pg-0", 5432, WITHIN).expect("a way");
    let number = stub.number("number");
    assert!(is_alive(number));
    drop(forward);
    assert!(!is_alive(number));
    assert_eq!(asked(&stub).len(), 1, "nothing was started after that");
}

#[test]
fn a_kubectl_that_never_listens_is_no_way_and_its_reason_is_told() {
    let stub = stub("echo 'error: pod is not running. Current status=Pending' >&2\nexit 1\n");
    let error = Forward::open(&stub.kubectl, "pg-0", 5432, Duration::from_secs(5)).expect_err("no way");
    let ForwardError::NotOpened { said, .. } = error else { panic!("{error}") };
    assert_eq!(said, "kubectl ended with 1: error: pod is not running. Current status=Pending");
}

#[test]
fn a_pod_that_is_not_yet_there_is_waited_for() {
    let stub = stub(&format!("[ -e $folder/tried ] || {{ touch $folder/tried; exit 1; }}\n{LISTENS}"));
    let forward = Forward::open(&stub.kubectl, "pg-0", 5432, WITHIN).expect("a way");
    assert_eq!(forward.restarts(), 0, "it was open for the first time");
}

#[test]
fn without_kubectl_there_is_no_way_at_once() {
    let program = PathBuf::from("/nowhere/kubectl");
    let kubectl = Kubectl { program, kubeconfig: None, context: None, namespace: "default".to_owned() };
    let error = Forward::open(&kubectl, "pg-0", 5432, WITHIN).expect_err("not there");
    assert!(matches!(error, ForwardError::Kubectl(KubectlError::NotFound { .. })), "{error}");
}

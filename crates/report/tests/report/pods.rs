//! Runs in pods: where they were, and how each recovered.

use history::{KubernetesFacts, PodFacts, PodVolumeFacts, RecoveryPhase, RecoveryStep};

use crate::fixture::{self, Fixture};
use crate::page::{check, page};

fn in_pods() -> Fixture {
    let mut fixture = fixture::host_failure();
    let text = |text: &str| Some(text.to_owned());
    let volume = PodVolumeFacts {
        claim: "data-pg-0".to_owned(),
        capacity: text("10Gi"),
        storage_class: text("fast"),
        provisioner: text("ebs.csi.aws.com"),
        parameters: [("type".to_owned(), "gp3".to_owned())].into(),
        access_modes: vec!["ReadWriteOnce".to_owned()],
        reclaim: text("Delete"),
        ..PodVolumeFacts::default()
    };
    let pod = PodFacts {
        name: "n1".to_owned(),
        pod: "pg-0".to_owned(),
        uid: "0a1b".to_owned(),
        node: text("worker-1"),
        zone: text("eu-west-1a"),
        restarts: 2,
        role: text("primary"),
        volumes: vec![volume],
    };
    fixture.result.facts.is_external = true;
    fixture.result.facts.kubernetes = Some(KubernetesFacts {
        versions: "client v1.31.0, server v1.35.4".to_owned(),
        namespace: "databases".to_owned(),
        context: text("kind-lab"),
        pods: vec![pod],
        not_asked: vec!["zones of nodes: nodes is forbidden".to_owned()],
    });
    fixture
}

fn step(phase: RecoveryPhase, of: &str, at_s: f64) -> RecoveryStep {
    RecoveryStep { phase, of: of.to_owned(), at_s, after_gap: false }
}

#[test]
fn the_pods_and_their_volumes_stand_in_the_report_with_what_port_forward_does_to_latencies() {
    check(
        &in_pods(),
        &[
            "n1 pg-0 worker-1 eu-west-1a primary 2 data-pg-0: 10Gi, storage class fast of ebs.csi.aws.com (type gp3), \
             ReadWriteOnce, Delete",
            "Namespace databases, context kind-lab; kubectl: client v1.31.0, server v1.35.4.",
            "Not known: zones of nodes: nodes is forbidden.",
            "every latency has the way through the cluster&#39;s API server and the node&#39;s kubelet in it",
            "What clients within the cluster would have seen.",
        ],
    );
}

#[test]
fn a_recovery_is_told_phase_by_phase_to_the_first_success() {
    let mut fixture = in_pods();
    let fault = &mut fixture.result.faults[0];
    fault.took_effect_s = Some(20.0);
    fault.recovery_s.first_success = Some(4.5);
    fault.phases = vec![
        step(RecoveryPhase::PodGone, "pg-0", 21.25),
        step(RecoveryPhase::PodCreated, "pg-0", 21.5),
        RecoveryStep { after_gap: true, ..step(RecoveryPhase::PodReady, "pg-0", 24.0) },
        step(RecoveryPhase::EndpointUpdated, "pg-rw", 25.0),
    ];
    check(
        &fixture,
        &[
            "pod gone pg-0 1.25 s 1.25 s",
            "pod made again pg-0 1.50 s 250 ms",
            "pod ready pg-0 at the latest 4.00 s 2.50 s",
            "first success 4.50 s 500 ms",
            "service leads to it again pg-rw 5.00 s 500 ms",
        ],
    );
    assert!(page(&fixture).contains("id=\"recovery-in-phases\""));
}

#[test]
fn a_run_elsewhere_has_neither_section() {
    let page = page(&fixture::host_failure());
    assert!(!page.contains("recovery-in-phases") && !page.contains("id=\"the-pods\""));
}

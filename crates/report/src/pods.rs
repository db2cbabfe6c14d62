//! Members that are pods: where each was and on which volumes, and how it recovered from each fault, phase by phase.

use std::fmt::Write;

use history::{FaultId, KubernetesFacts, PodFacts, PodVolumeFacts, RecoveryPhase};
use results::{FaultResult, RunResult};

use crate::format;
use crate::markup::escape;

/// The table of pods; empty where the members are none.
pub(crate) fn pods(result: &RunResult) -> String {
    let Some(facts) = &result.facts.kubernetes else { return String::new() };
    let mut html = "<div class=\"scroll\"><table><thead><tr><th>Node<th>Pod<th>On<th>Zone\
                    <th>Role by its label<th class=\"n\">Restarts<th>Volumes</tr></thead><tbody>"
        .to_owned();
    for pod in &facts.pods {
        row(&mut html, pod);
    }
    html.push_str("</tbody></table></div>");
    let _ = write!(html, "<p>{}</p>", escape(&cluster(facts)));
    if !facts.not_asked.is_empty() {
        let not_asked = facts.not_asked.join("; ");
        let _ = write!(html, "<p class=\"note\">Not known: {}.</p>", escape(&not_asked));
    }
    html
}

fn row(html: &mut String, pod: &PodFacts) {
    let volumes: Vec<String> = pod.volumes.iter().map(volume).collect();
    let _ = write!(
        html,
        "<tr><th scope=\"row\">{}<td>{}<td>{}<td>{}<td>{}<td class=\"n\">{}<td>{}</tr>",
        escape(&pod.name),
        escape(&pod.pod),
        escape(pod.node.as_deref().unwrap_or("not known")),
        escape(pod.zone.as_deref().unwrap_or_default()),
        escape(pod.role.as_deref().unwrap_or_default()),
        format::count(u64::from(pod.restarts)),
        escape(&volumes.join("; ")),
    );
}

/// A volume in words: `data-pg-0: 10Gi, storage class fast of ebs.csi.aws.com (type gp3), ReadWriteOnce, Delete`.
fn volume(facts: &PodVolumeFacts) -> String {
    let mut words: Vec<String> = facts.capacity.iter().cloned().collect();
    let of = facts.provisioner.as_ref().map(|driver| format!(" of {driver}")).unwrap_or_default();
    let parameters: Vec<String> =
        facts.parameters.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let with = if parameters.is_empty() { String::new() } else { format!(" ({})", parameters.join(", ")) };
    words.extend(facts.storage_class.as_ref().map(|class| format!("storage class {class}{of}{with}")));
    words.extend(facts.access_modes.iter().cloned());
    words.extend(facts.reclaim.clone());
    if words.is_empty() { facts.claim.clone() } else { format!("{}: {}", facts.claim, words.join(", ")) }
}

fn cluster(facts: &KubernetesFacts) -> String {
    let context = facts.context.as_ref().map(|context| format!(", context {context}")).unwrap_or_default();
    format!(
        "As it was before the first load. Namespace {}{context}; kubectl: {}.",
        facts.namespace, facts.versions
    )
}

/// The recovery of pods from each fault; empty where nothing of it was seen.
pub(crate) fn recoveries(result: &RunResult) -> String {
    let mut html = String::new();
    for (number, fault) in FaultId::of_each(&result.faults).filter(|(_, fault)| !fault.phases.is_empty()) {
        recovery(&mut html, number, fault);
    }
    if !html.is_empty() {
        html.push_str(
            "<p>Each time is when the cluster's API first showed it to this machine, which is after it happened. A pod and \
             its successor of the same name are told apart by their UIDs. “At the latest”: the watch was interrupted just \
             before, so that it may have held earlier. A phase that is missing was not seen, or held already before the \
             fault. The first success is that of the load that took longest, without time in which nothing was due.</p>",
        );
    }
    html
}

fn recovery(html: &mut String, number: FaultId, fault: &FaultResult) {
    let effect_s = fault.took_effect_s.unwrap_or(fault.asked_s);
    let mut moments: Vec<Moment> = fault
        .phases
        .iter()
        .map(|step| Moment {
            what: in_words(step.phase),
            of: &step.of,
            after_s: step.at_s - effect_s,
            is_latest: step.after_gap,
        })
        .collect();
    let first = fault.recovery_s.first_success;
    moments.extend(first.map(|after_s| Moment { what: "first success", of: "", after_s, is_latest: false }));
    moments.sort_by(|one, other| one.after_s.total_cmp(&other.after_s));
    let _ = write!(
        html,
        "<div class=\"item\"><h3>Fault {}: {} <small>{}</small></h3><div class=\"scroll\"><table><thead><tr><th>Phase<th>Of\
         <th class=\"n\">After the fault<th class=\"n\">After the one before</tr></thead><tbody>",
        number.ordinal(),
        escape(&fault.kind),
        escape(&fault.target)
    );
    let mut before_s = 0.0;
    for moment in &moments {
        let latest = if moment.is_latest { "at the latest " } else { "" };
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}<td>{}<td class=\"n\">{latest}{}<td class=\"n\">{}</tr>",
            moment.what,
            escape(moment.of),
            format::latency_or_zero(moment.after_s * 1e6),
            format::latency_or_zero((moment.after_s - before_s) * 1e6)
        );
        before_s = moment.after_s;
    }
    html.push_str("</tbody></table></div></div>");
}

/// A line of a recovery.
struct Moment<'a> {
    what: &'static str,
    of: &'a str,
    after_s: f64,
    is_latest: bool,
}

/// The recovery from a fault in one line, each part once with its time after the fault; none where nothing of it was seen.
pub(crate) fn recovery_line(fault: &FaultResult) -> Option<String> {
    let effect_s = fault.took_effect_s.unwrap_or(fault.asked_s);
    let mut told: Vec<&'static str> = Vec::new();
    let mut parts = Vec::new();
    for step in &fault.phases {
        let what = in_words(step.phase);
        if !told.contains(&what) {
            told.push(what);
            let latest = if step.after_gap { "at the latest " } else { "" };
            parts.push(format!("{what} {latest}{}", format::seconds(step.at_s - effect_s)));
        }
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn in_words(phase: RecoveryPhase) -> &'static str {
    match phase {
        RecoveryPhase::NodeLost => "node taken for lost",
        RecoveryPhase::LeaseExpired => "node’s lease expired",
        RecoveryPhase::PodDeleted => "pod asked to end",
        RecoveryPhase::PodGone => "pod gone",
        RecoveryPhase::PodCreated => "pod made again",
        RecoveryPhase::PodScheduled => "pod has a node",
        RecoveryPhase::VolumeDetached => "volume detached",
        RecoveryPhase::VolumeAttached => "volume attached",
        RecoveryPhase::ContainerStarted => "container runs",
        RecoveryPhase::PodReady => "pod ready",
        RecoveryPhase::EndpointUpdated => "service leads to it again",
    }
}

#[cfg(test)]
mod tests {
    use history::RecoveryStep;

    use super::*;

    #[test]
    fn a_recovery_in_one_line_has_each_part_once_with_its_time_after_the_fault() {
        let step =
            |phase, of: &str, at_s, after_gap| RecoveryStep { phase, of: of.to_owned(), at_s, after_gap };
        let phases = vec![
            step(RecoveryPhase::LeaseExpired, "n1", 13.5, false),
            step(RecoveryPhase::PodReady, "db-0", 38.0, true),
            step(RecoveryPhase::EndpointUpdated, "db", 38.1, false),
            step(RecoveryPhase::EndpointUpdated, "db-first", 38.2, false),
        ];
        let fault = FaultResult {
            took_effect_s: Some(10.0),
            phases,
            ..FaultResult::asked("power-off", "host: leader", 9.9)
        };
        let line = recovery_line(&fault).expect("a line").replace('\u{a0}', " ");
        assert_eq!(
            line,
            "node’s lease expired 3.5 s, pod ready at the latest 28.0 s, service leads to it again 28.1 s"
        );
        assert_eq!(recovery_line(&FaultResult::asked("power-off", "n1", 1.0)), None);
    }
}
